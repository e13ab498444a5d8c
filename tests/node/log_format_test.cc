#include "node/config/log_format.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kTime = 1714996984.512;  // 2024-05-06T12:03:04.512Z

TEST(LogLine, TextIsForPeople) {
  EXPECT_EQ(format_log_line(LogFormat::kText, kTime, LogLevel::kWarn, "join", "seed refused",
                            {{"seed", "a:1"}, {"why", "not now"}}),
            "12:03:04.512 warn  join       seed refused  seed=a:1  why=\"not now\"");
}

TEST(LogLine, LogfmtHasTheUsualKeys) {
  EXPECT_EQ(format_log_line(LogFormat::kLogfmt, kTime, LogLevel::kInfo, "join", "joined",
                            {{"members", "4"}}),
            "ts=2024-05-06T12:03:04.512Z level=info component=join msg=joined members=4");
}

TEST(LogLine, JsonIsJson) {
  const auto json = nlohmann::json::parse(format_log_line(LogFormat::kJson, kTime, LogLevel::kError,
                                                          "store", "a \"b\"\n", {{"k", "\xff"}}));
  EXPECT_EQ(json["ts"], "2024-05-06T12:03:04.512Z");
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["component"], "store");
  EXPECT_EQ(json["msg"], "a \"b\"\n");
}

TEST(LogLine, NoValueCanForgeALineOrObeyATerminal) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kLogfmt, LogFormat::kJson}) {
    const std::string line =
        format_log_line(format, kTime, LogLevel::kInfo, "c\n", "m\nx",
                        {{"k\n", "v\nlevel=error \x1b[2J"}, {"name", "\xc2\x9b"}});
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    if (format != LogFormat::kJson) {
      EXPECT_THAT(line, Not(HasSubstr("\xc2\x9b")));
    }
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  }
}

TEST(LogLine, PercentSignsAreText) {
  EXPECT_THAT(format_log_line(LogFormat::kText, kTime, LogLevel::kInfo, "c", "100%d %v {}", {}),
              HasSubstr("100%d %v {}"));
}

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
}

TEST(FormatLogTest, LevelsBelowTheChosenOneAreNotWritten) {
  const ScratchFolder folder;
  const int fd = open_file(folder.file("log"));
  FormatLog log({LogFormat::kLogfmt, LogLevel::kWarn, fd, false});
  log.log(LogLevel::kInfo, "a", "quiet");
  log.log(LogLevel::kError, "a", "loud");
  ::close(fd);
  EXPECT_THAT(read_whole(folder.file("log")), HasSubstr("loud"));
  EXPECT_THAT(read_whole(folder.file("log")), Not(HasSubstr("quiet")));
}

TEST(FormatLogTest, LinesOfManyThreadsDoNotMix) {
  const ScratchFolder folder;
  const int fd = open_file(folder.file("log"));
  {
    FormatLog log({LogFormat::kJson, LogLevel::kInfo, fd, false});
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&log] {
        for (int i = 0; i < 200; ++i)
          log.log(LogLevel::kInfo, "t", "line", {{"i", std::to_string(i)}});
      });
  }
  ::close(fd);
  std::istringstream lines(read_whole(folder.file("log")));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(count, 800);
}

TEST(FormatLogTest, AClosedDescriptorOnlyCounts) {
  const ScratchFolder folder;
  const int fd = open_file(folder.file("log"));
  FormatLog log({LogFormat::kText, LogLevel::kInfo, fd, false});
  ::close(fd);
  log.log(LogLevel::kInfo, "a", "b");
  EXPECT_EQ(log.lost(), 1U);
}

TEST(FormatLogTest, APipeWithoutReaderRaisesNoSignal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  FormatLog log({LogFormat::kText, LogLevel::kInfo, ends[1], false});
  log.log(LogLevel::kInfo, "a", "b");  // SIGPIPE would end this test
  EXPECT_EQ(log.lost(), 1U);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  ::close(ends[1]);
}

TEST(FormatLogTest, AFullPipeDropsLinesAndSaysSoLater) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FormatLog log({LogFormat::kLogfmt, LogLevel::kInfo, ends[1], false});
  const std::string filler(2000, 'x');
  for (int i = 0; i < 100 && log.lost() < 3; ++i)
    log.log(LogLevel::kInfo, "a", filler);  // would block for ever
  EXPECT_EQ(log.lost(), 3U);
  std::string out(1 << 20, '\0');
  out.resize(static_cast<std::size_t>(::read(ends[0], out.data(), out.size())));
  log.log(LogLevel::kInfo, "a", "again");
  out.resize(1 << 20);
  out.resize(static_cast<std::size_t>(::read(ends[0], out.data(), out.size())));
  EXPECT_THAT(out, HasSubstr("lines were lost\" count=3"));
  EXPECT_THAT(out, HasSubstr("msg=again"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(FormatLogTest, ALongLineIsCutAndStaysValid) {
  const ScratchFolder folder;
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string path = folder.file(format == LogFormat::kJson ? "json" : "text");
    const int fd = open_file(path);
    FormatLog log({format, LogLevel::kInfo, fd, false});
    log.log(LogLevel::kInfo, "a", std::string(100000, 'x'), {{"k", std::string(100000, 'y')}});
    ::close(fd);
    const std::string line = read_whole(path);
    EXPECT_LE(line.size(), 4096U);
    EXPECT_EQ(line.back(), '\n');
    EXPECT_EQ(log.lost(), 0U);
    EXPECT_TRUE(format != LogFormat::kJson || nlohmann::json::accept(line));
  }
}

TEST(FormatLogTest, ColourOnlyWhenAsked) {
  const ScratchFolder folder;
  const int fd = open_file(folder.file("log"));
  FormatLog log({LogFormat::kText, LogLevel::kInfo, fd, true});
  log.log(LogLevel::kError, "a", "b");
  ::close(fd);
  EXPECT_THAT(read_whole(folder.file("log")), HasSubstr("\x1b[31merror\x1b[0m"));
  EXPECT_FALSE(log_settings(LogFormat::kText, LogLevel::kInfo, fd).colour);  // not a terminal
}

}  // namespace
}  // namespace kith::node
