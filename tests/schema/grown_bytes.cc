#include "tests/schema/grown_bytes.h"

#include <cstdint>
#include <cstring>

namespace kith::schema {
namespace {

constexpr std::uint64_t kNewWord = 0xA5A5A5A5A5A5A5A5ULL;
constexpr std::uint64_t kNewText = 0x0074'7865'7420'7773ULL;  // seven characters and the final zero
constexpr std::size_t kMoreData = 2, kMorePointers = 1;

std::size_t data_words(std::uint64_t pointer) { return (pointer >> 32) & 0xFFFFU; }
std::size_t pointer_words(std::uint64_t pointer) { return pointer >> 48; }
bool is_list(std::uint64_t pointer) { return (pointer & 3U) == 1; }
std::uint64_t element_size(std::uint64_t pointer) { return (pointer >> 32) & 7U; }
std::size_t list_count(std::uint64_t pointer) { return pointer >> 35; }

std::size_t plain_list_words(std::uint64_t pointer) {
  constexpr std::size_t kBits[] = {0, 1, 8, 16, 32, 64, 64};
  return (list_count(pointer) * kBits[element_size(pointer)] + 63) / 64;
}

class Grower {
 public:
  explicit Grower(std::span<const std::uint64_t> in) : in_(in) {}

  std::vector<std::uint64_t> run() {
    out_.resize(1);
    copy(0, 0);
    return std::move(out_);
  }

 private:
  std::size_t target(std::size_t at) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(at) + 1 +
                                    (static_cast<std::int32_t>(in_[at]) >> 2));
  }
  std::size_t append(std::size_t words) {
    out_.resize(out_.size() + words);
    return out_.size() - words;
  }
  // The low half of a pointer at `at` to `to`.
  static std::uint64_t offset(std::size_t at, std::size_t to) {
    return static_cast<std::uint32_t>((to - at - 1) << 2);
  }
  static std::uint64_t sizes(std::size_t data, std::size_t pointers) {
    return (std::uint64_t{data + kMoreData} << 32) |
           (std::uint64_t{pointers + kMorePointers} << 48);
  }

  // What the pointer at in_[from] points to goes to the end of out_, and a pointer to it to
  // out_[to].
  void copy(std::size_t from, std::size_t to) {
    const std::uint64_t pointer = in_[from];
    if (pointer == 0) return;
    if (is_list(pointer)) return copy_list(from, to);
    const std::size_t data = data_words(pointer), pointers = pointer_words(pointer);
    const std::size_t at = append(data + kMoreData + pointers + kMorePointers);
    out_[to] = offset(to, at) | sizes(data, pointers);
    copy_struct(target(from), at, data, pointers);
  }
  void copy_struct(std::size_t from, std::size_t to, std::size_t data, std::size_t pointers) {
    for (std::size_t i = 0; i < data; ++i) out_[to + i] = in_[from + i];
    for (std::size_t i = 0; i < kMoreData; ++i) out_[to + data + i] = kNewWord;
    const std::size_t first = to + data + kMoreData;
    for (std::size_t i = 0; i < pointers; ++i) copy(from + data + i, first + i);
    const std::size_t text = append(1);
    out_[text] = kNewText;
    out_[first + pointers] = offset(first + pointers, text) | 1U | (2ULL << 32) | (8ULL << 35);
  }
  void copy_list(std::size_t from, std::size_t to) {
    const std::uint64_t pointer = in_[from];
    if (element_size(pointer) == 7) return copy_struct_list(from, to);
    const std::size_t words = plain_list_words(pointer), at = append(words);
    for (std::size_t i = 0; i < words; ++i) out_[at + i] = in_[target(from) + i];
    out_[to] = offset(to, at) | 1U | (pointer >> 32 << 32);
  }
  void copy_struct_list(std::size_t from, std::size_t to) {
    const std::size_t tag_at = target(from);
    const std::uint64_t tag = in_[tag_at];
    const std::size_t count = static_cast<std::uint32_t>(tag) >> 2;
    const std::size_t data = data_words(tag), pointers = pointer_words(tag);
    const std::size_t each = data + kMoreData + pointers + kMorePointers;
    const std::size_t at = append(1 + count * each);
    out_[to] = offset(to, at) | 1U | (7ULL << 32) | (std::uint64_t{count * each} << 35);
    out_[at] = (std::uint64_t{count} << 2) | sizes(data, pointers);
    for (std::size_t i = 0; i < count; ++i)
      copy_struct(tag_at + 1 + i * (data + pointers), at + 1 + i * each, data, pointers);
  }

  std::span<const std::uint64_t> in_;
  std::vector<std::uint64_t> out_;
};

}  // namespace

std::vector<std::byte> grown(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> words(bytes.size() / 8 - 1);
  std::memcpy(words.data(), bytes.data() + 8, words.size() * 8);
  const std::vector<std::uint64_t> larger = Grower(words).run();
  std::vector<std::byte> out((1 + larger.size()) * 8);
  const auto count = static_cast<std::uint32_t>(larger.size());
  std::memcpy(out.data() + 4, &count, sizeof count);
  std::memcpy(out.data() + 8, larger.data(), larger.size() * 8);
  return out;
}

}  // namespace kith::schema
