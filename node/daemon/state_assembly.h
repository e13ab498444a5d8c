// StateAssembly: puts fetched items together into one state, and the manifest by which a final
// state is declared. Pure; one owner (control loop).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/replica.h"
#include "compute/trainer.h"
#include "gossip/transfer/state_transfer.h"
#include "node/store/checkpoint.h"

namespace kith::node {

// Hashes of every fragment (R) and of the integers, and the facts of the final file as JSON. Its
// BLAKE2b-256 is FINAL's root.
struct Manifest {
  std::vector<Hash256> fragments;
  Hash256 integers;
  std::string facts_json;

  [[nodiscard]] std::vector<std::byte> encode() const;  // u64 count, hashes, integers' hash, text
  static Result<Manifest> decode(std::span<const std::byte> bytes, std::size_t fragments_expected);
};
std::string facts_to_json(const FinalFacts& facts);
Result<FinalFacts> facts_from_json(const std::string& text);

class StateAssembly {
 public:
  // Copies the replica's present values: of one moment only if nothing writes to it meanwhile
  // (node/daemon/rest.h).
  StateAssembly(compute::Replica& replica, std::vector<std::int64_t> integers);

  // What is still missing of a running state: fragments that have not arrived, or did when the
  // cluster's samples were fewer than `not_before`, and the integers (always: they and the moments
  // are of one safe point of one donor); with the moments' pieces if `with_moments`.
  [[nodiscard]] gossip::FetchOrder missing(bool with_moments, Samples not_before) const;
  // Describes the values and integers that are here.
  [[nodiscard]] Manifest manifest(const FinalFacts& facts) const;
  // What differs from a final state, with the hashes and sizes that it must have.
  [[nodiscard]] gossip::FetchOrder differing(const Manifest& manifest) const;
  // The manifest of the final state with this hash.
  [[nodiscard]] gossip::FetchOrder manifest_order(const Hash256& root) const;

  // kCorrupt: wrong size. Integers of a running state void the optimiser's pieces that came before.
  Status add(const gossip::StateTransfer::Fetched& fetched);
  [[nodiscard]] compute::TrainerState take(bool with_optimizer);
  [[nodiscard]] const std::vector<float>& values() const { return values_; }
  [[nodiscard]] const std::vector<std::int64_t>& integers() const { return integers_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] gossip::Expected size_of(const gossip::ItemKey& key) const;
  [[nodiscard]] Hash256 hash_of(FragmentIndex fragment) const;

  std::vector<compute::FragmentRange> ranges_;
  std::vector<float> values_;
  std::vector<std::int64_t> integers_;
  std::map<FragmentIndex, Samples> arrived_;  // of a running state: the cluster's samples then
  std::map<std::uint32_t, std::vector<std::byte>> optimizer_;
  std::size_t bytes_ = 0;
};

}  // namespace kith::node
