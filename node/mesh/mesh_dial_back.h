// DialBacks: tries, for whoever diagnoses, whether a port can be reached from here: one TCP
// connection, closed as soon as it stands. A probe names only the port; the address is the one that
// the probe itself came from, so that nobody can be made to knock at a third machine, and only who
// has passed the handshake is served. At most kOpenMax are tried at once, a new one each kPause;
// beyond that the answer is `busy`. No thread: connections are looked at in tick().
// Thread: the Mesh's owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "schema/messages.h"

namespace kith::node {

class DialBacks {
 public:
  struct Answer {
    std::string routing_id;  // whom it is for
    schema::DialBack message;
  };

  DialBacks() = default;
  ~DialBacks();
  DialBacks(const DialBacks&) = delete;
  DialBacks& operator=(const DialBacks&) = delete;

  // `host` is numeric.
  void start(std::string routing_id, const schema::Nonce& nonce, const std::string& host,
             std::uint16_t port, TimePoint now);
  // Answers that have come about since the last call.
  std::vector<Answer> tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  static constexpr std::size_t kOpenMax = 4;
  static constexpr Duration kPause = std::chrono::milliseconds(50);
  static constexpr Duration kPatience = std::chrono::seconds(3);

 private:
  struct Try {
    int fd;
    TimePoint deadline;
    Answer answer;
  };
  void finish(Answer answer, schema::DialBackOutcome outcome);

  std::vector<Try> open_;
  std::vector<Answer> done_;
  TimePoint next_start_, next_look_ = TimePoint::max();
};

}  // namespace kith::node
