// What `kith top` makes of the answers, and how it draws it; the terminal itself is in tests/e2e.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <sstream>
#include <thread>

#include "node/cli/cli.h"
#include "node/cli/terminal.h"
#include "node/cli/top_model.h"
#include "node/cli/top_view.h"
#include "node/text/text.h"
#include "tests/node/fake_daemon.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;
using testing::Not;

TopMember member(const std::string& name, const std::string& state = "alive") {
  TopMember m;
  m.id = "id-" + name;
  m.name = name;
  m.state = state;
  m.run_state = "training";
  m.step = 10;
  m.samples = 320;
  m.loss = 0.5;
  m.steps_per_second = 12.5;
  m.rtt_ms = 0.25;
  return m;
}

TopNode told(const std::string& name, double bytes, double exchanges) {
  TopNode node;
  node.id = "id-" + name;
  node.name = name;
  node.state = "training";
  node.bytes_in = node.bytes_out = bytes;
  node.exchanges = exchanges;
  node.staleness = 1;
  return node;
}

TopSample sample(double at, double samples, double bytes) {
  TopSample s;
  s.at_seconds = at;
  s.self = told("a", bytes, bytes / 100);
  s.self.run = "digits";
  s.self.epoch = 1.5;
  s.self.progress = 300;
  s.self.length_samples = 1200;
  s.members = {member("a"), member("b")};
  for (TopMember& m : s.members) m.samples = samples;
  s.told["id-a"] = s.self;
  return s;
}

TEST(TopModel, MakesRatesFromDifferencesAndOnlyForWhoTold) {
  TopModel model;
  model.take(sample(10, 1000, 5000));
  EXPECT_TRUE(std::isnan(model.frame().rows[0].samples_per_second)) << "one look has no rate";
  model.take(sample(12, 1400, 9000));
  const TopFrame& frame = model.frame();
  EXPECT_DOUBLE_EQ(frame.rows[0].samples_per_second, 200);
  EXPECT_DOUBLE_EQ(frame.rows[0].bytes_in_per_second, 2000);
  EXPECT_DOUBLE_EQ(frame.rows[0].exchanges_per_second, 20);
  EXPECT_TRUE(frame.rows[0].told);
  EXPECT_DOUBLE_EQ(frame.rows[1].samples_per_second, 200);
  EXPECT_TRUE(std::isnan(frame.rows[1].bytes_in_per_second));
  EXPECT_FALSE(frame.rows[1].told);
  EXPECT_EQ(frame.told, 1U);
  EXPECT_DOUBLE_EQ(frame.samples_per_second, 400);
  EXPECT_DOUBLE_EQ(*frame.fraction(), 0.25);
  EXPECT_DOUBLE_EQ(*frame.seconds_left(), 900.0 / 400);
}

TEST(TopModel, StartsAnewWhenACounterFallsAndNeverShowsANegativeRate) {
  TopModel model;
  model.take(sample(10, 1000, 5000));
  model.take(sample(11, 1100, 6000));
  model.take(sample(12, 50, 100));  // another process
  EXPECT_TRUE(std::isnan(model.frame().rows[0].samples_per_second));
  EXPECT_TRUE(std::isnan(model.frame().rows[0].bytes_in_per_second));
  model.take(sample(13, 150, 300));
  EXPECT_DOUBLE_EQ(model.frame().rows[0].samples_per_second, 100);
  EXPECT_DOUBLE_EQ(model.frame().rows[0].bytes_in_per_second, 200);
}

TEST(TopModel, KeepsTheCourseOfALossAndForgetsWhoIsGone) {
  TopModel model;
  for (int i = 0; i < 100; ++i) {
    TopSample s = sample(i, i, i);
    for (TopMember& m : s.members) {
      m.step = i;
      m.loss = 100 - i;
    }
    model.take(s);
  }
  ASSERT_EQ(model.frame().rows[1].losses.size(), TopModel::kLossesMax);
  EXPECT_DOUBLE_EQ(model.frame().rows[1].losses.back(), 1);
  TopSample without = sample(101, 101, 101);
  without.members.pop_back();
  model.take(without);
  model.take(sample(102, 102, 102));
  EXPECT_EQ(model.frame().rows[1].losses.size(), 1U);
}

TEST(TopModel, ShowsNoSpeedNoLagAndNoRoundTripOfTheDead) {
  TopModel model;
  TopSample s = sample(1, 1, 1);
  s.members[1].state = "dead";
  s.members[1].lag = 70000;  // as a node of an earlier release tells it
  model.take(s);
  EXPECT_TRUE(std::isnan(model.frame().rows[1].member.steps_per_second));
  EXPECT_TRUE(std::isnan(model.frame().rows[1].member.lag));
  EXPECT_TRUE(std::isnan(model.frame().rows[1].member.rtt_ms));
  EXPECT_DOUBLE_EQ(model.frame().steps_per_second, 12.5);
  EXPECT_EQ(model.frame().count.at("dead"), 1U);
}

TEST(TopModel, RefusesWhatIsNoAnswerOfAKithd) {
  EXPECT_FALSE(read_top_node("<html>"));
  EXPECT_FALSE(read_top_node("{}"));
  EXPECT_FALSE(read_top_members("{\"members\": 7}"));
  const auto strange =
      read_top_members("{\"members\": [7, {\"name\": 3, \"step\": \"x\", \"loss\": null}]}");
  ASSERT_TRUE(strange);
  ASSERT_EQ(strange->size(), 1U);
  EXPECT_TRUE(std::isnan((*strange)[0].step));
}

TopFrame frame_of(std::size_t count) {
  TopModel model;
  for (int i = 0; i < 3; ++i) {
    TopSample s = sample(i, 100 * i, 1000 * i);
    s.members.clear();
    for (std::size_t k = 0; k < count; ++k) {
      TopMember m = member("node-" + std::to_string(1000 + k), k % 7 == 3 ? "dead" : "alive");
      m.step = static_cast<double>(i + k);
      m.loss = 1.0 / (i + 1.0);
      s.members.push_back(m);
    }
    model.take(s);
  }
  return model.frame();
}

TEST(TopView, NeverExceedsTheScreenWhateverItsSize) {
  const TopFrame frame = frame_of(200);
  for (const bool help : {false, true})
    for (std::size_t width = 1; width < 220; width += 3)
      for (const std::size_t height : {1, 2, 5, 8, 24, 70}) {
        TopOptions options;
        options.width = width;
        options.height = height;
        options.help = help;
        const auto lines = draw_top(frame, options);
        EXPECT_LE(lines.size(), height);
        for (const std::string& line : lines) EXPECT_LE(shown_width(line), width) << line;
      }
}

std::string screen(const TopFrame& frame, const TopOptions& options) {
  std::string text;
  for (const std::string& line : draw_top(frame, options)) text += line + "\n";
  return text;
}

TEST(TopView, DropsTheLeastNeededColumnsFirst) {
  TopOptions options;
  options.width = 160;
  EXPECT_THAT(screen(frame_of(4), options), HasSubstr("LAG"));
  options.width = 60;
  const std::string narrow = screen(frame_of(4), options);
  for (const char* gone : {"LAG", "STALE", "SAMPLE/S", "ACCURACY", "RTT-MS"})
    EXPECT_THAT(narrow, Not(HasSubstr(gone)));
  for (const char* kept : {"NAME", "STATE", "STEP/S", "LOSS OVER TIME"})
    EXPECT_THAT(narrow, HasSubstr(kept));
}

TEST(TopView, HeaderFitsEightyColumnsAndLeavesOutWhatDoesNotFitWhole) {
  TopModel model;
  TopSample s = sample(0, 0, 0);
  s.self.cluster = "demo";
  s.self.consensus = 0.015;
  model.take(s);
  s.at_seconds = 1;
  for (TopMember& m : s.members) m.samples = 3987;
  model.take(s);
  TopOptions options;
  options.colour = false;
  options.time = "03:18:41";
  options.where = "run/a";
  options.width = 1000;
  const auto whole = draw_top(model.frame(), options);
  options.width = 80;
  auto lines = draw_top(model.frame(), options);
  ASSERT_GT(lines.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(lines[i], whole[i]);
  EXPECT_EQ(lines[0], "kith top  03:18:41  run digits  cluster demo  seen from a  at run/a");
  EXPECT_EQ(lines[2],
            "members 2 alive  0 suspect  0 dead  0 left   all 25.0 steps/s  7974 samples/s");
  EXPECT_THAT(lines[4], testing::EndsWith("told by 1 of 2 themselves  the rest by gossip"));
  options.where = std::string(60, 'x');
  EXPECT_EQ(draw_top(model.frame(), options)[0],
            "kith top  03:18:41  run digits  cluster demo  seen from a");
}

TEST(TopView, ShowsOnlyAsManyRowsAsFitAndScrollsToTheLast) {
  TopOptions options;
  options.height = 18;
  const std::string first = screen(frame_of(200), options);
  EXPECT_THAT(first, HasSubstr("node-1000 "));
  EXPECT_THAT(first, Not(HasSubstr("node-1010 ")));
  EXPECT_THAT(first, HasSubstr("rows 1-10 of 200"));
  options.offset = 100000;
  EXPECT_THAT(screen(frame_of(200), options), HasSubstr("rows 191-200 of 200"));
}

TEST(TopView, WithoutColourHasNoSequencesAndWithoutUnicodeIsAscii) {
  TopOptions options;
  options.colour = options.unicode = false;
  options.width = 200;
  const std::string text = screen(frame_of(4), options);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }))
      << text;
  options.colour = true;
  EXPECT_THAT(screen(frame_of(4), options), HasSubstr("\x1b[31m"));
}

TEST(TopView, SaysThatTheNodeDoesNotAnswerAboveTheLastKnownTable) {
  TopOptions options;
  options.trouble = "no answer since 12:00:00";
  const std::string text = screen(frame_of(4), options);
  EXPECT_THAT(text, HasSubstr("no answer since 12:00:00"));
  EXPECT_THAT(text, HasSubstr("node-1000"));
}

TEST(TopView, SortsByEveryKeyWithUnknownValuesLast) {
  std::vector<TopRow> rows(3);
  rows[0].member = member("b");
  rows[1].member = member("a", "dead");
  rows[2].member = member("c");
  rows[0].member.loss = 0.1;
  rows[1].member.loss = kUnknown;
  rows[2].member.loss = 0.9;
  const auto names = [&](TopSort sort, bool reverse) {
    std::string text;
    for (const TopRow& row : sorted(rows, sort, reverse)) text += row.member.name;
    return text;
  };
  EXPECT_EQ(names(TopSort::kName, false), "abc");
  EXPECT_EQ(names(TopSort::kName, true), "cba");
  EXPECT_EQ(names(TopSort::kLoss, false), "cba");
  EXPECT_EQ(names(TopSort::kState, false), "abc");
}

TEST(TopView, DrawsALossAsALine) {
  EXPECT_EQ(sparkline({}, 5, true), "");
  EXPECT_EQ(sparkline({1, 1, 1}, 5, false), "___");
  EXPECT_EQ(sparkline({9, 8, 7, 0}, 2, false), "#_");
  EXPECT_EQ(sparkline({0, 1}, 5, true), "▁█");
}

TEST(TopView, WritesBytesForPeople) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999.4), "999 B");
  EXPECT_EQ(bytes_text(1234), "1.2 kB");
  EXPECT_EQ(bytes_text(2.5e9), "2.5 GB");
  EXPECT_EQ(bytes_text(kUnknown), "-");
}

TEST(Keys, AreReadFromWhatTerminalsSend) {
  const auto keys = parse_keys("q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[12~\x1b");
  ASSERT_EQ(keys.size(), 7U);
  EXPECT_EQ(keys[0].character, 'q');
  EXPECT_EQ(keys[1].key, Key::kUp);
  EXPECT_EQ(keys[2].key, Key::kDown);
  EXPECT_EQ(keys[3].key, Key::kPageUp);
  EXPECT_EQ(keys[4].key, Key::kPageDown);
  EXPECT_EQ(keys[5].key, Key::kHome);
  EXPECT_EQ(keys[6].key, Key::kEnd);
}

TEST(ScreenText, EmptiesALineBeforeItIsWrittenSoThatAFullOneKeepsItsLastCharacter) {
  EXPECT_EQ(screen_text({"ab", "", "c"}), "\x1b[H\x1b[Kab\r\n\x1b[K\r\n\x1b[Jc");
}

class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::pipe2(ends_, O_NONBLOCK | O_CLOEXEC), 0);
    const std::string block(4096, 'x');
    while (::write(ends_[1], block.data(), block.size()) > 0) {
    }
  }
  ~FullPipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  [[nodiscard]] int writer() const { return ends_[1]; }
  // Everything up to `last`.
  void read_until(char last) const {
    char got = 0;
    while (got != last) {
      pollfd item{ends_[0], POLLIN, 0};
      if (::poll(&item, 1, -1) == 1 && ::read(ends_[0], &got, 1) < 0) return;
    }
  }

 private:
  int ends_[2] = {-1, -1};
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(WritePatiently, SleepsUntilThereIsRoomAndGivesUpOnWhoTakesNothing) {
  const FullPipe pipe;
  const double before = cpu_seconds();
  EXPECT_FALSE(write_patiently(pipe.writer(), "lost", std::chrono::milliseconds(500)));
  EXPECT_LT(cpu_seconds() - before, 0.1) << "it waited without sleeping";
  std::thread reader([&] { pipe.read_until('.'); });
  EXPECT_TRUE(
      write_patiently(pipe.writer(), std::string(1 << 20, 'y') + ".", std::chrono::minutes(1)));
  reader.join();
}

TEST(TopCommand, OnceShowsATableWithoutWhatATerminalWouldObey) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  daemon.status = R"({"name": "a", "id": "0011", "run": "r", "state": "training", "epoch": 0.5})";
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"top", "--once", "--interval", "0.1", "--at", folder.path()}, {}, out, err), 0)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr("evil\\x1b[2J"));
  EXPECT_THAT(out.str(), HasSubstr("1 dead"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
}

TEST(TopCommand, WithoutADaemonExitsWithThreeAndWithANonsenseIntervalWithTwo) {
  const ScratchFolder folder;
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"top", "--at", folder.path()}, {}, out, err), 3);
  EXPECT_EQ(run_cli({"top", "--interval", "0", "--at", folder.path()}, {}, out, err), 2);
  EXPECT_EQ(run_cli({"top", "--sort", "size", "--at", folder.path()}, {}, out, err), 2);
}

}  // namespace
}  // namespace kith::node
