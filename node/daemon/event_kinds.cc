#include "node/daemon/event_kinds.h"

namespace kith::node {

namespace {

constexpr std::pair<std::string_view, std::string_view> kByMessage[] = {
    {"member joined", "joined"},
    {"member alive again", "alive"},
    {"member returned", "alive"},
    {"member suspect", "suspect"},
    {"member dead", "dead"},
    {"member left", "left"},
    {"member forgotten", "left"},
    {"this node was called", "refuted"},
    {"no member answers", "isolated"},
    {"members answer again", "alive"},
    {"state", "state"},
    {"evaluated", "evaluated"},
    {"fetching the cluster's state", "adoption"},
    {"joined run ", "adoption"},
    {"caught up with run ", "adoption"},
    {"far behind the cluster", "adoption"},
    {"back to the checkpoint", "adoption"},
    {"final ", "final"},
    {"the members agree", "final"},
    {"resuming from a checkpoint", "checkpoint"},
    {"data shared out", "data"},
    {"leaving", "left"},
    {"left", "left"},
};

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> event_kinds() { return kByMessage; }

std::string_view event_kind(std::string_view component, std::string_view message) {
  if (component == "checkpoint") return "checkpoint";
  for (const auto& [begin, kind] : kByMessage)
    if (message.starts_with(begin)) return kind;
  return "";
}

}  // namespace kith::node
