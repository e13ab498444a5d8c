// What rides on a message: our own record, then what is held against the receiver, then what
// changed (least told first), then newer figures, then records in rotation until the message is
// full.
#include <algorithm>

#include "gossip/swim_impl.h"

namespace kith::gossip {

using schema::Accusation;
using schema::MemberRecord;
using schema::News;

namespace {

constexpr std::size_t kAccusationBytes = 160;

// As on the wire, about: fixed fields, pointers, and the texts.
std::size_t bytes_of(const MemberRecord& record) {
  return 400 + record.name.size() + record.control_address.size() + record.bulk_address.size() +
         record.http_address.size() + record.version_text.size();
}

}  // namespace

// Fills one News up to its budget. Exists while one message is made.
class NewsWriter {
 public:
  NewsWriter(News& news, std::size_t bytes_max) : news_(news), left_(bytes_max) {}

  // False: no room. What is there already is not there twice.
  bool add(const MemberRecord& record) {
    if (has_record(record.id)) return true;
    const std::size_t bytes = bytes_of(record);
    const bool first = news_.records.empty();  // our own goes whatever the budget
    if (!first && (bytes > left_ || news_.records.size() >= schema::kNewsRecordsMax)) return false;
    left_ -= std::min(left_, bytes);
    news_.records.push_back(record);
    return true;
  }
  bool add(const Accusation& accusation) {
    if (std::ranges::find(news_.accusations, accusation) != news_.accusations.end()) return true;
    if (kAccusationBytes > left_ || news_.accusations.size() >= schema::kNewsAccusationsMax)
      return false;
    left_ -= kAccusationBytes;
    news_.accusations.push_back(accusation);
    return true;
  }
  [[nodiscard]] bool has_record(const NodeId& id) const {
    return std::ranges::any_of(news_.records,
                               [&](const MemberRecord& record) { return record.id == id; });
  }

 private:
  News& news_;
  std::size_t left_;
};

const Accusation* Swim::Impl::find_accusation(const Rumour& rumour) const {
  if (const auto it = cases.find(rumour.subject); it != cases.end())
    for (const Accusation& accusation : it->second.accusations)
      if (accusation.accuser == rumour.accuser) return &accusation;
  const auto word = words.find(rumour.subject);
  const bool is_it = word != words.end() && word->second.accuser == rumour.accuser;
  return is_it ? &word->second : nullptr;
}

// Writes rumours until the message is full, and counts those as told.
void Swim::Impl::add_rumours(NewsWriter& writer, RumourQueue& queue, unsigned limit,
                             const NodeId& to) {
  std::vector<RumourQueue::Place> told;
  std::vector<Rumour> void_now;
  for (auto place = queue.next(std::nullopt); place; place = queue.next(place)) {
    const Rumour& rumour = place->rumour;
    const bool is_record = rumour.accuser.is_zero();
    const SwimMember* member = table.find(rumour.subject);
    const Accusation* accusation = is_record ? nullptr : find_accusation(rumour);
    if (member == nullptr || (!is_record && accusation == nullptr)) {
      void_now.push_back(rumour);
      continue;
    }
    if (is_record && rumour.subject == to) continue;  // it knows itself
    const bool room = is_record ? writer.add(member->record()) : writer.add(*accusation);
    if (!room) break;
    told.push_back(*place);
  }
  for (const Rumour& rumour : void_now) queue.remove(rumour);
  for (const RumourQueue::Place& place : told) queue.told(place, limit);
}

namespace {

// Everybody's record in turn, from where the last message stopped: what rumours missed comes by in
// the end.
void add_rotation(NewsWriter& writer, const SwimTable& table, NodeId& rotation, const NodeId& to) {
  std::optional<NodeId> first;
  for (std::size_t tries = 0; tries < schema::kNewsRecordsMax; ++tries) {
    const SwimMember* member = table.after(rotation);
    if (member == nullptr) return;
    const NodeId id = member->record().id;
    if (id == first) return;  // once round
    if (id != to && !writer.add(member->record())) return;
    if (!first) first = id;
    rotation = id;
  }
}

}  // namespace

News Swim::Impl::compose(const NodeId& to, std::size_t bytes_max, const NodeId& about) {
  News news;
  news.progress = progress;
  NewsWriter writer(news, bytes_max);
  writer.add(own);
  if (behind.erase(to) > 0)
    if (const SwimMember* member = table.find(to)) writer.add(member->record());
  if (const auto it = words.find(to); it != words.end()) writer.add(it->second);
  for (const NodeId& subject : {to, about}) {
    const auto it = cases.find(subject);
    if (it == cases.end()) continue;
    for (const Accusation& accusation : it->second.accusations)
      if (accusation.accuser != to) writer.add(accusation);
  }
  const std::size_t members = members_and_self();
  add_rumours(writer, changes, suspicion::retransmit_limit(settings.retransmit_mult, members), to);
  add_rumours(writer, figures, suspicion::retransmit_limit(1, members), to);
  add_rotation(writer, table, rotation, to);
  return news;
}

void Swim::Impl::take_news(TimePoint now, const NodeId& from, const News& news, bool bulk) {
  note_progress(from, news.progress);
  const auto records =
      std::span(news.records).first(std::min(news.records.size(), schema::kNewsRecordsMax));
  for (const MemberRecord& record : records) {
    const Source source = record.id == from ? Source::kOwner : bulk ? Source::kBulk : Source::kNews;
    take_record(now, from, record, source);
  }
  const auto accusations =
      std::span(news.accusations)
          .first(std::min(news.accusations.size(), schema::kNewsAccusationsMax));
  for (const Accusation& accusation : accusations) take_accusation(now, accusation);
}

}  // namespace kith::gossip
