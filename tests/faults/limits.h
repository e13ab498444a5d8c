// What else a machine can run short of, made for one process: control groups (frozen, few CPU,
// little memory) and a small file system. Named after the test's process; destructors remove them,
// and the next one made removes what a killed test left.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace kith::e2e {

// One control group under one controller ("freezer", "cpu" or "memory"), version 1 or 2, whichever
// the machine has.
class ControlGroup {
 public:
  // Empty: can be made here. Else the reason.
  static std::string missing(const std::string& controller);

  explicit ControlGroup(const std::string& controller);
  ~ControlGroup();  // thaws, and moves what still lives in it to where the test itself is
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  void add(pid_t pid) const;  // all its threads
  void freeze(bool on) const;
  void cpu_percent(unsigned percent) const;  // of one core
  void memory_max(std::size_t bytes) const;

 private:
  void set(const std::string& file, const std::string& value) const;
  std::string parent_, folder_;
  bool second_version_ = false;
};

// A file system in memory of this size, mounted on a folder of its own.
class SmallDisk {
 public:
  static std::string missing();
  explicit SmallDisk(std::size_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Takes all the room there is, or gives it back.
  void fill() const;
  void make_room() const;

 private:
  std::string folder_;
};

}  // namespace kith::e2e
