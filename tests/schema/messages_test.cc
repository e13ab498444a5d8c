#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

TEST(MessageNames, AreOnePerKindAndAsDocumented) {
  std::set<std::string> names;
  for (const Message& message : sample_messages()) names.insert(name_of(message));
  EXPECT_EQ(names.size(), kMessageKinds);
  EXPECT_STREQ(name_of(ResultMessage{}), "RESULT");
  EXPECT_STREQ(name_of(StateRequest{}), "STATE_REQUEST");
}

TEST(MessagePlanes, HandshakeIsOnBothMembershipOnControlExchangeOnBulk) {
  const std::set<std::string> both = {"HELLO", "CHALLENGE", "WELCOME", "REJECT"};
  const std::set<std::string> control = {"LEAVE",        "FINAL", "PING",      "PONG",
                                         "PING_REQUEST", "NACK",  "GOSSIP",    "DIGEST",
                                         "SYNC",         "VIEW",  "DIAL_BACK", "TALLY"};
  for (const Message& message : sample_messages()) {
    const PlaneRule rule = planes_of(message);
    const std::string name = name_of(message);
    EXPECT_EQ(rule.control, both.contains(name) || control.contains(name)) << name;
    EXPECT_EQ(rule.bulk, !control.contains(name)) << name;
  }
}

MemberRecord sample_record() { return std::get<Leave>(sample_messages()[4]).record; }

// One change per field of the record, in the order of messages.h.
std::vector<std::pair<const char*, void (*)(MemberRecord&)>> changes() {
  return {{"id", [](MemberRecord& r) { r.id.bytes[31] ^= 1; }},
          {"incarnation", [](MemberRecord& r) { ++r.incarnation; }},
          {"version", [](MemberRecord& r) { ++r.version; }},
          {"run_state", [](MemberRecord& r) { r.run_state = RunState::kTraining; }},
          {"converged", [](MemberRecord& r) { r.converged = !r.converged; }},
          {"name", [](MemberRecord& r) { r.name += "x"; }},
          {"control_address", [](MemberRecord& r) { r.control_address += "0"; }},
          {"bulk_address", [](MemberRecord& r) { r.bulk_address += "0"; }},
          {"http_address", [](MemberRecord& r) { r.http_address += "0"; }},
          {"step", [](MemberRecord& r) { ++r.step; }},
          {"samples", [](MemberRecord& r) { ++r.samples; }},
          {"loss", [](MemberRecord& r) { r.loss += 1.0; }},
          {"accuracy", [](MemberRecord& r) { r.accuracy += 1.0; }},
          {"learning_rate", [](MemberRecord& r) { r.learning_rate += 1.0; }},
          {"steps_per_second", [](MemberRecord& r) { r.steps_per_second += 1.0; }},
          {"data_fingerprint", [](MemberRecord& r) { r.data_fingerprint.bytes[0] ^= 1; }},
          {"data_samples", [](MemberRecord& r) { ++r.data_samples; }},
          {"shard_samples", [](MemberRecord& r) { ++r.shard_samples; }},
          {"shard_index", [](MemberRecord& r) { ++r.shard_index; }},
          {"shard_count", [](MemberRecord& r) { ++r.shard_count; }},
          {"transport_key", [](MemberRecord& r) { r.transport_key[5] ^= 1; }},
          {"key_epoch", [](MemberRecord& r) { ++r.key_epoch; }},
          {"version_text", [](MemberRecord& r) { r.version_text += "x"; }},
          {"boot_nonce", [](MemberRecord& r) { ++r.boot_nonce; }},
          {"left", [](MemberRecord& r) { r.left = !r.left; }},
          {"shares_data", [](MemberRecord& r) { r.shares_data = !r.shares_data; }},
          {"depth", [](MemberRecord& r) { ++r.depth; }}};
}

TEST(SigningHash, ChangesWithEveryFieldButStateAndSignature) {
  const Hash256 before = signing_hash(sample_record());
  for (const auto& [field, change] : changes()) {
    MemberRecord record = sample_record();
    change(record);
    EXPECT_NE(signing_hash(record), before) << field;
  }
}

TEST(SigningHash, LeavesOutWhatOthersMaySet) {
  MemberRecord record = sample_record();
  const Hash256 before = signing_hash(record);
  record.state = MemberState::kSuspect;
  record.signature[0] ^= 1;
  EXPECT_EQ(signing_hash(record), before);
}

TEST(SigningHash, TellsNeighbouringTextsApart) {
  MemberRecord record = sample_record();
  record.name = "ab";
  record.control_address = "c";
  const Hash256 before = signing_hash(record);
  record.name = "a";
  record.control_address = "bc";
  EXPECT_NE(signing_hash(record), before);
}

TEST(SigningHash, IsTheSameForEveryBitPatternOfNaN) {
  MemberRecord record = sample_record();
  record.loss = std::bit_cast<double>(0x7FF8000000000000ULL);
  const Hash256 before = signing_hash(record);
  record.loss = std::bit_cast<double>(0xFFF8000000000123ULL);
  EXPECT_EQ(signing_hash(record), before);
}

Accusation sample_accusation() {
  return std::get<Gossip>(sample_messages()[19]).news.accusations[0];
}

TEST(AccusationHash, CoversWhoAccusesWhomOfWhichLife) {
  const Hash256 before = accusation_hash(sample_accusation());
  const std::vector<std::pair<const char*, void (*)(Accusation&)>> changes = {
      {"subject", [](Accusation& a) { a.subject.bytes[31] ^= 1; }},
      {"incarnation", [](Accusation& a) { ++a.incarnation; }},
      {"accuser", [](Accusation& a) { a.accuser.bytes[0] ^= 1; }},
      {"subject and accuser", [](Accusation& a) { std::swap(a.subject, a.accuser); }}};
  for (const auto& [what, change] : changes) {
    Accusation accusation = sample_accusation();
    change(accusation);
    EXPECT_NE(accusation_hash(accusation), before) << what;
  }
  Accusation signed_otherwise = sample_accusation();
  signed_otherwise.signature[0] ^= 1;
  EXPECT_EQ(accusation_hash(signed_otherwise), before);
}

}  // namespace
}  // namespace kith::schema
