// What an event was, in words and for the hash.
#pragma once

#include <string>

#include "gossip/sim/event_queue.h"
#include "gossip/sim/exchange_book.h"
#include "schema/messages.h"

namespace kith::sim {

// The exchange that a message belongs to; null for messages of other kinds.
const ExchangeId* exchange_of(const schema::Message& message);

// The last message delivered, for the text of a violation.
struct Delivery {
  NodeIndex from = kNobody;
  const char* name = "";
  ExchangeKey key;
};

// "event 1234 at 5.25 s: message RESULT of exchange 7 of node 3 (boot 1), from node 5 to node 3".
std::string describe_event(std::uint64_t number, const Event& event, const Delivery& delivery);

}  // namespace kith::sim
