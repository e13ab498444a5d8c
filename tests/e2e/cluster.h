// Whole clusters as real processes: starts kithd on free loopback ports, asks it over HTTP, kills it by its pid, and reads
// what it leaves behind. Everything a test starts is ended by the Cluster's destructor. Waits have bounds and look at a
// condition; a bound that passes prints every node's log.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kith::e2e {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Exit {
  int code = -1;     // exit status, -1 if it was killed
  int signal = 0;
};

struct NodeOptions {
  std::vector<std::string> flags;            // "--set", "train.min_step_ms=50", ...
  std::map<std::string, std::string> environment;
  std::string netns = {};                    // file of the network namespace to run in; empty: the test's own
  std::function<void()> in_child = {};       // runs in the new process just before kithd: limits, mounts, closed streams
  std::string program = {};                  // instead of the kithd that was built
  bool wait_ready = true;                    // false: add() and restart() return at once
};

// Options with `--set` for each "table.key=value".
NodeOptions with(const std::vector<std::string>& sets);

class Node {
 public:
  Node(std::string name, std::string folder);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Runs kithd with these arguments; output goes to folder/log (appended) and folder/out.
  void start(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
             const std::function<void()>& in_child = {});
  // From now on it is started, and asked over HTTP, inside this network namespace.
  void set_netns(std::string file) { netns_ = std::move(file); }
  void set_program(std::string path) { program_ = std::move(path); }
  // Where its HTTP answers, for a node whose ready line nobody can read.
  void set_http(const std::string& address);
  // Until the ready line is printed; false if it ended before or the bound passed.
  bool wait_ready(milliseconds bound = seconds(30));
  [[nodiscard]] bool running();
  std::optional<Exit> wait_exit(milliseconds bound);
  void signal(int number) const;
  void kill_now();                           // SIGKILL and reap

  [[nodiscard]] nlohmann::json get(const std::string& path) const;   // null if it does not answer
  [[nodiscard]] std::string get_text(const std::string& path) const;
  [[nodiscard]] double metric(const std::string& series) const;      // exact series text; NaN if absent
  [[nodiscard]] std::string log() const;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string address() const { return ready_.value("address", ""); }  // empty before it is ready

 private:
  std::string name_, folder_, netns_, program_;
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
  nlohmann::json ready_ = nlohmann::json::object();
};

// Where this process's nodes listen: an address of loopback that no test beside it uses, so that a node that starts again
// finds its ports free.
std::string loopback();

class Cluster {
 public:
  // `config`: TOML of all nodes. The folder is build/e2e/<test name>, emptied first.
  explicit Cluster(std::string config);
  ~Cluster();

  // A node that joins through every node started so far. Its name is "n<k>".
  Node& add(NodeOptions options = {});
  // Starts a node again in its folder, with the same arguments (and its old address) plus these.
  Node& restart(std::size_t index, NodeOptions options = {});
  Node& operator[](std::size_t index) { return *nodes_.at(index); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::string& config_file() const { return config_file_; }

  [[nodiscard]] bool all_running();
  // Until `condition` holds; prints all logs and returns false when the bound passes.
  bool wait(milliseconds bound, const std::string& what, const std::function<bool()>& condition);
  // Every node still started exits 0 within the bound.
  bool all_exit_zero(milliseconds bound);
  void print_logs();

 private:
  std::string folder_, config_file_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<std::string>> arguments_;
};

// Looks often until `condition` holds; false when the bound passes first.
bool wait_until(milliseconds bound, const std::function<bool()>& condition);

// The calling thread in another network namespace, until destruction. An empty file name: nothing happens.
class InNetns {
 public:
  explicit InNetns(const std::string& file);
  ~InNetns();
  InNetns(const InNetns&) = delete;
  InNetns& operator=(const InNetns&) = delete;

 private:
  int home_ = -1;
};

// The digits, a CNN 16-32 + dense 64, SGD 0.05 momentum 0.9, batch 32, 6 epochs, ad-psgd: `extra` TOML is appended.
std::string digits_config(const std::string& model_kind, unsigned seed, const std::string& extra = "");
std::string kithd_path();
std::string kith_path();

// An npy file, version 1: `descr` as in "<f4", `shape` as in "(16, 784)", `data` the bytes.
void write_npy(const std::string& path, const std::string& descr, const std::string& shape, const std::string& data);

// Metadata of a safetensors file, {} if there is none.
std::map<std::string, std::string> metadata_of(const std::string& path);
std::string bytes_of(const std::string& path);
// Runs a program to its end; output of both streams together.
struct Finished {
  Exit exit;
  std::string output;
};
Finished run_program(const std::vector<std::string>& arguments, milliseconds bound = seconds(60),
                const std::map<std::string, std::string>& environment = {}, const std::string& netns = "");

}  // namespace kith::e2e
