// What must hold after every fault, whatever it was (O1 to O7). Each looks at running daemons or at
// what they left behind, reports through GoogleTest, and says how it sees it:
//
//  O1 mass       `still` clusters only (training off by a learning rate of 1e-30, start values all
//  different): the sum of all
//                nodes' checkpoints plus open deltas before the fault equals the sum after
//                everybody left in order.
//  O2 once       part of O1 (an exchange applied twice or by one side only moves the sum); also, an
//  open exchange and a ledger
//                entry for it never disagree about who owes what, and nobody counted an invalid
//                message.
//  O3 intact     every node writes a checkpoint now; its hash fits, its values are finite.
//  O4 views      /members of all healthy nodes: the healthy alive, the others not; within
//  suspicion's maximum and 30 s. O5 caps       resident memory, open files and CPU of each daemon,
//  from /proc. O6 steps      `kith_train_steps_total` of every healthy node rises. O7 exits only
//  documented exit codes; no key in any log, in any usual spelling.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/exchange/exchange_image.h"
#include "tests/e2e/cluster.h"

namespace kith::e2e {

// Longest suspicion of the preset `local` at these sizes, and what O4 allows on top.
inline constexpr seconds kSuspicionMax{8};
inline constexpr seconds kAgreeWithin = kSuspicionMax + seconds(30);
// Clusters of this suite cut their small model so that every exchange has several fragments and
// chunks.
inline constexpr std::size_t kFragmentBytes = 16384;
inline constexpr std::size_t kChunkBytes = 4096;
inline constexpr std::size_t kValueCount = 7850;  // of the linear model on the digits

using Indices = std::set<std::size_t>;

// Name -> state as `observer` sees it; empty if it does not answer.
std::map<std::string, std::string> view_of(const Node& observer);
// Whether every healthy node sees exactly the healthy ones alive. Others may be anything else or
// unknown.
bool views_agree(Cluster& cluster, const Indices& healthy);
double steps_of(const Node& node);
double exchanges_of(const Node& node);  // completed, in both roles; 0 if it does not answer

struct Usage {
  double resident_mib = 0.0, cpu_seconds = 0.0;
  std::size_t open_files = 0;
};
Usage usage_of(pid_t pid);

// A checkpoint that was read back: hash checked, floats in flat order, ledger decoded.
struct Saved {
  std::string path;
  std::vector<float> values;
  gossip::ImageContents ledger;
};
// The newest of a data directory; a failed expectation and nullopt if it is damaged or absent.
std::optional<Saved> newest_checkpoint(const std::string& data_dir);
// |sum(after) - sum(before)| / |sum(before)|; open deltas are counted in.
double mass_error(const std::vector<Saved>& before, const std::vector<Saved>& after);

void expect_checkpoints_intact(Cluster& cluster, const Indices& healthy);
void expect_caps_kept(Cluster& cluster, const Indices& healthy);
void expect_documented_exit(const Node& node, const Exit& exit);
// `secrets`: files that hold 64 hexadecimal characters each.
void expect_no_secret_logged(const std::string& folder, const std::vector<std::string>& secrets);

}  // namespace kith::e2e
