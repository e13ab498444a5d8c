#include "monitoring/request_answerer.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace kith::monitoring {
namespace {

constexpr const char* kCommandHeader =
    "X-Kith-Commands";  // set here after parsing, never taken from a client

// A request in memory as the stream that cpp-httplib reads from and writes to.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view input) : input_(input) {}
  [[nodiscard]] std::string take() { return std::move(output_); }

  [[nodiscard]] bool is_readable() const override { return !input_.empty(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* out, std::size_t size) override {
    const std::size_t count = std::min(size, input_.size());
    std::memcpy(out, input_.data(), count);
    input_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, std::size_t size) override {
    output_.append(data, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  [[nodiscard]] socket_t socket() const override { return -1; }

 private:
  std::string_view input_;
  std::string output_;
};

HttpQuery query_of(const httplib::Request& request) {
  HttpQuery out;
  for (const auto& [name, value] : request.params) out[name] = value;
  return out;
}

HttpReply call(HttpHandler& handler, const httplib::Request& request) {
  if (request.method == "GET" || request.method == "HEAD")
    return handler.get(request.path, query_of(request));
  if (request.method != "POST") return HttpReply::text("only GET and POST\n", 405);
  if (!request.has_header(kCommandHeader)) {
    return HttpReply::text(
        "commands are taken only on the daemon's own Unix socket: kith --at DATA_DIR\n", 403);
  }
  return handler.post(request.path, query_of(request));
}

HttpReply guarded_call(HttpHandler& handler, const httplib::Request& request) {
  try {
    return call(handler, request);
  } catch (const std::exception& e) {
    return HttpReply::text(std::string("internal error: ") + e.what() + "\n", 500);
  }
}

}  // namespace

struct RequestAnswerer::Impl final : httplib::Server {
  explicit Impl(HttpHandler& handler) {
    set_pre_routing_handler(
        [&handler](const httplib::Request& request, httplib::Response& response) {
          const HttpReply reply = guarded_call(handler, request);
          response.status = reply.status;
          response.set_content(reply.body, reply.content_type);
          for (const auto& [name, value] : reply.headers) response.set_header(name, value);
          if (!response.has_header("Cache-Control"))
            response.set_header("Cache-Control", "no-store");
          return HandlerResponse::Handled;
        });
    set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  }

  std::string run(std::string_view bytes, bool commands) {
    MemoryStream stream(bytes);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, [&](httplib::Request& request) {
      for (const char* header : {kCommandHeader, "Range", "Accept-Encoding", "Expect"})
        request.headers.erase(header);
      request.ranges.clear();
      if (commands) request.set_header(kCommandHeader, "1");
    });
    return stream.take();
  }
};

RequestAnswerer::RequestAnswerer(HttpHandler& handler) : impl_(std::make_unique<Impl>(handler)) {}
RequestAnswerer::~RequestAnswerer() = default;

std::string RequestAnswerer::answer(std::string_view request, bool commands) {
  try {
    return impl_->run(request, commands);
  } catch (const std::exception&) {  // a request that cpp-httplib cannot even refuse
    return "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  }
}

std::string_view too_large_answer() {
  return "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: "
         "close\r\n\r\n";
}

HttpReply HttpReply::json(std::string body, int status) {
  return {status, "application/json; charset=utf-8", std::move(body), {}};
}
HttpReply HttpReply::text(std::string body, int status) {
  return {status, "text/plain; charset=utf-8", std::move(body), {}};
}

}  // namespace kith::monitoring
