#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "compute/data.h"

namespace kith::compute {
namespace {

// Samples of the batch that starts at `offset`: a rest of a single sample joins it.
std::size_t batch_at(std::size_t count, std::size_t offset, std::size_t batch_size) {
  const std::size_t left = count - offset;
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
}

Batch BatchCursor::next() {
  const std::size_t values = data_.sample_values();
  const std::size_t count = batch_at(data_.count, position_.offset, batch_size_);
  inputs_.resize(count * values);
  labels_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t sample = order_[position_.offset + i];
    std::copy_n(data_.inputs.data() + sample * values, values, inputs_.data() + i * values);
    labels_[i] = data_.labels[sample];
  }
  position_.offset += count;
  if (position_.offset == data_.count) {
    position_ = {position_.pass + 1, 0};
    draw_order();
  }
  return {inputs_, labels_, count};
}

BatchCursor::Position BatchCursor::position() const { return position_; }

void BatchCursor::restore(Position position) {
  if (position.offset >= data_.count)
    position = {position.pass + 1, 0};  // the data shrank meanwhile: its next pass
  const bool other_pass = position.pass != position_.pass;
  position_ = position;
  if (other_pass) draw_order();
}

std::size_t BatchCursor::batches_per_pass() const {
  std::size_t batches = 0;
  for (std::size_t offset = 0; offset < data_.count; ++batches)
    offset += batch_at(data_.count, offset, batch_size_);
  return batches;
}

}  // namespace kith::compute
