#include "gossip/progress.h"

#include <algorithm>

namespace kith::gossip {

void Progress::note(const NodeId& id, Samples samples, Step steps) {
  Count& count = counts_[id];
  if (samples > count.samples) {
    samples_ += samples - count.samples;
    count.samples = samples;
  }
  if (steps > count.steps) {
    steps_ += steps - count.steps;
    count.steps = steps;
  }
}

void Progress::note_data(const schema::MemberRecord& record) {
  if (record.data_samples == 0) return;
  // Sharers go through the whole file together, whatever the share of each is just now.
  const bool all = record.shard_count == 0 || record.shares_data;
  Held now{record.data_fingerprint, record.data_samples, all, {}, 0};
  if (!all) {
    now.shard = {record.shard_index, record.shard_count};
    now.shard_samples = record.shard_samples;
  }
  Held& held = held_[record.id];
  if (held == now) return;
  held = now;
  data_samples_.reset();
}

Samples Progress::samples_of_file(std::vector<const Held*> holders) {
  const auto middle = holders.begin() + static_cast<std::ptrdiff_t>(holders.size() / 2);
  std::nth_element(holders.begin(), middle, holders.end(),
                   [](const Held* a, const Held* b) { return a->whole < b->whole; });
  const Samples whole = (*middle)->whole;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Samples> shards;
  for (const Held* held : holders) {
    if (held->all) return whole;
    shards[held->shard] = std::min(held->shard_samples, whole);
  }
  Samples sum = 0;
  for (const auto& [which, samples] : shards) sum += samples;
  return std::min(sum, whole);
}

Samples Progress::data_samples() const {
  if (data_samples_) return *data_samples_;
  std::map<Hash256, std::vector<const Held*>> files;
  for (const auto& [id, held] : held_) files[held.fingerprint].push_back(&held);
  Samples sum = 0;
  for (auto& [fingerprint, holders] : files) sum += samples_of_file(std::move(holders));
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
  return data > 0 && static_cast<double>(samples_) >= length_.epochs * static_cast<double>(data);
}

double Progress::length_samples() const {
  if (length_.epochs > 0) return length_.epochs * static_cast<double>(data_samples());
  if (length_.steps == 0 || steps_ == 0) return 0.0;
  return static_cast<double>(length_.steps) * static_cast<double>(samples_) /
         static_cast<double>(steps_);
}

}  // namespace kith::gossip
