// Loads the Gloo lane, if it was built (KITH_TORCH).
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/bench/exchange_lane.h"

namespace kith::bench {
namespace {

using MakeLane = Lane* (*)(int side, const char* store_file, std::size_t values);

MakeLane load() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto module = program.parent_path().parent_path() / "lib" / "libkith_bench_gloo.so";
  if (error || !std::filesystem::exists(module)) return nullptr;
  void* handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "kith_bench: without gloo: %s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<MakeLane>(dlsym(handle, "kith_bench_make_gloo_lane"));
}

// A file through which the two sides find each other; side 0 makes its name.
std::string store_file(Pair& pair) {
  std::string name = (std::filesystem::temp_directory_path() / "kith-bench-gloo-XXXXXX").string();
  if (pair.side() == 1) return pair.trade("");
  const int fd = mkstemp(name.data());
  if (fd >= 0) close(fd);
  pair.trade(name);
  return name;
}

}  // namespace

Result<std::unique_ptr<Lane>> make_gloo_lane(const ExchangeBenchOptions& options, Pair& pair) {
  const MakeLane make = load();
  const bool both = (pair.trade(std::uint64_t{make != nullptr}) != 0) && make != nullptr;
  if (!both) return std::unique_ptr<Lane>();
  const std::string file = store_file(pair);
  std::unique_ptr<Lane> lane(make(pair.side(), file.c_str(), value_count(options)));
  const bool made = (pair.trade(std::uint64_t{lane != nullptr}) != 0) && lane != nullptr;
  if (pair.side() == 0) std::filesystem::remove(file);
  if (!made) return std::unique_ptr<Lane>();
  return lane;
}

}  // namespace kith::bench
