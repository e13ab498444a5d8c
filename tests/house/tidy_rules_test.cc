// Each rule on a planted mistake, and on the nearest thing that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/house/tidy.h"

namespace kith::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BlankCommentsAndLiterals, KeepsCodeAndLines) {
  EXPECT_EQ(blank_comments_and_literals("a; // b\nc /* d\ne */ f"), "a;     \nc     \n     f");
  EXPECT_EQ(blank_comments_and_literals("x = \"sl\\\"eep\" + y;"), "x = \"         + y;");
  EXPECT_EQ(blank_comments_and_literals("n = 1'000; c = '\\'';"), "n = 1'000; c = '   ;");
  EXPECT_THAT(blank_comments_and_literals("R\"x(sleep \" )\" )x\"; rand"), Not(HasSubstr("sleep")));
  EXPECT_THAT(blank_comments_and_literals("R\"x(sleep \" )\" )x\"; rand"), HasSubstr("; rand"));
}

TEST(IncludeDirection, RoomsBesideEachOtherNeverMeet) {
  EXPECT_THAT(check_include_direction({{"gossip/a.cc", "#include \"compute/replica.h\"\n"}}),
              ElementsAre("gossip/a.cc:1: gossip may not include compute/replica.h"));
  EXPECT_THAT(
      check_include_direction({{"monitoring/a.cc", "\n#include \"gossip/exchange/exchange.h\"\n"}}),
      SizeIs(1));
  EXPECT_THAT(
      check_include_direction({{"compute/torch/a.cc", "#include \"node/config/config.h\"\n"}}),
      SizeIs(1));
  EXPECT_THAT(check_include_direction({{"base/a.h", "#include \"schema/messages.h\"\n"}}),
              SizeIs(1));
  EXPECT_THAT(check_include_direction({{"node/a.cc", "#include \"tests/node/fake.h\"\n"}}),
              SizeIs(1));
}

TEST(IncludeDirection, FoldersOfARoomHaveAnOrder) {
  EXPECT_THAT(check_include_direction({{"node/mesh/a.cc", "#include \"node/daemon/roster.h\"\n"}}),
              ElementsAre("node/mesh/a.cc:1: node/mesh may not include node/daemon/roster.h"));
  EXPECT_THAT(check_include_direction(
                  {{"gossip/membership/a.cc", "#include \"gossip/exchange/exchange.h\"\n"}}),
              SizeIs(1));
  EXPECT_THAT(
      check_include_direction({{"node/daemon/a.cc", "#include \"node/mesh/mesh.h\"\n"},
                               {"gossip/sim/a.cc", "#include \"gossip/membership/swim.h\"\n"},
                               {"node/mesh/a.cc", "#include \"schema/messages.h\"\n"}}),
      IsEmpty());
}

TEST(IncludeDirection, GossipSeesMessagesButNotTheirEncoding) {
  EXPECT_THAT(check_include_direction({{"gossip/a.cc", "#include \"schema/messages.h\"\n"}}),
              IsEmpty());
  EXPECT_THAT(check_include_direction({{"gossip/a.cc", "#include \"schema/codec.h\"\n"}}),
              SizeIs(1));
}

TEST(IncludeDirection, NodeAndTestsSeeEverything) {
  const std::string all =
      "#include \"gossip/a.h\"\n#include \"compute/a.h\"\n#include \"monitoring/a.h\"\n";
  EXPECT_THAT(check_include_direction({{"node/a.cc", all}, {"tests/e2e/a.cc", all}}), IsEmpty());
}

TEST(LibraryHeaders, StayWhereTheyBelong) {
  EXPECT_THAT(check_library_headers({{"compute/trainer.cc", "#include <torch/torch.h>\n"}}),
              SizeIs(1));
  EXPECT_THAT(check_library_headers({{"gossip/a.cc", "#include <zmq.hpp>\n"}}), SizeIs(1));
  EXPECT_THAT(check_library_headers({{"node/a.cc", "#include <capnp/message.h>\n"}}), SizeIs(1));
  EXPECT_THAT(check_library_headers({{"compute/torch/a.cc", "#include <torch/torch.h>\n"},
                                     {"node/a.cc", "#include <zmq.hpp>\n"},
                                     {"schema/codec.cc", "#include <capnp/message.h>\n"}}),
              IsEmpty());
}

TEST(StepMachine, HasNoClockSleepThreadOrDice) {
  for (const char* bad : {"auto t = std::chrono::steady_clock::now();", "sleep(1);",
                          "std::mutex m;", "std::random_device r;", "#include <thread>",
                          "#include <sys/socket.h>", "int x = rand();"}) {
    EXPECT_THAT(check_step_machine({{"gossip/sim/a.cc", bad}}), SizeIs(1)) << bad;
    EXPECT_THAT(check_step_machine({{"node/a.cc", bad}}), IsEmpty()) << bad;
  }
}

TEST(StepMachine, WordsInCommentsAndLongerNamesAreFine) {
  EXPECT_THAT(check_step_machine(
                  {{"gossip/a.cc",
                    "// never a std::mutex, never sleep\nint sleepers; brand(); \"rand\";"}}),
              IsEmpty());
}

TEST(TestsDoNotSleep, ButClustersMayPoll) {
  const std::string sleeper = "std::this_thread::sleep_for(1s);";
  EXPECT_THAT(check_tests_do_not_sleep({{"tests/node/a.cc", sleeper}}), SizeIs(1));
  EXPECT_THAT(check_tests_do_not_sleep({{"tests/e2e/a.cc", sleeper}, {"node/a.cc", sleeper}}),
              IsEmpty());
}

TEST(DeadFiles, AreFound) {
  const Tree tree = {{"base/CMakeLists.txt", "add_library(base used.cc sub/deep.cc)"},
                     {"base/used.cc", "#include \"base/used.h\"\n"},
                     {"base/used.h", ""},
                     {"base/sub/deep.cc", ""},
                     {"base/dead.cc", ""},
                     {"base/sed.cc", ""},  // part of another name
                     {"base/dead.h", ""}};
  EXPECT_THAT(check_dead_files(tree), ElementsAre("base/dead.cc: no CMake file builds it",
                                                  "base/sed.cc: no CMake file builds it",
                                                  "base/dead.h: nobody includes it"));
}

TEST(DeadFiles, NamesWithVariablesCountForWhatTheySay) {
  const Tree tree = {
      {"node/mesh.cmake", "foreach(part link key)\nmesh_${part}_test.cc ${part}.cc\n"},
      {"node/mesh_key_test.cc", ""},
      {"node/link.cc", ""},
      {"node/other.cc", ""}};
  EXPECT_THAT(check_dead_files(tree), ElementsAre("node/other.cc: no CMake file builds it"));
}

TEST(Headers, OpenWithProse) {
  EXPECT_THAT(check_headers_open_with_prose({{"base/a.h", "// What.\n#pragma once\n"}}), IsEmpty());
  EXPECT_THAT(check_headers_open_with_prose({{"base/a.h", "#pragma once\n"}}), SizeIs(2));
  EXPECT_THAT(check_headers_open_with_prose({{"base/a.h", "// What.\n#ifndef A\n"}}), SizeIs(1));
}

TEST(Rulers, SayWhatFollowsInOneLine) {
  EXPECT_THAT(check_rulers({{"base/a.cc", "// ---- time\n  // --------\n"}}), SizeIs(1));
  EXPECT_THAT(check_rulers({{"base/a.cc", "// ---- time ----\n// - a\n// --\n"}}), IsEmpty());
}

TEST(FileLength, IsBounded) {
  EXPECT_THAT(check_file_length({{"base/a.cc", std::string(10, '\n')}}, 10), IsEmpty());
  EXPECT_THAT(check_file_length({{"base/a.cc", std::string(11, '\n')}}, 10), SizeIs(1));
}

TEST(ScriptWidth, CountsCharacters) {
  const std::string dashes = "\u2013\u2013\u2013\n";
  EXPECT_THAT(check_script_width({{"monitoring/page/a.js", dashes}}, 3), IsEmpty());
  EXPECT_THAT(check_script_width({{"monitoring/page/a.js", "a\nabcd\n"}}, 3),
              ElementsAre("monitoring/page/a.js:2: 4 columns"));
}

TEST(SpeaksOfItselfOnly, NoMachineMirrorOrTicket) {
  for (const char* bad : {"see /home/ann/notes", "path = \"/work/x\"", "pip --index-url=https://a",
                          "deb http://mirror/debian", "deb [trusted=yes] https://m", "// issue 12",
                          "fixes Issue #7", "(/root/x)"}) {
    EXPECT_THAT(check_speaks_of_itself_only({{"base/a.cc", bad}}), SizeIs(1)) << bad;
  }
  for (const char* good :
       {"/usr/include", "a/work/b", "the issue is", "/proc/self/fd", "teamwork/", "/worker/"}) {
    EXPECT_THAT(check_speaks_of_itself_only({{"base/a.cc", good}}), IsEmpty()) << good;
  }
}

TEST(Readmes, EveryRoomHasOne) { EXPECT_THAT(check_readmes({{"base/README.md", ""}}), SizeIs(7)); }

}  // namespace
}  // namespace kith::house
