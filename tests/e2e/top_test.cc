// `kith top` on a real terminal: in tmux, with four real nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kPatience = seconds(30);

// One tmux server of its own, which ends with this object.
class Tmux {
 public:
  Tmux(std::size_t width, std::size_t height, const std::string& command)
      : socket_("kith-test-" + std::to_string(::getpid()) + "-" + std::to_string(++servers_)) {
    run({"-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", std::to_string(width), "-y",
         std::to_string(height), command});
  }
  ~Tmux() { run({"kill-server"}); }
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  void keys(const std::vector<std::string>& names) {
    std::vector<std::string> arguments = {"send-keys", "-t", "t"};
    arguments.insert(arguments.end(), names.begin(), names.end());
    run(arguments);
  }
  void resize(std::size_t width, std::size_t height) {
    run({"resize-window", "-t", "t", "-x", std::to_string(width), "-y", std::to_string(height)});
  }
  std::string screen() { return run({"capture-pane", "-p", "-t", "t"}); }
  std::string ask(const std::string& format) {
    return run({"display-message", "-p", "-t", "t", "#{" + format + "}"});
  }
  // Until the screen shows (or no longer shows) this; prints the screen when the bound passes.
  bool shows(const std::string& text, bool wanted = true) {
    const bool seen =
        wait_until(kPatience, [&] { return (screen().find(text) != std::string::npos) == wanted; });
    if (!seen)
      ADD_FAILURE() << (wanted ? "never shown: " : "still shown: ") << text << "\n" << screen();
    return seen;
  }
  std::string line_of(const std::string& text) {
    std::istringstream lines(screen());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(text)) return line;
    return "";
  }

 private:
  std::string run(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {"/usr/bin/tmux", "-L", socket_};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_program(argv, seconds(20)).output;
  }
  static inline int servers_ = 0;  // an ended server may still hold its socket
  const std::string socket_;
};

bool has_tmux() { return ::access("/usr/bin/tmux", X_OK) == 0; }

// Runs kith top and then says how it ended and what the terminal is like.
std::string command_for(const std::string& at) {
  return "LC_ALL=C.UTF-8 " + kith_path() + " top --interval 0.3 --at " + at +
         "; echo ENDED $?; stty -a; exec cat";
}

void start_four(Cluster& cluster) {
  for (int i = 1; i <= 4; ++i)
    cluster.add(with({"run.epochs=0", "data.shard=" + std::to_string(i) + "/4"}));
  ASSERT_TRUE(cluster.wait(kPatience, "four members", [&] {
    for (std::size_t i = 0; i < 4; ++i)
      if (cluster[i].get("/members")["members"].size() != 4) return false;
    return true;
  }));
}

std::string slow_config() { return digits_config("linear", 7, "min_step_ms = 50\n"); }

void expect_restored(Tmux& tmux) {
  EXPECT_TRUE(tmux.shows("ENDED 0"));
  EXPECT_TRUE(tmux.shows(" icanon"));
  EXPECT_THAT(tmux.screen(), Not(HasSubstr("-icanon")));
  EXPECT_THAT(tmux.screen(), Not(HasSubstr("-echo ")));
  EXPECT_EQ(tmux.ask("alternate_on"), "0\n");
  EXPECT_EQ(tmux.ask("cursor_flag"), "1\n");
}

TEST(Top, ShowsTheClusterLiveThroughKeysResizesDeathsAndTheEndOfItsNode) {
  if (!has_tmux()) GTEST_SKIP() << "needs tmux";
  Cluster cluster(slow_config());
  start_four(cluster);
  Tmux tmux(150, 24, command_for(cluster[0].folder() + "/data"));
  ASSERT_TRUE(tmux.shows("4 alive"));
  EXPECT_TRUE(tmux.shows("told by 4 of 4"));
  ASSERT_TRUE(wait_until(kPatience, [&] {
    return tmux.line_of("n3 ").find("kB") != std::string::npos ||
           tmux.line_of("n3 ").find("MB") != std::string::npos;
  })) << tmux.screen();
  for (const char* name : {"n1 ", "n2 ", "n3 ", "n4 "})
    EXPECT_THAT(tmux.line_of(name), HasSubstr("training"));
  EXPECT_THAT(tmux.screen(), HasSubstr("STALE"));
  EXPECT_TRUE(wait_until(kPatience, [&] {
    return tmux.line_of("n2 ").find("▁") != std::string::npos;
  })) << tmux.screen();

  tmux.resize(60, 14);
  EXPECT_TRUE(tmux.shows("STALE", false));
  EXPECT_THAT(tmux.screen(), HasSubstr("LOSS"));
  tmux.resize(150, 24);
  EXPECT_TRUE(tmux.shows("STALE"));

  tmux.keys({"s"});
  EXPECT_TRUE(tmux.shows("sort: state"));
  tmux.keys({"h"});
  EXPECT_TRUE(tmux.shows("kith top: keys"));
  tmux.keys({"h", "p"});
  EXPECT_TRUE(tmux.shows("  paused"));
  tmux.keys({"p"});
  EXPECT_TRUE(tmux.shows("  paused", false));

  cluster[3].kill_now();
  EXPECT_TRUE(tmux.shows("1 dead"));
  EXPECT_THAT(tmux.line_of("n4 "), HasSubstr("dead"));

  cluster[0].kill_now();
  EXPECT_TRUE(tmux.shows("no answer since"));
  EXPECT_THAT(tmux.screen(), HasSubstr("n2 "));
  tmux.keys({"q"});
  expect_restored(tmux);
}

// The children of the shell in the window.
pid_t child_of(const std::string& pid) {
  pid_t child = 0;
  std::ifstream("/proc/" + pid + "/task/" + pid + "/children") >> child;
  return child;
}

TEST(Top, GivesTheTerminalBackOnSignals) {
  if (!has_tmux()) GTEST_SKIP() << "needs tmux";
  Cluster cluster(slow_config());
  cluster.add(with({"run.epochs=0"}));
  const std::string at = cluster[0].folder() + "/data";
  {
    Tmux tmux(100, 40, command_for(at));
    ASSERT_TRUE(tmux.shows("1 alive"));
    tmux.keys({"C-c"});
    expect_restored(tmux);
  }
  Tmux tmux(100, 40, command_for(at));
  ASSERT_TRUE(tmux.shows("1 alive"));
  std::string shell = tmux.ask("pane_pid");
  shell.erase(shell.find_last_not_of('\n') + 1);
  const pid_t top = child_of(shell);
  ASSERT_GT(top, 1);
  ::kill(top, SIGTERM);
  expect_restored(tmux);
}

TEST(Top, WithoutATerminalWritesALineOrAnObjectALook) {
  Cluster cluster(slow_config());
  cluster.add(with({"run.epochs=0"}));
  const std::string at = cluster[0].folder() + "/data";
  const Finished lines = run_program(
      {"/bin/sh", "-c", kith_path() + " top --interval 0.2 --at " + at + " | head -n 3"});
  EXPECT_EQ(std::ranges::count(lines.output, '\n'), 3) << lines.output;
  EXPECT_THAT(lines.output, HasSubstr("1 alive 0 suspect 0 dead"));
  EXPECT_THAT(lines.output, Not(HasSubstr("\x1b")));
  const Finished objects = run_program(
      {"/bin/sh", "-c", kith_path() + " top -o json --interval 0.2 --at " + at + " | head -n 2"});
  std::istringstream stream(objects.output);
  std::size_t count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object["members"][0]["name"], "n1");
  }
  EXPECT_EQ(count, 2U);
}

}  // namespace
}  // namespace kith::e2e
