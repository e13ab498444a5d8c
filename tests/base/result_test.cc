#include "base/result.h"

#include <gtest/gtest.h>

namespace kith {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::kUsage, "odd: " + std::to_string(value));
  return value / 2;
}
Result<int> quarter(int value) {
  KITH_ASSIGN(const int once, half(value));
  KITH_ASSIGN(const int twice, half(once));
  return twice;
}
Status even(int value) {
  KITH_TRY(half(value));
  return {};
}

TEST(Result, CarriesTheFirstErrorOut) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd: 3");
  EXPECT_EQ(quarter(6).error().code, ErrorCode::kUsage);
  EXPECT_TRUE(even(4));
  EXPECT_EQ(even(5).error().message, "odd: 5");
}

TEST(ExitCode, IsTheDocumentedOne) {
  EXPECT_EQ(exit_code(ErrorCode::kFailed), 1);
  EXPECT_EQ(exit_code(ErrorCode::kUsage), 2);
  EXPECT_EQ(exit_code(ErrorCode::kNoDaemon), 3);
  EXPECT_EQ(exit_code(ErrorCode::kNoSeed), 4);
  EXPECT_EQ(exit_code(ErrorCode::kIncompatible), 5);
  EXPECT_EQ(exit_code(ErrorCode::kAddressInUse), 6);
  EXPECT_EQ(exit_code(ErrorCode::kDataDirInUse), 7);
  EXPECT_EQ(exit_code(ErrorCode::kDataRefused), 8);
  EXPECT_EQ(exit_code(ErrorCode::kUnhealthy), 10);
  for (const ErrorCode code :
       {ErrorCode::kNotFound, ErrorCode::kCorrupt, ErrorCode::kNonFinite, ErrorCode::kBusy})
    EXPECT_EQ(exit_code(code), 1);
}

}  // namespace
}  // namespace kith
