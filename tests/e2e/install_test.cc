// What `cmake --install` puts where, and that completion, man pages and unit say what the programs
// do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Install : public testing::Test {
 protected:
  // Once for all tests: nothing changes it.
  static void SetUpTestSuite() {
    prefix_ = std::string(KITH_BINARY_DIR) + "/e2e/installed";
    fs::remove_all(prefix_);
    const Finished run =
        run_program({"/usr/bin/cmake", "--install", KITH_BINARY_DIR, "--prefix", prefix_});
    ASSERT_EQ(run.exit.code, 0) << run.output;
  }
  static std::string shell(const std::string& script, const char* program = "/bin/bash") {
    return run_program({program, "-c", script}).output;
  }
  static std::string file(const std::string& path) { return prefix_ + "/" + path; }
  static inline std::string prefix_;
};

// Long options in a program's help, and the commands of kith's.
std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> options;
  const std::regex pattern("(?:^|\\n) +(?:-\\w,)?(--[a-z-]+)");
  for (std::sregex_iterator at(help.begin(), help.end(), pattern), end; at != end; ++at)
    options.push_back((*at)[1]);
  return options;
}
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:"))));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with("  "))
    if (line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  return commands;
}

TEST_F(Install, PutsProgramsPagesCompletionAndUnitInTheirPlaces) {
  for (const char* path :
       {"bin/kithd", "bin/kith", "share/man/man1/kith.1", "share/man/man8/kithd.8",
        "share/man/man5/kith.toml.5", "share/bash-completion/completions/kith",
        "share/bash-completion/completions/kithd", "share/zsh/site-functions/_kith",
        "lib/systemd/system/kithd@.service"})
    EXPECT_TRUE(fs::is_regular_file(file(path))) << path;
  EXPECT_THAT(run_program({file("bin/kith"), "--version"}).output, HasSubstr("git "));
}

TEST_F(Install, CompletesEveryCommandAndOptionThatHelpNames) {
  const std::string start =
      "source " + file("share/bash-completion/completions/kith") +
      "; try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _$1; echo \" ${COMPREPLY[*]} \"; }; ";
  const std::string help = run_program({kith_path(), "--help"}).output;
  const auto commands = commands_in(help);
  ASSERT_GT(commands.size(), 10U) << help;
  const std::string first = shell(start + "try kith ''");
  for (const std::string& command : commands) {
    EXPECT_THAT(first, HasSubstr(" " + command + " "));
    const std::string of_command = shell(start + "try kith " + command + " --");
    const auto options = options_in(run_program({kith_path(), command, "--help"}).output);
    EXPECT_FALSE(options.empty()) << command;
    for (const std::string& option : options)
      EXPECT_THAT(of_command, HasSubstr(" " + option + " ")) << command;
  }
  const std::string kithd = shell(start + "try kithd --");
  for (const std::string& option : options_in(run_program({kithd_path(), "--help"}).output))
    EXPECT_THAT(kithd, HasSubstr(" " + option + " "));
  EXPECT_THAT(shell(start + "try kith -o ''"), HasSubstr(" table json "));
  EXPECT_THAT(shell(start + "try kithd --set train.mom"), HasSubstr(" train.momentum= "));
  EXPECT_THAT(shell(start + "try kith checkpoint export -o /etc/passw"), HasSubstr("/etc/passwd"));
}

TEST_F(Install, HasAZshScriptThatZshReads) {
  if (::access("/bin/zsh", X_OK) != 0) GTEST_SKIP() << "needs zsh";
  EXPECT_EQ(shell("zsh -n " + file("share/zsh/site-functions/_kith")), "");
  // Loaded as compinit would, with its builtins stood in for: the words that it offers.
  const std::string script =
      "compadd() { print -- ${@[2,-1]}; }; _describe() { print -l -- ${(P)${@[-1]}}; }; _files() { "
      "print FILES; }; "
      "source <(sed '/^case \"\\$service\"/,$d' " +
      file("share/zsh/site-functions/_kith") + "); ";
  EXPECT_THAT(shell(script + "words=(kith ''); CURRENT=2; _kith", "/bin/zsh"),
              HasSubstr("checkpoint:write, export"));
  EXPECT_THAT(shell(script + "words=(kith checkpoint ''); CURRENT=3; _kith", "/bin/zsh"),
              HasSubstr("export:parameters"));
  EXPECT_THAT(shell(script + "words=(kith top --sort ''); CURRENT=4; _kith", "/bin/zsh"),
              HasSubstr("name state step"));
}

TEST_F(Install, HasManPagesWithoutWarningsThatNameEveryCommandOptionAndKey) {
  if (::access("/usr/bin/man", X_OK) != 0) GTEST_SKIP() << "needs man-db";
  const auto page = [&](const std::string& path) {
    const std::string warnings =
        shell("MANROFFOPT=-ww man --warnings -E UTF-8 -l " + file(path) + " 2>&1 > /dev/null");
    EXPECT_EQ(warnings, "") << path;
    return shell("MANWIDTH=200 man -l " + file(path) + " | col -b");
  };
  const std::string kith = page("share/man/man1/kith.1"), kithd = page("share/man/man8/kithd.8"),
                    keys = page("share/man/man5/kith.toml.5");
  for (const std::string& command : commands_in(run_program({kith_path(), "--help"}).output))
    EXPECT_THAT(kith, HasSubstr(command));
  for (const std::string& option : options_in(run_program({kithd_path(), "--help"}).output))
    EXPECT_THAT(kithd, HasSubstr(option));
  const auto all =
      nlohmann::json::parse(run_program({kith_path(), "config", "keys", "-o", "json"}).output);
  for (const auto& key : all) {
    const std::string name = key["key"];
    EXPECT_THAT(keys, HasSubstr(" " + name.substr(name.find('.') + 1))) << name;
  }
}

TEST_F(Install, HasAUnitThatSystemdTakesAndCallsSafe) {
  if (::access("/usr/bin/systemd-analyze", X_OK) != 0) GTEST_SKIP() << "needs systemd-analyze";
  // An instance, since a template alone cannot be verified.
  const std::string unit = file("kithd@a.service");
  fs::copy_file(file("lib/systemd/system/kithd@.service"), unit,
                fs::copy_options::overwrite_existing);
  const Finished verified = run_program({"/usr/bin/systemd-analyze", "verify", "--man=no", unit});
  EXPECT_EQ(verified.exit.code, 0) << verified.output;
  EXPECT_THAT(verified.output, Not(HasSubstr("kithd@"))) << "every warning names the unit";
  const Finished security =
      run_program({"/usr/bin/systemd-analyze", "security", "--offline=true", "--no-pager", unit});
  std::smatch level;
  ASSERT_TRUE(
      std::regex_search(security.output, level, std::regex("exposure level for [^:]*: ([0-9.]+)")))
      << security.output;
  EXPECT_LE(std::stod(level[1]), 2.5) << security.output;
}

}  // namespace
}  // namespace kith::e2e
