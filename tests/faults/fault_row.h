// The frame of one row: a cluster of real daemons, each in a network namespace of its own, softmax
// regression on the digits, 50 ms a step, every link encrypted. The row breaks something;
// TearDown() then holds the oracles (oracles.h) to all nodes that are expected to be healthy, and
// ends them in order. A row that needs what this machine lacks is skipped with the reason.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/cluster.h"
#include "tests/faults/net_lab.h"
#include "tests/faults/oracles.h"
#include "tests/faults/proxy.h"

namespace kith::e2e {

struct RowOptions {
  std::vector<std::string> sets = {};                  // "table.key=value" for all nodes
  std::vector<std::vector<std::string>> of_node = {};  // ... for one
  bool still = false;       // training off, all start values different: O1 is checked
  bool forfeits = false;    // ... but a crash may cost a delta, if that is counted
  bool one_by_one = false;  // each node has made its first step before the next one starts
  bool proxy = false;       // nodes reach each other through proxy()
  std::size_t spare = 0;    // namespaces for nodes that join later
  std::string config = {};  // TOML instead of the digits
  std::map<std::size_t, std::string> armed = {};  // KITH_FAULTS of a node's first start
};

class FaultRow : public ::testing::Test {
 protected:
  FaultRow();
  ~FaultRow() override;
  void SetUp() override;
  void TearDown() override;

  // A cluster of this many that trains together; a fatal failure if it does not within a minute.
  void start(std::size_t nodes, RowOptions options = {});
  Node& add(NodeOptions more = {});  // one more, in the next namespace
  Node& restart(std::size_t node, NodeOptions more = {});
  Node& node(std::size_t index) { return (*cluster_)[index]; }
  Cluster& cluster() { return *cluster_; }
  NetLab& lab() { return *lab_; }
  Proxy& proxy() { return *proxy_; }
  [[nodiscard]] std::string data_dir(std::size_t index) { return node(index).folder() + "/data"; }
  [[nodiscard]] const std::string& key_file() const { return key_file_; }
  // Flags of node `index`, as start() gives them.
  [[nodiscard]] NodeOptions options_of(std::size_t index) const;

  // From now on this node is not expected to be a healthy member (killed, left, ended), or is
  // again.
  void gone(std::size_t index) { healthy_.erase(index); }
  void back(std::size_t index) { healthy_.insert(index); }
  // Healthy, but takes hours for a step: O6 does not ask it.
  void idles(std::size_t index) { idle_.insert(index); }
  [[nodiscard]] const Indices& healthy() const { return healthy_; }
  [[nodiscard]] Indices all_but(const Indices& these) const;

  // What `observer` calls `subject`: alive, suspect, dead, left; empty: does not know it.
  std::string seen(std::size_t observer, std::size_t subject);
  bool all_see(const Indices& observers, std::size_t subject, const std::set<std::string>& states);
  bool any_sees(const Indices& observers, const Indices& subjects, const std::string& state);
  // Waits until the healthy agree on each other, with the bound of O4; how long it took.
  std::optional<double> agree(milliseconds bound = kAgreeWithin);
  // Until each of these has made `steps` more; exchanges likewise.
  bool step(const Indices& nodes, double steps = 5, milliseconds bound = seconds(15));
  bool exchange(const Indices& nodes, double exchanges = 3, milliseconds bound = seconds(20));
  // Watches for the whole time; the first look at which `condition` fails ends it with a failure.
  bool holds_for(milliseconds time, const std::string& what,
                 const std::function<bool()>& condition);
  void passes(milliseconds time);  // the fault lasts
  // Log lines of `observer` that contain all these words.
  std::size_t lines(std::size_t observer, const std::vector<std::string>& words);
  // Records what was measured; printed at the end of the row.
  void note(const std::string& what);

 private:
  void prepare_still(std::size_t nodes);
  void end_in_order();
  void check_mass(double forfeited);

  std::unique_ptr<NetLab> lab_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Proxy> proxy_;
  RowOptions options_;
  std::string key_file_;
  Indices healthy_, idle_;
  std::vector<Saved> before_;
  std::size_t first_members_ = 0;
  std::string notes_;
};

// Seconds since construction, for what is measured.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kith::e2e
