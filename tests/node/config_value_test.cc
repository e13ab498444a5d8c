#include "node/config/config_value.h"

#include <gtest/gtest.h>

namespace kith::node {
namespace {

TEST(EditDistance, CountsSwapsOfNeighboursAsOne) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1U);
}

TEST(Nearest, IsEmptyWhenNothingIsClose) {
  const std::vector<std::string_view> words = {"momentum", "threads"};
  EXPECT_EQ(nearest("momentun", words), "momentum");
  EXPECT_EQ(nearest("zzzzzzzz", words), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), words), "");
}

TEST(DurationText, ReadsUnitsAndRefusesTheRest) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_duration("200ms"), milliseconds(200));
  EXPECT_EQ(parse_duration("2m"), milliseconds(120000));
  EXPECT_EQ(parse_duration("1 h"), milliseconds(3600000));
  for (const char* text :
       {"", "5", "s", "-1s", "1.2.3s", "1e9s", "1 parsec", "nan s", "99999999999d"})
    EXPECT_FALSE(parse_duration(text)) << text;
  for (const auto d : {milliseconds(0), milliseconds(200), milliseconds(1500), milliseconds(90000)})
    EXPECT_EQ(parse_duration(duration_text(d)), d);
}

TEST(TomlValue, TextThatIsMoreThanOneValueIsNone) {
  EXPECT_TRUE(parse_toml_value("3"));
  EXPECT_TRUE(parse_toml_value("[1, 2]"));
  EXPECT_FALSE(parse_toml_value("3\nother = 4"));
  EXPECT_FALSE(parse_toml_value("hello"));
  EXPECT_FALSE(parse_toml_value(""));
}

TEST(Quotes, LeaveNothingThatATerminalWouldObey) {
  EXPECT_EQ(in_quotes("a\"b\\\n\x1b"), "\"a\\\"b\\\\\\u000a\\u001b\"");
  // As a single character, which a terminal takes for ESC [, and what turns writing round.
  EXPECT_EQ(in_quotes("\u009b2J\u202e\u2066"), "\"\\u009b2J\\u202e\\u2066\"");
  EXPECT_EQ(in_quotes("B\u00fcro \u2013 \u00a0"), "\"B\u00fcro \u2013 \u00a0\"");
}

TEST(Utf8, IsTold) {
  EXPECT_TRUE(is_utf8("B\xc3\xbcro"));
  EXPECT_FALSE(is_utf8("B\xfcro"));
  EXPECT_FALSE(is_utf8("\xe2\x82"));
}

}  // namespace
}  // namespace kith::node
