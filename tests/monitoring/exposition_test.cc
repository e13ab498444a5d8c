#include "monitoring/exposition.h"

#include <gtest/gtest.h>

#include "monitoring/metrics.h"

namespace kith::monitoring {
namespace {

TEST(CleanLabel, KeepsGoodTextAndReplacesTheRest) {
  struct Row {
    std::string in, out;
  };
  const Row rows[] = {
      {"node-7", "node-7"},
      {"", ""},
      {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
      {"\xf0\x9f\x8c\x9e", "\xf0\x9f\x8c\x9e"},
      {"a\nb\x7f", "a?b?"},
      {"\xc0\xaf", "??"},            // overlong '/'
      {"\xed\xa0\x80", "???"},       // a surrogate
      {"\xf4\x90\x80\x80", "????"},  // above U+10FFFF
      {"\xe2\x82", "??"},            // cut short
      {std::string("\0x", 2), "?x"},
  };
  for (const Row& row : rows) EXPECT_EQ(clean_label(row.in), row.out);
}

TEST(CleanLabel, CutsBetweenCharacters) {
  EXPECT_EQ(clean_label("abcdef", 4), "abcd");
  EXPECT_EQ(clean_label("abc\xc3\xbc", 4), "abc");
}

TEST(CounterCarry, CarriesOnOverEveryFall) {
  CounterCarry carry;
  EXPECT_EQ(carry.value("a", 10), 10);
  EXPECT_EQ(carry.value("a", 12), 12);
  EXPECT_EQ(carry.value("a", 1), 13);
  EXPECT_EQ(carry.value("a", 0), 13);
  EXPECT_EQ(carry.value("a", 5), 18);
  EXPECT_EQ(carry.value("b", 3), 3);
}

TEST(MemberSeries, AMemberThatWasNeverLiveHasNone) {
  MemberSeries series;
  EXPECT_TRUE(series.update({}, "self", {{"b", "bb", "dead", {}, {}}}).empty());
}

TEST(MemberSeries, ARenamedMemberHasOneSeries) {
  MemberSeries series;
  (void)series.update({}, "self", {{"old", "bb", "alive", {}, {}}});
  const auto now = series.update({}, "self", {{"new", "bb", "alive", {}, {}}});
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].name, "new");
}

TEST(MemberSeries, RoomIsFreedByThoseThatWent) {
  MemberSeries series;
  std::vector<MemberSnapshot> many;
  for (std::size_t i = 0; i < kMemberSeriesMax; ++i)
    many.push_back({"n", "id" + std::to_string(i), "alive", {}, {}});
  EXPECT_EQ(series.update({}, "self", many).size(), kMemberSeriesMax);
  const std::vector<MemberSnapshot> other = {{"late", "late", "alive", {}, {}}};
  EXPECT_EQ(series.update(TimePoint{kSeriesLinger}, "self", other).size(), 0U);
  EXPECT_EQ(series.update(TimePoint{kSeriesLinger}, "self", other).size(), 1U);
}

}  // namespace
}  // namespace kith::monitoring
