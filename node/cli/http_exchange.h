// One HTTP request on a connection of its own, for `kith`. Whoever answers is not trusted: members
// tell each other where they can be asked, and one of them may send for ever. An answer of more
// than kAnswerBytesMax, headers included, or that takes longer than kPatiencesInAll times the
// patience is given up. Thread: any; no state.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace kith::node {

inline constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;
inline constexpr int kPatiencesInAll = 5;

struct HttpRequest {
  std::string method, path, host;
  Duration patience{};  // for the connection, and for each silence after it
};
struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Errors: kNoDaemon, with a few words that say why.
Result<HttpAnswer> http_exchange(const sockaddr* address, socklen_t size,
                                 const HttpRequest& request);

}  // namespace kith::node
