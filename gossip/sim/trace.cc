#include "gossip/sim/trace.h"

#include <type_traits>
#include <variant>

namespace kith::sim {

const ExchangeId* exchange_of(const schema::Message& message) {
  return std::visit(
      [](const auto& m) -> const ExchangeId* {
        if constexpr (requires { m.e; }) {
          return &m.e;
        } else {
          return nullptr;
        }
      },
      message);
}

std::string describe_event(std::uint64_t number, const Event& event, const Delivery& delivery) {
  std::string text = "event " + std::to_string(number) + " at " +
                     std::to_string(to_seconds(event.time.since_start)) +
                     " s: " + name_of(event.kind);
  if (event.kind != EventKind::kDeliver) {
    return event.node == kNobody ? text : text + " of node " + std::to_string(event.node);
  }
  return text + " " + delivery.name + " of exchange " + std::to_string(delivery.key.sequence) +
         " of node " + std::to_string(delivery.key.initiator) + " (boot " +
         std::to_string(delivery.key.boot) + "), from node " + std::to_string(delivery.from) +
         " to node " + std::to_string(event.node);
}

}  // namespace kith::sim
