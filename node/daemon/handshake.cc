#include "node/daemon/handshake.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace kith::node {

using schema::Hello;
using schema::Plane;
using schema::Reject;
using schema::RejectCode;
using schema::Welcome;

namespace {
constexpr std::size_t kWelcomeRecords = 64;
}

Hash256 run_digest(const std::string& cluster, const std::string& run_id) {
  return Hasher().add(std::string_view(cluster)).add(std::string_view(run_id)).finish();
}

RunPolicy::RunPolicy(RunIdentity identity, NodeId self)
    : identity_(std::move(identity)), self_(self) {}

Hello RunPolicy::make_hello(Plane plane) {
  Hello hello;
  hello.plane = plane;
  hello.cluster = identity_.cluster;
  hello.run_id = identity_.run_id;
  hello.schema_hash = identity_.schema_hash;
  if (plane == Plane::kControl) hello.facts = identity_.facts;
  hello.tallies = true;
  const std::lock_guard lock(mutex_);
  hello.record = record_;
  return hello;
}

Welcome RunPolicy::make_welcome(Plane plane, const Hello& hello) {
  Welcome welcome;
  welcome.tallies = true;
  if (hello.probe)
    welcome.about = schema::About{identity_.cluster, identity_.run_id, identity_.schema_hash, 0.0};
  const std::lock_guard lock(mutex_);
  welcome.record = record_;
  if (plane == Plane::kBulk) return welcome;
  welcome.facts = identity_.facts;
  if (book_ == nullptr || hello.probe) return welcome;
  if (const auto before = book_->record_of(hello.record.id);
      before && before->boot_nonce != hello.record.boot_nonce)
    welcome.seen_incarnation = before->incarnation;
  welcome.records = book_->sample(kWelcomeRecords);
  std::erase_if(welcome.records, [&](const auto& record) { return record.id == hello.record.id; });
  return welcome;
}

Reject RunPolicy::refuse(RejectCode code, std::string detail) const {
  Reject reject;
  reject.code = code;
  reject.detail = std::move(detail);
  reject.id = self_;
  return reject;
}

bool outlives(const schema::MemberRecord& a, const schema::MemberRecord& b) {
  return std::pair(a.incarnation >> 32, a.boot_nonce) >
         std::pair(b.incarnation >> 32, b.boot_nonce);
}

// One key, two processes: the one that does not go on is told an incarnation above its own.
std::optional<Reject> RunPolicy::judge_identity(const Hello& hello) {
  std::optional<schema::MemberRecord> other;
  if (hello.record.id == self_) {
    const std::lock_guard lock(mutex_);
    other = record_;
    if (outlives(hello.record, record_)) twin_ = hello.record;
  } else if (hello.plane == Plane::kControl && book_ != nullptr) {
    other = book_->record_of(hello.record.id);
    if (!other || other->state != schema::MemberState::kAlive || !outlives(*other, hello.record))
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  auto reject = refuse(RejectCode::kIdentity,
                       "the identity of this node is in use by another process, " + other->name +
                           " at " + other->control_address + ": a copied data directory?");
  if (outlives(*other, hello.record))
    reject.seen_incarnation = std::max(other->incarnation, hello.record.incarnation + 1);
  return reject;
}

std::optional<schema::MemberRecord> RunPolicy::take_twin() {
  const std::lock_guard lock(mutex_);
  return std::exchange(twin_, std::nullopt);
}

// The words are for the node that asks: it is "here" and we are "there".
std::optional<Reject> RunPolicy::judge(const Hello& hello) {
  if (!hello.probe)
    if (auto reject = judge_identity(hello)) return reject;
  if (hello.protocol_min > schema::kProtocolVersion ||
      hello.protocol_max < schema::kProtocolVersion)
    return refuse(RejectCode::kProtocol, "protocol " + std::to_string(hello.protocol_min) + " to " +
                                             std::to_string(hello.protocol_max) + " here, " +
                                             std::to_string(schema::kProtocolVersion) + " there");
  if (hello.probe) return std::nullopt;  // it is told what this node has, and compares itself
  if (hello.cluster != identity_.cluster)
    return refuse(RejectCode::kCluster,
                  "cluster.name: " + hello.cluster + " here, " + identity_.cluster + " there");
  if (hello.run_id != identity_.run_id)
    return refuse(RejectCode::kRun,
                  "run.id: " + hello.run_id + " here, " + identity_.run_id + " there");
  if (hello.schema_hash != identity_.schema_hash)
    return refuse(RejectCode::kSchema,
                  "model schema (the [model] table, classes, input shape, fragment_bytes): hash " +
                      hello.schema_hash.hex().substr(0, 12) + " here, " +
                      identity_.schema_hash.hex().substr(0, 12) + " there");
  if (hello.plane == Plane::kControl)
    if (const auto missing = first_difference(identity_.facts, hello.facts)) {
      const auto as_seen_there = first_difference(hello.facts, identity_.facts);
      return refuse(RejectCode::kFacts, as_seen_there.value_or(*missing));
    }
  return std::nullopt;
}

std::optional<std::string> RunPolicy::judge_welcome(const Welcome& welcome) const {
  return first_difference(identity_.facts, welcome.facts);
}

void RunPolicy::set_record(const schema::MemberRecord& own) {
  const std::lock_guard lock(mutex_);
  record_ = own;
}

}  // namespace kith::node
