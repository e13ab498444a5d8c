#include "gossip/sim/fixed_point_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"

namespace kith::sim {
namespace {

__extension__ using Wide = __int128;
constexpr int kWeightBits = 30;

Fixed round_to(Fixed value, Fixed unit) {
  const Fixed shifted = value + unit / 2;
  const Fixed remainder = ((shifted % unit) + unit) % unit;
  return shifted - remainder;
}

Slice encode(std::span<const Fixed> values) {
  auto memory = std::make_shared<std::byte[]>(values.size_bytes());
  std::memcpy(memory.get(), values.data(), values.size_bytes());
  const std::span<const std::byte> view(memory.get(), values.size_bytes());
  return {std::move(memory), view};
}

}  // namespace

Fixed to_fixed(double value) {
  return static_cast<Fixed>(std::floor(value * static_cast<double>(kOne) + 0.5));
}

Fixed scale(Fixed value, Fixed factor, int bits) {
  return static_cast<Fixed>((static_cast<Wide>(value) * factor) >> bits);
}

FixedPointStore::FixedPointStore(Layout layout, NodeIndex node, StoreWatcher* watcher,
                                 bool quantise_sides_separately)
    : layout_(layout),
      node_(node),
      watcher_(watcher),
      quantise_sides_separately_(quantise_sides_separately),
      x_(layout.total()),
      p_(layout.total()),
      d_(layout.total()),
      t_(layout.total()),
      merging_(layout.fragments) {}

Result<Slice> FixedPointStore::snapshot(const ExchangeId&, FragmentIndex fragment, CodecId codec) {
  if (no_buffer()) return fail(ErrorCode::kBusy, "no buffer for a snapshot");
  theirs_.resize(layout_.values);
  for (std::uint32_t i = 0; i < layout_.values; ++i) {
    const Fixed value = published(first(fragment) + i);
    theirs_[i] = codec == CodecId::kFp32 ? value : round_to(value, kCoarseUnit);
  }
  return encode(theirs_);
}

Result<gossip::FragmentStore::Committed> FixedPointStore::commit(const ExchangeId& e,
                                                                 FragmentIndex fragment,
                                                                 const Payload& proposal,
                                                                 CodecId codec, double weight) {
  KITH_TRY(decode(proposal, theirs_));
  if (no_buffer()) return fail(ErrorCode::kBusy, "no buffer for a delta");
  const auto factor =
      static_cast<Fixed>(weight * static_cast<double>(Fixed{1} << kWeightBits) + 0.5);
  Committed committed;
  delta_.resize(layout_.values);
  for (std::uint32_t i = 0; i < layout_.values; ++i) {
    const std::size_t index = first(fragment) + i;
    const Fixed mine = published(index);
    const Fixed exact = scale(mine - theirs_[i], factor, kWeightBits);
    delta_[i] = codec == CodecId::kFp32 ? exact : round_to(exact, kCoarseUnit);
    // The planted mistake: this side rounds for itself instead of taking the bits that travel.
    add_pending(index, -(quantise_sides_separately_ ? round_to(exact, 2) : delta_[i]));
    const double difference = to_double(mine - theirs_[i]);
    const double mean = to_double(mine / 2 + theirs_[i] / 2);
    committed.distance_squared += difference * difference;
    committed.norm_squared += mean * mean;
  }
  committed.delta = encode(delta_);
  if (watcher_ != nullptr) watcher_->committed(node_, e, fragment, delta_);
  return committed;
}

Status FixedPointStore::apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
                              CodecId) {
  KITH_TRY(decode(delta, delta_));
  for (std::uint32_t i = 0; i < layout_.values; ++i) add_pending(first(fragment) + i, delta_[i]);
  if (watcher_ != nullptr) watcher_->applied(node_, e, fragment, delta_);
  return {};
}

void FixedPointStore::set_live(std::span<const Fixed> values) {
  KITH_CHECK(values.size() == layout_.total(), "a state must have the layout's size");
  std::copy(values.begin(), values.end(), x_.begin());
  p_ = x_;
  std::fill(t_.begin(), t_.end(), 0);
  std::fill(d_.begin(), d_.end(), 0);
  std::fill(merging_.begin(), merging_.end(), std::uint8_t{0});
}

void FixedPointStore::begin_merge(FragmentIndex fragment) {
  KITH_CHECK(!merging(fragment), "a fragment is merged once at a time");
  merging_[fragment] = 1;
  for (std::size_t i = first(fragment); i < first(fragment) + layout_.values; ++i)
    t_[i] = std::exchange(d_[i], 0);
}

void FixedPointStore::finish_merge(FragmentIndex fragment) {
  KITH_CHECK(merging(fragment), "a merge must have begun before it ends");
  merging_[fragment] = 0;
  for (std::size_t i = first(fragment); i < first(fragment) + layout_.values; ++i) {
    x_[i] += std::exchange(t_[i], 0);
    p_[i] = x_[i];
    if (x_[i] > kFixedLimit || x_[i] < -kFixedLimit) in_range_ = false;
  }
}

std::vector<Fixed> FixedPointStore::published() const {
  std::vector<Fixed> values(layout_.total());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = published(i);
  return values;
}

void FixedPointStore::set_busy(double chance, Random random) {
  busy_ = chance;
  random_ = random;
}

Status FixedPointStore::decode(const Payload& payload, std::vector<Fixed>& out) const {
  const std::size_t expected = layout_.values * sizeof(Fixed);
  if (payload.size() != expected) {
    return fail(ErrorCode::kCorrupt, "a fragment has " + std::to_string(expected) +
                                         " bytes, this payload " + std::to_string(payload.size()));
  }
  out.resize(layout_.values);
  auto* to = reinterpret_cast<std::byte*>(out.data());
  for (const Slice& piece : payload.pieces) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return {};
}

void FixedPointStore::add_pending(std::size_t index, Fixed change) {
  if (__builtin_add_overflow(d_[index], change, &d_[index]) || d_[index] > kFixedLimit ||
      d_[index] < -kFixedLimit) {
    in_range_ = false;
  }
}

bool FixedPointStore::no_buffer() { return busy_ > 0.0 && random_.chance(busy_); }

}  // namespace kith::sim
