// Memory of received messages. libzmq takes one block from malloc() for each, on its I/O thread,
// and the exchange thread frees it; with glibc's defaults every block of 1 MiB goes back to the
// kernel at once and comes back as 256 page faults: measured, 44 % of the I/O thread's time and 20
// % of the exchange thread's. So freed blocks are kept for the next messages, and given back when
// no large one has come for some seconds. Thread: keep_message_memory() any, process-wide;
// MemoryKeeper the Mesh's owner.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace kith::node {

// Sets glibc's thresholds to what they converge to in programs that use large blocks: 32 MiB for
// blocks of their own, 64 MiB kept at the top of a heap. Does nothing with another C library.
void keep_message_memory();

class MemoryKeeper {
 public:
  void received(std::size_t bytes);
  // Gives kept memory back when it is time to; true if it did.
  bool tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const { return give_back_at_; }

 private:
  bool used_ = false;  // since the last tick
  TimePoint give_back_at_ = TimePoint::max();
};

}  // namespace kith::node
