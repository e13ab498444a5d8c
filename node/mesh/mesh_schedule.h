// How the threads that move bulk data share the processor: in Linux's batch class. They get the
// same share as others, but a message that arrives does not interrupt whoever is running: not the
// trainer, and not the other end of the same transfer. Measured with both ends on two idle cores:
// 0.65 of a plain socket without it, 0.72 with it (medians of 7 runs). A class that the user has
// chosen (chrt) is left alone; where the kernel refuses, nothing changes. Thread: acts on the
// calling one.
#pragma once

namespace kith::node {

// From now on.
void prefer_throughput();

// As long as it lives: threads that are started meanwhile inherit the class and keep it.
class ThroughputScope {
 public:
  ThroughputScope();
  ~ThroughputScope();
  ThroughputScope(const ThroughputScope&) = delete;
  ThroughputScope& operator=(const ThroughputScope&) = delete;

 private:
  bool changed_;
};

}  // namespace kith::node
