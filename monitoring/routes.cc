#include "monitoring/routes.h"

#include "monitoring/page_assets.h"

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

// A page that a browser has seen lets it keep the rest: the names hold hashes.
HttpReply asset_reply(const PageAsset& asset, const HttpQuery& query) {
  HttpReply reply{200, std::string(asset.content_type), std::string(asset.bytes), {}};
  if (asset.path == "/") {
    reply.headers.emplace_back("Content-Security-Policy", kPagePolicy);
    reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  } else if (query.contains("v")) {
    reply.headers.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  }
  return reply;
}

std::string span_of(const HttpQuery& query) {
  const auto found = query.find("span");
  return found == query.end() ? "hour" : found->second;
}

}  // namespace

HttpReply NodeView::other(const std::string& path, const HttpQuery&) {
  return HttpReply::text("nothing at " + path +
                             "; there is /metrics /healthz /readyz /status /members /live "
                             "/history /events /exchanges /\n",
                         404);
}

HttpReply Routes::get(const std::string& path, const HttpQuery& query) {
  if (path == "/metrics") return {200, kMetricsType, metrics_.render(node_.snapshot()), {}};
  if (path == "/status") return HttpReply::json(node_.status_json());
  if (path == "/members") return HttpReply::json(node_.members_json());
  if (path == "/live")
    return HttpReply::json(live_.json([this] { return node_.snapshot(); }, query));
  if (path == "/history") return HttpReply::json(journal_.history_json(span_of(query)) + "\n");
  if (path == "/events") return HttpReply::json(journal_.events_json() + "\n");
  if (path == "/exchanges")
    return HttpReply::json(journal_.exchanges_json(node_.snapshot()) + "\n");
  if (const PageAsset* asset = find_page_asset(path)) return asset_reply(*asset, query);
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
