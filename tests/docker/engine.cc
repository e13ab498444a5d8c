#include "tests/docker/engine.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace kith::docker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDocker = "/usr/bin/docker";
constexpr const char* kDaemon = "/usr/sbin/dockerd";
constexpr const char* kBridge = "/sys/class/net/docker0";
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const auto at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

void empty(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != "base.tar") fs::remove_all(entry.path(), error);
}

}  // namespace

std::string Engine::missing() const {
  if (::geteuid() != 0) return "an engine needs root";
  for (const char* program : {kDocker, kDaemon, "/usr/sbin/debootstrap", "/usr/sbin/iptables-save"})
    if (::access(program, X_OK) != 0)
      return std::string(program) + " is missing: scripts/setup.sh --test --containers";
  if (fs::exists(kBridge)) return "another engine's bridge docker0 is here, which would be shared";
  return "";
}

Engine::Engine(const std::string& folder) : folder_(folder) {
  clear_what_was_left();
  why_not_ = missing();
  if (!why_not_.empty()) return;
  empty(folder_);
  remember_network();
  daemon_ = std::make_unique<e2e::Node>("dockerd", folder_);
  daemon_->set_program(kDaemon);
  // No registry is asked for anything: a name that was not imported fails at once.
  daemon_->start({"--data-root", folder_ + "/data", "--exec-root", folder_ + "/exec", "--host",
                  host(), "--pidfile", folder_ + "/pid", "--registry-mirror", "http://127.0.0.1:9"},
                 {}, [] { ::prctl(PR_SET_PDEATHSIG, SIGTERM); });  // it has things to put away
  const bool up = e2e::wait_until(
      seconds(60), [&] { return docker({"info"}).exit.code == 0 || !daemon_->running(); });
  if (!up || !daemon_->running()) why_not_ = "dockerd does not start: " + last_line(daemon_->log());
}

Engine::~Engine() {
  if (!daemon_) return;
  if (why_not_.empty())
    (void)e2e::run_program({"/bin/sh", "-c",
                            std::string(kDocker) + " -H " + host() + " ps -q | xargs -r " +
                                kDocker + " -H " + host() + " kill"});
  daemon_->signal(SIGTERM);
  if (!daemon_->wait_exit(seconds(60))) daemon_->kill_now();
  restore_network();
  empty(folder_);
}

// A test that was killed could neither unmount nor put the network back.
void Engine::clear_what_was_left() const {
  if (!fs::exists(folder_ + "/rules")) return;
  (void)e2e::run_program(
      {"/bin/sh", "-c",
       "grep -o ' " + folder_ + "/[^ ]*' /proc/mounts | sort -r | xargs -r umount -l"});
  restore_network();
}

void Engine::remember_network() const {
  std::ofstream(folder_ + "/rules")
      << "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
         "COMMIT\n*nat\nCOMMIT\n"
      << e2e::run_program({"/usr/sbin/iptables-save"}).output;
  fs::copy_file(kForwarding, folder_ + "/forwarding", fs::copy_options::overwrite_existing);
}

void Engine::restore_network() const {
  (void)e2e::run_program({"/usr/sbin/iptables-restore", folder_ + "/rules"});
  (void)e2e::run_program({"/sbin/ip", "link", "delete", "docker0"});
  std::ofstream(kForwarding) << e2e::bytes_of(folder_ + "/forwarding");
}

Finished Engine::docker(std::vector<std::string> arguments, seconds bound) const {
  arguments.insert(arguments.begin(), {kDocker, "-H", host()});
  return e2e::run_program(arguments, bound, {{"DOCKER_BUILDKIT", "0"}});
}

std::string Engine::ask(std::vector<std::string> arguments, seconds bound) const {
  const std::string what = arguments.front();
  Finished run = docker(std::move(arguments), bound);
  EXPECT_EQ(run.exit.code, 0) << "docker " << what << ": " << run.output;
  while (run.output.ends_with('\n')) run.output.pop_back();
  return run.output;
}

Finished Engine::build(const std::string& context, const std::vector<std::string>& arguments,
                       seconds bound) const {
  std::vector<std::string> all = {"build"};
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0)
      all.insert(all.end(), {"--build-arg", std::string(name) + "=" + value});
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.push_back(context);
  return docker(all, bound);
}

std::string Engine::import_base() {
  const std::string tar = folder_ + "/base.tar";
  if (!fs::exists(tar)) {
    const Finished made = e2e::run_program(
        {"/bin/bash", KITH_SOURCE_DIR "/tests/docker/make_base.sh", tar}, seconds(600));
    if (made.exit.code != 0) return "no Debian root could be made: " + last_line(made.output);
  }
  const Finished imported = docker({"import", tar, "debian:bookworm-slim"}, seconds(120));
  return imported.exit.code == 0 ? "" : "docker import: " + last_line(imported.output);
}

std::string Engine::import_folder(const std::string& root, const std::string& tag) const {
  const std::string tar = folder_ + "/import.tar";
  const Finished packed = e2e::run_program({"/bin/tar", "-C", root, "-cf", tar, "."}, seconds(120));
  if (packed.exit.code != 0) return last_line(packed.output);
  const Finished imported = docker({"import", tar, tag}, seconds(120));
  return imported.exit.code == 0 ? "" : last_line(imported.output);
}

}  // namespace kith::docker
