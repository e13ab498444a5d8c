#include "compute/optimizer_state.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kith::compute {
namespace {

TEST(OptimizerStateBytes, ComeBackAsTheyWere) {
  const OptimizerState state{"adam", 1234, {{1, 2, 3}, {}, {-0.0F}}};
  const auto back = decode_optimizer_state(encode_optimizer_state(state));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->name, "adam");
  EXPECT_EQ(back->step, 1234U);
  EXPECT_EQ(back->tensors, state.tensors);
}

TEST(OptimizerStateBytes, EveryTruncationAndEveryAdditionIsCorrupt) {
  const StateBytes bytes = encode_optimizer_state({"sgd", 7, {{1, 2, 3}}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto state = decode_optimizer_state(std::span(bytes).first(length));
    ASSERT_FALSE(state) << length;
    EXPECT_EQ(state.error().code, ErrorCode::kCorrupt);
  }
  StateBytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_optimizer_state(longer));
}

TEST(OptimizerStateBytes, HostileNumbersAreCorruptAndAllocateNothing) {
  StateBytes bytes = encode_optimizer_state({"sgd", 7, {{1, 2, 3}}});
  const std::size_t count_at = 1 + 1 + 3 + 8 + 4;
  for (std::size_t i = 0; i < 8; ++i) bytes[count_at + i] = std::byte{0xFF};
  EXPECT_FALSE(decode_optimizer_state(bytes));
  bytes = encode_optimizer_state({"sgd", 7, {{1, 2, 3}}});
  for (std::size_t i = 0; i < 4; ++i)
    bytes[count_at - 4 + i] = std::byte{0xFF};  // four thousand million tensors
  EXPECT_FALSE(decode_optimizer_state(bytes));
  bytes[0] = std::byte{2};
  EXPECT_NE(decode_optimizer_state(bytes).error().message.find("version 2"), std::string::npos);
}

TEST(OptimizerStateBytes, ValuesThatAreNotFiniteAreCorrupt) {
  EXPECT_FALSE(decode_optimizer_state(encode_optimizer_state({"sgd", 7, {{1, NAN}}})));
}

}  // namespace
}  // namespace kith::compute
