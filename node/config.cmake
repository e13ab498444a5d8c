# kith::node_config: the configuration and its one table of keys, program flags, log lines, version.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)

if(KITH_TORCH AND EXISTS ${CMAKE_SOURCE_DIR}/compute/torch/CMakeLists.txt)
  get_directory_property(kith_torch_version DIRECTORY ${CMAKE_SOURCE_DIR}/compute/torch DEFINITION KITH_TORCH_VERSION)
  set(kith_torch_text "LibTorch ${kith_torch_version}")
else()
  set(kith_torch_text "without LibTorch")
endif()
if(KITH_CUDA)
  string(APPEND kith_torch_text " with CUDA ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
set(kith_git_header ${CMAKE_BINARY_DIR}/generated/kith_git_version.h)
add_custom_target(kith_git_version
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUT=${kith_git_header} -DVERSION=${PROJECT_VERSION}
          "-DTORCH=${kith_torch_text}" -P ${CMAKE_SOURCE_DIR}/cmake/KithGitVersion.cmake
  BYPRODUCTS ${kith_git_header} VERBATIM)

add_library(kith_node_config STATIC
  cli_help.cc cli_pages.cc
  config.cc config_assign.cc config_check.cc config_key_text.cc config_keys.cc config_show.cc config_value.cc
  daemon_flags.cc log_format.cc log_writer.cc reload.cc version.cc)
add_library(kith::node_config ALIAS kith_node_config)
add_dependencies(kith_node_config kith_git_version)
target_link_libraries(kith_node_config
  PUBLIC kith::base kith::node_text
  PRIVATE kith::compute kith::messages kith::gossip CLI11::CLI11
    nlohmann_json::nlohmann_json PkgConfig::TOMLPLUSPLUS spdlog::spdlog)
