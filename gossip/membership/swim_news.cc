// What rides on a message: our own record, then what is held against the receiver, then what
// changed (least told first). A PING has our newest figures besides, one GOSSIP per interval
// those of four others: that is all in a quiet cluster.
#include <algorithm>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::Accusation;
using schema::MemberRecord;
using schema::News;

namespace {

constexpr std::size_t kAccusationBytes = 160;
constexpr int kFiguresTold = 2;  // by each who has newer ones: four fifths hear of it in this wave
// Four records of newer figures per gossip interval are 7 kB/s at preset local, and a wave takes a
// quarter of the time that one would: people watch loss and steps, and the end of a run waits for
// counts.
constexpr int kFiguresPerGossip = 4;

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

// Writes changes until the message is full, and counts those as told.
void Swim::Impl::add_changes(NewsWriter& writer, const NodeId& to) {
  const unsigned limit = suspicion::retransmit_limit(settings.retransmit_mult, members_and_self());
  std::vector<RumourQueue::Place> told;
  std::vector<Rumour> void_now;
  for (auto place = changes.next(std::nullopt); place; place = changes.next(place)) {
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
  for (const Rumour& rumour : void_now) changes.remove(rumour);
  for (const RumourQueue::Place& place : told) changes.told(place, limit);
}

void Swim::Impl::add_own(NewsWriter& writer, const NodeId& to, Fill fill) {
  SwimMember* member = table.find(to);
  const bool owed = member == nullptr || member->told != own_mark || own_repeats > 0;
  if (!owed && fill != Fill::kOwn) return;
  writer.add(own);
  if (own_repeats > 0) --own_repeats;
  if (member != nullptr) member->told = own_mark;
}

// Newer figures, those told least first; true if there were any.
bool Swim::Impl::add_figures(NewsWriter& writer, const NodeId& to) {
  std::vector<RumourQueue::Place> told;
  std::vector<Rumour> void_now;
  for (auto place = figures.next(std::nullopt); place && told.size() < kFiguresPerGossip;
       place = figures.next(place)) {
    const SwimMember* member = table.find(place->rumour.subject);
    if (member == nullptr) void_now.push_back(place->rumour);
    if (member == nullptr || place->rumour.subject == to) continue;
    if (!writer.add(member->record())) break;
    told.push_back(*place);
  }
  for (const Rumour& rumour : void_now) figures.remove(rumour);
  for (const RumourQueue::Place& place : told) figures.told(place, kFiguresTold);
  return !told.empty();
}

// If there are no newer figures, everybody's record in turn: what rumours missed comes by in the
// end.
void Swim::Impl::add_of_others(NewsWriter& writer, const NodeId& to) {
  if (add_figures(writer, to)) return;
  for (int tries = 0; tries < 2; ++tries) {  // one of two is not the receiver
    const SwimMember* member = table.after(rotation);
    if (member == nullptr) return;
    rotation = member->record().id;
    if (rotation != to) {
      writer.add(member->record());
      return;
    }
  }
}

Duration Swim::Impl::wave_period() const {
  const auto told = kFiguresTold * static_cast<Duration::rep>(members_and_self());
  return settings.gossip_interval * std::max<Duration::rep>(1, told / kFiguresPerGossip);
}

bool Swim::Impl::next_wave(TimePoint before, TimePoint now) const {
  const auto period = wave_period().count();
  return before.since_start.count() / period != now.since_start.count() / period;
}

News Swim::Impl::compose(const NodeId& to, std::size_t bytes_max, const NodeId& about, Fill fill) {
  News news;
  NewsWriter writer(news, bytes_max);
  add_own(writer, to, fill);
  if (behind.erase(to) > 0)
    if (const SwimMember* member = table.find(to)) writer.add(member->record());
  if (const auto it = words.find(to); it != words.end()) writer.add(it->second);
  for (const NodeId& subject : {to, about}) {
    const auto it = cases.find(subject);
    if (it == cases.end()) continue;
    for (const Accusation& accusation : it->second.accusations)
      if (accusation.accuser != to) writer.add(accusation);
  }
  add_changes(writer, to);
  if (fill == Fill::kOthers) add_of_others(writer, to);
  return news;
}

void Swim::Impl::take_news(TimePoint now, const NodeId& from, const News& news, bool bulk) {
  const auto records =
      std::span(news.records).first(std::min(news.records.size(), schema::kNewsRecordsMax));
  for (const MemberRecord& record : records) {
    const Source source = record.id == from ? Source::kOwner : bulk ? Source::kBulk : Source::kNews;
    take_record(now, from, record, source);
  }
  const auto accusations =
      std::span(news.accusations)
          .first(std::min(news.accusations.size(), schema::kNewsAccusationsMax));
  for (const Accusation& accusation : accusations) take_accusation(now, from, accusation);
}

}  // namespace kith::gossip
