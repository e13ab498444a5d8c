#include "base/fault_point.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace kith {
namespace {

constexpr auto kPointCount = static_cast<std::size_t>(FaultPoint::kCount);

constexpr std::array<std::string_view, kPointCount> kNames = {
    "propose-sent", "propose-chunk-sent", "propose-received",   "chunk-received", "before-commit",
    "after-commit", "result-sent",        "before-apply",       "after-apply",    "ack-sent",
    "ack-received", "checkpoint-written", "checkpoint-renamed", "export-opened"};

enum class Action : std::uint8_t { kNone, kKill, kStop, kWait, kHang };

constexpr std::chrono::seconds kWaitSeconds{4};

struct Trigger {
  Action action = Action::kNone;
  std::uint64_t passage = 0;
};

struct ArmedPoint {
  std::atomic<Action> action{Action::kNone};
  std::atomic<std::uint64_t> passages_left{0};
};

// Process-wide on purpose (see the header): the one exception to "no globals".
std::atomic<bool> any_armed{false};
std::array<ArmedPoint, kPointCount> points;

std::string known_names() {
  std::string out;
  for (const std::string_view name : kNames) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

std::optional<std::size_t> find_point(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return i;
  return std::nullopt;
}

Result<Trigger> parse_trigger(std::string_view text, std::string_view item) {
  const std::size_t at = text.find('@');
  const std::string_view verb = text.substr(0, at);
  Trigger trigger{Action::kNone, 1};
  if (verb == "kill") trigger.action = Action::kKill;
  if (verb == "stop") trigger.action = Action::kStop;
  if (verb == "wait") trigger.action = Action::kWait;
  if (verb == "hang") trigger.action = Action::kHang;
  if (trigger.action == Action::kNone)
    return fail(ErrorCode::kUsage,
                "fault \"" + std::string(item) + "\": expected kill@N, stop@N, wait@N or hang@N");
  if (at == std::string_view::npos) return trigger;
  const std::string_view digits = text.substr(at + 1);
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, trigger.passage);
  if (error != std::errc{} || stopped != end || trigger.passage == 0)
    return fail(ErrorCode::kUsage, "fault \"" + std::string(item) + "\": N in " +
                                       std::string(verb) +
                                       "@N is the number of the passage, from 1");
  return trigger;
}

Status parse_item(std::string_view item, std::array<Trigger, kPointCount>& out) {
  const std::size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const auto index = find_point(name);
  if (!index)
    return fail(ErrorCode::kUsage,
                "unknown fault point \"" + std::string(name) + "\"; there are: " + known_names());
  if (out[*index].action != Action::kNone)
    return fail(ErrorCode::kUsage, "fault point \"" + std::string(name) + "\" is armed twice");
  const std::string_view rest = equals == std::string_view::npos ? "" : item.substr(equals + 1);
  KITH_ASSIGN(out[*index], parse_trigger(rest, item));
  return {};
}

Status parse_spec(std::string_view spec, std::array<Trigger, kPointCount>& out) {
  while (!spec.empty()) {
    const std::size_t comma = spec.find(',');
    const std::string_view item = spec.substr(0, comma);
    if (!item.empty()) KITH_TRY(parse_item(item, out));
    spec = comma == std::string_view::npos ? "" : spec.substr(comma + 1);
  }
  return {};
}

void strike(Action action) {
  if (action == Action::kWait) return std::this_thread::sleep_for(kWaitSeconds);
  while (action == Action::kHang) std::this_thread::sleep_for(kWaitSeconds);
  // raise() strikes this very thread, so nothing after the passage is executed before the process
  // stops.
  std::raise(action == Action::kKill ? SIGKILL : SIGSTOP);
}

}  // namespace

std::string_view to_string(FaultPoint point) {
  const auto index = static_cast<std::size_t>(point);
  return index < kPointCount ? kNames[index] : "unknown";
}

std::vector<std::string_view> fault_point_names() { return {kNames.begin(), kNames.end()}; }

Status arm_faults(std::string_view spec) {
  std::array<Trigger, kPointCount> triggers{};
  KITH_TRY(parse_spec(spec, triggers));
  bool any = false;
  for (std::size_t i = 0; i < kPointCount; ++i) {
    points[i].passages_left.store(triggers[i].passage, std::memory_order_relaxed);
    points[i].action.store(triggers[i].action, std::memory_order_relaxed);
    any = any || triggers[i].action != Action::kNone;
  }
  any_armed.store(any, std::memory_order_release);
  return {};
}

void pass(FaultPoint point) {
  if (!any_armed.load(std::memory_order_relaxed)) [[likely]]
    return;
  ArmedPoint& armed = points[static_cast<std::size_t>(point)];
  const Action action = armed.action.load(std::memory_order_relaxed);
  if (action == Action::kNone) return;
  // Exactly one thread takes the count from 1 to 0; below that it wraps and never comes back to 1.
  if (armed.passages_left.fetch_sub(1, std::memory_order_relaxed) == 1) strike(action);
}

}  // namespace kith
