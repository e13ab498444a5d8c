#include "node/daemon/rest.h"

#include <utility>

namespace kith::node {

void copy_at_rest(compute::Trainer& trainer, compute::Replica& replica,
                  std::function<void()> resume,
                  std::function<void(std::shared_ptr<StateAssembly>)> taker) {
  trainer.cut([&replica, resume = std::move(resume),
               taker = std::move(taker)](compute::TrainerImage image) {
    auto copy = std::make_shared<StateAssembly>(replica, std::move(image.integers));
    replica.thaw();
    resume();
    taker(std::move(copy));
  });
}

}  // namespace kith::node
