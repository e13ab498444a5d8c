// A container engine of the test's own: Debian's dockerd with its data, its socket and its pid file
// in the test's folder, and base images made from Debian packages, so that no registry of images is
// asked. It is ended with the object, together with the bridge, the firewall rules and the
// forwarding switch that it set up.
//
// Needs root, Debian's docker.io (/usr/bin/docker, /usr/sbin/dockerd), debootstrap, and no other
// engine's bridge on this machine; where that is not so, why_not() says what is missing. Thread:
// one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/cluster.h"

namespace kith::docker {

using e2e::Finished;
using e2e::seconds;

class Engine {
 public:
  // Empties `folder` (base.tar, the Debian root, is kept) and starts dockerd there.
  explicit Engine(const std::string& folder);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Why there is no engine, in one line; empty when there is one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  // `docker ARGUMENTS`: exit status and output of both streams.
  Finished docker(std::vector<std::string> arguments, seconds bound = seconds(60)) const;
  // The same, and its output without the last line end; a failure of the test when it does not exit
  // 0.
  std::string ask(std::vector<std::string> arguments, seconds bound = seconds(60)) const;
  // `docker build` of `context` with the classic builder, the only one in Debian 12.
  Finished build(const std::string& context, const std::vector<std::string>& arguments,
                 seconds bound) const;

  // Makes debian:bookworm-slim; the reason when it could not.
  std::string import_base();
  // An image whose files are those below `root`.
  std::string import_folder(const std::string& root, const std::string& tag) const;

  [[nodiscard]] std::string host() const { return "unix://" + folder_ + "/docker.sock"; }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string missing() const;
  void clear_what_was_left() const;
  void remember_network() const;
  void restore_network() const;

  std::string folder_, why_not_;
  std::unique_ptr<e2e::Node> daemon_;
};

}  // namespace kith::docker
