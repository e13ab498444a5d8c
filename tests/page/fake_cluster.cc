#include "tests/page/fake_cluster.h"

#include <cmath>
#include <cstdlib>
#include <iostream>

namespace kith::page::testing {

using monitoring::MemberSnapshot;
using monitoring::NodeSnapshot;

namespace {

NodeId id_of(std::size_t member) {
  NodeId id{};
  for (std::size_t i = 0; i < id.bytes.size(); ++i)
    id.bytes[i] = static_cast<std::uint8_t>(member * 131 + i * 29);
  id.bytes[0] = static_cast<std::uint8_t>(member / 256);
  id.bytes[1] = static_cast<std::uint8_t>(member % 256);
  return id;
}

MemberSnapshot member_of(std::size_t i) {
  MemberSnapshot member;
  member.name = "gpu-node-" + std::to_string(i + 1);
  member.id = id_of(i).hex();
  member.state = i % 60 == 59 ? "dead" : i % 90 == 89 ? "suspect" : "alive";
  member.run_state = "training";
  member.address = "10.20." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + ":7400";
  member.http_address =
      "10.20." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + ":7480";
  member.rtt_seconds = 0.0004 + 0.00001 * static_cast<double>(i % 37);
  member.steps_per_second = 19.0 + 0.1 * static_cast<double>(i % 17);
  return member;
}

}  // namespace

FakeCluster::FakeCluster(std::size_t members, double hours)
    : journal_(clock_, log_, [](std::string_view, std::string_view) { return std::string_view(); }),
      metrics_(clock_),
      routes_(*this, metrics_, journal_, clock_) {
  node_.run = "imagenet-42";
  node_.cluster = "lab";
  node_.method = "ad-psgd";
  node_.version = "0.1.0";
  node_.run_state = "training";
  node_.length_samples = 3.2e6 * static_cast<double>(members);
  for (std::size_t i = 0; i < members; ++i) node_.members.push_back(member_of(i));
  node_.name = node_.members[0].name;
  node_.id = node_.members[0].id;
  const int seconds = static_cast<int>(hours * 3600);
  for (int i = seconds; i > 0; --i) {
    clock_.shift_ = -std::int64_t{i} * 1'000'000'000;
    move();
    journal_.record(node_);
  }
  clock_.shift_ = 0;
  for (int i = 0; i < 200; ++i)
    journal_.events().log(
        LogLevel::kInfo, "node", "member joined",
        {{"name", "gpu-node-" + std::to_string(i + 1)}, {"address", "10.20.0.1:7400"}});
  auto started = monitoring::HttpServer::start({"127.0.0.1:0", "", {}}, *this, clock_);
  if (!started) std::cerr << started.error().message << "\n", std::abort();
  server_ = std::move(*started);
}

void FakeCluster::rename(std::size_t member, const std::string& name) {
  const std::lock_guard lock(mutex_);
  node_.members[member].name = name;
}

void FakeCluster::set_state(std::size_t member, const std::string& state) {
  const std::lock_guard lock(mutex_);
  node_.members[member].state = state;
}

void FakeCluster::remove(std::size_t member) {
  const std::lock_guard lock(mutex_);
  node_.members.erase(node_.members.begin() + static_cast<std::ptrdiff_t>(member));
}

// A second of training, and exchanges with two of the members. The mutex is held, or nobody else is
// there yet.
void FakeCluster::move() {
  const double k = static_cast<double>(++moves_);
  node_.steps += 20;
  node_.samples += 640;
  node_.progress_samples += 640 * node_.members.size();
  node_.progress_epochs = static_cast<double>(node_.progress_samples) / 1.28e6;
  node_.loss = 0.4 + 6.0 * std::exp(-k / 700) + 0.05 * std::sin(k * 1.7);
  node_.local.accuracy_ratio = 0.8 - 0.8 * std::exp(-std::floor(k / 120) / 8);
  node_.steps_per_second = 20.0 + std::sin(k);
  node_.staleness_steps = 2.0 + std::floor(2 * std::sin(k / 40) + 2);
  node_.consensus_distance_relative = 0.01 + 0.3 * std::exp(-k / 400);
  node_.exchanges_initiator += 18;
  node_.exchanges_responder += 17;
  node_.bulk_bytes_sent += 9'000'000 + static_cast<std::uint64_t>(1e6 * (1 + std::sin(k)));
  node_.bulk_bytes_received += 9'100'000;
  for (std::size_t i = 0; i < node_.members.size(); ++i) {
    MemberSnapshot& member = node_.members[i];
    const double own = static_cast<double>(i % 23);
    member.steps = node_.steps + i % 29;
    member.loss = *node_.loss * (1.0 + 0.01 * own) + 0.02 * std::sin(k + own);
    member.accuracy_ratio = *node_.local.accuracy_ratio * (0.99 - 0.002 * own);
  }
  if (node_.members.size() < 2) return;
  const std::size_t peer = 1 + (moves_ * 7919) % (node_.members.size() - 1);
  journal_.exchange_started(id_of(peer), 2 + moves_ % 4);
  journal_.exchange_answered(id_of(1 + moves_ * 104729 % (node_.members.size() - 1)));
  node_.members[peer].last_exchange_timestamp_seconds = clock_.wall_seconds();
}

NodeSnapshot FakeCluster::snapshot() {
  const std::lock_guard lock(mutex_);
  ++looks_;
  move();
  journal_.record(node_);
  return node_;
}

monitoring::HttpReply FakeCluster::get(const std::string& path,
                                       const monitoring::HttpQuery& query) {
  if (path == "/live" && refuse_ != 0) return monitoring::HttpReply::text("no\n", refuse_);
  return routes_.get(path, query);
}

}  // namespace kith::page::testing
