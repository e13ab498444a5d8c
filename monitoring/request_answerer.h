// RequestAnswerer: the bytes of one HTTP request in, the bytes of its answer out. cpp-httplib does
// both parsing and writing, on memory instead of a socket. What makes a request expensive is
// switched off: no ranges (a short header could ask for the body a thousand times), no compression,
// no request bodies. Thread: answer() from several at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "monitoring/http_server.h"

namespace kith::monitoring {

class RequestAnswerer {
 public:
  explicit RequestAnswerer(HttpHandler& handler);
  ~RequestAnswerer();

  // `request`: at least its line and headers. `commands`: POST is allowed. Never throws; "" if it
  // is not HTTP at all.
  [[nodiscard]] std::string answer(std::string_view request, bool commands);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The answer to a request whose headers never end.
std::string_view too_large_answer();

}  // namespace kith::monitoring
