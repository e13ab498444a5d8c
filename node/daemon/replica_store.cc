#include "node/daemon/replica_store.h"

#include <algorithm>

namespace kith::node {

namespace {

// A node may hold deltas of several peers for each of its fragments.
constexpr std::size_t kPeersAtOnce = 8;

std::size_t largest_fragment(const compute::Replica& replica) {
  return compute::Replica::encoded_bytes(replica.range(0).count, CodecId::kFp32);
}

std::size_t pool_size(const compute::Replica& replica, std::size_t bytes,
                      std::size_t uses_per_fragment) {
  const std::size_t useful = replica.fragment_count() * uses_per_fragment;
  return std::max<std::size_t>(2, std::min(bytes / largest_fragment(replica), useful));
}

}  // namespace

ReplicaStore::ReplicaStore(compute::Replica& replica, std::size_t snapshot_bytes,
                           std::size_t delta_bytes)
    : replica_(replica),
      // Twice: one snapshot may still be on its way out while the next is taken.
      snapshots_(largest_fragment(replica), pool_size(replica, snapshot_bytes, 2)),
      deltas_(largest_fragment(replica), pool_size(replica, delta_bytes, kPeersAtOnce)) {}

std::size_t ReplicaStore::payload_bytes(FragmentIndex fragment, CodecId codec) const {
  return compute::Replica::encoded_bytes(replica_.range(fragment).count, codec);
}

Result<Slice> ReplicaStore::snapshot(const ExchangeId&, FragmentIndex fragment, CodecId codec) {
  PooledBuffer buffer;
  if (!snapshots_.try_take(buffer))
    return fail(ErrorCode::kBusy, "every snapshot buffer is in flight");
  const std::size_t size = payload_bytes(fragment, codec);
  KITH_TRY(replica_.snapshot(fragment, codec, buffer.bytes().first(size)));
  return std::move(buffer).freeze(size);
}

Result<gossip::FragmentStore::Committed> ReplicaStore::commit(const ExchangeId&,
                                                              FragmentIndex fragment,
                                                              const Payload& proposal,
                                                              CodecId codec, double weight) {
  PooledBuffer buffer;
  if (!deltas_.try_take(buffer))
    return fail(ErrorCode::kBusy, "every delta buffer is in the ledger or in flight");
  const std::size_t size = payload_bytes(fragment, codec);
  KITH_ASSIGN(const auto stats,
              replica_.commit(fragment, proposal, codec, weight, buffer.bytes().first(size)));
  landed_();
  return Committed{std::move(buffer).freeze(size), stats.distance_squared, stats.norm_squared};
}

Status ReplicaStore::apply(const ExchangeId&, FragmentIndex fragment, const Payload& delta,
                           CodecId codec) {
  KITH_TRY(replica_.apply(fragment, delta, codec));
  landed_();
  return {};
}

}  // namespace kith::node
