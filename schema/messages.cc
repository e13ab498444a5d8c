#include "schema/messages.h"

#include <bit>
#include <cmath>

#include "base/hash.h"

namespace kith::schema {
namespace {

// One bit pattern per number: a relay may not keep the payload of a NaN.
std::uint64_t double_bits(double value) {
  return std::isnan(value) ? 0x7FF8000000000000ULL : std::bit_cast<std::uint64_t>(value);
}

template <typename Array>
std::span<const std::byte> raw(const Array& array) {
  return std::as_bytes(std::span(array));
}

struct NameOf {
  const char* operator()(const Hello&) const { return "HELLO"; }
  const char* operator()(const Challenge&) const { return "CHALLENGE"; }
  const char* operator()(const Welcome&) const { return "WELCOME"; }
  const char* operator()(const Reject&) const { return "REJECT"; }
  const char* operator()(const Leave&) const { return "LEAVE"; }
  const char* operator()(const Final&) const { return "FINAL"; }
  const char* operator()(const Propose&) const { return "PROPOSE"; }
  const char* operator()(const Chunk&) const { return "CHUNK"; }
  const char* operator()(const Credit&) const { return "CREDIT"; }
  const char* operator()(const ResultMessage&) const { return "RESULT"; }
  const char* operator()(const Ack&) const { return "ACK"; }
  const char* operator()(const Busy&) const { return "BUSY"; }
  const char* operator()(const Aborted&) const { return "ABORTED"; }
  const char* operator()(const StateRequest&) const { return "STATE_REQUEST"; }
  const char* operator()(const StateHeader&) const { return "STATE_HEADER"; }
  const char* operator()(const Ping&) const { return "PING"; }
  const char* operator()(const Pong&) const { return "PONG"; }
  const char* operator()(const PingRequest&) const { return "PING_REQUEST"; }
  const char* operator()(const Nack&) const { return "NACK"; }
  const char* operator()(const Gossip&) const { return "GOSSIP"; }
  const char* operator()(const Digest&) const { return "DIGEST"; }
  const char* operator()(const Sync&) const { return "SYNC"; }
  const char* operator()(const View&) const { return "VIEW"; }
  const char* operator()(const DialBack&) const { return "DIAL_BACK"; }
  const char* operator()(const Tally&) const { return "TALLY"; }
};

constexpr PlaneRule kBothPlanes{true, true};
constexpr PlaneRule kControlOnly{true, false};
constexpr PlaneRule kBulkOnly{false, true};

struct PlanesOf {
  PlaneRule operator()(const Hello&) const { return kBothPlanes; }
  PlaneRule operator()(const Challenge&) const { return kBothPlanes; }
  PlaneRule operator()(const Welcome&) const { return kBothPlanes; }
  PlaneRule operator()(const Reject&) const { return kBothPlanes; }
  PlaneRule operator()(const Leave&) const { return kControlOnly; }
  PlaneRule operator()(const Final&) const { return kControlOnly; }
  PlaneRule operator()(const Propose&) const { return kBulkOnly; }
  PlaneRule operator()(const Chunk&) const { return kBulkOnly; }
  PlaneRule operator()(const Credit&) const { return kBulkOnly; }
  PlaneRule operator()(const ResultMessage&) const { return kBulkOnly; }
  PlaneRule operator()(const Ack&) const { return kBulkOnly; }
  PlaneRule operator()(const Busy&) const { return kBulkOnly; }
  PlaneRule operator()(const Aborted&) const { return kBulkOnly; }
  PlaneRule operator()(const StateRequest&) const { return kBulkOnly; }
  PlaneRule operator()(const StateHeader&) const { return kBulkOnly; }
  PlaneRule operator()(const Ping&) const { return kControlOnly; }
  PlaneRule operator()(const Pong&) const { return kControlOnly; }
  PlaneRule operator()(const PingRequest&) const { return kControlOnly; }
  PlaneRule operator()(const Nack&) const { return kControlOnly; }
  PlaneRule operator()(const Gossip&) const { return kControlOnly; }
  PlaneRule operator()(const Digest&) const { return kControlOnly; }
  PlaneRule operator()(const Sync&) const { return kControlOnly; }
  PlaneRule operator()(const View&) const { return kControlOnly; }
  PlaneRule operator()(const DialBack&) const { return kControlOnly; }
  PlaneRule operator()(const Tally&) const { return kControlOnly; }
};

void add_identity(Hasher& hasher, const MemberRecord& r) {
  hasher.add(raw(r.id.bytes)).add(r.incarnation).add(r.version);
  hasher.add(static_cast<std::uint64_t>(r.run_state)).add(static_cast<std::uint64_t>(r.converged));
  hasher.add(r.name).add(r.control_address).add(r.bulk_address).add(r.http_address);
}

void add_progress(Hasher& hasher, const MemberRecord& r) {
  hasher.add(r.step).add(r.samples);
  for (const double value : {r.loss, r.accuracy, r.learning_rate, r.steps_per_second})
    hasher.add(double_bits(value));
}

void add_data(Hasher& hasher, const MemberRecord& r) {
  hasher.add(raw(r.data_fingerprint.bytes)).add(r.data_samples).add(r.shard_samples);
  hasher.add(std::uint64_t{r.shard_index}).add(std::uint64_t{r.shard_count});
}

}  // namespace

Hash256 signing_hash(const MemberRecord& record) {
  Hasher hasher;
  hasher.add("kith member record");  // so that no other signed thing of kith has the same hash
  add_identity(hasher, record);
  add_progress(hasher, record);
  add_data(hasher, record);
  hasher.add(raw(record.transport_key)).add(std::uint64_t{record.key_epoch});
  hasher.add(record.version_text).add(record.boot_nonce);
  hasher.add(static_cast<std::uint64_t>(record.left))
      .add(static_cast<std::uint64_t>(record.shares_data));
  hasher.add(record.depth);
  return hasher.finish();
}

Hash256 accusation_hash(const Accusation& accusation) {
  Hasher hasher;
  hasher.add("kith accusation").add(raw(accusation.subject.bytes)).add(accusation.incarnation);
  hasher.add(raw(accusation.accuser.bytes));
  return hasher.finish();
}

const char* name_of(const Message& message) { return std::visit(NameOf{}, message); }

PlaneRule planes_of(const Message& message) { return std::visit(PlanesOf{}, message); }

const char* name_of(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kJoining:
      return "joining";
    case RunState::kTraining:
      return "training";
    case RunState::kFinishing:
      return "finishing";
    case RunState::kComplete:
      return "complete";
    case RunState::kLeaving:
      return "leaving";
  }
  return "unknown";
}

const char* name_of(MemberState state) {
  switch (state) {
    case MemberState::kAlive:
      return "alive";
    case MemberState::kSuspect:
      return "suspect";
    case MemberState::kDead:
      return "dead";
    case MemberState::kLeft:
      return "left";
  }
  return "unknown";
}

}  // namespace kith::schema
