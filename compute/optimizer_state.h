// The optimiser's state as bytes: what checkpoints keep and adopting peers fetch. One format for
// every trainer.
//
// Layout, little endian: u8 version (1) · u8 length of the name · name · u64 steps done · u32
// tensors · per tensor u64 count, then count fp32 values. Decoding treats the bytes as hostile: it
// never allocates more than they hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/model.h"

namespace kith::compute {

struct OptimizerState {
  std::string name;  // sgd | adam | adamw
  std::uint64_t step = 0;
  std::vector<std::vector<float>>
      tensors;  // meaning is the optimiser's own; none before the first step
};

StateBytes encode_optimizer_state(const OptimizerState& state);
// kCorrupt: truncated, trailing bytes, unknown version, values that are not finite.
Result<OptimizerState> decode_optimizer_state(std::span<const std::byte> bytes);

}  // namespace kith::compute
