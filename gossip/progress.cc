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
  File& file = files_[record.data_fingerprint];
  file.whole = std::max(file.whole, record.data_samples);
  // Sharers go through the whole file together, whatever the share of each is just now.
  if (record.shard_count == 0 || record.shares_data)
    file.all = true;
  else
    file.shards[{record.shard_index, record.shard_count}] = record.shard_samples;
}

Samples Progress::data_samples() const {
  Samples sum = 0;
  for (const auto& [fingerprint, file] : files_) {
    Samples shards = 0;
    for (const auto& [which, samples] : file.shards) shards += samples;
    sum += file.all ? file.whole : std::min(shards, file.whole);
  }
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
  return static_cast<double>(length_.steps) * static_cast<double>(samples_) / static_cast<double>(steps_);
}

}  // namespace kith::gossip
