// HttpServer: the daemon's one window to people, scripts and Prometheus: GET on a TCP address, and
// GET and POST on a Unix socket of mode 0600 (commands change something, so they need the file
// system's word on who asks).
//
// Nothing a client does may disturb training, so no thread ever waits for a client: one loop thread
// moves bytes of all connections without blocking, with a deadline for each, and hands complete
// requests to a worker, where cpp-httplib parses, answers into memory, and never sees a socket.
// Reads have a worker, commands three others: a scrape does not queue behind a checkpoint, nor a
// leave behind an export to a disk that hangs. One request
// per connection. Above connections_max the oldest idle one is closed.
//
// Thread: construct and destroy on one; the handler is called on the workers, at most one call
// on each at a time. Errors: kAddressInUse and kUsage name the address. The destructor waits for
// handlers that are running.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace kith::monitoring {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // without Cache-Control: no-store

  static HttpReply json(std::string body, int status = 200);
  static HttpReply text(std::string body, int status = 200);
};

using HttpQuery =
    std::map<std::string, std::string>;  // decoded; of a name given twice the last one counts

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual HttpReply get(const std::string& path, const HttpQuery& query) = 0;
  // Only what came through the Unix socket.
  virtual HttpReply post(const std::string& path, const HttpQuery& query) = 0;
};

struct HttpLimits {
  std::size_t connections_max = 128;
  std::size_t request_bytes_max =
      32 * 1024;  // request line and headers; more is answered 431 (a URL above 8 kB: 414)
  Duration read_timeout = std::chrono::seconds(5);    // from accept to the last header
  Duration write_timeout = std::chrono::seconds(10);  // for the whole answer
};

struct HttpSettings {
  std::string listen;     // host:port or [v6]:port; port 0 = any; "" = no TCP
  std::string unix_path;  // "" = no Unix socket; a stale file there is replaced
  HttpLimits limits;
};

class HttpServer {
 public:
  // Bound and answering when it returns. `handler` and `clock` outlive the server.
  static Result<std::unique_ptr<HttpServer>> start(const HttpSettings& settings,
                                                   HttpHandler& handler, const Clock& clock);
  ~HttpServer();

  // host:port with the real port, "" without TCP.
  [[nodiscard]] const std::string& address() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::monitoring
