#include "node/daemon/node_view.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <nlohmann/json.hpp>

#include "node/daemon/health_checks.h"
#include "node/daemon/node_snapshot.h"

namespace kith::node {

using monitoring::HttpQuery;
using monitoring::HttpReply;
using nlohmann::json;
using schema::MemberState;

namespace {

constexpr auto kCommandPatience = std::chrono::seconds(60);

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
json known(double value) { return value < 0 ? json(nullptr) : number(value); }

std::uint64_t failed_of(const gossip::ExchangeCounters& c) {
  return c.refused_busy + c.refused_other + c.refused_crossing + c.suspended;
}

// Text that other machines chose may hold any bytes: never let them break the JSON.
std::string dump(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

HttpReply reply(const Status& status, const std::string& message) {
  if (status) return HttpReply::json(dump({{"ok", true}, {"message", message}}));
  return HttpReply::json(dump({{"ok", false},
                               {"code", exit_code(status.error().code)},
                               {"message", status.error().message}}));
}

std::string get(const HttpQuery& query, const std::string& key) {
  const auto it = query.find(key);
  return it == query.end() ? "" : it->second;
}

}  // namespace

NodeViewAdapter::NodeViewAdapter(const Config& config, ControlLoop& loop, compute::Trainer& trainer,
                                 Hash256 schema_hash, const Clock& clock, const StepLog* step_log,
                                 const LiveSettings& live)
    : config_(config),
      loop_(loop),
      trainer_(trainer),
      schema_hash_(schema_hash),
      clock_(clock),
      step_log_(step_log),
      live_(live) {}

std::string NodeViewAdapter::status_json() {
  const NodeStatus s = loop_.status();
  const compute::TrainerStats t = trainer_.stats();
  const monitoring::HealthReport health = health_from(s, t);
  const auto& c = s.exchange.counters;
  std::size_t alive = 1;
  for (const auto& member : s.members) alive += member.state() == MemberState::kAlive ? 1 : 0;
  json out = {
      {"name", s.self.name},
      {"id", s.self.id.hex()},
      {"run", config_.run.id},
      {"cluster", config_.cluster.name},
      {"state", schema::name_of(s.self.run_state)},
      {"step", t.steps},
      {"samples", t.samples},
      {"progress", s.progress},
      {"epoch", s.epoch},
      {"length_samples", s.length_samples > 0 ? json(s.length_samples) : json(nullptr)},
      {"loss", number(t.loss)},
      {"accuracy", s.final_accuracy >= 0 ? json(s.final_accuracy) : number(t.eval_accuracy)},
      {"learning_rate", number(t.learning_rate)},
      {"steps_per_second", number(t.steps_per_second)},
      {"members", alive},
      {"exchanges_total", c.completed_initiator + c.completed_responder},
      {"exchanges_failed_total", failed_of(c)},
      {"bytes_sent_total", s.control.bytes_sent + s.exchange.mesh.bytes_sent},
      {"bytes_received_total", s.control.bytes_received + s.exchange.mesh.bytes_received},
      {"shard_samples", s.self.shard_samples},
      {"staleness_steps", known(s.staleness_steps)},
      {"consensus_distance", known(s.consensus_relative)},
      {"last_checkpoint_step",
       s.checkpoints.written > 0 ? json(s.checkpoints.last_step) : json(nullptr)},
      {"checkpoint_errors", s.checkpoints.failed},
      {"adoptions", s.adoptions},
      {"address", s.self.control_address},
      {"bulk_address", s.self.bulk_address},
      {"http", s.self.http_address},
      {"healthy", health.well()},
      {"isolated", s.isolated},
      {"depth", s.self.depth},
      {"version", s.self.version_text}};
  if (!s.waiting_for.empty()) out["waiting_for"] = s.waiting_for;
  if (!s.trouble.empty()) out["last_error"] = s.trouble;
  if (const std::string why = health.complaints(); !why.empty()) out["unhealthy_because"] = why;
  return dump(out);
}

std::string NodeViewAdapter::members_json() {
  const NodeStatus s = loop_.status();
  const double wall = clock_.wall_seconds();
  // Behind the deepest model of a living member, in steps: what max_lag is about. Of who is not
  // here nothing is said: it would grow for ever.
  Step deepest = s.self.depth;
  for (const auto& member : s.members)
    if (member.state() == MemberState::kAlive) deepest = std::max(deepest, member.record().depth);
  json list = json::array();
  const auto add = [&](const schema::MemberRecord& r, double rtt_seconds) {
    const auto last = s.last_exchange_wall_seconds.find(r.id);
    const bool here = r.state == MemberState::kAlive || r.state == MemberState::kSuspect;
    list.push_back(
        {{"name", r.name},
         {"id", r.id.hex()},
         {"address", r.control_address},
         {"http", r.http_address},
         {"state", schema::name_of(r.state)},
         {"run_state", schema::name_of(r.run_state)},
         {"step", r.step},
         {"samples", r.samples},
         {"lag_steps", here ? json(deepest - std::min(deepest, r.depth)) : json(nullptr)},
         {"loss", number(r.loss)},
         {"accuracy", number(r.accuracy)},
         {"steps_per_second", number(r.steps_per_second)},
         {"rtt_ms", rtt_seconds < 0 ? json(nullptr) : json(rtt_seconds * 1e3)},
         {"last_exchange_seconds", last == s.last_exchange_wall_seconds.end()
                                       ? json(nullptr)
                                       : json(std::max(0.0, wall - last->second))},
         {"incarnation", r.incarnation},
         {"version", r.version_text}});
  };
  add(s.self, 0.0);
  for (const auto& member : s.members) add(member.record(), member.rtt_seconds);
  std::sort(list.begin(), list.end(),
            [](const json& a, const json& b) { return a["name"] < b["name"]; });
  const std::string shows =
      s.neighbours ? "all " + std::to_string(list.size()) +
                         " members that this node has heard of; its figures of most are "
                         "relayed, since it keeps links with " +
                         std::to_string(*s.neighbours) + " neighbours only"
                   : "all " + std::to_string(list.size()) +
                         " members; this node keeps a link with each that is alive";
  return dump({{"members", list}, {"shows", shows}});
}

monitoring::HealthReport NodeViewAdapter::health() {
  return health_from(loop_.status(), trainer_.stats());
}

monitoring::HealthReport NodeViewAdapter::health_from(const NodeStatus& status,
                                                      const compute::TrainerStats& trainer) const {
  return health_of(status, trainer, from_seconds(live_.checkpoint_every_seconds), clock_.now());
}

monitoring::NodeSnapshot NodeViewAdapter::snapshot() {
  monitoring::NodeSnapshot out = snapshot_of(loop_.status(), trainer_.stats());
  out.run = config_.run.id;
  out.cluster = config_.cluster.name;
  out.method = config_.method.name;
  out.model_hash = schema_hash_.hex().substr(0, 16);
  if (step_log_ != nullptr) out.step_log = step_log_->counts();
  if (const double every = live_.checkpoint_every_seconds; every > 0)
    out.checkpoint_interval_seconds = every;
  out.reload_successful = live_.reload_successful;
  return out;
}

// Waits for the loop's answer: a worker of its own serves commands, and the loop never waits for
// it.
HttpReply NodeViewAdapter::checkpoint(const std::string& export_to) {
  auto promise = std::make_shared<std::promise<Result<std::string>>>();
  auto future = promise->get_future();
  const auto done = [promise](const Result<std::string>& result) { promise->set_value(result); };
  if (export_to.empty())
    loop_.checkpoint_now(done);
  else
    loop_.export_now(export_to, done);
  const auto patience = std::chrono::steady_clock::now() + kCommandPatience;
  bool ready = false;
  while (!ready && !loop_.ended() && std::chrono::steady_clock::now() < patience)
    ready = future.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
  if (!ready && loop_.ended())
    return reply(
        fail(export_to.empty()
                 ? "this node is ending: nothing was written for this command"
                 : "this node is ending: its log says whether " + export_to + " is written"),
        "");
  if (!ready) return reply(fail("nothing is written after a minute: see the daemon's log"), "");
  Result<std::string> path = future.get();
  if (!path) return reply(fail(path.error()), "");
  return reply({}, (export_to.empty() ? "written " : "exported to ") + *path);
}

HttpReply NodeViewAdapter::export_model(const HttpQuery& query) {
  const std::string path = get(query, "path");
  if (path.empty()) return reply(fail(ErrorCode::kUsage, "export needs path=FILE"), "");
  return checkpoint(path);
}

HttpReply NodeViewAdapter::command(const std::string& name, const HttpQuery& query) {
  if (name == "control/checkpoint") return checkpoint("");
  if (name == "control/export") return export_model(query);
  if (name == "control/leave") {
    loop_.request_leave();
    return reply({},
                 "leaving: exchanges are finished, a checkpoint is written, the others are told");
  }
  if (name == "control/join") {
    const std::string address = get(query, "address");
    if (address.empty()) return reply(fail(ErrorCode::kUsage, "join needs address=HOST:PORT"), "");
    loop_.join(address);
    return reply({}, "dialling " + address + " until it answers");
  }
  return HttpReply::json(dump({{"ok", false}, {"code", 2}, {"message", "unknown command " + name}}),
                         404);
}

}  // namespace kith::node
