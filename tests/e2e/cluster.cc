#include "tests/e2e/cluster.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace kith::e2e {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

namespace {

constexpr milliseconds kLook{20};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool until(milliseconds bound, const std::function<bool()>& condition) { return wait_until(bound, condition); }

void enter_netns(const std::string& file) {
  if (file.empty()) return;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(126);
  ::close(fd);
}

pid_t spawn(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
            const std::string& out, const std::string& err, const std::string& netns = "",
            const std::function<void()>& in_child = {}) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  // A test that is killed leaves nothing running.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);
  enter_netns(netns);
  for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
  const int o = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int e = out == err ? o : ::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int n = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(n, 0);
  ::dup2(o, 1);
  ::dup2(e, 2);
  std::vector<char*> argv;
  for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  if (in_child) in_child();
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

std::optional<Exit> reap(pid_t pid, bool block) {
  int status = 0;
  const pid_t got = ::waitpid(pid, &status, block ? 0 : WNOHANG);
  if (got != pid) return std::nullopt;
  Exit exit;
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  return exit;
}

}  // namespace

// The one place in these tests where time passes by itself.
bool wait_until(milliseconds bound, const std::function<bool()>& condition) {
  const auto end = Clock::now() + bound;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    ::poll(nullptr, 0, static_cast<int>(kLook.count()));
  }
  return true;
}

InNetns::InNetns(const std::string& file) {
  if (file.empty()) return;
  home_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) std::cerr << "cannot enter " << file << ": " << std::strerror(errno) << "\n";
  if (fd >= 0) ::close(fd);
}

InNetns::~InNetns() {
  if (home_ < 0) return;
  if (::setns(home_, CLONE_NEWNET) != 0) std::abort();
  ::close(home_);
}

// From the process's number, which has 22 bits; 127.0 and 127.77 are named by tests.
std::string loopback() {
  const auto pid = static_cast<unsigned>(::getpid());
  return "127." + std::to_string(128 + (pid >> 16) % 64) + "." + std::to_string(pid >> 8 & 255) + "." +
         std::to_string(pid & 255);
}

NodeOptions with(const std::vector<std::string>& sets) {
  NodeOptions options;
  for (const auto& set : sets) options.flags.insert(options.flags.end(), {"--set", set});
  return options;
}

void write_npy(const std::string& path, const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const char size[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\x00';
  out.write(size, sizeof size);
  out << header << data;
}

Node::Node(std::string name, std::string folder) : name_(std::move(name)), folder_(std::move(folder)) {
  fs::create_directories(folder_);
}

Node::~Node() { kill_now(); }

void Node::start(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
                 const std::function<void()>& in_child) {
  exit_.reset();
  ready_ = json::object();
  fs::remove(folder_ + "/out");  // the ready line of an earlier start must not be taken for this one's
  std::vector<std::string> all = {program_.empty() ? kithd_path() : program_};
  all.insert(all.end(), arguments.begin(), arguments.end());
  pid_ = spawn(all, environment, folder_ + "/out", folder_ + "/log", netns_, in_child);
}

void Node::set_http(const std::string& address) {
  ready_["http"] = address;
}

bool Node::wait_ready(milliseconds bound) {
  const auto look = [this] {
    const std::string out = read_file(folder_ + "/out");
    const auto end = out.find('\n');
    if (end == std::string::npos) return !running();
    ready_ = json::object();
    std::stringstream words(out.substr(0, end));
    for (std::string word; words >> word;)
      if (const auto eq = word.find('='); eq != std::string::npos) ready_[word.substr(0, eq)] = word.substr(eq + 1);
    return true;
  };
  return until(bound, look) && ready_.contains("http");
}

bool Node::running() {
  if (pid_ < 0 || exit_) return false;
  exit_ = reap(pid_, false);
  return !exit_;
}

std::optional<Exit> Node::wait_exit(milliseconds bound) {
  until(bound, [this] { return !running(); });
  return exit_;
}

void Node::signal(int number) const {
  if (pid_ > 0 && !exit_) ::kill(pid_, number);
}

void Node::kill_now() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  exit_ = reap(pid_, true);
}

std::string Node::get_text(const std::string& path) const {
  if (!ready_.contains("http")) return "";
  const InNetns inside(netns_);
  httplib::Client client("http://" + ready_["http"].get<std::string>());
  client.set_connection_timeout(2);
  client.set_read_timeout(5);
  const auto reply = client.Get(path.c_str());
  return reply ? reply->body : "";
}

json Node::get(const std::string& path) const { return json::parse(get_text(path), nullptr, false); }

double Node::metric(const std::string& series) const {
  std::stringstream lines(get_text("/metrics"));
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(series + " ", 0) == 0) return std::strtod(line.c_str() + series.size(), nullptr);
  return std::nan("");
}

std::string Node::log() const { return read_file(folder_ + "/log"); }

Cluster::Cluster(std::string config) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char& c : name)
    if (c == '/') c = '-';
  folder_ = std::string(KITH_BINARY_DIR) + "/e2e/" + name;
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  config_file_ = folder_ + "/run.toml";
  std::ofstream(config_file_) << config;
}

Cluster::~Cluster() {
  if (::testing::Test::HasFailure()) print_logs();
}

Node& Cluster::add(NodeOptions options) {
  const std::string name = "n" + std::to_string(nodes_.size() + 1);
  auto node = std::make_unique<Node>(name, folder_ + "/" + name);
  std::vector<std::string> arguments = {"-c",          config_file_, "--name",          name,
                                        "--listen",    loopback() + ":0", "--http",     loopback() + ":0",
                                        "--data-dir",  folder_ + "/" + name + "/data"};
  std::string seeds;
  for (const auto& other : nodes_)
    if (other->running() && !other->address().empty()) seeds += (seeds.empty() ? "" : ",") + other->address();
  if (!seeds.empty()) arguments.insert(arguments.end(), {"--join", seeds});
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  node->set_netns(options.netns);
  node->set_program(options.program);
  node->start(arguments, options.environment, options.in_child);
  if (options.wait_ready) {
    EXPECT_TRUE(node->wait_ready()) << node->log();
  }
  nodes_.push_back(std::move(node));
  arguments_.push_back(arguments);
  return *nodes_.back();
}

Node& Cluster::restart(std::size_t index, NodeOptions options) {
  std::vector<std::string> arguments = arguments_.at(index);
  std::string seeds;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (i != index && nodes_[i]->running() && !nodes_[i]->address().empty())
      seeds += (seeds.empty() ? "" : ",") + nodes_[i]->address();
  if (!seeds.empty()) arguments.insert(arguments.end(), {"--join", seeds});
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  nodes_[index]->start(arguments, options.environment, options.in_child);
  if (options.wait_ready) {
    EXPECT_TRUE(nodes_[index]->wait_ready()) << nodes_[index]->log();
  }
  return *nodes_[index];
}

bool Cluster::all_running() {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->running(); });
}

bool Cluster::wait(milliseconds bound, const std::string& what, const std::function<bool()>& condition) {
  if (until(bound, condition)) return true;
  ADD_FAILURE() << "did not happen within " << bound.count() << " ms: " << what;
  return false;
}

bool Cluster::all_exit_zero(milliseconds bound) {
  bool good = wait(bound, "every node ends by itself", [this] {
    for (auto& node : nodes_)
      if (node->running()) return false;
    return true;
  });
  for (auto& node : nodes_) {
    const auto exit = node->wait_exit(milliseconds(0));
    if (!exit || exit->signal != 0 || exit->code != 0) {
      ADD_FAILURE() << node->name() << " ended with exit " << (exit ? exit->code : -1) << " signal "
                    << (exit ? exit->signal : 0);
      good = false;
    }
  }
  return good;
}

void Cluster::print_logs() {
  for (const auto& node : nodes_) {
    std::string text = node->log();
    if (text.size() > 6000) text = "...\n" + text.substr(text.size() - 6000);
    std::cerr << "---- " << node->name() << "\n" << text;
  }
}

std::string digits_config(const std::string& model_kind, unsigned seed, const std::string& extra) {
  const std::string data = std::string(KITH_SOURCE_DIR) + "/data/mnist/";
  return "[cluster]\nname = \"digits\"\npreset = \"local\"\n[run]\nid = \"digits-1\"\nseed = " + std::to_string(seed) +
         "\nepochs = 6\n[model]\nkind = \"" + model_kind +
         "\"\n[data]\nformat = \"idx\"\ntrain = [\"" + data + "train-images-idx3-ubyte.gz\", \"" + data +
         "train-labels-idx1-ubyte.gz\"]\ntest = [\"" + data + "t10k-images-idx3-ubyte.gz\", \"" + data +
         "t10k-labels-idx1-ubyte.gz\"]\n[train]\noptimizer = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9\n"
         "batch_size = 32\nthreads = 1\n" + extra;
}

std::string kithd_path() { return std::string(KITH_BINARY_DIR) + "/bin/kithd"; }
std::string kith_path() { return std::string(KITH_BINARY_DIR) + "/bin/kith"; }

std::string bytes_of(const std::string& path) { return read_file(path); }

std::map<std::string, std::string> metadata_of(const std::string& path) {
  const std::string bytes = read_file(path);
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) return {};
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - sizeof length) return {};
  const json header = json::parse(bytes.substr(sizeof length, length), nullptr, false);
  if (!header.is_object() || !header.contains("__metadata__")) return {};
  return header["__metadata__"].get<std::map<std::string, std::string>>();
}

Finished run_program(const std::vector<std::string>& arguments, milliseconds bound,
                const std::map<std::string, std::string>& environment, const std::string& netns) {
  static std::atomic<unsigned> runs{0};  // also on several threads at once
  const std::string file =
      std::string(KITH_BINARY_DIR) + "/e2e-run-" + std::to_string(::getpid()) + "-" + std::to_string(runs++);
  const pid_t pid = spawn(arguments, environment, file, file, netns);
  std::optional<Exit> exit;
  until(bound, [&] { return (exit = reap(pid, false)).has_value(); });
  if (!exit) {
    ::kill(pid, SIGKILL);
    reap(pid, true);
    exit = Exit{-1, SIGKILL};
  }
  Finished run{*exit, read_file(file)};
  ::unlink(file.c_str());
  return run;
}

}  // namespace kith::e2e
