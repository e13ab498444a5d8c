#include "compute/replica.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "compute/kernels.h"

namespace kith::compute {
namespace {

// Values refreshed per safe point beyond those that must be published: 256 KiB, some 20
// microseconds. It bounds how old the publication of a rarely read fragment can be, without a cost
// that grows with the model.
constexpr std::size_t kRefreshValues = std::size_t{1} << 16;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kCacheLine = 64;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

struct FreeDeleter {
  void operator()(float* memory) const { std::free(memory); }
};
using Floats = std::unique_ptr<float[], FreeDeleter>;

// Zeroed, hence touched: no page fault later, on any thread.
Floats reserve_floats(std::size_t count) {
  const std::size_t bytes = std::max<std::size_t>(count * sizeof(float), 1);
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const std::size_t size = rounded_up(bytes, alignment == kHugePage ? 4096 : kCacheLine);
  void* memory = nullptr;
  KITH_CHECK(posix_memalign(&memory, alignment, size) == 0,
             "no memory for a replica of " + std::to_string(count) + " values");
  if (alignment == kHugePage)
    madvise(memory, size, MADV_HUGEPAGE);  // a hint; small pages do as well
  std::memset(memory, 0, size);
  return Floats(static_cast<float*>(memory));
}

tl::unexpected<Error> non_finite(const char* what, FragmentIndex fragment) {
  return fail(ErrorCode::kNonFinite,
              std::string(what) + " of fragment " + std::to_string(fragment) +
                  " holds NaN, infinity or a value out of range; nothing was changed");
}

Status check_size(const char* what, FragmentIndex fragment, std::size_t is, std::size_t expected) {
  if (is == expected) return {};
  return fail(ErrorCode::kCorrupt, std::string(what) + " of fragment " + std::to_string(fragment) +
                                       " has " + std::to_string(is) + " bytes, expected " +
                                       std::to_string(expected));
}

// One fragment. `mutex` guards everything except: what `t` points to is constant while has_taken,
// and the trainer reads it without the lock. An absent T or D (its flag is false) is neither read
// nor zeroed; the first delta overwrites it.
struct Fragment {
  std::mutex mutex;
  FragmentRange range;
  float* p = nullptr;
  float* t = nullptr;
  float* d = nullptr;
  bool has_taken = false;
  bool has_pending = false;
  bool taken_in_x = false;  // trainer only: T is in x already, but in no publication yet
  bool read_since = false;  // somebody read P since it was written

  [[nodiscard]] ReplicaParts parts() const {
    return {p, has_taken ? t : nullptr, has_pending ? d : nullptr};
  }
  [[nodiscard]] const float* pending() const { return has_pending ? d : nullptr; }
  // Where a new D can be written while the old one stays valid: D itself if it is absent, T's
  // memory if that is free.
  [[nodiscard]] float* next_pending() const {
    if (!has_pending) return d;
    return has_taken ? nullptr : t;
  }
  void install_pending(float* written) {
    if (written == t) std::swap(t, d);
    has_pending = true;
  }
};

}  // namespace

std::vector<FragmentRange> cut_fragments(std::size_t value_count, std::size_t fragment_bytes) {
  KITH_CHECK(fragment_bytes >= sizeof(float) && fragment_bytes % sizeof(float) == 0,
             "fragment_bytes must be a multiple of 4, is " + std::to_string(fragment_bytes));
  const std::size_t most = fragment_bytes / sizeof(float);
  std::vector<FragmentRange> ranges;
  ranges.reserve(value_count / most + 1);
  for (std::size_t offset = 0; offset < value_count; offset += most) {
    ranges.push_back({offset, std::min(most, value_count - offset)});
  }
  return ranges;
}

struct Replica::Impl {
  Impl(std::size_t value_count, std::size_t fragment_bytes);
  Fragment& at(FragmentIndex index) {
    KITH_CHECK(index < count, "fragment " + std::to_string(index) + " of " + std::to_string(count));
    return fragments[index];
  }

  // Trainer thread.
  struct Visit {
    bool force = false;   // publish in any case
    bool stepped = true;  // x may differ from what was published
    bool wait = false;    // take busy locks too
  };
  void visit(Fragment& fragment, Model& model, const Visit& how, SafePointStats& stats);
  bool begin(Fragment& fragment, const Visit& how, SafePointStats& stats,
             std::span<const float>& to_add);
  void finish(Fragment& fragment, bool wait, SafePointStats& stats);
  [[nodiscard]] std::size_t due_for_refresh() const;
  SafePointStats visit_all(Model& model, Visit how);

  // Constant after construction (the pointers in fragments are guarded by each fragment's mutex).
  Floats publication, taken, pending;
  std::size_t count = 0;
  std::unique_ptr<Fragment[]> fragments;
  std::atomic<bool> frozen{false};

  // Trainer thread only.
  Floats spare_memory;  // the next publication of one fragment is written here, then swapped in
  float* spare = nullptr;
  std::size_t refresh_next = 0;
  std::size_t refresh_credit = 0;
};

// A publication moves through the spare to another fragment, so each has room for the longest one.
Replica::Impl::Impl(std::size_t value_count, std::size_t fragment_bytes)
    : taken(reserve_floats(value_count)), pending(reserve_floats(value_count)) {
  const auto ranges = cut_fragments(value_count, fragment_bytes);
  count = ranges.size();
  const std::size_t longest = ranges.empty() ? 0 : ranges[0].count;
  publication = reserve_floats(count * longest);
  spare_memory = reserve_floats(longest);
  spare = spare_memory.get();
  fragments = std::make_unique<Fragment[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    Fragment& fragment = fragments[i];
    fragment.range = ranges[i];
    fragment.p = publication.get() + i * longest;
    fragment.t = taken.get() + ranges[i].offset;
    fragment.d = pending.get() + ranges[i].offset;
  }
}

Replica::Replica(std::size_t value_count, std::size_t fragment_bytes)
    : impl_(std::make_unique<Impl>(value_count, fragment_bytes)) {}
Replica::~Replica() = default;

std::uint32_t Replica::fragment_count() const { return static_cast<std::uint32_t>(impl_->count); }
FragmentRange Replica::range(FragmentIndex fragment) const { return impl_->at(fragment).range; }
std::size_t Replica::encoded_bytes(std::size_t values, CodecId codec) {
  return values * encoded_value_bytes(codec);
}

// -- exchange thread --

Status Replica::snapshot(FragmentIndex index, CodecId codec, std::span<std::byte> out) {
  Fragment& fragment = impl_->at(index);
  KITH_TRY(check_size("room for a snapshot", index, out.size(),
                      encoded_bytes(fragment.range.count, codec)));
  const std::lock_guard lock(fragment.mutex);
  fragment.read_since = true;
  if (!encode_parts(fragment.parts(), codec, out.data(), fragment.range.count))
    return non_finite("replica", index);
  return {};
}

Result<Replica::CommitStats> Replica::commit(FragmentIndex index, const Payload& proposal,
                                             CodecId codec, double weight,
                                             std::span<std::byte> delta_out) {
  Fragment& fragment = impl_->at(index);
  const std::size_t n = fragment.range.count;
  KITH_TRY(check_size("proposal", index, proposal.size(), encoded_bytes(n, codec)));
  KITH_TRY(check_size("room for a delta", index, delta_out.size(), encoded_bytes(n, codec)));
  const std::lock_guard lock(fragment.mutex);
  fragment.read_since = true;
  float* next = fragment.next_pending();
  const CommitSums sums = commit_parts(fragment.parts(), proposal, codec,
                                       static_cast<float>(weight), delta_out.data(), next, n);
  if (!sums.finite) return non_finite("proposal or replica", index);
  if (next) {
    fragment.install_pending(next);
  } else {  // T is being merged and D is in use: the delta is known to be finite, subtract it in
            // place
    const Payload delta{{Slice(nullptr, delta_out)}};
    if (!add_payload(fragment.d, delta, codec, -1.0f, nullptr, n))
      return non_finite("pending sum", index);
    add_payload(fragment.d, delta, codec, -1.0f, fragment.d, n);
  }
  return CommitStats{sums.distance_squared, sums.norm_squared};
}

Status Replica::apply(FragmentIndex index, const Payload& delta, CodecId codec) {
  Fragment& fragment = impl_->at(index);
  const std::size_t n = fragment.range.count;
  KITH_TRY(check_size("delta", index, delta.size(), encoded_bytes(n, codec)));
  const std::lock_guard lock(fragment.mutex);
  float* next = fragment.next_pending();
  if (!add_payload(fragment.pending(), delta, codec, 1.0f, next, n))
    return non_finite("delta", index);
  if (next) {
    fragment.install_pending(next);
  } else {
    add_payload(fragment.d, delta, codec, 1.0f, fragment.d, n);
  }
  return {};
}

void Replica::read(FragmentIndex index, std::span<float> out) {
  Fragment& fragment = impl_->at(index);
  KITH_CHECK(out.size() == fragment.range.count, "room for exactly one fragment");
  const std::lock_guard lock(fragment.mutex);
  fragment.read_since = true;
  sum_parts(fragment.parts(), out.data(), out.size());
}

void Replica::want(FragmentIndex index) {
  Fragment& fragment = impl_->at(index);
  const std::lock_guard lock(fragment.mutex);
  fragment.read_since = true;
}

void Replica::hold_for_test(FragmentIndex index, const std::function<void()>& work) {
  const std::lock_guard lock(impl_->at(index).mutex);
  work();
}

void Replica::freeze() { impl_->frozen.store(true, std::memory_order_release); }
void Replica::thaw() { impl_->frozen.store(false, std::memory_order_release); }
bool Replica::frozen() const { return impl_->frozen.load(std::memory_order_acquire); }

// -- trainer thread --

// Takes D into T if there is nothing taken yet. False: nothing to do, or busy (then counted).
bool Replica::Impl::begin(Fragment& fragment, const Visit& how, SafePointStats& stats,
                          std::span<const float>& to_add) {
  std::unique_lock lock(fragment.mutex, std::defer_lock);
  if (how.wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    ++stats.skipped_fragments;
    return false;
  }
  if (!fragment.has_taken && fragment.has_pending) {
    std::swap(fragment.t, fragment.d);
    fragment.has_taken = true;
    fragment.taken_in_x = false;
    fragment.has_pending = false;
  }
  const bool stale = fragment.read_since && how.stepped;
  if (!fragment.has_taken && !stale && !how.force) return false;
  if (fragment.has_taken && !fragment.taken_in_x) to_add = {fragment.t, fragment.range.count};
  return true;
}

// Swaps the new publication in and drops T, which it contains. Busy: T stays part of R until the
// next safe point.
void Replica::Impl::finish(Fragment& fragment, bool wait, SafePointStats& stats) {
  std::unique_lock lock(fragment.mutex, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    ++stats.skipped_fragments;
    return;
  }
  std::swap(fragment.p, spare);
  fragment.has_taken = false;
  fragment.taken_in_x = false;
  fragment.read_since = false;
  stats.published_values += fragment.range.count;
}

void Replica::Impl::visit(Fragment& fragment, Model& model, const Visit& how,
                          SafePointStats& stats) {
  std::span<const float> to_add;
  if (!begin(fragment, how, stats, to_add)) return;
  const std::span<float> next(spare, fragment.range.count);
  stats.clamped_values += model.merge_and_publish(fragment.range.offset, to_add, next);
  fragment.taken_in_x = true;
  stats.merged_values += to_add.size();
  if (!all_finite(spare, next.size())) {
    ++stats.nonfinite_fragments;  // the old publication stays: R remains finite
    return;
  }
  finish(fragment, how.wait, stats);
}

// How many of the fragments from refresh_next on are due for a new publication although nobody
// asked.
std::size_t Replica::Impl::due_for_refresh() const {
  std::size_t due = 0;
  std::size_t values = 0;
  while (due < count) {
    values += fragments[(refresh_next + due) % count].range.count;
    if (values > refresh_credit) break;
    ++due;
  }
  return due;
}

SafePointStats Replica::Impl::visit_all(Model& model, Visit how) {
  SafePointStats stats;
  const std::size_t due = how.stepped && !how.force ? due_for_refresh() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Visit this_one = how;
    this_one.force = how.force || (i + count - refresh_next) % count < due;
    visit(fragments[i], model, this_one, stats);
  }
  if (due > 0) {
    refresh_next = (refresh_next + due) % count;
    refresh_credit = 0;
  }
  // Credit only while peers take part: a node on its own copies nothing.
  if (stats.merged_values + stats.published_values > 0) {
    refresh_credit = std::min(refresh_credit + kRefreshValues,
                              std::max(kRefreshValues, fragments[0].range.count));
  }
  return stats;
}

SafePointStats Replica::safe_point(Model& model, bool force_publish, bool stepped) {
  if (frozen()) return {};
  return impl_->visit_all(model, {.force = force_publish, .stepped = stepped, .wait = false});
}

SafePointStats Replica::settle(Model& model) {
  return impl_->visit_all(model, {.force = true, .stepped = true, .wait = true});
}

void Replica::reset(Model& model) {
  for (std::size_t i = 0; i < impl_->count; ++i) {
    Fragment& fragment = impl_->fragments[i];
    const std::lock_guard lock(fragment.mutex);
    model.read_values(fragment.range.offset, {fragment.p, fragment.range.count});
    fragment.has_taken = fragment.has_pending = fragment.taken_in_x = fragment.read_since = false;
  }
}

void Replica::read_pending(FragmentIndex index, std::span<float> out) {
  Fragment& fragment = impl_->at(index);
  KITH_CHECK(out.size() == fragment.range.count, "room for exactly one fragment");
  const std::lock_guard lock(fragment.mutex);
  std::fill(out.begin(), out.end(), 0.0f);
  if (fragment.has_taken && !fragment.taken_in_x) add(out.data(), fragment.t, out.size());
  if (fragment.has_pending) add(out.data(), fragment.d, out.size());
}

}  // namespace kith::compute
