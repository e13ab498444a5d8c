// The rules of tidy.h, applied to this very tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/house/tidy.h"

namespace kith::house {
namespace {

using ::testing::IsEmpty;

constexpr std::size_t kLinesMax = 600;      // fails
constexpr std::size_t kLinesAdvised = 400;  // says so
constexpr std::size_t kColumnsMax = 110;    // of the page's scripts

class TheTree : public ::testing::Test {
 protected:
  static const Tree& tree() {
    static const Tree all = read_tree(KITH_SOURCE_DIR);
    return all;
  }
};

TEST_F(TheTree, IsRead) { EXPECT_GT(tree().size(), 100U); }
TEST_F(TheTree, IncludesGoOneWay) { EXPECT_THAT(check_include_direction(tree()), IsEmpty()); }
TEST_F(TheTree, KeepsLibrariesInTheirRooms) {
  EXPECT_THAT(check_library_headers(tree()), IsEmpty());
}
TEST_F(TheTree, HasAProtocolCoreWithoutSideEffects) {
  EXPECT_THAT(check_step_machine(tree()), IsEmpty());
}
TEST_F(TheTree, HasTestsThatDoNotSleep) {
  EXPECT_THAT(check_tests_do_not_sleep(tree()), IsEmpty());
}
TEST_F(TheTree, HasNoDeadFiles) { EXPECT_THAT(check_dead_files(tree()), IsEmpty()); }
TEST_F(TheTree, HasHeadersThatOpenWithProse) {
  EXPECT_THAT(check_headers_open_with_prose(tree()), IsEmpty());
}
TEST_F(TheTree, HasNoBrokenRulers) { EXPECT_THAT(check_rulers(tree()), IsEmpty()); }
TEST_F(TheTree, SpeaksOfItselfOnly) { EXPECT_THAT(check_speaks_of_itself_only(tree()), IsEmpty()); }
TEST_F(TheTree, HasAReadmeInEveryRoom) { EXPECT_THAT(check_readmes(tree()), IsEmpty()); }
TEST_F(TheTree, HasScriptsThatCanBeRead) {
  EXPECT_THAT(check_script_width(tree(), kColumnsMax), IsEmpty());
}
TEST_F(TheTree, HasFilesThatCanBeRead) {
  for (const auto& long_file : check_file_length(tree(), kLinesAdvised))
    std::cout << "long: " << long_file << "\n";
  EXPECT_THAT(check_file_length(tree(), kLinesMax), IsEmpty());
}

}  // namespace
}  // namespace kith::house
