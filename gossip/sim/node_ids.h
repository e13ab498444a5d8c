// Names of simulated nodes: an id that looks like a key (uniform, so sorted order has nothing to do
// with numbering) and still tells its number. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "gossip/sim/event_queue.h"

namespace kith::sim {

inline NodeId node_id(NodeIndex index) {
  NodeId id;
  TraceHash hash;
  hash.add(index);
  for (std::size_t i = 0; i < 28; ++i) {
    if (i % 7 == 0) hash.add(i);
    id.bytes[i] = static_cast<std::uint8_t>(hash.value() >> (8 * (i % 7)));
  }
  for (std::size_t i = 0; i < 4; ++i)
    id.bytes[28 + i] = static_cast<std::uint8_t>(index >> (24 - 8 * i));
  return id;
}

inline NodeIndex index_of(const NodeId& id) {
  NodeIndex index = 0;
  for (std::size_t i = 28; i < 32; ++i) index = (index << 8) | id.bytes[i];
  return index;
}

// Every start of a node is a boot, counted from 1; nothing is refuted here.
inline Incarnation incarnation_of(std::uint32_t boot) { return Incarnation{boot} << 32; }
inline std::uint32_t boot_of(Incarnation incarnation) {
  return static_cast<std::uint32_t>(incarnation >> 32);
}

}  // namespace kith::sim
