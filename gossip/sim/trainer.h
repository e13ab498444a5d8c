// QuadraticTrainer: a node's training in the simulation: gradient descent on f(x) = h/2 |x - c|^2,
// in fixed point.
//
// As a real trainer does, it takes its gradient at the model as it is when a step begins and
// applies it when the step ends; what arrived in between is merged only afterwards, at the safe
// point (the order of AD-PSGD, Lian et al. 2018). Time is the simulation's matter: it calls
// begin_step() and end_step(). Thread: the simulation's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gossip/sim/fixed_point_store.h"

namespace kith::sim {

class QuadraticTrainer {
 public:
  // `rate_curvature` = learning rate times h, in 2^-32; 0: steps pass, nothing is learnt.
  QuadraticTrainer(FixedPointStore& store, Fixed rate_curvature, std::vector<Fixed> centre);

  void begin_step();  // takes the gradient at x
  std::span<const Fixed>
  end_step();  // x -= rate * gradient; returns the change (empty: no step was begun)
  // Learning stops; steps and safe points go on.
  void freeze() { rate_curvature_ = 0; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  // Forgets the step under way and counts from `steps`: a restart.
  void restart(std::uint64_t steps);

 private:
  FixedPointStore& store_;
  Fixed rate_curvature_;
  std::vector<Fixed> centre_;
  std::vector<Fixed> change_;
  bool begun_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace kith::sim
