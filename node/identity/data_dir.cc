#include "node/identity/data_dir.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "node/text/small_file.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAutomatic = "auto:";
constexpr std::string_view kPrefix = "node-";

std::string parent_of(const std::string& data_dir) { return data_dir.substr(kAutomatic.size()); }

std::string numbered(const std::string& parent, int number) {
  return (fs::path(parent) / (std::string(kPrefix) + std::to_string(number))).string();
}

// The number in "node-7"; 0 for every other name.
int number_in(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size() || name[kPrefix.size()] == '0')
    return 0;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
  return error == std::errc{} && stopped == end && number > 0 && number <= kDirectoriesMax ? number
                                                                                           : 0;
}

// "" when none has had it.
Result<std::string> host_of(const std::string& directory) {
  return first_line_in((fs::path(directory) / "host").string());
}

Status remember_host(const std::string& directory, const std::string& host) {
  KITH_ASSIGN(const std::string known, host_of(directory));
  if (known == host) return {};
  const std::string path = (fs::path(directory) / "host").string();
  std::ofstream out(path, std::ios::trunc);
  out << host << "\n";
  out.close();
  if (!out) return fail(path + ": cannot be written");
  return {};
}

Result<std::vector<int>> numbers_in(const std::string& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  std::vector<int> numbers;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    if (const int number = number_in(entry->path().filename().string()); number != 0)
      numbers.push_back(number);
  if (error)
    return fail(ErrorCode::kUsage,
                "node.data_dir " + std::string(kAutomatic) + parent + ": " + error.message());
  std::ranges::sort(numbers);
  return numbers;
}

// The directories that exist: this host's own first.
Result<std::vector<int>> candidates(const std::string& parent, const std::string& host) {
  KITH_ASSIGN(const std::vector<int> numbers, numbers_in(parent));
  std::vector<int> own, others;
  for (const int number : numbers) {
    KITH_ASSIGN(const std::string known, host_of(numbered(parent, number)));
    (known == host ? own : others).push_back(number);
  }
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

Result<DataDir> take(const std::string& path, const std::string& host) {
  KITH_ASSIGN(DataDirLock lock, DataDirLock::acquire(path));
  KITH_TRY(remember_host(path, host));
  return DataDir{path, std::move(lock)};
}

bool is_held(const Result<DataDir>& taken) {
  return !taken && taken.error().code == ErrorCode::kDataDirInUse;
}

}  // namespace

bool is_automatic(const std::string& data_dir) { return data_dir.starts_with(kAutomatic); }

Result<DataDir> take_data_dir(const std::string& data_dir, const std::string& host) {
  if (!is_automatic(data_dir)) {
    KITH_ASSIGN(DataDirLock lock, DataDirLock::acquire(data_dir));
    return DataDir{data_dir, std::move(lock)};
  }
  const std::string parent = parent_of(data_dir);
  KITH_ASSIGN(const std::vector<int> existing, candidates(parent, host));
  for (const int number : existing)
    if (auto taken = take(numbered(parent, number), host); !is_held(taken)) return taken;
  for (int number = 1; number <= kDirectoriesMax; ++number) {
    if (std::ranges::find(existing, number) != existing.end()) continue;
    if (auto taken = take(numbered(parent, number), host); !is_held(taken)) return taken;
  }
  return fail(ErrorCode::kDataDirInUse,
              parent + ": all " + std::to_string(kDirectoriesMax) + " directories are in use");
}

Result<std::string> find_data_dir(const std::string& data_dir, const std::string& host) {
  if (!is_automatic(data_dir)) return data_dir;
  const std::string parent = parent_of(data_dir);
  KITH_ASSIGN(const std::vector<int> existing, numbers_in(parent));
  std::error_code error;
  for (const int number : existing) {
    const std::string path = numbered(parent, number);
    KITH_ASSIGN(const std::string known, host_of(path));
    if (known == host && fs::is_socket(fs::path(path) / "control.sock", error)) return path;
  }
  return fail(ErrorCode::kNoDaemon,
              parent + ": no daemon of this host (" + host + ") keeps its data directory there");
}

}  // namespace kith::node
