// A replica of a few 64-bit integers for dialogues between machines: exact, and it remembers who
// applied what.
#pragma once

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "gossip/exchange/fragment_store.h"

namespace kith::gossip {

class ToyStore final : public FragmentStore {
 public:
  ToyStore(std::uint32_t fragments, std::size_t values, std::int64_t start)
      : values_(fragments, std::vector<std::int64_t>(values, start)) {}

  std::uint32_t fragment_count() const override {
    return static_cast<std::uint32_t>(values_.size());
  }
  std::size_t payload_bytes(FragmentIndex fragment, CodecId) const override {
    return values_[fragment].size() * sizeof(std::int64_t);
  }

  Result<Slice> snapshot(const ExchangeId&, FragmentIndex fragment, CodecId) override {
    if (snapshots_busy) return fail(ErrorCode::kBusy, "no buffer");
    if (broken) return fail(ErrorCode::kNonFinite, "broken");
    ++snapshots;
    return Slice::copy_of(std::as_bytes(std::span(values_[fragment])));
  }

  Result<Committed> commit(const ExchangeId& e, FragmentIndex fragment, const Payload& proposal,
                           CodecId, double weight) override {
    if (commits_busy > 0) {
      --commits_busy;
      return fail(ErrorCode::kBusy, "no buffer");
    }
    if (broken) return fail(ErrorCode::kNonFinite, "broken");
    std::vector<std::int64_t> theirs;
    KITH_TRY(decode(fragment, proposal, theirs));
    Committed result;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::int64_t gap = values_[fragment][i] - theirs[i];
      theirs[i] = static_cast<std::int64_t>(weight * static_cast<double>(gap));
      values_[fragment][i] -= theirs[i];
      result.distance_squared += static_cast<double>(gap) * static_cast<double>(gap);
    }
    committed[e].push_back(theirs);
    result.norm_squared = 1.0;
    result.delta = Slice::copy_of(std::as_bytes(std::span(theirs)));
    return result;
  }

  Status apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
               CodecId) override {
    if (broken) return fail(ErrorCode::kNonFinite, "broken");
    std::vector<std::int64_t> change;
    KITH_TRY(decode(fragment, delta, change));
    for (std::size_t i = 0; i < change.size(); ++i) values_[fragment][i] += change[i];
    applied[e].push_back(change);
    return {};
  }

  std::int64_t sum() const {
    std::int64_t sum = 0;
    for (const auto& fragment : values_) {
      for (const std::int64_t value : fragment) sum += value;
    }
    return sum;
  }
  std::int64_t value(FragmentIndex fragment) const { return values_[fragment][0]; }
  void set(FragmentIndex fragment, std::int64_t value) {
    values_[fragment].assign(values_[fragment].size(), value);
  }

  bool snapshots_busy = false;
  int commits_busy = 0;  // so many commits find no buffer
  bool broken = false;
  int snapshots = 0;
  std::map<ExchangeId, std::vector<std::vector<std::int64_t>>> committed, applied;

 private:
  Status decode(FragmentIndex fragment, const Payload& payload,
                std::vector<std::int64_t>& out) const {
    if (payload.size() != payload_bytes(fragment, CodecId::kFp32)) {
      return fail(ErrorCode::kCorrupt, "wrong size");
    }
    out.resize(values_[fragment].size());
    auto* at = reinterpret_cast<std::byte*>(out.data());
    for (const Slice& piece : payload.pieces) {
      std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
    return {};
  }

  std::vector<std::vector<std::int64_t>> values_;
};

}  // namespace kith::gossip
