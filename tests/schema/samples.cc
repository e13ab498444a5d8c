#include "tests/schema/samples.h"

#include <algorithm>
#include <cctype>

namespace kith::schema {
namespace {

// Hands out values that never repeat.
class Distinct {
 public:
  std::uint64_t number() { return 0x0102030405060708ULL + ++count_; }
  std::uint32_t small() { return 1000 + static_cast<std::uint32_t>(++count_); }
  double fraction() { return 1.0 / static_cast<double>(2 + ++count_); }
  std::string text(const char* what) { return std::string(what) + "-" + std::to_string(++count_); }
  template <std::size_t N>
  void fill(std::array<std::uint8_t, N>& bytes) {
    Random random(number());
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  }

 private:
  std::uint64_t count_ = 0;
};

ExchangeId exchange_id(Distinct& d) {
  ExchangeId e;
  d.fill(e.initiator.bytes);
  e.incarnation = d.number();
  e.sequence = d.number();
  return e;
}

MemberRecord record(Distinct& d) {
  MemberRecord r;
  d.fill(r.id.bytes);
  r.incarnation = d.number();
  r.version = d.number();
  r.state = MemberState::kLeft;
  r.run_state = RunState::kFinishing;
  r.converged = true;
  r.name = d.text("node");
  r.control_address = d.text("127.0.0.1:7400");
  r.bulk_address = d.text("127.0.0.1:7401");
  r.http_address = d.text("127.0.0.1:7480");
  r.step = d.number();
  r.samples = d.number();
  r.loss = d.fraction();
  r.accuracy = d.fraction();
  r.learning_rate = d.fraction();
  r.steps_per_second = d.fraction();
  d.fill(r.data_fingerprint.bytes);
  r.data_samples = d.number();
  r.shard_samples = d.number();
  r.shard_index = d.small();
  r.shard_count = d.small();
  d.fill(r.transport_key);
  r.key_epoch = d.small();
  r.version_text = d.text("0.1.0");
  d.fill(r.signature);
  // Appended later: derived, so that all values after it are those of the first golden bytes.
  r.boot_nonce = ~r.incarnation;
  r.left = true;
  r.shares_data = true;
  r.depth = 4242;
  return r;
}

Hello hello(Distinct& d) {
  Hello m;
  m.plane = Plane::kBulk;
  m.protocol_min = d.small();
  m.protocol_max = d.small();
  m.cluster = d.text("cluster");
  m.run_id = d.text("run");
  d.fill(m.schema_hash.bytes);
  m.facts = {{d.text("run.seed"), d.text("7")}, {d.text("data.classes"), d.text("10")}};
  m.record = record(d);
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
  m.lowest_open = d.number();
  d.fill(m.signature);
  m.probe = true;
  m.dial_back_port = 7400;
  m.tallies = true;
  return m;
}

Challenge challenge(Distinct& d) {
  Challenge m;
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
  return m;
}

Welcome welcome(Distinct& d) {
  Welcome m;
  m.record = record(d);
  m.records = {record(d), record(d), record(d)};
  m.facts = {{d.text("run.seed"), d.text("7")}};
  (void)d.number();  // retired: a value is passed over, so that golden bytes stay
  m.seen_incarnation = d.number();
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
  d.fill(m.signature);
  m.about = About{"the cluster", "the run", m.record.data_fingerprint, 1.7e9};
  m.tallies = true;
  return m;
}

DialBack dial_back(Distinct& d) {
  DialBack m;
  d.fill(m.nonce);
  m.outcome = DialBackOutcome::kSilent;
  m.address = d.text("10.0.0.7:7400");
  return m;
}

Reject reject(Distinct& d) {
  Reject m;
  m.code = RejectCode::kFacts;
  m.detail = d.text("run.seed is \"7\" here and \"8\" there");
  d.fill(m.id.bytes);
  m.seen_incarnation = d.number();
  return m;
}

Final final_message(Distinct& d) {
  Final m;
  d.fill(m.declarer.bytes);
  d.fill(m.run_digest.bytes);
  d.fill(m.root.bytes);
  m.progress = d.number();
  d.fill(m.signature);
  return m;
}

Propose propose(Distinct& d) {
  Propose m;
  m.e = exchange_id(d);
  m.attempt = d.small();
  m.fragment = d.small();
  m.slot = Slot::kCentre;
  m.codec = CodecId::kBf16;
  m.weight = d.fraction();
  m.push_sum = d.fraction();
  m.payload_bytes = d.small();
  m.chunk_bytes = d.small();
  m.lowest_open = d.number();
  d.fill(m.run_digest.bytes);
  d.fill(m.schema_hash.bytes);
  m.depth = d.number();
  m.step = d.number();
  return m;
}

Credit credit(Distinct& d) {
  Credit m;
  m.e = exchange_id(d);
  m.stream = Stream::kResult;
  m.received = {d.number(), d.number(), d.number()};
  return m;
}

ResultMessage result(Distinct& d) {
  ResultMessage m;
  m.e = exchange_id(d);
  m.fragment = d.small();
  m.codec = CodecId::kBf16;
  m.payload_bytes = d.small();
  m.chunk_bytes = d.small();
  m.depth = d.number();
  m.step = d.number();
  m.distance_squared = d.fraction();
  m.norm_squared = d.fraction();
  return m;
}

StateRequest state_request(Distinct& d) {
  StateRequest m;
  m.e = exchange_id(d);
  m.item = StateItem::kOptimizer;
  m.index = d.small();
  m.final_state = true;
  d.fill(m.run_digest.bytes);
  d.fill(m.schema_hash.bytes);
  return m;
}

StateHeader state_header(Distinct& d) {
  StateHeader m;
  m.e = exchange_id(d);
  m.item = StateItem::kIntegers;
  m.index = d.small();
  m.payload_bytes = d.small();
  m.chunk_bytes = d.small();
  d.fill(m.hash.bytes);
  m.optimizer_pieces = d.small();
  m.optimizer_step = d.number();
  m.cluster_samples = d.number();
  return m;
}

NodeId id(Distinct& d) {
  NodeId out;
  d.fill(out.bytes);
  return out;
}

Accusation accusation(Distinct& d) {
  Accusation a;
  a.subject = id(d);
  a.incarnation = d.number();
  a.accuser = id(d);
  d.fill(a.signature);
  return a;
}

News news(Distinct& d) {
  News out{{record(d), record(d)}, {accusation(d), accusation(d)}};
  (void)d.number();  // retired
  return out;
}

DigestEntry entry(Distinct& d) { return {id(d), d.number(), d.number(), MemberState::kSuspect}; }

Digest digest(Distinct& d) {
  Digest m;
  while (m.buckets.size() < kDigestBuckets) m.buckets.push_back(d.number());
  (void)d.number();  // retired
  return m;
}

Sync sync(Distinct& d) {
  return {{3, 63, 0}, {entry(d), entry(d), entry(d)}, {id(d), id(d)}, news(d)};
}

View view(Distinct& d) {
  return {ViewKind::kShuffle, 11, d.number(), id(d), {record(d), record(d)}};
}

TallyEntry tally_entry(Distinct& d) {
  TallyEntry out{id(d), d.number(), d.number(), {}, d.number(), d.number(), d.small(), d.small()};
  d.fill(out.data_fingerprint.bytes);
  return out;
}

// The retired HEARTBEAT stood here: its values are passed over, so that those after it stay the
// ones of the golden bytes.
Leave after_the_retired(Distinct& d) {
  for (int i = 0; i < 69; ++i) d.number();
  return {record(d)};
}

Tally tally(Distinct& d) { return {d.number(), true, id(d), {tally_entry(d), tally_entry(d)}}; }

}  // namespace

std::vector<Message> sample_messages() {
  Distinct d;
  return {hello(d),
          challenge(d),
          welcome(d),
          reject(d),
          after_the_retired(d),
          final_message(d),
          propose(d),
          Chunk{exchange_id(d), Stream::kState, d.small()},
          credit(d),
          result(d),
          Ack{exchange_id(d), d.number()},
          Busy{exchange_id(d), d.small()},
          Aborted{exchange_id(d), AbortReason::kNotReady},
          state_request(d),
          state_header(d),
          Ping{d.number(), news(d)},
          Pong{d.number(), id(d), news(d)},
          PingRequest{d.number(), id(d), news(d)},
          Nack{d.number(), id(d), news(d)},
          Gossip{news(d)},
          digest(d),
          sync(d),
          view(d),
          dial_back(d),
          tally(d)};
}

std::string kind_name(std::size_t kind) {
  std::string name = name_of(sample_messages().at(kind));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

}  // namespace kith::schema
