// Routes: which path shows what. The node describes itself through a NodeView; this maps paths to
// it:
//   GET  /metrics  Prometheus text      GET /healthz  200 or 503, one line a check (?format=json)
//   GET  /status   JSON                 GET /readyz   likewise, readiness included
//   GET  /members  {"members": [...]}   GET /         status page
//   GET  /live     all that the page shows, compact JSON (live_view.h)
//   GET  /history  curves: ?span=hour|run  GET /events     newest lines of the log
//   GET  /exchanges  by peer             GET /assets/... files of the page (page_assets.h)
//   POST /NAME     on the Unix socket only: a command of the node (checkpoint, leave, join, ...)
// Thread: called on the server's workers, so every method of a NodeView must be safe on any thread
// and return soon.
#pragma once

#include <string>

#include "monitoring/health.h"
#include "monitoring/http_server.h"
#include "monitoring/journal.h"
#include "monitoring/live_view.h"
#include "monitoring/metrics.h"
#include "monitoring/snapshot.h"

namespace kith::monitoring {

class NodeView {
 public:
  virtual ~NodeView() = default;
  [[nodiscard]] virtual NodeSnapshot snapshot() = 0;
  [[nodiscard]] virtual std::string status_json() = 0;
  [[nodiscard]] virtual std::string members_json() = 0;
  [[nodiscard]] virtual HealthReport health() = 0;
  // Further GET paths that only the node knows; status 404 if it does not.
  [[nodiscard]] virtual HttpReply other(const std::string& path, const HttpQuery& query);
  // `name` is the path without its slash. May take as long as the command does.
  [[nodiscard]] virtual HttpReply command(const std::string& name, const HttpQuery& query) = 0;
};

class Routes final : public HttpHandler {
 public:
  Routes(NodeView& node, Metrics& metrics, const Journal& journal, const Clock& clock)
      : node_(node), metrics_(metrics), journal_(journal), live_(journal, clock) {}
  HttpReply get(const std::string& path, const HttpQuery& query) override;
  HttpReply post(const std::string& path, const HttpQuery& query) override;

 private:
  NodeView& node_;
  Metrics& metrics_;
  const Journal& journal_;
  LiveView live_;
};

}  // namespace kith::monitoring
