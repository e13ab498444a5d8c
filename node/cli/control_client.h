// ControlClient: how `kith` talks to a daemon. Reads go over HTTP or the daemon's Unix socket; what
// changes something goes only over the socket, so that whoever may open the data directory may
// steer, and nobody on the network.
//
//   where               reads                                commands
//   HOST:PORT           GET http://HOST:PORT/...             refused (kUsage says why)
//   DATA_DIR            DATA_DIR/control.sock, else the      DATA_DIR/control.sock
//                       address in DATA_DIR/http
//   auto:PARENT         as DATA_DIR: what a kithd of this host took in PARENT (data_dir.h)
//
// Thread: one. Every call has a time limit. Errors: kNoDaemon when nobody answers, with what was
// tried.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kith::node {

class ControlClient {
 public:
  // kUsage when `where` is neither an address nor a directory; kNoDaemon for a directory without a
  // daemon's files.
  static Result<ControlClient> at(const std::string& where);

  // For who looks often: how long a connection and each silence may take, instead of 10 s. An
  // answer as a whole: http_exchange.h.
  void set_patience(int seconds) { patience_seconds_ = seconds; }

  struct Reply {
    int status = 0;
    std::string body;
  };
  // Any HTTP status that came back; kNoDaemon if none did.
  Result<Reply> get(const std::string& path) const;
  // Body of a 200; another status is kFailed with the body's first line.
  Result<std::string> read(const std::string& path) const;
  // POST /control/<name>?key=value...: the daemon's message, or its error with its code.
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  Result<std::string> command(const std::string& name, const Parameters& parameters = {}) const;

 private:
  std::string folder_;   // DATA_DIR, empty: HOST:PORT was given
  std::string socket_;   // path, empty: none
  std::string address_;  // host:port, empty: none
  int patience_seconds_ = 0;  // 0: the usual
};

// What a query value must look like.
std::string percent_encoded(const std::string& text);

}  // namespace kith::node
