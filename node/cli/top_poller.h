// TopPoller: looks at a node, and at the members that it names, again and again on a thread of its
// own, so that keys are answered while a node is silent. Thread: one owner; fd() is readable when a
// look has ended; the first one is made an interval after the start. The thread ends with its next
// look and is never waited for: it shares its state with this object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/cli/top_model.h"

namespace kith::node {

struct TopLook {
  std::optional<TopSample> sample;  // nothing: `trouble` says why
  std::string trouble;
  ErrorCode code = ErrorCode::kFailed;
};

// One look, now: the node at `where` (a data directory or HOST:PORT), then the /status of up to
// kAskedMax of its members, those of `first` before others; only this node if `alone`.
// `unreachable` keeps who did not answer, and until when it is left alone.
inline constexpr std::size_t kAskedMax = 48;
using Unreachable = std::map<std::string, double>;  // address -> time
TopLook look_at(const std::string& where, bool alone, const std::vector<std::string>& first,
                Unreachable& unreachable);

class TopPoller {
 public:
  TopPoller(std::string where, bool alone, Duration interval);
  ~TopPoller();
  TopPoller(const TopPoller&) = delete;
  TopPoller& operator=(const TopPoller&) = delete;

  [[nodiscard]] int fd() const;
  // Looks that have ended since the last call.
  std::vector<TopLook> take();
  // Ids of the members that are on the screen: asked before others.
  void prefer(std::vector<std::string> ids);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
};

}  // namespace kith::node
