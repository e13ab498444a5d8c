// What demo.sh makes of its options: the configuration that kithd is given, and what it refuses. No
// node starts here.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/cluster.h"
#include "tests/e2e/demo.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Finished demo(const std::string& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {demo_script()};
  const auto options = demo_options(folder, more);
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments);
}

struct Case {
  std::vector<std::string> options;
  std::vector<std::string> lines;  // of the configuration
};

TEST(DemoOptions, EveryKindOfDemoHasAConfigurationThatKithdAccepts) {
  const std::string folder = demo_folder();
  const Case cases[] = {
      {{}, {"start_members = 4", "epochs = 6", "shard_by = \"label\"", "name = \"ad-psgd\""}},
      {{"--nodes", "1"}, {"start_members = 1", "shard_by = \"index\""}},
      {{"--nodes", "2"}, {"start_members = 2", "shard_by = \"label\""}},
      {{"--nodes", "5"}, {"start_members = 5", "shard_by = \"label\""}},
      {{"--nodes", "6"}, {"start_members = 6", "shard_by = \"index\""}},
      {{"--nodes", "32"}, {"start_members = 32", "shard_by = \"index\""}},
      {{"--epochs", "2"}, {"epochs = 2"}},
      {{"--seconds", "600"}, {"epochs = 0"}},
      {{"--seconds", "5", "--nodes", "1"}, {"epochs = 0", "start_members = 1"}},
      {{"--method", "local"}, {"name = \"local\""}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.options));
    auto options = c.options;
    options.push_back("--check");
    const Finished run = demo(folder, options);
    EXPECT_EQ(run.exit.code, 0) << run.output;
    EXPECT_EQ(run.output, "demo: kithd accepts " + folder + "/run.toml\n");
    const std::string config = bytes_of(folder + "/run.toml");
    for (const std::string& line : c.lines) EXPECT_THAT(config, HasSubstr("\n" + line + "\n"));
  }
}

TEST(DemoOptions, WhatKithdRefusesStopsTheDemoWithKithdsWords) {
  const std::string folder = demo_folder();
  const Finished run = demo(folder, {"--method", "moon-phase"});
  EXPECT_EQ(run.exit.code, 2);
  EXPECT_THAT(run.output, HasSubstr("moon-phase"));
  EXPECT_FALSE(fs::exists(folder + "/n1")) << "no node was started";
}

TEST(DemoOptions, WrongUseIsSaidWithExitTwoAndTouchesNothing) {
  const std::string folder = demo_folder();
  const Case wrong[] = {
      {{"--node", "3"}, {"unknown option '--node'"}},
      {{"3"}, {"unknown option '3'"}},
      {{"--nodes"}, {"--nodes needs a value"}},
      {{"--nodes", "0"}, {"from 1 to 32, not '0'"}},
      {{"--nodes", "33"}, {"from 1 to 32, not '33'"}},
      {{"--nodes", "four"}, {"not 'four'"}},
      {{"--seconds", "1.5"}, {"a number of seconds, not '1.5'"}},
      {{"--seconds", "-1"}, {"not '-1'"}},
      {{"--epochs", "0"}, {"a number from 1, not '0'"}},
      {{"--programs", "data"}, {"kithd and kith are not in"}},
  };
  for (const Case& c : wrong) {
    SCOPED_TRACE(testing::PrintToString(c.options));
    auto options = c.options;
    options.insert(options.begin(), "--check");
    const Finished run = demo(folder, options);
    EXPECT_EQ(run.exit.code, 2);
    EXPECT_THAT(run.output, AllOf(StartsWith("demo.sh: "), HasSubstr(c.lines[0]),
                                  HasSubstr("\n  ./demo.sh --nodes N ")));
    EXPECT_FALSE(fs::exists(folder));
  }
  const Finished help = demo(folder, {"--help"});
  EXPECT_EQ(help.exit.code, 0);
  EXPECT_THAT(help.output, AllOf(StartsWith("  ./demo.sh  "), HasSubstr("--check ")));
  for (const char* option : {"--build-only", "--nodes", "--method", "--epochs", "--seconds",
                             "--folder", "--programs", "--check"})
    EXPECT_THAT(help.output, HasSubstr(option));
}

TEST(DemoOptions, AFolderWithSomethingElseInItIsLeftAlone) {
  const std::string folder = demo_folder();
  fs::create_directories(folder);
  std::ofstream(folder + "/thesis.tex") << "years of work";
  const Finished run = demo(folder, {"--check"});
  EXPECT_EQ(run.exit.code, 2);
  EXPECT_THAT(run.output, HasSubstr(folder + " holds something else than a demo"));
  EXPECT_EQ(bytes_of(folder + "/thesis.tex"), "years of work");
}

TEST(DemoOptions, ALockBesideAFolderMakesItNoDemosFolder) {
  const std::string folder = demo_folder();
  fs::create_directories(folder);
  std::ofstream(folder + "/core.py") << "a package";
  std::ofstream(folder + ".lock") << "versions";
  const Finished run = demo(folder, {"--check"});
  EXPECT_EQ(run.exit.code, 2);
  EXPECT_THAT(run.output, HasSubstr(folder + " holds something else than a demo"));
  EXPECT_EQ(bytes_of(folder + "/core.py"), "a package");
  EXPECT_EQ(bytes_of(folder + ".lock"), "versions");
  fs::remove(folder + ".lock");
}

TEST(DemoOptions, AFileInPlaceOfTheFolderIsLeftAlone) {
  const std::string folder = demo_folder();
  std::ofstream(folder) << "a letter";
  EXPECT_EQ(demo(folder, {"--check"}).exit.code, 2);
  EXPECT_EQ(bytes_of(folder), "a letter");
}

TEST(DemoOptions, ADemosOwnFolderIsEmptiedAndOneOfItsOwnLocksNothingBeside) {
  const std::string folder = demo_folder();
  ASSERT_EQ(demo(folder, {"--check"}).exit.code, 0);
  std::ofstream(folder + "/.hidden") << "of the demo before";
  fs::create_directories(folder + "/n1/data");
  ASSERT_EQ(demo(folder, {"--check"}).exit.code, 0);
  EXPECT_FALSE(fs::exists(folder + "/.hidden"));
  EXPECT_FALSE(fs::exists(folder + "/n1/data"));
  EXPECT_FALSE(fs::exists(folder + ".lock"));
}

TEST(DemoOptions, ASecondDemoInTheSameFolderIsRefusedAndTouchesNothing) {
  const std::string folder = demo_folder();
  fs::create_directories(folder);
  std::ofstream(folder + "/run.toml") << "of the first";
  const int first = ::open((folder + "/.kith-demo").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(first, LOCK_EX | LOCK_NB), 0);
  const Finished second = demo(folder, {"--check"});
  EXPECT_EQ(second.exit.code, 1);
  EXPECT_EQ(second.output,
            "demo: another demo runs here (" + folder + " is its folder): end that one first\n");
  EXPECT_EQ(bytes_of(folder + "/run.toml"), "of the first");
  ::close(first);
  EXPECT_EQ(demo(folder, {"--check"}).exit.code, 0);
}

}  // namespace
}  // namespace kith::e2e
