#include "monitoring/process_stats.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace kith::monitoring {
namespace {

std::string read_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Fields of /proc/self/stat after the command name, which may itself hold blanks and brackets:
// field 3 is [0].
std::vector<std::string_view> stat_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string_view::npos) return fields;
  text.remove_prefix(end_of_name + 1);
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    const auto length = std::min(text.find_first_of(" \n"), text.size());
    if (length > 0) fields.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return fields;
}

std::optional<double> number(std::string_view text) {
  unsigned long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> field(const std::vector<std::string_view>& fields,
                            std::size_t number_in_manual) {
  const std::size_t index = number_in_manual - 3;
  return index < fields.size() ? number(fields[index]) : std::nullopt;
}

std::optional<double> boot_time_seconds() {
  const std::string text = read_file("/proc/stat");
  const auto at = text.find("\nbtime ");
  return at == std::string::npos ? std::nullopt : number(std::string_view(text).substr(at + 7));
}

std::optional<double> count_open_fds() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return std::nullopt;
  double count = -1;  // the descriptor of this very folder
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

std::optional<double> fd_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

ProcessStats read_process_stats() {
  const std::string stat = read_file("/proc/self/stat");
  const auto fields = stat_fields(stat);
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessStats out;
  if (const auto user = field(fields, 14), system = field(fields, 15); user && system) {
    out.cpu_seconds = (*user + *system) / ticks;
  }
  out.threads = field(fields, 20);
  if (const auto started = field(fields, 22), boot = boot_time_seconds(); started && boot) {
    out.start_time_seconds = *boot + *started / ticks;
  }
  out.virtual_bytes = field(fields, 23);
  if (const auto pages = field(fields, 24)) {
    out.resident_bytes = *pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  out.open_fds = count_open_fds();
  out.max_fds = fd_limit();
  return out;
}

}  // namespace kith::monitoring
