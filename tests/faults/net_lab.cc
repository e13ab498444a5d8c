#include "tests/faults/net_lab.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "tests/e2e/cluster.h"

namespace kith::e2e {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNetnsFolder = "/run/netns";
constexpr std::size_t kNodesMax = 200;

std::string file_of(const std::string& netns) { return std::string(kNetnsFolder) + "/" + netns; }

// `ip`, inside a namespace if one is named. Not by `ip -n` or `ip netns exec`: these also mount,
// which fails in a chroot.
std::string ip(const std::string& netns, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {tool("ip")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return must_run(command, netns.empty() ? "" : file_of(netns));
}

// The process that a lab's namespace is named after.
std::optional<pid_t> owner_of(const std::string& netns) {
  if (!netns.starts_with("kl")) return std::nullopt;
  pid_t pid = 0;
  const auto parsed = std::from_chars(netns.data() + 2, netns.data() + netns.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return std::nullopt;
  return pid;
}

void remove_netns(const std::string& netns) {
  // Whatever still runs inside was started there by a test of ours.
  std::stringstream pids(run_program({tool("ip"), "netns", "pids", netns}).output);
  for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
  run_program({tool("ip"), "netns", "del", netns});
}

std::vector<std::string> namespaces() {
  std::vector<std::string> names;
  std::error_code absent;
  for (fs::directory_iterator it(kNetnsFolder, absent), end; !absent && it != end;
       it.increment(absent))
    names.push_back(it->path().filename().string());
  return names;
}

void remove_leftovers() {
  for (const auto& netns : namespaces())
    if (const auto pid = owner_of(netns); pid && ::kill(*pid, 0) != 0 && errno == ESRCH)
      remove_netns(netns);
}

std::string find_missing() {
  if (::geteuid() != 0) return "network namespaces need root";
  for (const char* program : {"ip", "tc", "nft", "ss"})
    if (tool(program).empty())
      return std::string(program) + " is not installed (iproute2, nftables)";
  remove_leftovers();
  const std::string probe = "kl" + std::to_string(::getpid()) + "probe";
  const auto made = run_program({tool("ip"), "netns", "add", probe});
  if (made.exit.code != 0) return "this machine makes no network namespaces: " + made.output;
  std::string reason;
  const auto bridge = run_program({tool("ip"), "link", "add", "br0", "type", "bridge"}, seconds(10),
                                  {}, file_of(probe));
  if (bridge.exit.code != 0) reason = "this kernel makes no bridges: " + bridge.output;
  const auto table =
      run_program({tool("nft"), "add", "table", "inet", "kith"}, seconds(10), {}, file_of(probe));
  if (table.exit.code != 0) reason = "this kernel has no nf_tables: " + table.output;
  remove_netns(probe);
  return reason;
}

}  // namespace

std::string tool(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (::access((folder + program).c_str(), X_OK) == 0) return folder + program;
  return "";
}

std::string must_run(const std::vector<std::string>& command, const std::string& netns) {
  const auto run = run_program(command, seconds(60), {}, netns);
  if (run.exit.code == 0) return run.output;
  std::string text;
  for (const auto& word : command) text += word + " ";
  throw std::runtime_error(text + "failed: " + run.output);
}

const std::string& NetLab::missing() {
  static const std::string reason = find_missing();
  return reason;
}

NetLab::NetLab(std::size_t nodes) : prefix_("kl" + std::to_string(::getpid())), faults_(nodes) {
  if (nodes > kNodesMax) throw std::runtime_error("a lab has addresses for 200 nodes");
  remove_leftovers();
  const std::string hub = name("hub");
  ip("", {"netns", "add", hub});
  ip(hub, {"link", "add", "br0", "type", "bridge"});
  ip(hub, {"link", "set", "br0", "up"});
  for (std::size_t k = 0; k < nodes; ++k) {
    attach(name(k), "p" + std::to_string(k), {address(k)});
    apply(k);
  }
  std::vector<std::string> proxies;
  for (std::size_t k = 0; k < nodes; ++k) proxies.push_back(proxy_address(k));
  attach(name("proxy"), "px", proxies);
}

NetLab::~NetLab() {
  for (const auto& netns : namespaces())
    if (owner_of(netns) == ::getpid()) remove_netns(netns);
}

std::string NetLab::name(const std::string& what) const { return prefix_ + what; }
std::string NetLab::netns(std::size_t node) const {
  return std::string(kNetnsFolder) + "/" + name(node);
}
std::string NetLab::proxy_netns() const { return std::string(kNetnsFolder) + "/" + name("proxy"); }
std::string NetLab::address(std::size_t node) { return "10.77.0." + std::to_string(node + 1); }
std::string NetLab::proxy_address(std::size_t node) {
  return "10.77.1." + std::to_string(node + 1);
}

void NetLab::attach(const std::string& netns, const std::string& link,
                    const std::vector<std::string>& addresses) const {
  const std::string hub = name("hub");
  ip("", {"netns", "add", netns});
  ip(netns, {"link", "set", "lo", "up"});
  ip(hub, {"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", netns});
  ip(hub, {"link", "set", link, "master", "br0", "up"});
  for (const auto& address : addresses) ip(netns, {"addr", "add", address + "/16", "dev", "eth0"});
  ip(netns, {"link", "set", "eth0", "up"});
}

void NetLab::cut(std::size_t from, std::size_t to) {
  faults_.at(to).cut_from.insert(from);
  apply(to);
}

void NetLab::cut_both(std::size_t a, std::size_t b) {
  cut(a, b);
  cut(b, a);
}

void NetLab::restore(std::size_t from, std::size_t to) {
  faults_.at(to).cut_from.erase(from);
  apply(to);
}

void NetLab::split(const std::set<std::size_t>& half) {
  for (std::size_t a = 0; a < size(); ++a) {
    for (std::size_t b = 0; b < size(); ++b)
      if (half.contains(a) != half.contains(b)) faults_[a].cut_from.insert(b);
    apply(a);
  }
}

void NetLab::loss(std::size_t node, unsigned percent) {
  faults_.at(node).loss_percent = percent;
  apply(node);
}

void NetLab::longest_packet(std::size_t node, unsigned bytes) {
  faults_.at(node).longest_packet_bytes = bytes;
  apply(node);
}

void NetLab::heal() {
  for (std::size_t k = 0; k < size(); ++k) {
    faults_[k] = {};
    apply(k);
  }
}

// The whole table in one transaction, so that no packet sees half of it.
void NetLab::apply(std::size_t node) const {
  const Faults& faults = faults_[node];
  std::string rules =
      "table inet kith\ndelete table inet kith\ntable inet kith {\n chain in {\n"
      "  type filter hook input priority 0\n  iifname \"lo\" accept\n";
  for (const std::size_t from : faults.cut_from) rules += "  ip saddr " + address(from) + " drop\n";
  if (faults.loss_percent > 0)
    rules += "  numgen random mod 100 < " + std::to_string(faults.loss_percent) + " drop\n";
  if (faults.longest_packet_bytes > 0)
    rules += "  ip length > " + std::to_string(faults.longest_packet_bytes) + " drop\n";
  rules += " }\n}\n";
  const std::string file = "/tmp/" + name(node) + ".nft";
  std::ofstream(file) << rules;
  must_run({tool("nft"), "-f", file}, netns(node));
  fs::remove(file);
}

void NetLab::rate(std::size_t node, const std::string& rate) {
  const std::string port = "p" + std::to_string(node);
  const std::vector<std::pair<std::string, std::string>> ends = {{name("hub"), port},
                                                                 {name(node), "eth0"}};
  for (const auto& [netns, device] : ends) {
    if (rate.empty()) {
      run_program({tool("tc"), "qdisc", "del", "dev", device, "root"}, seconds(10), {},
                  file_of(netns));
    } else {
      must_run({tool("tc"), "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst",
                "16kb", "latency", "400ms"},
               file_of(netns));
    }
  }
}

void NetLab::mtu(std::size_t node, unsigned bytes) {
  ip(name("hub"), {"link", "set", "p" + std::to_string(node), "mtu", std::to_string(bytes)});
  ip(name(node), {"link", "set", "eth0", "mtu", std::to_string(bytes)});
}

void NetLab::blackhole_route(std::size_t node, std::size_t to, bool on) {
  ip(name(node), {"route", on ? "add" : "del", "blackhole", address(to) + "/32"});
}

std::size_t NetLab::reset_connections(std::size_t node) {
  const auto run = run_program(
      {tool("ss"), "-K", "-H", "-t", "-n", "state", "established", "dst", "10.77.0.0/16"},
      seconds(10), {}, netns(node));
  return static_cast<std::size_t>(std::count(run.output.begin(), run.output.end(), '\n'));
}

}  // namespace kith::e2e
