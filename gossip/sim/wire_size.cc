#include "gossip/sim/wire_size.h"

#include <string>
#include <type_traits>
#include <variant>

namespace kith::sim {
namespace {

constexpr std::size_t kWord = 8;
// Segment table, root pointer, the envelope's tag and its pointer.
constexpr std::size_t kEnvelope = 4 * kWord;
constexpr std::size_t kListTag = kWord;
constexpr std::size_t kBytes32 = 4 * kWord;
constexpr std::size_t kRecordFixed =
    43 * kWord;  // numbers, pointers, signature, three values of 32 bytes
constexpr std::size_t kAccusation = 20 * kWord;  // number, three pointers, two ids, signature
constexpr std::size_t kNewsFixed = 3 * kWord;    // a retired number, two pointers
constexpr std::size_t kDigestEntry = 7 * kWord;

std::size_t rounded(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }
std::size_t text(const std::string& value) { return rounded(value.size() + 1); }

std::size_t list_of(const std::vector<schema::MemberRecord>& records) {
  std::size_t bytes = kListTag;
  for (const schema::MemberRecord& record : records) bytes += record_bytes(record);
  return bytes;
}

std::size_t news_bytes(const schema::News& news) {
  return kNewsFixed + list_of(news.records) + kListTag + kAccusation * news.accusations.size();
}

std::size_t body(const schema::Ping& m) { return 2 * kWord + news_bytes(m.news); }
std::size_t about_subject(const schema::News& news) {
  return 3 * kWord + kBytes32 + news_bytes(news);
}
std::size_t body(const schema::Pong& m) { return about_subject(m.news); }
std::size_t body(const schema::PingRequest& m) { return about_subject(m.news); }
std::size_t body(const schema::Nack& m) { return about_subject(m.news); }
std::size_t body(const schema::Gossip& m) { return kWord + news_bytes(m.news); }
std::size_t body(const schema::Digest& m) { return 2 * kWord + kWord * m.buckets.size(); }
std::size_t body(const schema::Sync& m) {
  return 4 * kWord + rounded(4 * m.buckets.size()) + news_bytes(m.news) + 2 * kListTag +
         kDigestEntry * m.entries.size() + kBytes32 * m.wanted.size();
}
std::size_t body(const schema::View& m) { return 4 * kWord + kBytes32 + list_of(m.records); }
std::size_t body(const schema::Leave& m) { return kWord + record_bytes(m.record); }

}  // namespace

std::size_t record_bytes(const schema::MemberRecord& r) {
  return kRecordFixed + text(r.name) + text(r.control_address) + text(r.bulk_address) +
         text(r.http_address) + text(r.version_text);
}

std::size_t control_bytes(const schema::Message& message) {
  return std::visit(
      [](const auto& m) -> std::size_t {
        if constexpr (requires { body(m); }) {
          return kEnvelope + body(m);
        } else {
          return 100;
        }
      },
      message);
}

}  // namespace kith::sim
