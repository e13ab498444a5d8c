#include "tests/faults/fault_row.h"

#include <signal.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace kith::e2e {

namespace {

constexpr const char* kPort = ":7400";
constexpr std::uint16_t kControlPort = 7400, kBulkPort = 7401;
constexpr double kMassErrorMax = 1e-6;

// Small fragments and chunks, so that the small model shows what large ones do.
std::string row_config() {
  return digits_config(
      "linear", 1,
      "min_step_ms = 50\n[exchange]\nfragment_bytes = " + std::to_string(kFragmentBytes) +
          "\nchunk_bytes = " + std::to_string(kChunkBytes) + "\n[log]\nlevel = \"trace\"\n");
}

void add_sets(NodeOptions& options, const std::vector<std::string>& sets) {
  for (const auto& set : sets) options.flags.insert(options.flags.end(), {"--set", set});
}

}  // namespace

FaultRow::FaultRow() = default;
FaultRow::~FaultRow() = default;

void FaultRow::SetUp() {
  if (!NetLab::missing().empty()) GTEST_SKIP() << NetLab::missing();
}

void FaultRow::start(std::size_t nodes, RowOptions options) {
  options_ = std::move(options);
  first_members_ = nodes;
  lab_ = std::make_unique<NetLab>(nodes + options_.spare);
  if (options_.proxy)
    proxy_ = std::make_unique<Proxy>(*lab_, std::vector<std::uint16_t>{kControlPort, kBulkPort});
  cluster_ = std::make_unique<Cluster>(options_.config.empty() ? row_config() : options_.config);
  key_file_ = cluster_->folder() + "/cluster.key";
  must_run({kith_path(), "keygen", key_file_});
  if (options_.still) {
    ASSERT_NO_FATAL_FAILURE(prepare_still(nodes));
  }
  for (std::size_t k = 0; k < nodes; ++k) {
    if (options_.one_by_one && k > 0) {
      ASSERT_TRUE(cluster_->wait(seconds(60), "the one before has made its first step",
                                 [&] { return steps_of(node(k - 1)) >= 1; }));
    }
    NodeOptions mine = options_of(k);
    mine.wait_ready = options_.one_by_one && k + 1 < nodes;
    if (const auto fault = options_.armed.find(k); fault != options_.armed.end())
      mine.environment["KITH_FAULTS"] = fault->second;
    cluster_->add(mine);
  }
  for (std::size_t k = 0; k < nodes; ++k) ASSERT_TRUE(node(k).wait_ready()) << node(k).log();
  for (std::size_t k = 0; k < nodes; ++k) healthy_.insert(k);
  if (!options_.armed.empty()) return;  // that node may be gone or stopped already
  ASSERT_TRUE(cluster_->wait(seconds(60), "the cluster forms",
                             [&] { return views_agree(*cluster_, healthy_); }));
}

NodeOptions FaultRow::options_of(std::size_t index) const {
  const auto place = [&](std::size_t k) {
    return options_.proxy ? NetLab::proxy_address(k) : NetLab::address(k);
  };
  std::string seeds;
  for (std::size_t k = 0; k < first_members_; ++k) seeds += (k > 0 ? "," : "") + place(k) + kPort;
  NodeOptions options;
  options.netns = lab_->netns(index);
  options.flags = {"--listen", NetLab::address(index) + kPort, "--http", "127.0.0.1:7480", "--join",
                   seeds};
  add_sets(options,
           {"cluster.key_file=" + key_file_, "run.epochs=0",
            "run.start_members=" + std::to_string(index < first_members_ ? first_members_ : 1)});
  if (options_.proxy) add_sets(options, {"node.advertise=" + place(index)});
  if (options_.still)
    add_sets(options, {"train.learning_rate=1e-30", "train.momentum=0",
                       "exchange.max_lag=1000000000", "data.shard=all"});
  add_sets(options, options_.sets);
  if (index < options_.of_node.size()) add_sets(options, options_.of_node[index]);
  return options;
}

// Each trains alone for a moment, on a part of its own, and leaves that as its checkpoint.
void FaultRow::prepare_still(std::size_t nodes) {
  std::vector<std::unique_ptr<Node>> makers;
  for (std::size_t k = 0; k < nodes; ++k) {
    const std::string name = "n" + std::to_string(k + 1);
    makers.push_back(std::make_unique<Node>(name, cluster_->folder() + "/" + name));
    makers.back()->start({"-c", cluster_->config_file(), "--name", name, "--standalone", "--listen",
                          "127.0.0.1:0", "--http", "127.0.0.1:0", "--data-dir",
                          makers.back()->folder() + "/data", "--set", "run.epochs=0", "--set",
                          "data.shard=" + std::to_string(k + 1) + "/" + std::to_string(nodes),
                          "--set", "train.min_step_ms=5", "--set", "train.momentum=0"},
                         {});
  }
  for (auto& maker : makers) ASSERT_TRUE(maker->wait_ready()) << maker->log();
  ASSERT_TRUE(cluster_->wait(seconds(30), "each learns something of its own", [&] {
    return std::all_of(makers.begin(), makers.end(),
                       [](const auto& maker) { return steps_of(*maker) >= 20; });
  }));
  for (auto& maker : makers) maker->signal(SIGTERM);
  for (auto& maker : makers) {
    const auto exit = maker->wait_exit(seconds(20));
    ASSERT_TRUE(exit && exit->code == 0) << maker->log();
    const auto saved = newest_checkpoint(maker->folder() + "/data");
    ASSERT_TRUE(saved.has_value());
    before_.push_back(*saved);
  }
}

Node& FaultRow::add(NodeOptions more) {
  const std::size_t index = cluster_->size();
  NodeOptions mine = options_of(index);
  mine.flags.insert(mine.flags.end(), more.flags.begin(), more.flags.end());
  mine.environment = more.environment;
  mine.in_child = more.in_child;
  mine.program = more.program;
  mine.wait_ready = more.wait_ready;
  Node& made = cluster_->add(mine);
  healthy_.insert(index);
  return made;
}

Node& FaultRow::restart(std::size_t index, NodeOptions more) {
  const NodeOptions mine = options_of(index);
  more.flags.insert(more.flags.begin(), mine.flags.begin(), mine.flags.end());
  healthy_.insert(index);
  return cluster_->restart(index, more);
}

Indices FaultRow::all_but(const Indices& these) const {
  Indices rest;
  for (std::size_t i = 0; i < cluster_->size(); ++i)
    if (!these.contains(i)) rest.insert(i);
  return rest;
}

std::string FaultRow::seen(std::size_t observer, std::size_t subject) {
  const auto view = view_of(node(observer));
  const auto found = view.find(node(subject).name());
  return found == view.end() ? "" : found->second;
}

bool FaultRow::all_see(const Indices& observers, std::size_t subject,
                       const std::set<std::string>& states) {
  return std::all_of(observers.begin(), observers.end(),
                     [&](std::size_t o) { return states.contains(seen(o, subject)); });
}

bool FaultRow::any_sees(const Indices& observers, const Indices& subjects,
                        const std::string& state) {
  for (const std::size_t o : observers) {
    const auto view = view_of(node(o));
    for (const std::size_t s : subjects)
      if (const auto found = view.find(node(s).name());
          found != view.end() && found->second == state)
        return true;
  }
  return false;
}

std::optional<double> FaultRow::agree(milliseconds bound) {
  const Stopwatch watch;
  if (!cluster_->wait(bound, "the views of the healthy agree (O4)",
                      [&] { return views_agree(*cluster_, healthy_); }))
    return std::nullopt;
  return watch.seconds();
}

bool FaultRow::step(const Indices& nodes, double steps, milliseconds bound) {
  std::map<std::size_t, double> before;
  for (const std::size_t i : nodes) before[i] = steps_of(node(i));
  return cluster_->wait(bound, "these nodes keep stepping (O6)", [&] {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](std::size_t i) { return steps_of(node(i)) >= before[i] + steps; });
  });
}

bool FaultRow::exchange(const Indices& nodes, double exchanges, milliseconds bound) {
  std::map<std::size_t, double> before;
  for (const std::size_t i : nodes) before[i] = exchanges_of(node(i));
  return cluster_->wait(bound, "these nodes complete exchanges", [&] {
    return std::all_of(nodes.begin(), nodes.end(), [&](std::size_t i) {
      return exchanges_of(node(i)) >= before[i] + exchanges;
    });
  });
}

bool FaultRow::holds_for(milliseconds time, const std::string& what,
                         const std::function<bool()>& condition) {
  const bool broke = wait_until(time, [&] { return !condition(); });
  if (broke) ADD_FAILURE() << "did not hold for " << time.count() << " ms: " << what;
  return !broke;
}

void FaultRow::passes(milliseconds time) {
  wait_until(time, [] { return false; });
}

std::size_t FaultRow::lines(std::size_t observer, const std::vector<std::string>& words) {
  std::stringstream log(node(observer).log());
  std::size_t count = 0;
  for (std::string line; std::getline(log, line);)
    count += std::all_of(words.begin(), words.end(),
                         [&](const auto& w) { return line.find(w) != std::string::npos; })
                 ? 1
                 : 0;
  return count;
}

void FaultRow::note(const std::string& what) { notes_ += (notes_.empty() ? "" : "; ") + what; }

void FaultRow::end_in_order() {
  for (const std::size_t i : healthy_) node(i).signal(SIGTERM);
  for (const std::size_t i : healthy_) {
    const auto exit = node(i).wait_exit(seconds(30));
    EXPECT_TRUE(exit.has_value()) << "O7: " << node(i).name()
                                  << " does not end within 30 s of SIGTERM";
    if (!exit) continue;
    expect_documented_exit(node(i), *exit);
    EXPECT_EQ(exit->code, 0) << "O7: " << node(i).name() << " was asked to leave\n"
                             << node(i).log();
  }
}

void FaultRow::check_mass(double forfeited) {
  if (!options_.still) return;
  std::vector<Saved> after;
  for (std::size_t i = 0; i < before_.size(); ++i)
    if (auto saved = newest_checkpoint(data_dir(i))) after.push_back(std::move(*saved));
  if (after.size() != before_.size()) return;
  EXPECT_NE(after[0].values, before_[0].values) << "nothing was exchanged: the sum means nothing";
  const double error = mass_error(before_, after);
  note("mass error " + std::to_string(error * 1e6) + "e-6");
  if (options_.forfeits && forfeited > 0)
    return note("forfeited, and counted: " + std::to_string(forfeited));
  EXPECT_LE(error, kMassErrorMax) << "O1: the sum over all nodes has moved, and " << forfeited
                                  << " deltas are counted as forfeited";
}

void FaultRow::TearDown() {
  if (IsSkipped() || !cluster_ || healthy_.empty()) return;
  if (!HasFatalFailure()) {
    if (lab_) lab_->heal();
    if (proxy_) proxy_->heal();
    if (const auto took = agree()) note("views agree after " + std::to_string(*took) + " s");
    Indices stepping = healthy_;
    for (const std::size_t i : idle_) stepping.erase(i);
    step(stepping);
    double forfeited = 0.0;
    for (const std::size_t i : healthy_) {
      forfeited += node(i).metric("kith_exchange_forfeited_total");
      EXPECT_EQ(node(i).metric("kith_exchange_invalid_total"), 0) << "O2: " << node(i).name();
      const double ledger = node(i).metric("kith_exchange_ledger_entries");
      EXPECT_LE(ledger, static_cast<double>(2 * cluster_->size()))
          << "O2: ledger of " << node(i).name();
    }
    expect_caps_kept(*cluster_, healthy_);
    expect_checkpoints_intact(*cluster_, healthy_);
    end_in_order();
    check_mass(forfeited);
    std::vector<std::string> secrets = {key_file_};
    for (std::size_t i = 0; i < cluster_->size(); ++i)
      secrets.push_back(data_dir(i) + "/identity.key");
    expect_no_secret_logged(cluster_->folder(), secrets);
  }
  std::cout << "row: " << notes_ << std::endl;
}

}  // namespace kith::e2e
