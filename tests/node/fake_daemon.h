// What `kith` sees of a daemon: the read routes over HTTP and the Unix socket, the commands over
// the socket only. The requests that came in are kept. Thread: start and stop on one.
#pragma once

#include <httplib.h>

#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kith::node {

class FakeDaemon {
 public:
  // Serves data_dir/control.sock and 127.0.0.1 on any port, which it writes to data_dir/http.
  explicit FakeDaemon(const std::string& data_dir) {
    for (httplib::Server* server : {&tcp_, &unix_}) {
      answer(*server, "/status", status);
      answer(*server, "/members", members);
      server->Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
        const bool good = health.find("\"healthy\": true") != std::string::npos;
        response.status = good ? 200 : 503;
        response.set_content(health, "application/json");
      });
    }
    unix_.Post("/control/(.*)",
               [this](const httplib::Request& request, httplib::Response& response) {
                 const std::lock_guard lock(mutex_);
                 std::string line = request.matches[1];
                 for (const auto& [key, value] : request.params) line += " " + key + "=" + value;
                 commands_.push_back(line);
                 response.set_content(reply, "application/json");
               });
    port_ = tcp_.bind_to_any_port("127.0.0.1");
    std::ofstream(data_dir + "/http") << "127.0.0.1:" << port_ << "\n";
    unix_.set_address_family(AF_UNIX);
    const std::string socket = data_dir + "/control.sock";
    unix_.bind_to_port(socket.c_str(), 80);
    threads_.emplace_back([this] { tcp_.listen_after_bind(); });
    threads_.emplace_back([this] { unix_.listen_after_bind(); });
  }
  ~FakeDaemon() {
    while (!tcp_.is_running() || !unix_.is_running()) std::this_thread::yield();
    tcp_.stop();
    unix_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::vector<std::string> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

  std::string status = R"({"name": "a", "step": 1240, "loss": 0.123456789, "accuracy": null})";
  std::string members = R"({"members": [
    {"name": "a", "id": "00112233445566778899", "address": "127.0.0.1:7400", "state": "alive", "step": 12,
     "loss": 0.5, "rtt_ms": null, "last_exchange_seconds": 1.2},
    {"name": "evil\u001b[2J", "id": "ff", "address": "x", "state": "dead", "step": 9, "loss": null,
     "rtt_ms": 0.25, "last_exchange_seconds": null}]})";
  std::string health =
      R"({"healthy": true, "ready": true, "checks": [{"name": "trainer", "ok": true, "text": "step 3"}]})";
  std::string reply = R"({"ok": true, "message": "done"})";

 private:
  static void answer(httplib::Server& server, const char* path, const std::string& body) {
    server.Get(path, [&body](const httplib::Request&, httplib::Response& response) {
      response.set_content(body, "application/json");
    });
  }

  httplib::Server tcp_, unix_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> commands_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace kith::node
