// One legal message of each kind in which every field has a value of its own, different from every
// other field and from the default: a field that the codec drops or swaps shows.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "schema/messages.h"

namespace kith::schema {

inline constexpr std::size_t kMessageKinds = std::variant_size_v<Message>;

// In the order of Message's alternatives.
std::vector<Message> sample_messages();

// A legal message of the kind with this index, every field random, edges of the limits included.
Message random_message(std::size_t kind, Random& random);

// Lower case name of the kind ("propose", "state_request"), for file names and targets.
std::string kind_name(std::size_t kind);

}  // namespace kith::schema
