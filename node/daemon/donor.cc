#include "node/daemon/donor.h"

#include <algorithm>

#include "base/hash.h"

namespace kith::node {

using gossip::ItemKey;
using schema::StateItem;

namespace {

// A fetcher asks piece after piece of the same copy; unused for so long, the copy is dropped.
constexpr Duration kMomentsKept = std::chrono::seconds(10);

Slice integer_slice(const std::vector<std::int64_t>& integers) {
  return Slice::copy_of(std::as_bytes(std::span(integers)));
}

}  // namespace

Donor::Donor(compute::Replica& replica, std::size_t fragment_bytes, const Clock& clock)
    : replica_(replica),
      fragment_bytes_(fragment_bytes),
      clock_(clock),
      shared_(std::make_shared<Shared>()) {}

void Donor::attach(compute::Trainer* trainer) { trainer_ = trainer; }

void Donor::set_final(Slice manifest, std::vector<std::int64_t> integers) {
  const std::lock_guard lock(mutex_);
  manifest_ = std::move(manifest);
  final_integers_ = std::move(integers);
}

void Donor::withdraw_final() {
  const std::lock_guard lock(mutex_);
  manifest_.reset();
  final_integers_.clear();
}

void Donor::set_cluster_samples(Samples samples) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->moments && clock_.now() - shared_->moments->used > kMomentsKept)
      shared_->moments.reset();
  }
  const std::lock_guard lock(mutex_);
  cluster_samples_ = samples;
}

TimePoint Donor::last_given() const {
  const std::lock_guard lock(mutex_);
  return last_given_;
}

Donor::Item Donor::whole(Slice bytes) {
  Item item;
  item.hash = hash_bytes(bytes.bytes());
  item.bytes = std::move(bytes);
  return item;
}

Result<Donor::Item> Donor::fragment(FragmentIndex index) {
  if (index >= replica_.fragment_count()) return fail(ErrorCode::kNotFound, "no such fragment");
  // Owned by the transfer until its last chunk is acknowledged; at most a few fetchers are served
  // at once.
  auto values = std::make_shared<std::vector<float>>(replica_.range(index).count);
  replica_.read(index, *values);
  const auto bytes = std::as_bytes(std::span(*values));
  return whole(Slice(std::move(values), bytes));
}

Result<Donor::Item> Donor::from_moments(const ItemKey& key) {
  if (trainer_ == nullptr) return fail(ErrorCode::kNotFound, "no trainer here");
  std::unique_lock lock(shared_->mutex);
  auto& moments = shared_->moments;
  if (!moments) {
    if (!shared_->asked) {
      shared_->asked = true;
      lock.unlock();
      trainer_->image([shared = shared_, &clock = clock_](compute::TrainerImage image) {
        const std::lock_guard guard(shared->mutex);
        shared->moments = Moments{std::move(image), clock.now()};
        shared->asked = false;
      });
    }
    return fail(ErrorCode::kBusy, "moments are copied at the next safe point");
  }
  moments->used = clock_.now();
  const compute::TrainerImage& image = moments->image;
  const auto pieces =
      static_cast<std::uint32_t>((image.optimizer.size() + fragment_bytes_ - 1) / fragment_bytes_);
  Item item;
  if (key.item == StateItem::kIntegers) {
    item = whole(integer_slice(image.integers));
  } else {
    if (key.index >= pieces)
      return fail(ErrorCode::kNotFound, "no such piece of the optimiser's state");
    const std::size_t offset = key.index * fragment_bytes_;
    const std::size_t length = std::min(fragment_bytes_, image.optimizer.size() - offset);
    item = whole(Slice::copy_of(std::span(image.optimizer).subspan(offset, length)));
  }
  item.optimizer_pieces = pieces;
  item.optimizer_step = image.step;
  return item;
}

Result<Donor::Item> Donor::item(const ItemKey& key) {
  std::optional<Slice> manifest;
  std::vector<std::int64_t> integers;
  Samples cluster_samples = 0;
  {
    const std::lock_guard lock(mutex_);
    manifest = manifest_;
    if (key.final_state) integers = final_integers_;
    cluster_samples = cluster_samples_;
  }
  if (key.final_state && !manifest)
    return fail(ErrorCode::kNotFound, "no final state is declared here");
  Result<Item> result = fail(ErrorCode::kNotFound, "unknown item");
  if (key.item == StateItem::kFragment)
    result = fragment(key.index);
  else if (key.item == StateItem::kManifest && manifest)
    result = whole(*manifest);
  else if (key.item == StateItem::kIntegers && key.final_state)
    result = whole(integer_slice(integers));
  else if (key.item == StateItem::kIntegers || key.item == StateItem::kOptimizer)
    result = from_moments(key);
  if (!result) return result;
  result->cluster_samples = cluster_samples;
  const std::lock_guard lock(mutex_);
  last_given_ = clock_.now();
  return result;
}

}  // namespace kith::node
