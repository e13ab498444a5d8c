# Libraries from Debian's packages (scripts/setup.sh installs them). LibTorch: cmake/KithTorch.cmake.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
# pkg-config rather than CapnProtoConfig.cmake, which also wants libatomic found by a C compiler and OpenSSL.
pkg_check_modules(CAPNP REQUIRED IMPORTED_TARGET capnp)
find_package(tl-expected QUIET)
find_path(KITH_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
