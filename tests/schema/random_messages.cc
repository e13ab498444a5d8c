#include <limits>

#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

class Draw {
 public:
  explicit Draw(Random& random) : random_(random) {}

  std::uint64_t number() {
    switch (random_.below(4)) {
      case 0:
        return random_.below(3);
      case 1:
        return std::numeric_limits<std::uint64_t>::max() - random_.below(3);
      default:
        return random_.next() >> random_.below(64);
    }
  }
  std::uint32_t small() { return static_cast<std::uint32_t>(number()); }
  std::size_t up_to(std::size_t max) {  // the edges often
    const std::uint64_t choice = random_.below(4);
    return choice == 0 ? 0 : choice == 1 ? max : random_.below(max + 1);
  }
  bool coin() { return random_.chance(0.5); }
  double unit() { return random_.chance(0.1) ? 1.0 : random_.uniform(); }
  double positive() {
    return random_.chance(0.1) ? std::numeric_limits<double>::max() : random_.exponential(1.0);
  }
  double any() {
    const double special[] = {std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(), -0.0, 0.0};
    return random_.chance(0.5) ? special[random_.below(5)] : random_.normal();
  }
  template <typename Enum>
  Enum one_of(Enum last) {
    return static_cast<Enum>(random_.below(static_cast<std::uint64_t>(last) + 1));
  }
  template <std::size_t N>
  void fill(std::array<std::uint8_t, N>& bytes) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_.next());
  }
  std::string text(std::size_t bytes_max) {
    static constexpr const char* kCharacters[] = {"a", "Z", "0",  " ", ":", "\"",
                                                  "é", "ß", "猫", "€", "🐈"};
    const std::size_t length = up_to(bytes_max);
    std::string out;
    while (out.size() < length) {
      const std::string next = kCharacters[random_.below(std::size(kCharacters))];
      out += out.size() + next.size() <= length ? next : "x";
    }
    return out;
  }

 private:
  Random& random_;
};

ExchangeId exchange_id(Draw& d) {
  ExchangeId e;
  d.fill(e.initiator.bytes);
  e.incarnation = d.number();
  e.sequence = d.number();
  return e;
}

MemberRecord record(Draw& d) {
  MemberRecord r;
  d.fill(r.id.bytes);
  r.incarnation = d.number();
  r.version = d.number();
  r.state = d.one_of(MemberState::kLeft);
  r.run_state = d.one_of(RunState::kLeaving);
  r.converged = d.coin();
  r.name = d.text(kNameBytesMax);
  r.control_address = d.text(kAddressBytesMax);
  r.bulk_address = d.text(kAddressBytesMax);
  r.http_address = d.text(kAddressBytesMax);
  r.step = d.number();
  r.samples = d.number();
  r.loss = d.any();
  r.accuracy = d.coin() ? std::numeric_limits<double>::quiet_NaN() : d.unit();
  r.learning_rate = d.positive();
  r.steps_per_second = d.positive();
  d.fill(r.data_fingerprint.bytes);
  r.data_samples = d.up_to(kDataSamplesMax);
  r.shard_samples = d.up_to(kDataSamplesMax);
  r.shard_count = d.small();
  r.shard_index = static_cast<std::uint32_t>(d.up_to(r.shard_count));
  d.fill(r.transport_key);
  r.key_epoch = d.small();
  r.version_text = d.text(kVersionTextBytesMax);
  d.fill(r.signature);
  r.boot_nonce = d.number();
  r.left = d.coin();
  r.shares_data = d.coin();
  r.depth = d.number();
  return r;
}

std::vector<MemberRecord> records(Draw& d, std::size_t count_max) {
  std::vector<MemberRecord> out(d.up_to(count_max));
  for (MemberRecord& r : out) r = record(d);
  return out;
}

Facts facts(Draw& d) {
  Facts out(d.up_to(kFactsMax));
  for (auto& [name, value] : out) {
    name = d.text(kFactNameBytesMax);
    value = d.text(kFactValueBytesMax);
  }
  return out;
}

std::uint32_t chunk_bytes(Draw& d) {
  return static_cast<std::uint32_t>(1 + d.up_to(kChunkBytesMax - 1));
}

void draw(Draw& d, Hello& m) {
  m.plane = d.one_of(Plane::kBulk);
  m.protocol_max = d.small() | 1U;
  m.protocol_min = static_cast<std::uint32_t>(1 + d.up_to(m.protocol_max - 1));
  m.cluster = d.text(kNameBytesMax);
  m.run_id = d.text(kNameBytesMax);
  d.fill(m.schema_hash.bytes);
  m.facts = facts(d);
  m.record = record(d);
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
  m.lowest_open = d.number();
  d.fill(m.signature);
  m.probe = d.up_to(1) == 1;
  m.dial_back_port = static_cast<std::uint16_t>(d.up_to(65535));
  m.tallies = d.up_to(1) == 1;
}
void draw(Draw& d, Challenge& m) {
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
}
void draw(Draw& d, Welcome& m) {
  m.record = record(d);
  m.records = records(d, 16);  // more may not fit beside many facts
  m.facts = facts(d);
  m.seen_incarnation = d.number();
  d.fill(m.nonce);
  d.fill(m.peer_nonce);
  d.fill(m.signature);
  m.tallies = d.up_to(1) == 1;
  m.about.reset();
  if (d.up_to(1) == 0) return;
  m.about.emplace();
  m.about->cluster = d.text(kNameBytesMax);
  m.about->run_id = d.text(kNameBytesMax);
  d.fill(m.about->schema_hash.bytes);
  m.about->wall_seconds = static_cast<double>(d.up_to(1U << 30));
}
void draw(Draw& d, DialBack& m) {
  d.fill(m.nonce);
  m.outcome = d.one_of(DialBackOutcome::kBusy);
  m.address = d.text(kAddressBytesMax);
}
void draw(Draw& d, Reject& m) {
  m.code = d.one_of(RejectCode::kNotReady);
  m.detail = d.text(kRejectDetailBytesMax);
  d.fill(m.id.bytes);
  m.seen_incarnation = d.number();
}
void draw(Draw& d, Leave& m) {
  m.record = record(d);
  m.record.state = MemberState::kLeft;
}
void draw(Draw& d, Final& m) {
  d.fill(m.declarer.bytes);
  d.fill(m.run_digest.bytes);
  d.fill(m.root.bytes);
  m.progress = d.number();
  d.fill(m.signature);
}
void draw(Draw& d, Propose& m) {
  m.e = exchange_id(d);
  m.attempt = d.small();
  m.fragment = d.small();
  m.slot = d.one_of(Slot::kCompressed);
  m.codec = d.one_of(CodecId::kBf16);
  m.weight = d.unit() / 2;
  if (m.weight == 0.0) m.weight = 0.5;
  m.push_sum = d.positive();
  m.chunk_bytes = chunk_bytes(d);
  m.payload_bytes = 1 + d.up_to(std::uint64_t{m.chunk_bytes} * kChunksPerPayloadMax - 1);
  m.lowest_open = d.number();
  d.fill(m.run_digest.bytes);
  d.fill(m.schema_hash.bytes);
  m.depth = d.number();
  m.step = d.number();
}
void draw(Draw& d, Chunk& m) {
  m.e = exchange_id(d);
  m.stream = d.one_of(Stream::kState);
  m.index = static_cast<std::uint32_t>(d.up_to(kChunksPerPayloadMax - 1));
}
void draw(Draw& d, Credit& m) {
  m.e = exchange_id(d);
  m.stream = d.one_of(Stream::kState);
  m.received.resize(d.up_to(kCreditWordsMax));
  for (std::uint64_t& word : m.received) word = d.number();
}
void draw(Draw& d, ResultMessage& m) {
  m.e = exchange_id(d);
  m.fragment = d.small();
  m.codec = d.one_of(CodecId::kBf16);
  m.chunk_bytes = chunk_bytes(d);
  m.payload_bytes = 1 + d.up_to(std::uint64_t{m.chunk_bytes} * kChunksPerPayloadMax - 1);
  m.depth = d.number();
  m.step = d.number();
  m.distance_squared = d.positive();
  m.norm_squared = d.positive();
}
void draw(Draw& d, Ack& m) {
  m.e = exchange_id(d);
  m.lowest_open = d.number();
}
void draw(Draw& d, Busy& m) {
  m.e = exchange_id(d);
  m.retry_after_ms = d.small();
}
void draw(Draw& d, Aborted& m) {
  m.e = exchange_id(d);
  m.reason = d.one_of(AbortReason::kWithdrawn);
}
void draw(Draw& d, StateRequest& m) {
  m.e = exchange_id(d);
  m.item = d.one_of(StateItem::kOptimizer);
  m.index = d.small();
  m.final_state = d.coin();
  d.fill(m.run_digest.bytes);
  d.fill(m.schema_hash.bytes);
}
void draw(Draw& d, StateHeader& m) {
  m.e = exchange_id(d);
  m.item = d.one_of(StateItem::kOptimizer);
  m.index = d.small();
  m.chunk_bytes = chunk_bytes(d);
  m.payload_bytes = d.up_to(std::uint64_t{m.chunk_bytes} * kChunksPerPayloadMax);
  d.fill(m.hash.bytes);
  m.optimizer_pieces = d.small();
  m.optimizer_step = d.number();
  m.cluster_samples = d.number();
}

NodeId id(Draw& d) {
  NodeId out;
  d.fill(out.bytes);
  return out;
}

Accusation accusation(Draw& d) {
  Accusation a;
  a.subject = id(d);
  a.incarnation = d.number();
  a.accuser = id(d);
  d.fill(a.signature);
  return a;
}

// More records may not fit beside as many entries as a SYNC may have.
News news(Draw& d, std::size_t records_max = 32) {
  News out;
  out.records = records(d, records_max);
  out.accusations.resize(d.up_to(kNewsAccusationsMax));
  for (Accusation& a : out.accusations) a = accusation(d);
  return out;
}

template <typename AboutSubject>
void draw_about_subject(Draw& d, AboutSubject& m) {
  m.sequence = d.number();
  m.subject = id(d);
  m.news = news(d);
}

void draw(Draw& d, Ping& m) {
  m.sequence = d.number();
  m.news = news(d);
}
void draw(Draw& d, Pong& m) { draw_about_subject(d, m); }
void draw(Draw& d, PingRequest& m) { draw_about_subject(d, m); }
void draw(Draw& d, Nack& m) { draw_about_subject(d, m); }
void draw(Draw& d, Gossip& m) { m.news = news(d); }
void draw(Draw& d, Digest& m) {
  m.buckets.resize(kDigestBuckets);
  for (std::uint64_t& hash : m.buckets) hash = d.number();
}
void draw(Draw& d, Sync& m) {
  m.buckets.resize(d.up_to(kDigestBuckets));
  for (std::uint32_t& bucket : m.buckets)
    bucket = static_cast<std::uint32_t>(d.up_to(kDigestBuckets - 1));
  m.entries.resize(d.up_to(kSyncEntriesMax));
  for (DigestEntry& e : m.entries)
    e = {id(d), d.number(), d.number(), d.one_of(MemberState::kLeft)};
  m.wanted.resize(d.up_to(kSyncWantedMax));
  for (NodeId& wanted : m.wanted) wanted = id(d);
  m.news = news(d, 12);
}
void draw(Draw& d, View& m) {
  m.kind =
      static_cast<ViewKind>(1 + d.up_to(static_cast<std::size_t>(ViewKind::kShuffleReply) - 1));
  m.ttl = static_cast<std::uint32_t>(d.up_to(kViewTtlMax));
  m.sequence = d.number();
  m.origin = id(d);
  m.records = records(d, kViewRecordsMax);
}

void draw(Draw& d, Tally& m) {
  m.digest = d.number();
  m.asks = d.up_to(1) == 1;
  m.begin = id(d);
  m.entries.resize(d.up_to(kTallyEntriesMax));
  for (TallyEntry& e : m.entries) {
    e.id = id(d);
    e.samples = d.number();
    e.steps = d.number();
    d.fill(e.data_fingerprint.bytes);
    e.data_samples = d.up_to(kDataSamplesMax);
    e.shard_samples = d.up_to(kDataSamplesMax);
    e.shard_count = d.small();
    e.shard_index = static_cast<std::uint32_t>(d.up_to(e.shard_count));
  }
}

}  // namespace

Message random_message(std::size_t kind, Random& random) {
  Message message = sample_messages().at(kind);
  Draw d(random);
  std::visit([&](auto& body) { draw(d, body); }, message);
  return message;
}

}  // namespace kith::schema
