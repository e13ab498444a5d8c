#include "node/daemon/event_kinds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace kith::node {
namespace {

// All of node/ but the table itself.
std::string sources() {
  std::ostringstream text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KITH_SOURCE_DIR "/node"))
    if (entry.path().extension() == ".cc" && entry.path().filename() != "event_kinds.cc")
      text << std::ifstream(entry.path()).rdbuf();
  return text.str();
}

TEST(EventKinds, KnowHowTheMessagesOfTodayBegin) {
  const std::string all = sources();
  ASSERT_GT(all.size(), 100'000U);
  EXPECT_FALSE(event_kinds().empty());
  for (const auto& [begin, kind] : event_kinds())
    EXPECT_NE(all.find('"' + std::string(begin)), std::string::npos)
        << "nothing is logged any more that begins with '" << begin << "', shown as " << kind;
}

TEST(EventKinds, SayWhatALineIsAbout) {
  EXPECT_EQ(event_kind("node", "joined run digits-1 via a: 4 members"), "adoption");
  EXPECT_EQ(event_kind("node", "member dead"), "dead");
  EXPECT_EQ(event_kind("checkpoint", "written"), "checkpoint");
  EXPECT_EQ(event_kind("node", "something else"), "");
}

}  // namespace
}  // namespace kith::node
