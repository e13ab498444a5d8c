// FakeCluster: a node with as many members as wanted, and an hour behind it, on monitoring's own
// server: what the page makes of it does not depend on what two cores can train. Its figures move
// each time it is asked. Thread: the server asks on a worker of its own; the setters are for the
// test's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "monitoring/http_server.h"
#include "monitoring/journal.h"
#include "monitoring/metrics.h"
#include "monitoring/routes.h"

namespace kith::page::testing {

class FakeCluster final : public monitoring::NodeView, public monitoring::HttpHandler {
 public:
  // `hours` of history at one sample a second.
  FakeCluster(std::size_t members, double hours);

  [[nodiscard]] std::string url() const { return "http://" + server_->address() + "/"; }
  void rename(std::size_t member, const std::string& name);
  void set_state(std::size_t member, const std::string& state);
  void remove(std::size_t member);
  // /live is answered with this instead; 0: as it should be.
  void refuse_with(int status) { refuse_ = status; }
  [[nodiscard]] int looks() const { return looks_; }
  [[nodiscard]] monitoring::Journal& journal() { return journal_; }

  monitoring::NodeSnapshot snapshot() override;
  std::string status_json() override { return "{}"; }
  std::string members_json() override { return "{}"; }
  monitoring::HealthReport health() override { return {}; }
  monitoring::HttpReply command(const std::string&, const monitoring::HttpQuery&) override {
    return monitoring::HttpReply::text("", 404);
  }
  monitoring::HttpReply get(const std::string& path, const monitoring::HttpQuery& query) override;
  monitoring::HttpReply post(const std::string&, const monitoring::HttpQuery&) override {
    return monitoring::HttpReply::text("", 404);
  }

 private:
  // The system's clock on a machine that has been up for long, moved back while an hour is made up.
  class ShiftedClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override {
      return system_.now() + std::chrono::hours(1000) + Duration(shift_.load());
    }
    [[nodiscard]] double wall_seconds() const override {
      return system_.wall_seconds() + to_seconds(Duration(shift_.load()));
    }
    std::atomic<std::int64_t> shift_{0};

   private:
    SystemClock system_;
  };
  void move();

  ShiftedClock clock_;
  NullLog log_;
  std::mutex mutex_;
  monitoring::NodeSnapshot node_;  // guarded by mutex_
  std::uint64_t moves_ = 0;        // likewise
  std::atomic<int> refuse_{0}, looks_{0};
  monitoring::Journal journal_;
  monitoring::Metrics metrics_;
  monitoring::Routes routes_;
  std::unique_ptr<monitoring::HttpServer> server_;
};

}  // namespace kith::page::testing
