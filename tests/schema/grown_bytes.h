// Messages as a later version may send them: the same content, in structs that gained fields.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kith::schema {

// `bytes` (of encode()) with two more data words and one more pointer, to a text, at the end of
// every struct. Works on the words of Cap'n Proto's encoding and knows nothing of our schema.
std::vector<std::byte> grown(std::span<const std::byte> bytes);

}  // namespace kith::schema
