#include "gossip/membership/progress.h"

#include <algorithm>
#include <limits>

namespace kith::gossip {

namespace {

// Some at once, since each folding looks at all that are gone.
constexpr std::size_t kFoldedAtOnce = Progress::kGoneMax / 8;

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }

}  // namespace

bool Progress::raise(Work& work, const Count& to, Word word) {
  bool raised = false;
  const auto up = [&](std::uint64_t& mark, std::uint64_t value, std::uint64_t& total) {
    if (value <= mark) return;
    total = sum_of(total, value - mark);
    mark = value;
    raised = true;
  };
  up(work.count.samples, to.samples, samples_);
  up(work.count.steps, to.steps, steps_);
  if (word == Word::kOne) return raised;
  const Count vouched{std::max(work.vouched.samples, to.samples),
                      std::max(work.vouched.steps, to.steps)};
  return std::exchange(work.vouched, vouched) != vouched || raised;
}

bool Progress::hold(Work& work, const Held& held, Word word) {
  const bool vouched = word == Word::kVouched;
  if (work.held_vouched ? work.held == held || !vouched : work.held == held && !vouched)
    return false;
  work.held = held;
  work.held_vouched = vouched;
  data_samples_.reset();
  return true;
}

void Progress::note(const NodeId& id, Samples samples, Step steps) {
  if (samples == 0 && steps == 0) return;  // who has done nothing needs no entry
  Work& work = works_[id];
  if (std::exchange(work.gone, false)) --gone_;
  raise(work, {samples, steps}, Word::kVouched);
}

void Progress::note_data(const schema::MemberRecord& record) {
  if (record.data_samples == 0) return;
  Held held{record.data_fingerprint, record.data_samples, {}, 0};
  // Sharers go through the whole file together, whatever the share of each is just now.
  if (record.shard_count != 0 && !record.shares_data) {
    held.shard = {record.shard_index, record.shard_count};
    held.shard_samples = record.shard_samples;
  }
  Work& work = works_[record.id];
  if (std::exchange(work.gone, false)) --gone_;
  hold(work, held, Word::kVouched);
}

bool Progress::note_gone(const schema::TallyEntry& entry, Word word) {
  const bool known = works_.contains(entry.id);
  const bool folded = !(folded_ == Folded{}) && entry.samples <= folded_.below_max;
  const bool nothing = entry.samples == 0 && entry.steps == 0 && entry.data_samples == 0;
  if (nothing || (!known && folded)) return false;
  Work& work = works_[entry.id];
  if (!known) {
    work.gone = true;
    ++gone_;
  }
  bool news = raise(work, {entry.samples, entry.steps}, word);
  // A record of its own says it better.
  if (work.gone && entry.data_samples > 0)
    news = hold(work,
                {entry.data_fingerprint,
                 entry.data_samples,
                 {entry.shard_index, entry.shard_count},
                 entry.shard_samples},
                word) ||
           news;
  fold();
  return news;
}

void Progress::forget(const NodeId& id) {
  const auto it = works_.find(id);
  if (it == works_.end() || std::exchange(it->second.gone, true)) return;
  ++gone_;
  settling_ = false;
  fold();
}

void Progress::restore(const std::map<NodeId, Work>& works, const Folded& folded) {
  folded_ = folded;
  samples_ = sum_of(samples_, folded.count.samples);
  steps_ = sum_of(steps_, folded.count.steps);
  for (const auto& [id, kept] : works) {
    if (kept.count == Count{}) continue;
    Work& work = works_[id];
    work.gone = true;
    raise(work, kept.count, Word::kOne);
    raise(work, kept.vouched, Word::kVouched);
  }
  gone_ = works_.size();
  settling_ = true;
  data_samples_.reset();
}

// The smallest go, and with them data that nobody else holds.
void Progress::fold() {
  const std::size_t most = settling_ ? 2 * kGoneMax : kGoneMax;
  if (gone_ <= most) return;
  const Samples data = data_samples();
  std::vector<std::pair<Count, NodeId>> gone;
  for (const auto& [id, work] : works_)
    if (work.gone) gone.emplace_back(work.count, id);
  const std::size_t count = gone_ - most + kFoldedAtOnce;
  std::nth_element(gone.begin(), gone.begin() + static_cast<std::ptrdiff_t>(count), gone.end());
  gone.resize(count);
  for (const auto& [done, id] : gone) {
    folded_.count.samples = sum_of(folded_.count.samples, done.samples);
    folded_.count.steps = sum_of(folded_.count.steps, done.steps);
    folded_.below_max = std::max(folded_.below_max, done.samples);
    works_.erase(id);
  }
  gone_ -= count;
  data_samples_.reset();
  folded_.data = sum_of(folded_.data, data - std::min(data, data_samples()));
  data_samples_.reset();
}

Samples Progress::samples_of_file(std::vector<const Held*> holders) {
  const auto middle = holders.begin() + static_cast<std::ptrdiff_t>(holders.size() / 2);
  std::nth_element(holders.begin(), middle, holders.end(),
                   [](const Held* a, const Held* b) { return a->whole < b->whole; });
  const Samples whole = (*middle)->whole;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Samples> shards;
  for (const Held* held : holders) {
    if (held->shard.second == 0) return whole;
    shards[held->shard] = std::min(held->shard_samples, whole);
  }
  Samples sum = 0;
  for (const auto& [which, samples] : shards) sum = sum_of(sum, samples);
  return std::min(sum, whole);
}

Samples Progress::data_samples() const {
  if (data_samples_) return *data_samples_;
  std::map<Hash256, std::vector<const Held*>> files;
  for (const auto& [id, work] : works_)
    if (work.held) files[work.held->fingerprint].push_back(&*work.held);
  Samples sum = folded_.data;
  for (auto& [fingerprint, holders] : files) sum = sum_of(sum, samples_of_file(std::move(holders)));
  data_samples_ = sum;
  return sum;
}

double Progress::epoch() const {
  const Samples data = data_samples();
  return data == 0 ? 0.0 : static_cast<double>(samples_) / static_cast<double>(data);
}

bool Progress::done() const {
  if (endless()) return false;
  if (length_.steps > 0) return steps_ >= length_.steps;
  const Samples data = data_samples();
  if (data == kMost) return false;  // more than can be counted
  return data > 0 && static_cast<double>(samples_) >= length_.epochs * static_cast<double>(data);
}

double Progress::length_samples() const {
  if (length_.epochs > 0) return length_.epochs * static_cast<double>(data_samples());
  if (length_.steps == 0 || steps_ == 0) return 0.0;
  return static_cast<double>(length_.steps) * static_cast<double>(samples_) /
         static_cast<double>(steps_);
}

}  // namespace kith::gossip
