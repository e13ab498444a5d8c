#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "compute/data.h"

namespace kith::compute {
namespace {

// Samples of the next batch when so many are left of the pass: a rest of a single sample joins it.
std::size_t batch_of(std::size_t left, std::size_t batch_size) {
  if (left <= batch_size) return left;
  return left == batch_size + 1 && batch_size > 1 ? left : batch_size;
}

}  // namespace

BatchCursor::BatchCursor(const Dataset& data, std::size_t batch_size, std::uint64_t seed)
    : data_(data), batch_size_(batch_size), seed_(seed) {
  KITH_CHECK(data.count > 0, "batches come from at least one sample");
  KITH_CHECK(batch_size > 0, "a batch holds at least one sample");
  draw_order();
}

void BatchCursor::draw_order() {
  order_.resize(data_.count);
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  Random random = Random(seed_).fork("pass " + std::to_string(position_.pass));
  random.shuffle(std::span(order_));
  count_left();
}

// Never leaves a cursor at the end of a pass: then it is the next one's start.
void BatchCursor::count_left() {
  left_ = data_.count - position_.offset;
  if (mask_.empty()) return;
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>(position_.offset);
  left_ = static_cast<std::size_t>(
      std::count_if(from, order_.end(), [this](std::uint32_t sample) { return is_ours(sample); }));
  if (left_ > 0) return;
  position_ = {position_.pass + 1, 0};
  draw_order();
}

Batch BatchCursor::next() {
  const std::size_t values = data_.sample_values();
  const std::size_t count = batch_of(left_, batch_size_);
  inputs_.resize(count * values);
  labels_.resize(count);
  for (std::size_t i = 0; i < count; ++position_.offset) {
    const std::size_t sample = order_[position_.offset];
    if (!is_ours(sample)) continue;
    std::copy_n(data_.inputs.data() + sample * values, values, inputs_.data() + i * values);
    labels_[i++] = data_.labels[sample];
  }
  left_ -= count;
  if (left_ == 0) {
    position_ = {position_.pass + 1, 0};
    draw_order();
  }
  return {inputs_, labels_, count};
}

BatchCursor::Position BatchCursor::position() const { return position_; }

void BatchCursor::restore(Position position) { reseed(seed_, position); }

void BatchCursor::reseed(std::uint64_t seed, Position position) {
  if (position.offset >= data_.count)
    position = {position.pass + 1, 0};  // the data shrank meanwhile: its next pass
  const bool same_order = seed == seed_ && position.pass == position_.pass;
  seed_ = seed;
  position_ = position;
  if (same_order) {
    count_left();
  } else {
    draw_order();
  }
}

void BatchCursor::share(SampleMask mask) {
  KITH_CHECK(mask.empty() || mask.size() == data_.count, "a mask has a byte for every sample");
  mask_ = std::move(mask);
  KITH_CHECK(samples_per_pass() > 0, "a share holds at least one sample");
  count_left();
}

std::size_t BatchCursor::samples_per_pass() const {
  if (mask_.empty()) return data_.count;
  return mask_.size() - static_cast<std::size_t>(std::count(mask_.begin(), mask_.end(), 0));
}

std::size_t BatchCursor::batches_per_pass() const {
  std::size_t batches = 0;
  for (std::size_t left = samples_per_pass(); left > 0; ++batches)
    left -= batch_of(left, batch_size_);
  return batches;
}

}  // namespace kith::compute
