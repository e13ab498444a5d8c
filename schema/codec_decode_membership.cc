// decode() for the control plane: records, and the messages that are made of them.

#include "schema/codec_read.h"

namespace kith::schema {
namespace {

using schema::read;  // beside the overloads below

// The last enumerant on either side is the same, so a value is known if it is not above it.
static_assert(static_cast<int>(wire::MemberState::LEFT) == static_cast<int>(MemberState::kLeft));
static_assert(static_cast<int>(wire::RunState::LEAVING) == static_cast<int>(RunState::kLeaving));
static_assert(static_cast<int>(wire::ViewKind::SHUFFLE_REPLY) ==
              static_cast<int>(ViewKind::kShuffleReply));

Status read_texts(wire::MemberRecord::Reader in, MemberRecord& out) {
  KITH_TRY(read_text(in.getName(), kNameBytesMax, "record.name", out.name));
  KITH_TRY(read_text(in.getControlAddress(), kAddressBytesMax, "record.control_address",
                     out.control_address));
  KITH_TRY(
      read_text(in.getBulkAddress(), kAddressBytesMax, "record.bulk_address", out.bulk_address));
  KITH_TRY(
      read_text(in.getHttpAddress(), kAddressBytesMax, "record.http_address", out.http_address));
  return read_text(in.getVersionText(), kVersionTextBytesMax, "record.version_text",
                   out.version_text);
}

void read_work(wire::MemberRecord::Reader in, MemberRecord& out) {
  out.step = in.getStep();
  out.samples = in.getSamples();
  out.loss = in.getLoss();
  out.accuracy = in.getAccuracy();
  out.learning_rate = in.getLearningRate();
  out.steps_per_second = in.getStepsPerSecond();
  read(in.getDataFingerprint(), out.data_fingerprint.bytes);
  out.data_samples = in.getDataSamples();
  out.shard_samples = in.getShardSamples();
  out.shard_index = in.getShardIndex();
  out.shard_count = in.getShardCount();
}

Status read(wire::Accusation::Reader in, Accusation& out) {
  read(in.getSubject(), out.subject.bytes);
  out.incarnation = in.getIncarnation();
  read(in.getAccuser(), out.accuser.bytes);
  read(in.getSignature(), out.signature);
  return check_numbers(out);
}

// Ids within lists are words of the entry itself.
template <typename Entry>
void read_id(Entry in, NodeId& out) {
  std::uint8_t* id = out.bytes.data();
  store_word(in.getId0(), id);
  store_word(in.getId1(), id + 8);
  store_word(in.getId2(), id + 16);
  store_word(in.getId3(), id + 24);
}

Status read(wire::DigestEntry::Reader in, DigestEntry& out) {
  read_id(in, out.id);
  out.incarnation = in.getIncarnation();
  out.version = in.getVersion();
  return read_enum(in.getState(), MemberState::kLeft, "entry.state", out.state);
}

Status read(wire::News::Reader in, News& out) {
  KITH_TRY(read(in.getRecords(), kNewsRecordsMax, out.records));
  const auto accusations = in.getAccusations();
  KITH_TRY(check_count(accusations.size(), kNewsAccusationsMax, "accusations"));
  out.accusations.resize(accusations.size());
  for (unsigned i = 0; i < accusations.size(); ++i)
    KITH_TRY(read(accusations[i], out.accusations[i]));
  return {};
}

// PONG, PING_REQUEST and NACK differ in what they mean only.
template <typename Reader, typename Body>
Status read_about_subject(Reader in, Body& out) {
  out.sequence = in.getSequence();
  read(in.getSubject(), out.subject.bytes);
  return read(in.getNews(), out.news);
}

Status read_buckets(capnp::List<std::uint32_t>::Reader in, std::vector<std::uint32_t>& out) {
  KITH_TRY(check_count(in.size(), kDigestBuckets, "buckets"));
  for (const std::uint32_t bucket : in) {
    KITH_TRY(check_bucket(bucket));
    out.push_back(bucket);
  }
  return {};
}

Status read_entries(capnp::List<wire::DigestEntry>::Reader in, std::vector<DigestEntry>& out) {
  KITH_TRY(check_count(in.size(), kSyncEntriesMax, "entries"));
  out.resize(in.size());
  for (unsigned i = 0; i < in.size(); ++i) KITH_TRY(read(in[i], out[i]));
  return {};
}

Status read(wire::TallyEntry::Reader in, TallyEntry& out) {
  read_id(in, out.id);
  out.samples = in.getSamples();
  out.steps = in.getSteps();
  std::uint8_t* data = out.data_fingerprint.bytes.data();
  store_word(in.getData0(), data);
  store_word(in.getData1(), data + 8);
  store_word(in.getData2(), data + 16);
  store_word(in.getData3(), data + 24);
  out.data_samples = in.getDataSamples();
  out.shard_samples = in.getShardSamples();
  out.shard_index = in.getShardIndex();
  out.shard_count = in.getShardCount();
  return check_numbers(out);
}

Status read_wanted(capnp::List<wire::Bytes32>::Reader in, std::vector<NodeId>& out) {
  KITH_TRY(check_count(in.size(), kSyncWantedMax, "wanted"));
  out.resize(in.size());
  for (unsigned i = 0; i < in.size(); ++i) read(in[i], out[i].bytes);
  return {};
}

}  // namespace

Status read(wire::MemberRecord::Reader in, MemberRecord& out) {
  read(in.getId(), out.id.bytes);
  out.incarnation = in.getIncarnation();
  out.version = in.getVersion();
  KITH_TRY(read_enum(in.getState(), MemberState::kLeft, "record.state", out.state));
  KITH_TRY(read_enum(in.getRunState(), RunState::kLeaving, "record.run_state", out.run_state));
  out.converged = in.getConverged();
  KITH_TRY(read_texts(in, out));
  read_work(in, out);
  read(in.getTransportKey(), out.transport_key);
  out.key_epoch = in.getKeyEpoch();
  read(in.getSignature(), out.signature);
  out.boot_nonce = in.getBootNonce();
  out.left = in.getLeft();
  out.shares_data = in.getSharesData();
  out.depth = in.getDepth();
  return check_numbers(out);
}

Status read(capnp::List<wire::MemberRecord>::Reader in, std::size_t count_max,
            std::vector<MemberRecord>& out) {
  KITH_TRY(check_count(in.size(), count_max, "records"));
  out.resize(in.size());
  for (unsigned i = 0; i < in.size(); ++i) KITH_TRY(read(in[i], out[i]));
  return {};
}

// ---- one function per message

Status read(wire::Leave::Reader in, Leave& out) {
  KITH_TRY(read(in.getRecord(), out.record));
  return check_numbers(out);
}

Status read(wire::Final::Reader in, Final& out) {
  read(in.getDeclarer(), out.declarer.bytes);
  read(in.getRunDigest(), out.run_digest.bytes);
  read(in.getRoot(), out.root.bytes);
  out.progress = in.getProgress();
  read(in.getSignature(), out.signature);
  return {};
}

Status read(wire::Ping::Reader in, Ping& out) {
  out.sequence = in.getSequence();
  return read(in.getNews(), out.news);
}

Status read(wire::Pong::Reader in, Pong& out) { return read_about_subject(in, out); }

Status read(wire::PingRequest::Reader in, PingRequest& out) { return read_about_subject(in, out); }

Status read(wire::Nack::Reader in, Nack& out) { return read_about_subject(in, out); }

Status read(wire::Gossip::Reader in, Gossip& out) { return read(in.getNews(), out.news); }

Status read(wire::Digest::Reader in, Digest& out) {
  const auto buckets = in.getBuckets();
  KITH_TRY(check_bucket_hashes(buckets.size()));
  for (const std::uint64_t hash : buckets) out.buckets.push_back(hash);
  return {};
}

Status read(wire::Sync::Reader in, Sync& out) {
  KITH_TRY(read_buckets(in.getBuckets(), out.buckets));
  KITH_TRY(read_entries(in.getEntries(), out.entries));
  KITH_TRY(read_wanted(in.getWanted(), out.wanted));
  return read(in.getNews(), out.news);
}

Status read(wire::View::Reader in, View& out) {
  KITH_TRY(read_enum(in.getKind(), ViewKind::kShuffleReply, "kind", out.kind));
  out.ttl = in.getTtl();
  out.sequence = in.getSequence();
  read(in.getOrigin(), out.origin.bytes);
  KITH_TRY(check_numbers(out));
  return read(in.getRecords(), kViewRecordsMax, out.records);
}

Status read(wire::Tally::Reader in, Tally& out) {
  out.digest = in.getDigest();
  out.asks = in.getAsks();
  read(in.getBegin(), out.begin.bytes);
  const auto entries = in.getEntries();
  KITH_TRY(check_count(entries.size(), kTallyEntriesMax, "entries"));
  out.entries.resize(entries.size());
  for (unsigned i = 0; i < entries.size(); ++i) KITH_TRY(read(entries[i], out.entries[i]));
  return {};
}

}  // namespace kith::schema
