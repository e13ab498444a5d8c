// encode() for the control plane: records, and the messages that are made of them.

#include "schema/codec_write.h"

namespace kith::schema {
namespace {

using schema::write;  // beside the overloads below

void write_work(wire::MemberRecord::Builder out, const MemberRecord& in) {
  out.setStep(in.step);
  out.setSamples(in.samples);
  out.setLoss(in.loss);
  out.setAccuracy(in.accuracy);
  out.setLearningRate(in.learning_rate);
  out.setStepsPerSecond(in.steps_per_second);
  write(out.initDataFingerprint(), in.data_fingerprint.bytes);
  out.setDataSamples(in.data_samples);
  out.setShardSamples(in.shard_samples);
  out.setShardIndex(in.shard_index);
  out.setShardCount(in.shard_count);
}

std::size_t text_bytes(const std::string& value) {  // with the final zero, in whole words
  return (value.size() + 1 + kWordBytes - 1) / kWordBytes * kWordBytes;
}

// What a record takes within a list. 24 bytes: its three Bytes32 in a Bytes64 take two more
// pointers.
std::size_t record_bytes(const MemberRecord& r) {
  constexpr auto kSize = capnp::_::structSize<wire::MemberRecord>();
  constexpr std::size_t kFixed = (kSize.data + kSize.pointers + 3 * 4 + 8) * kWordBytes;
  return kFixed + text_bytes(r.name) + text_bytes(r.control_address) + text_bytes(r.bulk_address) +
         text_bytes(r.http_address) + text_bytes(r.version_text);
}

void write(wire::Accusation::Builder out, const Accusation& in) {
  require(check_numbers(in));
  write(out.initSubject(), in.subject.bytes);
  out.setIncarnation(in.incarnation);
  write(out.initAccuser(), in.accuser.bytes);
  write(out.initSignature(), in.signature);
}

// Ids within lists are words of the entry itself.
template <typename Entry>
void write_id(Entry out, const NodeId& in) {
  const std::uint8_t* id = in.bytes.data();
  out.setId0(load_word(id));
  out.setId1(load_word(id + 8));
  out.setId2(load_word(id + 16));
  out.setId3(load_word(id + 24));
}

void write(wire::DigestEntry::Builder out, const DigestEntry& in) {
  write_id(out, in.id);
  out.setIncarnation(in.incarnation);
  out.setVersion(in.version);
  out.setState(number<wire::MemberState>(in.state));
}

void write(wire::TallyEntry::Builder out, const TallyEntry& in) {
  require(check_numbers(in));
  write_id(out, in.id);
  out.setSamples(in.samples);
  out.setSteps(in.steps);
  const std::uint8_t* data = in.data_fingerprint.bytes.data();
  out.setData0(load_word(data));
  out.setData1(load_word(data + 8));
  out.setData2(load_word(data + 16));
  out.setData3(load_word(data + 24));
  out.setDataSamples(in.data_samples);
  out.setShardSamples(in.shard_samples);
  out.setShardIndex(in.shard_index);
  out.setShardCount(in.shard_count);
}

// Last in its message: its records take what the rest left.
void write(wire::Envelope::Builder envelope, wire::News::Builder out, const News& in) {
  require(check_count(in.records.size(), kNewsRecordsMax, "records"));
  require(check_count(in.accusations.size(), kNewsAccusationsMax, "accusations"));
  auto accusations = out.initAccusations(static_cast<unsigned>(in.accusations.size()));
  for (unsigned i = 0; i < accusations.size(); ++i) write(accusations[i], in.accusations[i]);
  write(out.initRecords(fitting(in.records, used_bytes(envelope))), in.records);
}

// PONG, PING_REQUEST and NACK differ in what they mean only.
template <typename Builder, typename Body>
void write_about_subject(wire::Envelope::Builder envelope, Builder out, const Body& in) {
  out.setSequence(in.sequence);
  write(out.initSubject(), in.subject.bytes);
  write(envelope, out.initNews(), in.news);
}

void write_entries(wire::Sync::Builder out, const Sync& in) {
  auto entries = out.initEntries(static_cast<unsigned>(in.entries.size()));
  for (unsigned i = 0; i < entries.size(); ++i) write(entries[i], in.entries[i]);
}

void write_wanted(wire::Sync::Builder out, const Sync& in) {
  auto wanted = out.initWanted(static_cast<unsigned>(in.wanted.size()));
  for (unsigned i = 0; i < wanted.size(); ++i) write(wanted[i], in.wanted[i].bytes);
}

void write_buckets(wire::Sync::Builder out, const Sync& in) {
  auto buckets = out.initBuckets(static_cast<unsigned>(in.buckets.size()));
  for (unsigned i = 0; i < buckets.size(); ++i) {
    require(check_bucket(in.buckets[i]));
    buckets.set(i, in.buckets[i]);
  }
}

}  // namespace

void write(wire::MemberRecord::Builder out, const MemberRecord& in) {
  require(check_numbers(in));
  write(out.initId(), in.id.bytes);
  out.setIncarnation(in.incarnation);
  out.setVersion(in.version);
  out.setState(number<wire::MemberState>(in.state));
  out.setRunState(number<wire::RunState>(in.run_state));
  out.setConverged(in.converged);
  out.setName(text(in.name, kNameBytesMax, "record.name"));
  out.setControlAddress(text(in.control_address, kAddressBytesMax, "record.control_address"));
  out.setBulkAddress(text(in.bulk_address, kAddressBytesMax, "record.bulk_address"));
  out.setHttpAddress(text(in.http_address, kAddressBytesMax, "record.http_address"));
  write_work(out, in);
  write(out.initTransportKey(), in.transport_key);
  out.setKeyEpoch(in.key_epoch);
  out.setVersionText(text(in.version_text, kVersionTextBytesMax, "record.version_text"));
  write(out.initSignature(), in.signature);
  out.setBootNonce(in.boot_nonce);
  out.setLeft(in.left);
  out.setSharesData(in.shares_data);
  out.setDepth(in.depth);
}

std::size_t used_bytes(wire::Envelope::Builder envelope) {
  return (envelope.totalSize().wordCount + 1) * kWordBytes;  // 1: root pointer
}

unsigned fitting(const std::vector<MemberRecord>& records, std::size_t used) {
  unsigned count = 0;
  std::size_t total = used + kWordBytes;  // the list's tag
  for (const MemberRecord& record : records) {
    total += record_bytes(record);
    if (total > kSegmentWordsMax * kWordBytes) break;
    ++count;
  }
  return count;
}

void write(capnp::List<wire::MemberRecord>::Builder out, const std::vector<MemberRecord>& records) {
  for (unsigned i = 0; i < out.size(); ++i) write(out[i], records[i]);
}

// ---- one function per message

void write(wire::Envelope::Builder envelope, const Leave& in) {
  require(check_numbers(in));
  write(envelope.initLeave().initRecord(), in.record);
}

void write(wire::Envelope::Builder envelope, const Final& in) {
  auto out = envelope.initFinal();
  write(out.initDeclarer(), in.declarer.bytes);
  write(out.initRunDigest(), in.run_digest.bytes);
  write(out.initRoot(), in.root.bytes);
  out.setProgress(in.progress);
  write(out.initSignature(), in.signature);
}

void write(wire::Envelope::Builder envelope, const Ping& in) {
  auto out = envelope.initPing();
  out.setSequence(in.sequence);
  write(envelope, out.initNews(), in.news);
}

void write(wire::Envelope::Builder envelope, const Pong& in) {
  write_about_subject(envelope, envelope.initPong(), in);
}

void write(wire::Envelope::Builder envelope, const PingRequest& in) {
  write_about_subject(envelope, envelope.initPingRequest(), in);
}

void write(wire::Envelope::Builder envelope, const Nack& in) {
  write_about_subject(envelope, envelope.initNack(), in);
}

void write(wire::Envelope::Builder envelope, const Gossip& in) {
  write(envelope, envelope.initGossip().initNews(), in.news);
}

void write(wire::Envelope::Builder envelope, const Digest& in) {
  require(check_bucket_hashes(in.buckets.size()));
  auto out = envelope.initDigest();
  auto buckets = out.initBuckets(kDigestBuckets);
  for (unsigned i = 0; i < kDigestBuckets; ++i) buckets.set(i, in.buckets[i]);
}

void write(wire::Envelope::Builder envelope, const Sync& in) {
  require(check_count(in.buckets.size(), kDigestBuckets, "buckets"));
  require(check_count(in.entries.size(), kSyncEntriesMax, "entries"));
  require(check_count(in.wanted.size(), kSyncWantedMax, "wanted"));
  auto out = envelope.initSync();
  write_buckets(out, in);
  write_entries(out, in);
  write_wanted(out, in);
  write(envelope, out.initNews(), in.news);
}

void write(wire::Envelope::Builder envelope, const View& in) {
  require(check_numbers(in));
  require(check_count(in.records.size(), kViewRecordsMax, "records"));
  auto out = envelope.initView();
  out.setKind(number<wire::ViewKind>(in.kind));
  out.setTtl(in.ttl);
  out.setSequence(in.sequence);
  write(out.initOrigin(), in.origin.bytes);
  write(out.initRecords(fitting(in.records, used_bytes(envelope))), in.records);
}

void write(wire::Envelope::Builder envelope, const Tally& in) {
  require(check_count(in.entries.size(), kTallyEntriesMax, "entries"));
  auto out = envelope.initTally();
  out.setDigest(in.digest);
  out.setAsks(in.asks);
  write(out.initBegin(), in.begin.bytes);
  auto entries = out.initEntries(static_cast<unsigned>(in.entries.size()));
  for (unsigned i = 0; i < entries.size(); ++i) write(entries[i], in.entries[i]);
}

}  // namespace kith::schema
