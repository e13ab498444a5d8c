// Builds messages that encode() would refuse: through the generated builders, or word by word.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "schema/codec.h"
#include "schema/kith.capnp.h"

namespace kith::schema {

inline std::vector<std::byte> bytes_of(std::span<const std::uint64_t> words) {
  std::vector<std::byte> out(words.size() * 8);
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

inline std::vector<std::byte> build(const std::function<void(wire::Envelope::Builder)>& fill) {
  capnp::MallocMessageBuilder builder(16384);
  fill(builder.initRoot<wire::Envelope>());
  const auto flat = capnp::messageToFlatArray(builder);
  std::vector<std::byte> out(flat.size() * 8);
  std::memcpy(out.data(), flat.begin(), out.size());
  return out;
}

// Cap'n Proto's pointers, as the encoding specification lays them out.
inline std::uint64_t struct_pointer(std::int32_t offset, std::uint64_t data_words,
                                    std::uint64_t pointers) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(offset) << 2)) |
         (data_words << 32) | (pointers << 48);
}
inline std::uint64_t list_pointer(std::int32_t offset, std::uint64_t element_size,
                                  std::uint64_t count) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(offset) << 2) | 1U) |
         (element_size << 32) | (count << 35);
}

// A frame around the words of one segment.
inline std::vector<std::byte> frame(std::vector<std::uint64_t> segment) {
  segment.insert(segment.begin(), static_cast<std::uint64_t>(segment.size()) << 32);
  return bytes_of(segment);
}

}  // namespace kith::schema
