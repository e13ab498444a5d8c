#include "gossip/membership/swim_table.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/mix.h"

namespace kith::gossip {

using schema::MemberRecord;

namespace {

std::uint64_t digest_part(const NodeId& id, Incarnation incarnation) {
  std::uint64_t out = mix64(incarnation + kMixStep);
  for (std::size_t at = 0; at < id.bytes.size(); at += sizeof out) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < sizeof word; ++i)
      word |= std::uint64_t{id.bytes[at + i]} << (8 * i);
    out = mix64(out ^ word);
  }
  return out;
}

auto order_of(const MemberRecord& r) {
  return std::tuple(boot_of(r.incarnation), r.boot_nonce, refutations_of(r.incarnation), r.version);
}

}  // namespace

std::strong_ordering compare_records(const MemberRecord& a, const MemberRecord& b) {
  return order_of(a) <=> order_of(b);
}

SwimMember* SwimTable::find(const NodeId& id) {
  const auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

const SwimMember* SwimTable::find(const NodeId& id) const {
  const auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

void SwimTable::swap_places(std::size_t a, std::size_t b) {
  std::swap(living_[a], living_[b]);
  living_[a]->place = static_cast<std::uint32_t>(a);
  living_[b]->place = static_cast<std::uint32_t>(b);
}

void SwimTable::enter(SwimMember& member) {
  const MemberRecord& record = member.record();
  ++counts_[static_cast<std::size_t>(record.state)];
  if (!is_living(record.state)) return;
  buckets_[bucket_of(record.id)] += digest_part(record.id, record.incarnation);
}

void SwimTable::withdraw(SwimMember& member) {
  const MemberRecord& record = member.record();
  --counts_[static_cast<std::size_t>(record.state)];
  if (!is_living(record.state)) return;
  buckets_[bucket_of(record.id)] -= digest_part(record.id, record.incarnation);
}

SwimMember& SwimTable::add(TimePoint now, RecordPtr record) {
  KITH_CHECK(!full() && record->id != self_,
             "the table has room for a new member that is not ourselves");
  const NodeId id = record->id;
  SwimMember& member = members_[id];
  KITH_CHECK(member.held == nullptr, "a member is added once");
  member.held = std::move(record);
  member.heard = member.changed = now;
  enter(member);
  if (is_living(member.state())) {
    member.place = static_cast<std::uint32_t>(living_.size());
    living_.push_back(&member);
  }
  return member;
}

void SwimTable::replace(TimePoint now, SwimMember& member, RecordPtr record) {
  const bool lived = is_living(member.state());
  const bool lives = is_living(record->state);
  if (record->state != member.state()) member.changed = now;
  withdraw(member);
  member.held = std::move(record);
  enter(member);
  if (lives && !lived) {
    member.place = static_cast<std::uint32_t>(living_.size());
    living_.push_back(&member);
  } else if (lived && !lives) {
    std::size_t place = member.place;
    if (place < round_) {  // keep [0, round_) what has been probed
      swap_places(place, --round_);
      place = round_;
    }
    swap_places(place, living_.size() - 1);
    living_.pop_back();
  }
}

void SwimTable::erase(const NodeId& id) {
  SwimMember* member = find(id);
  if (member == nullptr) return;
  KITH_CHECK(!is_living(member->state()), "only the dead and the left are forgotten");
  withdraw(*member);
  members_.erase(id);
}

void SwimTable::set_self(Incarnation incarnation) {
  std::uint64_t& bucket = buckets_[bucket_of(self_)];
  bucket -= self_part_;
  self_part_ = digest_part(self_, incarnation);
  bucket += self_part_;
}

SwimMember* SwimTable::next_in_round(Random& random) {
  if (living_.empty()) return nullptr;
  if (round_ >= living_.size()) round_ = 0;
  swap_places(round_, round_ + random.below(living_.size() - round_));
  return living_[round_++];
}

SwimMember* SwimTable::draw(Random& random) {
  return living_.empty() ? nullptr : living_[random.below(living_.size())];
}

SwimTable::Map::const_iterator SwimTable::bucket_begin(std::size_t bucket) const {
  if (bucket >= schema::kDigestBuckets) return members_.end();
  NodeId lowest;
  lowest.bytes[0] = static_cast<std::uint8_t>(bucket << 2);
  return members_.lower_bound(lowest);
}

const SwimMember* SwimTable::after(const NodeId& id) const {
  if (members_.empty()) return nullptr;
  auto it = members_.upper_bound(id);
  if (it == members_.end()) it = members_.begin();
  return &it->second;
}

}  // namespace kith::gossip
