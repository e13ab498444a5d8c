// Anti-entropy: digests find what rumours missed. DIGEST -> SYNC (all we hold in the buckets that
// differ) -> SYNC (what is newer here, what is wanted) -> GOSSIP (what was wanted). Each message is
// bounded, each member is answered only so often; what does not fit comes with the next digest.
#include <algorithm>
#include <bitset>
#include <span>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::DigestEntry;
using schema::MemberRecord;
using schema::Sync;

namespace {

constexpr std::size_t kRepairBytes =
    24U << 10;  // of records in one answer; with 512 entries still below 64 KiB
// An answer brings no more records than that; who lacks many asks again soon.
constexpr std::size_t kEntriesEnough = 128;
constexpr std::size_t kAccusationsTold = 2;
constexpr std::size_t kManyDisputed = 4;  // halves that meet again
using BucketSet = std::bitset<schema::kDigestBuckets>;

DigestEntry entry_of(const MemberRecord& record) {
  return {record.id, record.incarnation, record.version, record.state};
}

std::vector<DigestEntry> entries_of(const SwimTable& table, const MemberRecord& own,
                                    std::size_t bucket) {
  std::vector<DigestEntry> out;
  if (bucket_of(own.id) == bucket) out.push_back(entry_of(own));
  const auto end = table.bucket_begin(bucket + 1);
  for (auto it = table.bucket_begin(bucket); it != end && out.size() <= schema::kSyncEntriesMax;
       ++it)
    out.push_back(entry_of(it->second.record()));
  return out;
}

// Records and accusations of an answer, bounded.
class Repair {
 public:
  explicit Repair(schema::News& news) : news_(news) {}
  void add(const SwimMember& member, const std::map<NodeId, SwimCase>& cases) {
    constexpr std::size_t kRecordBytes = 560;
    if (news_.records.size() >= std::min(schema::kNewsRecordsMax, kRepairBytes / kRecordBytes))
      return;
    news_.records.push_back(member.record());
    const auto it = cases.find(member.record().id);
    if (it == cases.end()) return;
    // As many as convict: there is room for those of more members.
    const std::size_t count = std::min(it->second.accusations.size(), kAccusationsTold);
    for (const schema::Accusation& accusation : std::span(it->second.accusations).first(count))
      if (news_.accusations.size() < schema::kNewsAccusationsMax)
        news_.accusations.push_back(accusation);
  }

 private:
  schema::News& news_;
};

enum class Difference { kNone, kNewerHere, kNewerThere };

Difference compare(const MemberRecord& here, const DigestEntry* there) {
  if (there == nullptr)
    return is_living(here.state) || here.left ? Difference::kNewerHere : Difference::kNone;
  if (here.incarnation != there->incarnation)
    return here.incarnation > there->incarnation ? Difference::kNewerHere : Difference::kNewerThere;
  if (is_living(here.state) == is_living(there->state)) return Difference::kNone;
  return is_living(here.state) ? Difference::kNewerThere : Difference::kNewerHere;
}

std::map<NodeId, DigestEntry> entries_by_id(const Sync& sync) {
  std::map<NodeId, DigestEntry> out;
  for (const DigestEntry& entry : sync.entries)
    if (out.size() < schema::kSyncEntriesMax) out.emplace(entry.id, entry);
  return out;
}

BucketSet buckets_of(const Sync& sync) {
  BucketSet out;
  for (const std::uint32_t bucket : sync.buckets)
    if (bucket < schema::kDigestBuckets) out.set(bucket);
  return out;
}

template <typename Visit>
void for_each_member(const SwimTable& table, const BucketSet& buckets, Visit visit) {
  for (std::size_t bucket = 0; bucket < schema::kDigestBuckets; ++bucket) {
    if (!buckets.test(bucket)) continue;
    const auto end = table.bucket_begin(bucket + 1);
    for (auto it = table.bucket_begin(bucket); it != end; ++it) visit(it->first, it->second);
  }
}

}  // namespace

void Swim::Impl::sync_tick(TimePoint now) {
  next_sync = now + settings.sync_interval;
  const auto to = draw_members(1, own.id, true);
  if (to.empty() || leaving) return;
  schema::Digest digest;
  digest.buckets.assign(table.buckets().begin(), table.buckets().end());
  ++counters.syncs;
  send(to.front(), std::move(digest));
}

void Swim::Impl::sync_soon(TimePoint now) {
  next_sync = std::min(next_sync, now + settings.gossip_interval);
}

void Swim::Impl::on_digest(TimePoint now, const NodeId& from, const schema::Digest& digest) {
  if (digest.buckets.size() != schema::kDigestBuckets || !synced.take(now, from)) return;
  Sync sync;
  const std::size_t start =
      random.below(schema::kDigestBuckets);  // what does not fit this time does another
  for (std::size_t i = 0; i < schema::kDigestBuckets; ++i) {
    const std::size_t bucket = (start + i) % schema::kDigestBuckets;
    if (digest.buckets[bucket] == table.buckets()[bucket]) continue;
    const auto entries = entries_of(table, own, bucket);
    if (sync.entries.size() + entries.size() > schema::kSyncEntriesMax) continue;
    if (sync.entries.size() >= kEntriesEnough) break;
    sync.buckets.push_back(static_cast<std::uint32_t>(bucket));
    sync.entries.insert(sync.entries.end(), entries.begin(), entries.end());
  }
  if (sync.buckets.empty()) return;
  sync.news = compose(from, settings.news_bytes_max / 4);
  send(from, std::move(sync));
}

void Swim::Impl::on_sync(TimePoint now, const NodeId& from, const Sync& sync) {
  if (!synced.take(now, from)) return;
  if (!sync.buckets.empty()) answer_entries(now, from, sync);
  if (!sync.wanted.empty()) answer_wanted(from, sync.wanted);
}

void Swim::Impl::answer_entries(TimePoint now, const NodeId& from, const Sync& sync) {
  const std::map<NodeId, DigestEntry> there = entries_by_id(sync);
  Sync answer;
  answer.news = compose(from, settings.news_bytes_max / 4);
  const std::size_t already = answer.news.records.size();
  Repair repair(answer.news);
  const auto want = [&](const NodeId& id) {
    if (answer.wanted.size() < schema::kSyncWantedMax) answer.wanted.push_back(id);
  };
  std::size_t disputes = 0;
  for_each_member(table, buckets_of(sync), [&](const NodeId& id, const SwimMember& member) {
    const auto entry = there.find(id);
    const DigestEntry* other = entry == there.end() ? nullptr : &entry->second;
    const Difference difference = compare(member.record(), other);
    if (difference == Difference::kNewerThere) want(id);
    // One incarnation, but dead there: our record lifts a hint, and what is held against it comes
    // back.
    const bool disputed =
        difference == Difference::kNewerThere && other->incarnation == member.record().incarnation;
    if (difference == Difference::kNewerHere || disputed) repair.add(member, cases);
    if (disputed) ++disputes;
  });
  for (const auto& [id, entry] : there) {
    const bool missing = id != own.id && table.find(id) == nullptr && is_living(entry.state);
    const bool of_us = id == own.id && entry.incarnation > own.incarnation;
    if (missing || of_us) want(id);
  }
  if (disputes >= kManyDisputed) sync_soon(now);
  if (answer.news.records.size() > already || !answer.wanted.empty()) send(from, std::move(answer));
}

void Swim::Impl::answer_wanted(const NodeId& from, const std::vector<NodeId>& wanted) {
  schema::Gossip answer{compose(from, settings.news_bytes_max / 4)};
  Repair repair(answer.news);
  for (const NodeId& id : std::span(wanted).first(std::min(wanted.size(), schema::kSyncWantedMax)))
    if (const SwimMember* member = table.find(id)) repair.add(*member, cases);
  send(from, std::move(answer));
}

}  // namespace kith::gossip
