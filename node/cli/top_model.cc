#include "node/cli/top_model.h"

#include <nlohmann/json.hpp>

#include "node/cli/cli_table.h"

namespace kith::node {
namespace {

using Json = nlohmann::json;

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

double number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : kUnknown;
}

double added(double sum, double value) {
  if (std::isnan(value)) return sum;
  return std::isnan(sum) ? value : sum + value;
}

template <typename T>
void keep(std::deque<T>& list, T value, std::size_t most) {
  list.push_back(value);
  while (list.size() > most) list.pop_front();
}

}  // namespace

Result<TopNode> read_top_node(const std::string& status_json) {
  const Json json = Json::parse(status_json, nullptr, false);
  if (!json.is_object() || !json.contains("state"))
    return fail("the answer to /status makes no sense: is that a kithd of this version?");
  TopNode node;
  node.id = text(json, "id");
  node.name = text(json, "name");
  node.run = text(json, "run");
  node.cluster = text(json, "cluster");
  node.state = text(json, "state");
  node.trouble = text(json, json.contains("last_error") ? "last_error" : "waiting_for");
  node.step = number(json, "step");
  node.progress = number(json, "progress");
  node.epoch = number(json, "epoch");
  node.length_samples = number(json, "length_samples");
  node.loss = number(json, "loss");
  node.accuracy = number(json, "accuracy");
  node.consensus = number(json, "consensus_distance");
  node.staleness = number(json, "staleness_steps");
  node.exchanges = number(json, "exchanges_total");
  node.bytes_in = number(json, "bytes_received_total");
  node.bytes_out = number(json, "bytes_sent_total");
  return node;
}

Result<std::vector<TopMember>> read_top_members(const std::string& members_json) {
  const Json json = Json::parse(members_json, nullptr, false);
  if (!json.is_object() || !json.contains("members") || !json["members"].is_array())
    return fail("the answer to /members has no list of members");
  std::vector<TopMember> members;
  for (const Json& m : json["members"]) {
    if (!m.is_object()) continue;
    TopMember member;
    member.id = text(m, "id");
    member.name = text(m, "name");
    member.state = text(m, "state");
    member.run_state = text(m, "run_state");
    member.http = text(m, "http");
    member.step = number(m, "step");
    member.samples = number(m, "samples");
    member.lag = number(m, "lag_steps");
    member.loss = number(m, "loss");
    member.accuracy = number(m, "accuracy");
    member.steps_per_second = number(m, "steps_per_second");
    member.rtt_ms = number(m, "rtt_ms");
    members.push_back(std::move(member));
  }
  return members;
}

std::string TopRow::shown_state() const {
  return member.state == "alive" && !member.run_state.empty() ? member.run_state : member.state;
}

std::optional<double> TopFrame::fraction() const {
  if (!(self.length_samples > 0) || !(self.progress >= 0)) return std::nullopt;
  return std::min(1.0, self.progress / self.length_samples);
}

std::optional<double> TopFrame::seconds_left() const {
  const auto done = fraction();
  if (!done || !(samples_per_second > 0)) return std::nullopt;
  return (self.length_samples - std::min(self.length_samples, self.progress)) / samples_per_second;
}

TopRow TopModel::row_of(const TopSample& sample, const TopMember& member) {
  Course& course = courses_[member.id];
  TopRow row;
  row.member = member;
  // A counter that fell belongs to a new process.
  if (!course.gossip.empty() && member.samples < course.gossip.back().samples) course = {};
  keep(course.gossip, Counters{sample.at_seconds, member.samples, 0, 0, 0}, kLooksMax);
  if (std::isfinite(member.loss) && member.step != course.last_step)
    keep(course.losses, member.loss, kLossesMax);
  course.last_step = member.step;
  row.losses.assign(course.losses.begin(), course.losses.end());

  const auto rate = [](const std::deque<Counters>& looks, double Counters::*counter) {
    const double seconds = looks.empty() ? 0 : looks.back().at - looks.front().at;
    return seconds > 0 ? (looks.back().*counter - looks.front().*counter) / seconds : kUnknown;
  };
  const bool lives = member.state == "alive" || member.state == "suspect";
  if (lives) row.samples_per_second = rate(course.gossip, &Counters::samples);
  if (!lives) row.member.steps_per_second = row.member.rtt_ms = row.member.lag = kUnknown;

  const auto told = sample.told.find(member.id);
  if (told == sample.told.end()) {
    course.own.clear();
    return row;
  }
  const TopNode& node = told->second;
  row.told = true;
  row.staleness = node.staleness;
  if (!course.own.empty() && node.bytes_in < course.own.back().bytes_in) course.own.clear();
  keep(course.own, Counters{sample.at_seconds, 0, node.bytes_in, node.bytes_out, node.exchanges},
       kLooksMax);
  row.bytes_in_per_second = rate(course.own, &Counters::bytes_in);
  row.bytes_out_per_second = rate(course.own, &Counters::bytes_out);
  row.exchanges_per_second = rate(course.own, &Counters::exchanges);
  return row;
}

void TopModel::take(const TopSample& sample) {
  TopFrame frame;
  frame.self = sample.self;
  std::map<std::string, Course> gone;
  gone.swap(courses_);
  for (const TopMember& member : sample.members) {
    if (const auto known = gone.find(member.id); known != gone.end())
      courses_[member.id] = std::move(known->second);
    TopRow row = row_of(sample, member);
    ++frame.count[member.state];
    frame.told += row.told ? 1 : 0;
    frame.samples_per_second = added(frame.samples_per_second, row.samples_per_second);
    frame.steps_per_second = added(frame.steps_per_second, row.member.steps_per_second);
    frame.rows.push_back(std::move(row));
  }
  frame_ = std::move(frame);
}

}  // namespace kith::node
