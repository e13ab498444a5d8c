// LiveView: everything that the page shows, in one compact answer, so that an open page costs one
// request each time it looks. The part that is the same for all pages is rendered twice a second at
// most, however many are open.
//
// GET /live?span=hour|run&boot=B&after=AT&step=S&event=N
//   boot, after, step, event: what the page has already; without them it gets everything that is
//   kept
//   {"boot", "now", "wall", "node": {...}, "members": {"known", "neighbours", "fields",
//    "rows"}, "history": {...}, "events": {...}}
// Moments are seconds on the node's monotonic clock; `wall` is the time of day at `now`.
// Size: about 130 bytes a member (kMembersMax at most: those exchanged with and those in trouble
// first), 110 bytes a sample.
// Thread: one at a time (the server's worker for reads).
#pragma once

#include <string>

#include "base/clock.h"
#include "monitoring/http_server.h"
#include "monitoring/journal.h"
#include "monitoring/snapshot.h"

namespace kith::monitoring {

class LiveView {
 public:
  static constexpr std::size_t kMembersMax = 512;
  static constexpr Duration kFreshFor = std::chrono::milliseconds(500);

  LiveView(const Journal& journal, const Clock& clock) : journal_(journal), clock_(clock) {}

  [[nodiscard]] std::string json(const std::function<NodeSnapshot()>& snapshot,
                                 const HttpQuery& query);

 private:
  const Journal& journal_;
  const Clock& clock_;
  TimePoint rendered_at_;
  std::string rendered_;  // "node" and "members"
};

}  // namespace kith::monitoring
