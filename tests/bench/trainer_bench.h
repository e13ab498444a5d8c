// kith_bench trainer: steps of the linear model with and without averaging, and what averaging
// costs the trainer.
#pragma once

namespace kith::bench {

// [--seconds 2] [--rounds 5] [--features 784]: last line `ratio=…` (steps per second with
// averaging, over without).
int run_trainer_bench(int argc, char** argv);

}  // namespace kith::bench
