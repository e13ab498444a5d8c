// control_bytes: how long a membership message is on the wire, without encoding it.
//
// The protocol core does not know the encoding, and encoding ten thousand nodes' messages would
// cost more than simulating them. So this counts, in words of 8 bytes, what schema/kith.capnp lays
// out: fixed parts per struct, texts with their terminator rounded up. tests/sim compares it with
// the real codec. Pure; O(records in the message).
#pragma once

#include <cstddef>

#include "schema/messages.h"

namespace kith::sim {

// Encoded header of PING PONG PING_REQUEST NACK GOSSIP DIGEST SYNC LEAVE VIEW; 100 for all others.
std::size_t control_bytes(const schema::Message& message);
// Of one record within a list.
std::size_t record_bytes(const schema::MemberRecord& record);

}  // namespace kith::sim
