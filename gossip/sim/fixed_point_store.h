// FixedPointStore: a node's replica in integers, so that "no mass is lost" is an equation and not a
// tolerance.
//
// The same parts as the real replica (design: the replica): live values x, publication P, pending
// D, taken T. Peers see R = P + T + D; what is conserved is x + T + D. Values are int64 in units of
// 2^-32. The wire holds them as 8 bytes each, little endian; codec bf16 stands for any lossy codec
// here and rounds to multiples of kCoarseUnit. Thread: the simulation's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "gossip/exchange/exchange.h"
#include "gossip/exchange/fragment_store.h"
#include "gossip/sim/event_queue.h"

namespace kith::sim {

using Fixed = std::int64_t;
inline constexpr int kFixedBits = 32;
inline constexpr Fixed kOne = Fixed{1} << kFixedBits;
inline constexpr Fixed kCoarseUnit = Fixed{1} << 12;  // about 1e-6
inline constexpr Fixed kFixedLimit = Fixed{1} << 60;  // beyond: "not finite"

inline double to_double(Fixed value) {
  return static_cast<double>(value) / static_cast<double>(kOne);
}
Fixed to_fixed(double value);
// floor(value * factor / 2^bits), in 128 bits.
Fixed scale(Fixed value, Fixed factor, int bits);

struct Layout {
  std::uint32_t fragments = 1;
  std::uint32_t values = 1;  // of each fragment
  [[nodiscard]] std::size_t total() const { return std::size_t{fragments} * values; }
};

// Who watches the two sides of every exchange. Called after the store has changed; `delta` is
// decoded from the very bytes on the wire.
class StoreWatcher {
 public:
  virtual ~StoreWatcher() = default;
  virtual void committed(NodeIndex node, const ExchangeId& e, FragmentIndex fragment,
                         std::span<const Fixed> delta) = 0;
  virtual void applied(NodeIndex node, const ExchangeId& e, FragmentIndex fragment,
                       std::span<const Fixed> delta) = 0;
};

class FixedPointStore final : public gossip::FragmentStore {
 public:
  // `watcher` may be null; it outlives the store.
  FixedPointStore(Layout layout, NodeIndex node, StoreWatcher* watcher,
                  bool quantise_sides_separately = false);

  // FragmentStore
  [[nodiscard]] std::uint32_t fragment_count() const override { return layout_.fragments; }
  [[nodiscard]] std::size_t payload_bytes(FragmentIndex, CodecId) const override {
    return layout_.values * sizeof(Fixed);
  }
  Result<Slice> snapshot(const ExchangeId& e, FragmentIndex fragment, CodecId codec) override;
  Result<Committed> commit(const ExchangeId& e, FragmentIndex fragment, const Payload& proposal,
                           CodecId codec, double weight) override;
  Status apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
               CodecId codec) override;

  // The trainer's side.
  void set_live(std::span<const Fixed> values);  // x = P = values; T = D = 0
  void add_live(std::size_t index, Fixed change) { x_[index] += change; }
  [[nodiscard]] Fixed live(std::size_t index) const { return x_[index]; }
  void begin_merge(FragmentIndex fragment);   // T = D, D = 0; T must be empty
  void finish_merge(FragmentIndex fragment);  // x += T, P = x, T = 0
  [[nodiscard]] bool merging(FragmentIndex fragment) const { return merging_[fragment] != 0; }

  // Flat over fragments.
  [[nodiscard]] Fixed mass(std::size_t index) const { return x_[index] + t_[index] + d_[index]; }
  [[nodiscard]] Fixed published(std::size_t index) const {
    return p_[index] + t_[index] + d_[index];
  }
  [[nodiscard]] std::vector<Fixed> published() const;
  [[nodiscard]] const Layout& layout() const { return layout_; }
  // False once a value has left the range in which arithmetic is exact.
  [[nodiscard]] bool in_range() const { return in_range_; }
  // From now on this share of snapshots and commits finds no buffer (kBusy).
  void set_busy(double chance, Random random);

 private:
  [[nodiscard]] std::size_t first(FragmentIndex fragment) const {
    return std::size_t{fragment} * layout_.values;
  }
  Status decode(const Payload& payload, std::vector<Fixed>& out) const;
  void add_pending(std::size_t index, Fixed change);
  bool no_buffer();

  Layout layout_;
  NodeIndex node_;
  StoreWatcher* watcher_;
  bool quantise_sides_separately_;
  std::vector<Fixed> x_, p_, d_, t_;
  std::vector<std::uint8_t> merging_;
  std::vector<Fixed> theirs_, delta_;  // scratch of one call
  bool in_range_ = true;
  double busy_ = 0.0;
  Random random_{0};
};

}  // namespace kith::sim
