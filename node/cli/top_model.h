// TopModel: what `kith top` knows of the cluster. It takes samples (the answers of one look) and
// makes rows: rates from the differences of counters over a few looks, and the course of each loss.
// Pure; time comes with the samples. Thread: one owner.
//
// Sources: names, states, steps, samples, losses and steps/s of all members are what gossip brought
// to the node that is asked; the round trip is its own; bytes, exchanges and staleness are what
// each member says of itself at its own HTTP address, where that can be reached from here.
#pragma once

#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::node {

inline const double kUnknown = std::nan("");

// /status of one node.
struct TopNode {
  std::string id, name, run, cluster, state, trouble;
  double step = kUnknown, progress = kUnknown, epoch = kUnknown, length_samples = kUnknown;
  double loss = kUnknown, accuracy = kUnknown, consensus = kUnknown, staleness = kUnknown;
  double exchanges = kUnknown, bytes_in = kUnknown, bytes_out = kUnknown;
};
// One of /members.
struct TopMember {
  std::string id, name, state, run_state, http;
  double step = kUnknown, samples = kUnknown, lag = kUnknown, loss = kUnknown, accuracy = kUnknown;
  double steps_per_second = kUnknown, rtt_ms = kUnknown;
};
struct TopSample {
  double at_seconds = 0;  // any clock that does not go back
  TopNode self;
  std::vector<TopMember> members;
  std::map<std::string, TopNode> told;  // by id: what members said themselves
};
// kFailed: not the JSON of a kithd.
Result<TopNode> read_top_node(const std::string& status_json);
Result<std::vector<TopMember>> read_top_members(const std::string& members_json);

struct TopRow {
  TopMember member;
  bool told = false;  // it answered itself
  double samples_per_second = kUnknown, bytes_in_per_second = kUnknown;
  double bytes_out_per_second = kUnknown, exchanges_per_second = kUnknown, staleness = kUnknown;
  std::vector<double> losses;  // oldest first
  // What it does, of who is alive; else that it is not.
  [[nodiscard]] std::string shown_state() const;
};

struct TopFrame {
  TopNode self;
  std::vector<TopRow> rows;                  // as in the last sample
  std::map<std::string, std::size_t> count;  // by state
  std::size_t told = 0;
  double samples_per_second = kUnknown;  // of all living members
  double steps_per_second = kUnknown;
  // Of the run; nothing when it has no length or nothing is known.
  [[nodiscard]] std::optional<double> fraction() const;
  [[nodiscard]] std::optional<double> seconds_left() const;
};

class TopModel {
 public:
  void take(const TopSample& sample);
  [[nodiscard]] const TopFrame& frame() const { return frame_; }

  static constexpr std::size_t kLossesMax = 64;
  static constexpr std::size_t kLooksMax = 5;  // that a rate is taken over

 private:
  struct Counters {
    double at = 0, samples = 0, bytes_in = 0, bytes_out = 0, exchanges = 0;
  };
  struct Course {
    std::deque<Counters> gossip, own;  // own: only when the member answered itself
    std::deque<double> losses;
    double last_step = -1;
  };
  TopRow row_of(const TopSample& sample, const TopMember& member);

  std::map<std::string, Course> courses_;  // by id
  TopFrame frame_;
};

}  // namespace kith::node
