#include "monitoring/live_view.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "monitoring/json_text.h"

namespace kith::monitoring {
namespace {

constexpr std::size_t kShortId = 16;  // hexadecimal digits: enough to tell members apart

constexpr const char* kMemberFields =
    R"(["id","name","state","doing","step","steps_per_second","loss","accuracy","rtt_ms","started",)"
    R"("answered","failed","staleness_steps","exchange_at","address","http"])";

std::string of(const HttpQuery& query, const std::string& name) {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

template <typename T>
T number_of(const HttpQuery& query, const std::string& name, T otherwise) {
  const std::string text = of(query, name);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

class Object {
 public:
  Object& add(const char* name, const std::string& json) {
    text_ += (text_.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + json;
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  std::string text_;
};

std::string truth(bool value) { return value ? "true" : "false"; }

std::string node_json(const NodeSnapshot& s, double wall_at_zero) {
  // From the time of day to the monotonic clock.
  std::optional<double> checkpoint_at;
  if (s.checkpoint_timestamp_seconds)
    checkpoint_at = *s.checkpoint_timestamp_seconds - wall_at_zero;
  return Object()
      .add("id", json_text(s.id.substr(0, kShortId)))
      .add("name", json_text(s.name))
      .add("run", json_text(s.run))
      .add("cluster", json_text(s.cluster))
      .add("method", json_text(s.method))
      .add("version", json_text(s.version))
      .add("state", json_text(s.run_state))
      .add("waiting_for", json_text(s.waiting_for))
      .add("trouble", json_text(s.trouble))
      .add("healthy", truth(s.healthy))
      .add("isolated", truth(s.isolated))
      .add("step", json_count(s.steps))
      .add("samples", json_count(s.samples))
      .add("steps_per_second", json_number(s.steps_per_second))
      .add("loss", json_number(s.loss))
      .add("accuracy", json_number(s.local.accuracy_ratio))
      .add("accuracy_averaged", json_number(s.averaged.accuracy_ratio))
      .add("learning_rate", json_number(s.learning_rate))
      .add("progress_samples", json_count(s.progress_samples))
      .add("epoch", json_number(s.progress_epochs))
      .add("length_samples", json_number(s.length_samples))
      .add("shard_samples", json_count(s.shard_samples))
      .add("staleness_steps", json_number(s.staleness_steps))
      .add("consensus_distance", json_number(s.consensus_distance_relative))
      .add("exchanges", json_count(s.exchanges_initiator + s.exchanges_responder))
      .add("exchanges_failed", json_count(failed_exchanges(s)))
      .add("bytes_sent", json_count(s.control_bytes_sent + s.bulk_bytes_sent))
      .add("bytes_received", json_count(s.control_bytes_received + s.bulk_bytes_received))
      .add("adoptions", json_count(s.adoptions))
      .add("checkpoints", json_count(s.checkpoints))
      .add("checkpoint_errors", json_count(s.checkpoint_errors))
      .add("checkpoint_step", s.checkpoint_step ? json_count(*s.checkpoint_step) : "null")
      .add("checkpoint_at", json_seconds(checkpoint_at))
      .text();
}

std::string member_json(const MemberSnapshot& m, const PairCounts& pair, double wall_at_zero) {
  std::string out = "[";
  const auto add = [&](const std::string& json) { out += (out.size() == 1 ? "" : ",") + json; };
  add(json_text(m.id.substr(0, kShortId)));
  for (const std::string& text : {m.name, m.state, m.run_state}) add(json_text(text));
  add(json_count(m.steps));
  add(json_number(m.steps_per_second));
  add(json_number(m.loss));
  add(json_number(m.accuracy_ratio));
  add(m.rtt_seconds ? json_number(*m.rtt_seconds * 1e3) : "null");
  for (const std::uint64_t count : {pair.started, pair.answered, pair.failed})
    add(json_count(count));
  add(json_number(mean_staleness(pair)));
  const auto& last = m.last_exchange_timestamp_seconds;
  add(last ? json_seconds(*last - wall_at_zero) : "null");
  for (const std::string& text : {m.address, m.http_address}) add(json_text(text));
  return out + "]";
}

std::string members_json(const NodeSnapshot& node, const std::map<std::string, PairCounts>& pairs,
                         double wall_at_zero) {
  const auto pair_of = [&](const MemberSnapshot& member) {
    const auto found = pairs.find(member.id);
    return found == pairs.end() ? PairCounts{} : found->second;
  };
  std::vector<const MemberSnapshot*> shown;
  for (const MemberSnapshot& member : node.members) shown.push_back(&member);
  if (shown.size() > LiveView::kMembersMax) {
    const auto rank = [&](const MemberSnapshot* m) {
      return std::tuple(m->id != node.id, m->state != "suspect", m->state == "alive",
                        !pairs.contains(m->id));
    };
    std::ranges::stable_sort(shown, {}, rank);
    shown.resize(LiveView::kMembersMax);
  }
  std::string rows;
  for (const MemberSnapshot* member : shown)
    rows += (rows.empty() ? "" : ",\n") + member_json(*member, pair_of(*member), wall_at_zero);
  return Object()
      .add("known", json_count(node.members.size()))
      .add("neighbours", node.neighbours ? json_count(*node.neighbours) : "null")
      .add("fields", kMemberFields)
      .add("rows", "[" + rows + "]")
      .text();
}

}  // namespace

std::string LiveView::json(const std::function<NodeSnapshot()>& snapshot, const HttpQuery& query) {
  const TimePoint now = clock_.now();
  const double at = to_seconds(now.since_start);
  const double wall_at_zero = clock_.wall_seconds() - at;
  if (rendered_.empty() || now - rendered_at_ >= kFreshFor) {
    const NodeSnapshot node = snapshot();
    rendered_ = R"("node":)" + node_json(node, wall_at_zero) + R"(,"members":)" +
                members_json(node, journal_.pairs(), wall_at_zero);
    rendered_at_ = now;
  }
  const bool known = of(query, "boot") == journal_.boot();
  const double after = known ? number_of(query, "after", -1.0) : -1.0;
  const double step = known ? number_of(query, "step", 0.0) : 0.0;
  const auto event = known ? number_of<std::uint64_t>(query, "event", 0) : 0;
  return R"({"boot":)" + json_text(journal_.boot()) + R"(,"now":)" + json_seconds(at) +
         R"(,"wall":)" + json_seconds(wall_at_zero + at) + "," + rendered_ + R"(,"history":)" +
         journal_.history_json(of(query, "span"), after, step) + R"(,"events":)" +
         journal_.events_json(event) + "}\n";
}

}  // namespace kith::monitoring
