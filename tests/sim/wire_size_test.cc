// The estimate of encoded sizes against the real codec: within four per cent (a new field or two),
// so that bytes per node
// and second mean what they say.
#include "gossip/sim/wire_size.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gossip/sim/node_ids.h"
#include "schema/codec.h"

namespace kith::sim {
namespace {

schema::MemberRecord record(NodeIndex index, bool full) {
  schema::MemberRecord r;
  r.id = node_id(index);
  r.incarnation = incarnation_of(3);
  r.version = 17;
  r.boot_nonce = 99;
  r.signature.fill(7);
  r.name = "node-" + std::to_string(index);
  r.control_address = "10.0.0." + std::to_string(index) + ":7400";
  if (!full) return r;
  r.bulk_address = "10.0.0." + std::to_string(index) + ":7401";
  r.http_address = "10.0.0." + std::to_string(index) + ":7480";
  r.version_text = "0.1.0";
  r.data_fingerprint.bytes.fill(5);
  r.transport_key.fill(6);
  return r;
}

schema::News news(unsigned records, unsigned accusations, bool full) {
  schema::News n;
  for (NodeIndex i = 0; i < records; ++i) n.records.push_back(record(i + 1, full));
  for (NodeIndex i = 0; i < accusations; ++i) {
    schema::Accusation a{node_id(i + 1), incarnation_of(1), node_id(i + 2), {}};
    a.signature.fill(9);
    n.accusations.push_back(a);
  }
  return n;
}

std::vector<schema::Message> messages() {
  std::vector<schema::Message> all;
  for (const unsigned records : {0U, 1U, 5U, 40U}) {
    for (const unsigned accusations : {0U, 1U, 20U}) {
      for (const bool full : {false, true}) {
        const schema::News n = news(records, accusations, full);
        all.emplace_back(schema::Ping{1, n});
        all.emplace_back(schema::Pong{1, node_id(1), n});
        all.emplace_back(schema::PingRequest{1, node_id(1), n});
        all.emplace_back(schema::Nack{1, node_id(1), n});
        all.emplace_back(schema::Gossip{n});
        schema::Sync sync;
        sync.news = n;
        for (std::uint32_t i = 0; i < records; ++i) {
          sync.buckets.push_back(i);
          sync.entries.push_back({node_id(i + 1), incarnation_of(1), 1, {}});
        }
        for (unsigned i = 0; i < accusations; ++i) sync.wanted.push_back(node_id(i + 1));
        all.emplace_back(sync);
      }
    }
  }
  all.emplace_back(schema::Digest{std::vector<std::uint64_t>(schema::kDigestBuckets, 3)});
  schema::Leave leave{record(1, true)};
  leave.record.left = true;
  leave.record.state = schema::MemberState::kLeft;
  all.emplace_back(leave);
  schema::View view;
  view.kind = schema::ViewKind::kShuffle;
  view.ttl = 4;
  view.origin = node_id(1);
  view.records = news(9, 0, true).records;
  all.emplace_back(view);
  return all;
}

TEST(WireSize, IsThatOfTheCodec) {
  for (const schema::Message& message : messages()) {
    const auto encoded = static_cast<double>(schema::encode(message).size());
    const auto estimate = static_cast<double>(control_bytes(message));
    EXPECT_NEAR(estimate, encoded, 0.04 * encoded)
        << schema::name_of(message) << ": " << estimate << " against " << encoded;
  }
}

TEST(WireSize, GrowsWithTexts) {
  schema::MemberRecord r = record(1, true);
  const std::size_t before = record_bytes(r);
  r.name += std::string(64, 'x');
  EXPECT_EQ(record_bytes(r), before + 64);
}

}  // namespace
}  // namespace kith::sim
