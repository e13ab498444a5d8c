// `kith_bench exchange`: how fast two processes on this machine average a model with each other,
// beside a plain socket that moves the same bytes, in the same run. Rounds of the lanes alternate,
// so that whatever else the machine does hits all of them alike; medians are reported, and the
// ratio of the production exchange to the plain socket on the last line.
#pragma once

#include <cstddef>

namespace kith::bench {

struct ExchangeBenchOptions {
  double mib = 44.0;  // of parameters; so much travels each way
  int rounds = 10;
  bool encrypt = false;
  std::size_t fragment_bytes = 4U << 20;
  std::size_t chunk_bytes = 1U << 20;
};

// Exit code. Forks: call it before any thread is started.
int run_exchange_bench(const ExchangeBenchOptions& options);

}  // namespace kith::bench
