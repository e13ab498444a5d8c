// Built without LibTorch: no Gloo to compare with.
#include "tests/bench/exchange_lane.h"

namespace kith::bench {

Result<std::unique_ptr<Lane>> make_gloo_lane(const ExchangeBenchOptions&, Pair&) {
  return std::unique_ptr<Lane>();
}

}  // namespace kith::bench
