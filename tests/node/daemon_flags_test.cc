#include "node/config/daemon_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/config/cli_help.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;

Result<ParsedFlags> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kithd");
  return parse_kithd_flags(static_cast<int>(arguments.size()), arguments.data());
}

TEST(DaemonFlags, GiveTheShortcutsTheirKeys) {
  const auto flags = parse({"-c", "run.toml", "--name", "a", "--listen", "127.0.0.1:1", "--http",
                            "127.0.0.1:9", "--data-dir", "d", "--join", "x:1,y:2", "--log-format",
                            "json", "--log-level", "debug"});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_EQ(flags->file, "run.toml");
  ASSERT_EQ(flags->flags.size(), 7U);
  const auto config = load_config("", flags->flags, {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->node.name, "a");
  EXPECT_EQ(config->node.listen, "127.0.0.1:1");
  EXPECT_EQ(config->cluster.join, (std::vector<std::string>{"x:1", "y:2"}));
  EXPECT_EQ(config->log.format, "json");
}

TEST(DaemonFlags, TheLastOfTwoCountsWhicheverWayItIsWritten) {
  const auto name_of = [](const Result<ParsedFlags>& flags) {
    return load_config("", flags->flags, {})->node.name;
  };
  EXPECT_EQ(name_of(parse({"--name", "a", "--name", "b"})), "b");
  EXPECT_EQ(name_of(parse({"--name", "a", "--set", "node.name=c"})), "c");
  EXPECT_EQ(name_of(parse({"--set", "node.name=c", "--name", "a"})), "a");
  EXPECT_EQ(name_of(parse({"--set", "node.name=c", "--set", "node.name=d"})), "d");
  EXPECT_EQ(parse({"-c", "a", "-c", "b"})->file, "b");
}

TEST(DaemonFlags, SettingsKeepBracketsCommasAndEqualSigns) {
  const auto flags = parse({"--set", "model.hidden=[1, 2]", "--set", "run.id=a=b", "--join", ""});
  ASSERT_TRUE(flags) << flags.error().message;
  ASSERT_EQ(flags->flags.size(), 3U);
  EXPECT_EQ(flags->flags[0].value, "[1, 2]");
  EXPECT_EQ(flags->flags[1].value, "a=b");
  EXPECT_EQ(flags->flags[2].value, "");
}

TEST(DaemonFlags, SwitchesAndTimeoutEnterTheConfig) {
  const auto flags =
      parse({"--standalone", "--bootstrap", "--insecure", "--check", "--join-timeout", "1.5s"});
  ASSERT_TRUE(flags) << flags.error().message;
  const auto config = config_from_flags(*flags, {});
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->standalone && config->bootstrap && config->insecure && config->check_only);
  EXPECT_EQ(config->join_timeout, std::chrono::milliseconds(1500));
}

TEST(DaemonFlags, ErrorsAreUsageAndNameTheFlag) {
  struct Case {
    std::vector<const char*> arguments;
    const char* word;
  };
  const Case cases[] = {{{"--nmae", "a"}, "--nmae"},
                        {{"--name"}, "--name"},
                        {{"stray"}, "stray"},
                        {{"--set", "x"}, "table.key=value"},
                        {{"--set", "=3"}, "table.key=value"},
                        {{"--join-timeout", "soon"}, "--join-timeout"},
                        {{"--join-timeout", "5"}, "30s"}};
  for (const Case& c : cases) {
    const auto flags = parse(c.arguments);
    ASSERT_FALSE(flags) << c.word;
    EXPECT_EQ(exit_code(flags.error().code), 2);
    EXPECT_THAT(flags.error().message, HasSubstr(c.word));
  }
}

TEST(DaemonFlags, HelpAndVersionAnswerAtOnce) {
  EXPECT_THAT(parse({"--help"})->answer, HasSubstr("train.momentum"));
  EXPECT_THAT(parse({"--help", "--join-timeout", "never"})->answer, HasSubstr("--data-dir"));
  EXPECT_THAT(parse({"--version"})->answer, HasSubstr("kithd 0."));
  EXPECT_THAT(parse({"--version"})->answer, HasSubstr("git "));
}

TEST(ManPage, NamesAnOptionsValueWhole) {
  const std::string page = kithd_page(kithd_help());
  for (const char* option :
       {"listen\\fR \\fIHOST:PORT\\fR", "http\\fR \\fIHOST:PORT\\fR", "join\\fR \\fIADDR,...\\fR",
        "set\\fR \\fITABLE.KEY=VALUE\\fR", "config\\fR \\fIFILE\\fR"})
    EXPECT_THAT(page, HasSubstr(option));
}

TEST(Check, ReportsADigestOfWhatCountsOnly) {
  const ScratchFolder folder;
  const std::string data = folder.write("d.csv", "1,0\n");
  const auto report = [&](const std::string& toml) {
    const auto config = load_config(
        folder.write("run.toml", "[data]\nformat = \"csv\"\ntrain = \"d.csv\"\n" + toml), {}, {});
    return config ? check_report(*config).value_or("") : config.error().message;
  };
  EXPECT_THAT(report(""), HasSubstr("run.toml is valid (digest "));
  EXPECT_EQ(report(""), report("# a comment\n"));
  EXPECT_NE(report(""), report("[run]\nseed = 9\n"));
}

}  // namespace
}  // namespace kith::node
