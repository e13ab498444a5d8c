#include "tests/bench/watch_bench.h"

#include <httplib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitoring/http_server.h"
#include "monitoring/routes.h"

namespace kith::bench {
namespace {

using monitoring::NodeSnapshot;

// A node in the middle of a run, with as many members as wished.
class WatchedNode final : public monitoring::NodeView {
 public:
  explicit WatchedNode(std::size_t members) {
    snapshot_.name = "n0", snapshot_.id = std::string(64, 'a'), snapshot_.run = "digits-1";
    snapshot_.model_hash = "beef", snapshot_.version = "0.1.0", snapshot_.run_state = "training";
    snapshot_.loss = 0.25, snapshot_.learning_rate = 0.05, snapshot_.grad_norm = 1.5;
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; i < members; ++i) {
      char id[65];
      std::snprintf(id, sizeof id, "%064zx", i + 1);
      const std::string name = "node-" + std::to_string(i);
      monitoring::MemberSnapshot member;
      member.name = name, member.id = id, member.state = "alive", member.run_state = "training";
      member.rtt_seconds = 0.0015;
      member.last_exchange_timestamp_seconds = 1.7e9 + static_cast<double>(i);
      member.address = "10.0.0.1:7400", member.http_address = "10.0.0.1:7480";
      member.steps = 1000 + i, member.loss = 0.25, member.steps_per_second = 20.0;
      snapshot_.members.push_back(std::move(member));
      list.push_back({{"name", name},
                      {"id", id},
                      {"address", "10.0.0.1:7400"},
                      {"state", "alive"},
                      {"step", 1000 + i},
                      {"loss", 0.25},
                      {"rtt_ms", 1.5},
                      {"last_exchange_seconds", 0.4}});
    }
    members_ = nlohmann::json{{"members", list}};
  }

  NodeSnapshot snapshot() override {
    ++snapshot_.steps;
    return snapshot_;
  }
  std::string status_json() override { return nlohmann::json{{"name", "n0"}}.dump(); }
  std::string members_json() override { return members_.dump(); }
  monitoring::HealthReport health() override { return {}; }
  monitoring::HttpReply command(const std::string&, const monitoring::HttpQuery&) override {
    return monitoring::HttpReply::text("", 404);
  }

 private:
  NodeSnapshot snapshot_;
  nlohmann::json members_;
};

// Each look at it is a second after the one before, so that nothing rendered for one page is used
// for another.
class HurriedClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return {std::chrono::seconds(++seconds_)}; }
  [[nodiscard]] double wall_seconds() const override { return static_cast<double>(seconds_); }

 private:
  mutable std::atomic<std::int64_t> seconds_{0};
};

// What an open page asks for that has seen everything so far.
std::string later_look(httplib::Client& client) {
  const auto reply = client.Get("/live");
  const auto live = nlohmann::json::parse(reply ? reply->body : "", nullptr, false);
  if (!live.is_object()) return "/live";
  return "/live?boot=" + live["boot"].get<std::string>() +
         "&after=1e12&event=1000000000&step=" + live["history"]["step_seconds"].dump();
}

// Seconds of CPU that the watched process has used: this one, or a node that says so itself.
double cpu_seconds(httplib::Client& client, bool remote) {
  if (!remote) {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
  const auto reply = client.Get("/metrics");
  const std::string name = "\nprocess_cpu_seconds_total ";
  const auto at = reply ? reply->body.find(name) : std::string::npos;
  return at == std::string::npos ? 0.0 : std::stod(reply->body.substr(at + name.size()));
}

struct Cost {
  double median_ms = 0.0, most_ms = 0.0, cpu_ms = 0.0;
  std::size_t bytes = 0;
};

std::optional<Cost> measure(httplib::Client& client, bool remote, const char* path, int requests) {
  std::vector<double> times;
  Cost cost;
  const double before = cpu_seconds(client, remote);
  for (int i = 0; i < requests; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto reply = client.Get(path);
    if (!reply || reply->status != 200) return std::nullopt;
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    cost.bytes = reply->body.size();
  }
  cost.cpu_ms = 1e3 * (cpu_seconds(client, remote) - before) / requests;
  std::sort(times.begin(), times.end());
  cost.median_ms = times[times.size() / 2];
  cost.most_ms = times.back();
  return cost;
}

int print_costs(httplib::Client& client, bool remote, int requests) {
  std::printf("%-10s %10s %10s %12s %10s\n", "path", "median ms", "most ms", "CPU ms each",
              "bytes");
  Cost metrics;
  double page_ms = 0.0;
  const std::string later = later_look(client);
  for (const std::string& path :
       {std::string("/healthz"), std::string("/metrics"), std::string("/members"),
        std::string("/status"), std::string("/"), std::string("/live"), later}) {
    const auto cost = measure(client, remote, path.c_str(), requests);
    if (!cost) {
      std::fprintf(stderr, "kith_bench: %s is not answered with 200\n", path.c_str());
      return 1;
    }
    std::printf("%-10s %10.2f %10.2f %12.3f %10zu\n", path == later ? "/live?..." : path.c_str(),
                cost->median_ms, cost->most_ms, cost->cpu_ms, cost->bytes);
    if (path == "/metrics") metrics = *cost;
    if (path == later) page_ms = cost->cpu_ms;
  }
  std::printf(
      "%s: a scrape every 5 s takes %.3f %% of a core, a page that asks every 2 s %.3f %%\n",
      remote ? "CPU of the node, training included" : "CPU of both ends", metrics.cpu_ms / 50,
      page_ms / 20);
  std::printf("metrics_ms=%.2f most_ms=%.2f bytes=%zu\n", metrics.median_ms, metrics.most_ms,
              metrics.bytes);
  return 0;
}

int watch_own(std::size_t members, int requests) {
  SystemClock clock;
  WatchedNode node(members);
  monitoring::Metrics metrics(clock);
  for (int i = 0; i < 1000; ++i) metrics.observe_step(0.01), metrics.observe_exchange(0.02, 1);
  HurriedClock hurried;
  NullLog log;
  monitoring::Journal journal(hurried, log, [](auto, auto) { return ""; });
  for (std::size_t i = 0; i < monitoring::History::kRowsMax; ++i) journal.record(node.snapshot());
  monitoring::Routes routes(node, metrics, journal, hurried);
  auto server = monitoring::HttpServer::start({"127.0.0.1:0", "", {}}, routes, clock);
  if (!server) {
    std::fprintf(stderr, "kith_bench: %s\n", server.error().message.c_str());
    return 1;
  }
  httplib::Client client("http://" + (*server)->address());
  std::printf("a node with %zu members, %d requests a path, one after the other\n", members,
              requests);
  return print_costs(client, false, requests);
}

}  // namespace

int run_watch_bench(int argc, char** argv) {
  CLI::App app("What it costs a node to be watched.", "kith_bench watch");
  std::size_t members = 200;
  int requests = 200;
  std::string at;
  app.add_option("--members", members, "members of the node")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--requests", requests, "requests of each path")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--at", at, "HOST:PORT of a running node's http address");
  CLI11_PARSE(app, argc, argv);
  if (at.empty()) return watch_own(members, requests);
  httplib::Client client("http://" + at);
  std::printf("%s, %d requests a path, one after the other\n", at.c_str(), requests);
  return print_costs(client, true, requests);
}

}  // namespace kith::bench
