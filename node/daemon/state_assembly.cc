#include "node/daemon/state_assembly.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace kith::node {

using gossip::ItemKey;
using schema::StateItem;

namespace {

constexpr std::size_t kMomentCopiesMax = 4;         // of all values: Adam keeps two
constexpr std::size_t kMomentFactsMax = 1U << 20;   // names and counters beside them
constexpr std::size_t kFactsBytesMax = 256U << 10;  // of a manifest, as text

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

Hash256 hash_integers(const std::vector<std::int64_t>& integers) {
  return hash_bytes(std::as_bytes(std::span(integers)));
}

void put_hash(std::vector<std::byte>& out, const Hash256& hash) {
  const auto bytes = std::as_bytes(std::span(hash.bytes));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> Manifest::encode() const {
  std::vector<std::byte> out(sizeof(std::uint64_t));
  const std::uint64_t count = fragments.size();
  std::memcpy(out.data(), &count, sizeof count);
  for (const Hash256& hash : fragments) put_hash(out, hash);
  put_hash(out, integers);
  const auto text = std::as_bytes(std::span(facts_json));
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

Result<Manifest> Manifest::decode(std::span<const std::byte> bytes,
                                  std::size_t fragments_expected) {
  const std::size_t fixed = sizeof(std::uint64_t) + (fragments_expected + 1) * sizeof(Hash256);
  std::uint64_t count = 0;
  if (bytes.size() < fixed)
    return fail(ErrorCode::kCorrupt, "manifest of a final state is too short");
  std::memcpy(&count, bytes.data(), sizeof count);
  if (count != fragments_expected)
    return fail(ErrorCode::kCorrupt, "manifest names " + std::to_string(count) +
                                         " fragments, the model has " +
                                         std::to_string(fragments_expected));
  Manifest manifest;
  manifest.fragments.resize(fragments_expected);
  const std::byte* at = bytes.data() + sizeof count;
  for (Hash256& hash : manifest.fragments) {
    std::memcpy(hash.bytes.data(), at, sizeof(Hash256));
    at += sizeof(Hash256);
  }
  std::memcpy(manifest.integers.bytes.data(), at, sizeof(Hash256));
  manifest.facts_json.assign(reinterpret_cast<const char*>(bytes.data()) + fixed,
                             bytes.size() - fixed);
  return manifest;
}

std::string facts_to_json(const FinalFacts& facts) {
  return nlohmann::json{
      {"run_id", facts.run_id},     {"model", facts.model_json},  {"version", facts.version},
      {"progress", facts.progress}, {"epoch", facts.epoch},       {"data_mean", facts.data_mean},
      {"data_std", facts.data_std}, {"accuracy", facts.accuracy}, {"classes", facts.classes}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<FinalFacts> facts_from_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return fail(ErrorCode::kCorrupt, "manifest's facts are not JSON");
  FinalFacts facts;
  try {
    facts.run_id = json.at("run_id").get<std::string>();
    facts.model_json = json.at("model").get<std::string>();
    facts.version = json.at("version").get<std::string>();
    facts.progress = json.at("progress").get<Samples>();
    facts.epoch = json.at("epoch").get<double>();
    facts.data_mean = json.at("data_mean").get<double>();
    facts.data_std = json.at("data_std").get<double>();
    // JSON has no NaN: an unknown accuracy (no test data) travels as null.
    facts.accuracy =
        json.at("accuracy").is_null() ? std::nan("") : json.at("accuracy").get<double>();
    facts.classes = json.at("classes").get<std::size_t>();
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kCorrupt, std::string("manifest's facts: ") + error.what());
  }
  return facts;
}

StateAssembly::StateAssembly(compute::Replica& replica, std::vector<std::int64_t> integers)
    : integers_(std::move(integers)) {
  std::size_t count = 0;
  for (FragmentIndex f = 0; f < replica.fragment_count(); ++f) {
    ranges_.push_back(replica.range(f));
    count += ranges_.back().count;
  }
  values_.resize(count);
  for (FragmentIndex f = 0; f < ranges_.size(); ++f)
    replica.read(f, std::span(values_).subspan(ranges_[f].offset, ranges_[f].count));
}

// Sizes follow from the schema; only moments are the optimiser's own business, within a few copies
// of the values.
gossip::Expected StateAssembly::size_of(const ItemKey& key) const {
  gossip::Expected expected;
  if (key.item == StateItem::kFragment) {
    expected.bytes_min = expected.bytes_max = ranges_[key.index].count * sizeof(float);
  } else if (key.item == StateItem::kIntegers) {
    expected.bytes_min = expected.bytes_max = integers_.size() * sizeof(std::int64_t);
  } else if (key.item == StateItem::kManifest) {
    expected.bytes_min = sizeof(std::uint64_t) + (ranges_.size() + 1) * sizeof(Hash256);
    expected.bytes_max = expected.bytes_min + kFactsBytesMax;
  }
  return expected;
}

gossip::FetchOrder StateAssembly::missing(bool with_moments, Samples not_before) const {
  gossip::FetchOrder order;
  for (FragmentIndex f = 0; f < ranges_.size(); ++f) {
    const auto arrived = arrived_.find(f);
    if (arrived == arrived_.end() || arrived->second < not_before)
      order.wanted.push_back({StateItem::kFragment, f, false});
  }
  order.wanted.push_back({StateItem::kIntegers, 0, false});
  for (const ItemKey& key : order.wanted) order.expected[key] = size_of(key);
  if (!with_moments) return order;
  order.optimizer_pieces_max =
      static_cast<std::uint32_t>(kMomentCopiesMax * ranges_.size() + kMomentCopiesMax);
  // All fragments but the last are of fragment_bytes, which is also the size of a piece.
  order.optimizer_piece_bytes_max =
      ranges_.size() > 1 ? ranges_[0].count * sizeof(float)
                         : kMomentCopiesMax * values_.size() * sizeof(float) + kMomentFactsMax;
  return order;
}

Hash256 StateAssembly::hash_of(FragmentIndex fragment) const {
  const auto& range = ranges_[fragment];
  return hash_bytes(bytes_of(std::span(values_).subspan(range.offset, range.count)));
}

Manifest StateAssembly::manifest(const FinalFacts& facts) const {
  Manifest manifest;
  for (FragmentIndex f = 0; f < ranges_.size(); ++f) manifest.fragments.push_back(hash_of(f));
  manifest.integers = hash_integers(integers_);
  manifest.facts_json = facts_to_json(facts);
  return manifest;
}

gossip::FetchOrder StateAssembly::differing(const Manifest& manifest) const {
  gossip::FetchOrder order;
  const auto want = [&](const ItemKey& key, const Hash256& hash) {
    order.wanted.push_back(key);
    order.expected[key] = size_of(key);
    order.expected[key].hash = hash;
  };
  for (FragmentIndex f = 0; f < ranges_.size(); ++f)
    if (hash_of(f) != manifest.fragments[f])
      want({StateItem::kFragment, f, true}, manifest.fragments[f]);
  if (hash_integers(integers_) != manifest.integers)
    want({StateItem::kIntegers, 0, true}, manifest.integers);
  return order;
}

gossip::FetchOrder StateAssembly::manifest_order(const Hash256& root) const {
  const ItemKey key{StateItem::kManifest, 0, true};
  gossip::FetchOrder order;
  order.wanted.push_back(key);
  order.expected[key] = size_of(key);
  order.expected[key].hash = root;
  return order;
}

Status StateAssembly::add(const gossip::StateTransfer::Fetched& fetched) {
  const Slice bytes = fetched.bytes.contiguous();
  const auto wrong = [&](std::size_t expected) {
    return fail(ErrorCode::kCorrupt, "an item of the fetched state has " +
                                         std::to_string(bytes.size()) + " bytes, expected " +
                                         std::to_string(expected));
  };
  bytes_ += bytes.size();
  if (fetched.key.item == StateItem::kFragment) {
    if (fetched.key.index >= ranges_.size())
      return fail(ErrorCode::kCorrupt, "no such fragment was asked for");
    const auto& range = ranges_[fetched.key.index];
    if (bytes.size() != range.count * sizeof(float)) return wrong(range.count * sizeof(float));
    std::memcpy(values_.data() + range.offset, bytes.data(), bytes.size());
    if (!fetched.key.final_state) arrived_[fetched.key.index] = fetched.header.cluster_samples;
  } else if (fetched.key.item == StateItem::kIntegers) {
    const std::size_t expected = integers_.size() * sizeof(std::int64_t);
    if (bytes.size() != expected) return wrong(expected);
    if (expected > 0) std::memcpy(integers_.data(), bytes.data(), expected);
    optimizer_.clear();
  } else if (fetched.key.item == StateItem::kOptimizer) {
    const auto view = bytes.bytes();
    optimizer_[fetched.key.index].assign(view.begin(), view.end());
  }
  return {};
}

compute::TrainerState StateAssembly::take(bool with_optimizer) {
  compute::TrainerState state;
  state.values = std::move(values_);
  state.integers = std::move(integers_);
  if (!with_optimizer) return state;
  for (const auto& [index, piece] : optimizer_)
    state.optimizer.insert(state.optimizer.end(), piece.begin(), piece.end());
  return state;
}

}  // namespace kith::node
