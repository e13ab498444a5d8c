// Wake: an eventfd that one thread polls and any other rings. Rings between two looks count as one.
#pragma once

#include "base/clock.h"

namespace kith::node {

class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  void ring() const;   // any thread, async-signal safe
  void clear() const;  // the polling thread
  void wait(Duration at_most) const;  // until rung, without clearing
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace kith::node
