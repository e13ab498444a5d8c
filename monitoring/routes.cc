#include "monitoring/routes.h"

#include "monitoring/status_page.h"

namespace kith::monitoring {
namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

HttpReply verdict(const HealthReport& report, bool good, const HttpQuery& query) {
  const int status = good ? 200 : 503;
  const auto format = query.find("format");
  if (format != query.end() && format->second == "json") {
    return HttpReply::json(report.json(), status);
  }
  return HttpReply::text(report.text(), status);
}

}  // namespace

HttpReply NodeView::other(const std::string& path, const HttpQuery&) {
  return HttpReply::text(
      "nothing at " + path + "; there is /metrics /healthz /readyz /status /members /\n", 404);
}

HttpReply Routes::get(const std::string& path, const HttpQuery& query) {
  if (path == "/metrics") return {200, kMetricsType, metrics_.render(node_.snapshot())};
  if (path == "/status") return HttpReply::json(node_.status_json());
  if (path == "/members") return HttpReply::json(node_.members_json());
  if (path == "/") return {200, "text/html; charset=utf-8", std::string(status_page())};
  if (path == "/healthz" || path == "/readyz") {
    const HealthReport report = node_.health();
    return verdict(report, path == "/healthz" ? report.healthy() : report.ready(), query);
  }
  return node_.other(path, query);
}

HttpReply Routes::post(const std::string& path, const HttpQuery& query) {
  return node_.command(path.substr(path.starts_with('/') ? 1 : 0), query);
}

}  // namespace kith::monitoring
