#include "tests/faults/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "tests/e2e/cluster.h"

namespace kith::e2e {

namespace fs = std::filesystem;

namespace {

constexpr const char* kGroups = "/sys/fs/cgroup";
const std::string kPrefix = "kl";

std::string own_name(const std::string& what) {
  static int count = 0;
  return kPrefix + std::to_string(::getpid()) + what + std::to_string(++count);
}

bool is_leftover(const std::string& name) {
  pid_t pid = 0;
  if (!name.starts_with(kPrefix)) return false;
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
  return parsed.ec == std::errc() && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::string text_of(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The test's own group under a version 1 controller, or (empty name) under version 2.
std::string own_group(const std::string& controller) {
  std::stringstream lines(text_of("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "/";
}

struct Place {
  std::string parent;
  bool second_version = false;
};

std::optional<Place> place_of(const std::string& controller) {
  const std::string first = std::string(kGroups) + "/" + controller;
  if (fs::exists(first + "/tasks")) return Place{first + own_group(controller), false};
  const std::string second = kGroups + own_group("");
  const std::string controllers = text_of(std::string(kGroups) + "/cgroup.controllers");
  if (controllers.empty()) return std::nullopt;
  // A group that holds processes cannot hand out controllers (only the root can): children of the
  // root then.
  const bool needs_controller = controller != "freezer";
  if (needs_controller && controllers.find(controller) == std::string::npos) return std::nullopt;
  return Place{needs_controller ? kGroups : second, true};
}

void move_out(const std::string& folder, const std::string& parent) {
  std::stringstream pids(text_of(folder + "/cgroup.procs"));
  for (pid_t pid = 0; pids >> pid;) std::ofstream(parent + "/cgroup.procs") << pid;
}

void remove_group(const std::string& folder, const std::string& parent) {
  std::ofstream(folder + "/freezer.state") << "THAWED";
  std::ofstream(folder + "/cgroup.freeze") << "0";
  wait_until(seconds(5), [&] {
    move_out(folder, parent);
    return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
  });
}

}  // namespace

std::string ControlGroup::missing(const std::string& controller) {
  if (::geteuid() != 0) return "control groups need root";
  const auto place = place_of(controller);
  if (!place) return "no control groups with the controller '" + controller + "' are mounted";
  const std::string probe = place->parent + "/" + own_name("probe");
  if (::mkdir(probe.c_str(), 0755) != 0) return "cannot make a control group in " + place->parent;
  ::rmdir(probe.c_str());
  return "";
}

ControlGroup::ControlGroup(const std::string& controller) {
  const auto place = place_of(controller);
  if (!place) throw std::runtime_error("no controller " + controller);
  parent_ = place->parent;
  second_version_ = place->second_version;
  for (const auto& entry : fs::directory_iterator(parent_))
    if (entry.is_directory() && is_leftover(entry.path().filename()))
      remove_group(entry.path(), parent_);
  folder_ = parent_ + "/" + own_name(controller);
  if (second_version_ && controller != "freezer")
    std::ofstream(parent_ + "/cgroup.subtree_control") << "+" << controller;
  if (::mkdir(folder_.c_str(), 0755) != 0)
    throw std::system_error(errno, std::generic_category(), folder_);
}

ControlGroup::~ControlGroup() { remove_group(folder_, parent_); }

void ControlGroup::set(const std::string& file, const std::string& value) const {
  std::ofstream out(folder_ + "/" + file);
  out << value << std::flush;
  if (!out) throw std::runtime_error("cannot write " + value + " to " + folder_ + "/" + file);
}

void ControlGroup::add(pid_t pid) const { set("cgroup.procs", std::to_string(pid)); }

void ControlGroup::freeze(bool on) const {
  if (second_version_) return set("cgroup.freeze", on ? "1" : "0");
  set("freezer.state", on ? "FROZEN" : "THAWED");
}

void ControlGroup::cpu_percent(unsigned percent) const {
  const std::string quota = std::to_string(percent * 1000);
  if (second_version_) return set("cpu.max", quota + " 100000");
  set("cpu.cfs_period_us", "100000");
  set("cpu.cfs_quota_us", quota);
}

void ControlGroup::memory_max(std::size_t bytes) const {
  set(second_version_ ? "memory.max" : "memory.limit_in_bytes", std::to_string(bytes));
}

std::string SmallDisk::missing() {
  return ::geteuid() == 0 ? "" : "mounting a file system needs root";
}

SmallDisk::SmallDisk(std::size_t bytes) {
  const fs::path base = fs::temp_directory_path();
  for (const auto& entry : fs::directory_iterator(base)) {
    if (!is_leftover(entry.path().filename())) continue;
    ::umount2(entry.path().c_str(), MNT_DETACH);
    ::rmdir(entry.path().c_str());
  }
  folder_ = base / own_name("disk");
  fs::create_directories(folder_);
  const std::string size = "size=" + std::to_string(bytes);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, size.c_str()) != 0)
    throw std::system_error(errno, std::generic_category(), "mount " + folder_);
}

SmallDisk::~SmallDisk() {
  ::umount2(folder_.c_str(), MNT_DETACH);
  ::rmdir(folder_.c_str());
}

void SmallDisk::fill() const {
  const int fd =
      ::open((folder_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (::write(fd, block.data(), block.size()) > 0) {
  }
  ::close(fd);
}

void SmallDisk::make_room() const { fs::remove(folder_ + "/filler"); }

}  // namespace kith::e2e
