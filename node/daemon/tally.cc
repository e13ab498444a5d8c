#include "node/daemon/tally.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/mix.h"

namespace kith::node {

using schema::Tally;
using schema::TallyEntry;
using Word = gossip::Progress::Word;

namespace {

constexpr std::size_t kAskedAtOnce = 2;
constexpr unsigned kPauseMax = 64;

bool by_id(const TallyEntry& a, const TallyEntry& b) { return a.id < b.id; }

TallyEntry entry_of(const NodeId& id, const gossip::Progress::Work& work, Word least) {
  const auto& count = least == Word::kOne ? work.count : work.vouched;
  TallyEntry entry{id, count.samples, count.steps};
  if (!work.held || (least == Word::kVouched && !work.held_vouched)) return entry;
  entry.data_fingerprint = work.held->fingerprint;
  entry.data_samples = work.held->whole;
  entry.shard_samples = work.held->shard_samples;
  std::tie(entry.shard_index, entry.shard_count) = work.held->shard;
  return entry;
}

bool same_data(const TallyEntry& a, const TallyEntry& b) {
  TallyEntry with_counts_of_a = b;
  with_counts_of_a.samples = a.samples;
  with_counts_of_a.steps = a.steps;
  return with_counts_of_a == a;
}

std::uint64_t digest_of(const TallyEntry& entry) {
  std::uint64_t id = 0, data = 0;
  std::memcpy(&id, entry.id.bytes.data(), sizeof id);
  std::memcpy(&data, entry.data_fingerprint.bytes.data(), sizeof data);
  const std::uint64_t shard = std::uint64_t{entry.shard_index} << 32 | entry.shard_count;
  std::uint64_t out = 0;
  for (const std::uint64_t word :
       {id, entry.samples, entry.steps, data, entry.data_samples, entry.shard_samples, shard})
    out = mix64((out ^ word) + kMixStep);
  return out;
}

}  // namespace

Tallies tallies_of(const gossip::Progress& progress,
                   const std::function<const schema::MemberRecord*(const NodeId&)>& record_of,
                   Word least) {
  Tallies out;
  for (const auto& [id, work] : progress.works()) {
    const TallyEntry entry = entry_of(id, work, least);
    if (entry == TallyEntry{id}) continue;
    const schema::MemberRecord* record = record_of(id);
    if (record == nullptr || entry.samples > record->samples || entry.steps > record->step)
      out.push_back(entry);
  }
  return out;
}

std::uint64_t digest_of(const Tallies& tallies) {
  std::uint64_t sum = 0;
  for (const TallyEntry& entry : tallies) sum += digest_of(entry);
  return sum;
}

std::optional<Tally> answer_to(const Tally& question, const Tallies& tallies) {
  Tally answer{digest_of(tallies), false, question.begin, {}};
  if (answer.digest == question.digest) return std::nullopt;
  const auto begin =
      std::lower_bound(tallies.begin(), tallies.end(), TallyEntry{question.begin}, by_id);
  const auto most = std::min<std::ptrdiff_t>(tallies.end() - begin, schema::kTallyEntriesMax);
  answer.entries.assign(begin, begin + most);
  return answer;
}

Tallies vouched(const Tallies& a, const Tallies& b) {
  Tallies out;
  auto other = b.begin();
  for (const TallyEntry& entry : a) {
    while (other != b.end() && other->id < entry.id) ++other;
    if (other == b.end()) break;
    if (other->id != entry.id) continue;
    TallyEntry both = same_data(entry, *other) ? entry : TallyEntry{entry.id};
    both.samples = std::min(entry.samples, other->samples);
    both.steps = std::min(entry.steps, other->steps);
    out.push_back(both);
  }
  return out;
}

void TallyAsker::hurry() {
  wait_ = 0;
  pause_ = 1;
}

std::optional<TallyAsker::Question> TallyAsker::beat(std::vector<NodeId> peers, Random& random,
                                                     const std::function<std::uint64_t()>& digest) {
  if (wait_ > 0 && --wait_ > 0) return std::nullopt;
  if (peers.empty()) return std::nullopt;
  random.shuffle(std::span(peers));
  peers.resize(std::min(peers.size(), kAskedAtOnce));
  asked_ = peers;
  first_.reset();
  if (!next_begin_) {
    wait_ = pause_;
    pause_ = std::min(pause_ * 2, kPauseMax);
  }
  begin_ = next_begin_.value_or(NodeId{});
  next_begin_.reset();
  return Question{std::move(peers), {digest(), true, begin_, {}}};
}

void TallyAsker::go_on_after(const Tallies& told) {
  if (told.size() < schema::kTallyEntriesMax) return;
  next_begin_ = std::min(next_begin_.value_or(told.back().id), told.back().id);
  wait_ = 0;
}

TallyAsker::Learned TallyAsker::on_answer(const NodeId& from, const Tally& answer,
                                          std::size_t others) {
  const Tallies& told = answer.entries;
  const bool in_order =
      std::adjacent_find(told.begin(), told.end(),
                         [](const auto& a, const auto& b) { return !by_id(a, b); }) == told.end();
  if (std::erase(asked_, from) == 0 || answer.begin != begin_ || !in_order ||
      (!told.empty() && told.front().id < begin_))
    return {};
  go_on_after(told);
  if (others <= 1) return {told, Word::kOne};
  if (!first_) {
    first_ = told;
    return {};
  }
  return {vouched(*first_, told)};
}

}  // namespace kith::node
