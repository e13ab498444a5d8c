// AddressResolver: looks names up away from the thread that moves messages. A silent resolver keeps
// getaddrinfo() busy for tens of seconds, and nothing can interrupt it; so lookups run on a few
// threads of their own that are detached and share their state with this object: destroying it
// never waits for a lookup, whose answer is then thrown away. Thread: one owner; fd() becomes
// readable when answers wait.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::node {

class AddressResolver {
 public:
  // Numeric addresses of a host. Called on the resolver's threads, possibly on several at once,
  // also after the resolver is gone.
  using Lookup = std::function<Result<std::vector<std::string>>(const std::string& host)>;
  struct Answer {
    std::string host;
    Result<std::vector<std::string>> addresses;
  };

  explicit AddressResolver(Lookup lookup);  // empty: lookup_host()
  ~AddressResolver();
  AddressResolver(const AddressResolver&) = delete;
  AddressResolver& operator=(const AddressResolver&) = delete;

  // One answer per call; beyond kThreads lookups at once, the others queue.
  void start(const std::string& host);
  [[nodiscard]] std::vector<Answer> take();
  [[nodiscard]] int fd() const;

  static constexpr unsigned kThreads = 8;

 private:
  struct Shared;
  std::shared_ptr<Shared>
      shared_;  // shared with lookups that outlive this object: see the head of this file
};

}  // namespace kith::node
