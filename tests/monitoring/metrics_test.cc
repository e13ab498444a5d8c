#include "monitoring/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>

#include "base/clock.h"
#include "tests/monitoring/exposition_check.h"

namespace kith::monitoring {
namespace {

using ::testing::IsEmpty;
using testing::parse_exposition;
using testing::Scrape;

MemberSnapshot peer(const std::string& name, const std::string& id,
                    const std::string& state = "alive") {
  return {name, id, state, 0.0015, 1.7e9};
}

NodeSnapshot training_node() {
  NodeSnapshot s;
  s.name = "a", s.id = "aa11", s.run = "digits-1", s.model_hash = "beef", s.version = "0.1.0";
  s.steps = 120, s.samples = 3840, s.flops = 2.5e11, s.loss = 0.25, s.learning_rate = 0.05, s.grad_norm = 1.5;
  s.phase_seconds = {0.5, 1, 2, 0.25, 0.125, 0.0625};
  s.local = {0.3, 0.9125};
  s.progress_samples = 15000, s.progress_epochs = 1.7;
  s.exchanges_initiator = 40, s.exchanges_responder = 38;
  s.failures = {{"initiator", "busy", 2}, {"initiator", "timeout", 1}, {"initiator", "busy", 3}};
  s.payload_bytes_sent = 1 << 20, s.control_bytes_sent = 900, s.bulk_bytes_received = 2 << 20;
  s.consensus_distance = 0.5, s.consensus_distance_relative = 0.001;
  s.members = {peer("a", "aa11"), peer("b", "bb22"), peer("c", "cc33", "suspect")};
  s.checkpoint_timestamp_seconds = 1.7e9, s.checkpoints = 3;
  return s;
}

class MetricsTest : public ::testing::Test {
 protected:
  Scrape scrape(const NodeSnapshot& s) {
    Scrape out = parse_exposition(metrics_.render(s));
    EXPECT_THAT(out.problems, IsEmpty());
    return out;
  }

  ManualClock clock_;
  Metrics metrics_{clock_};
};

TEST_F(MetricsTest, SaysWhatTheSnapshotSays) {
  metrics_.observe_step(0.05);
  metrics_.observe_exchange(0.02, 3);
  const Scrape out = scrape(training_node());
  EXPECT_EQ(out.value("kith_train_steps_total"), 120);
  EXPECT_EQ(out.value("kith_train_loss"), 0.25);
  EXPECT_EQ(out.value("kith_train_step_phase_seconds_total{phase=\"merge\"}"), 0.125);
  EXPECT_EQ(out.value("kith_train_step_phase_seconds_total{phase=\"wait\"}"), 0.0625);
  EXPECT_EQ(out.value("kith_eval_accuracy_ratio{params=\"local\"}"), 0.9125);
  EXPECT_EQ(out.value("kith_exchanges_total{role=\"initiator\"}"), 40);
  EXPECT_EQ(out.value("kith_exchanges_total{role=\"responder\"}"), 38);
  EXPECT_EQ(out.value("kith_network_bytes_total{direction=\"sent\",kind=\"control\"}"), 900);
  EXPECT_EQ(out.value("kith_network_bytes_total{direction=\"received\",kind=\"bulk\"}"), 2 << 20);
  EXPECT_EQ(out.value("kith_exchange_payload_bytes_total{direction=\"sent\"}"), 1 << 20);
  EXPECT_EQ(out.value("kith_members{state=\"alive\"}"), 2);
  EXPECT_EQ(out.value("kith_members{state=\"suspect\"}"), 1);
  EXPECT_EQ(out.value("kith_members{state=\"dead\"}"), 0);
  EXPECT_EQ(out.value("kith_peer_rtt_seconds{id=\"bb22\",source=\"a\",target=\"b\"}"), 0.0015);
  EXPECT_EQ(out.value("kith_consensus_distance_relative"), 0.001);
  EXPECT_EQ(out.value("kith_checkpoint_last_success_timestamp_seconds"), 1.7e9);
  EXPECT_EQ(
      out.value("kith_node_info{node=\"a\",id=\"aa11\",run=\"digits-1\",model_hash=\"beef\"}"), 1);
  EXPECT_EQ(out.value("kith_train_step_duration_seconds_count"), 1);
  EXPECT_EQ(out.value("kith_exchange_staleness_steps_bucket{le=\"2\"}"), 0);
  EXPECT_EQ(out.value("kith_exchange_staleness_steps_bucket{le=\"3\"}"), 1);
  EXPECT_EQ(out.value("kith_exchange_duration_seconds_sum"), 0.02);
}

TEST_F(MetricsTest, FailuresListedTwiceAreOneSeries) {
  const Scrape out = scrape(training_node());
  EXPECT_EQ(out.value("kith_exchanges_failed_total{role=\"initiator\",reason=\"busy\"}"), 5);
  EXPECT_EQ(out.count("kith_exchanges_failed_total"), 2U);
}

TEST_F(MetricsTest, WhatIsNotKnownIsAbsentInsteadOfZero) {
  const Scrape out = scrape(NodeSnapshot{});
  for (const char* name :
       {"kith_train_loss", "kith_eval_loss", "kith_consensus_distance", "kith_peer_rtt_seconds",
        "kith_checkpoint_last_success_timestamp_seconds"}) {
    EXPECT_EQ(out.count(name), 0U) << name;
  }
  EXPECT_EQ(out.value("kith_train_steps_total"), 0);
}

TEST_F(MetricsTest, ALossThatIsNotANumberIsShownAsSuch) {
  NodeSnapshot s = training_node();
  s.loss = std::numeric_limits<double>::quiet_NaN();
  s.grad_norm = std::numeric_limits<double>::infinity();
  const Scrape out = scrape(s);
  EXPECT_TRUE(out.has("kith_train_loss"));
  EXPECT_TRUE(out.has("kith_train_grad_norm"));
}

TEST_F(MetricsTest, CountersNeverFallWhenAComponentCountsAnew) {
  NodeSnapshot s = training_node();
  scrape(s);
  s.exchanges_initiator = 4;  // made anew: 40 were counted before
  EXPECT_EQ(scrape(s).value("kith_exchanges_total{role=\"initiator\"}"), 44);
  s.exchanges_initiator = 5;
  EXPECT_EQ(scrape(s).value("kith_exchanges_total{role=\"initiator\"}"), 45);
}

TEST_F(MetricsTest, SeriesOfADeadMemberGoAfterAWhile) {
  NodeSnapshot s = training_node();
  const std::string series = "kith_peer_rtt_seconds{id=\"bb22\",source=\"a\",target=\"b\"}";
  EXPECT_TRUE(scrape(s).has(series));
  s.members[1].state = "dead";
  clock_.advance(kSeriesLinger - std::chrono::seconds(1));
  EXPECT_TRUE(scrape(s).has(series));
  clock_.advance(std::chrono::seconds(2));
  EXPECT_FALSE(scrape(s).has(series));
  s.members[1].state = "alive";
  EXPECT_TRUE(scrape(s).has(series));
}

TEST_F(MetricsTest, SeriesOfAForgottenMemberGoAfterAWhile) {
  NodeSnapshot s = training_node();
  scrape(s);
  s.members.resize(1);
  EXPECT_EQ(scrape(s).count("kith_peer_rtt_seconds"), 2U);
  clock_.advance(kSeriesLinger);
  EXPECT_EQ(scrape(s).count("kith_peer_rtt_seconds"), 0U);
}

TEST_F(MetricsTest, ANodeHasNoSeriesAboutItself) {
  for (const auto& [series, value] : scrape(training_node()).samples) {
    EXPECT_EQ(series.find("target=\"a\""), std::string::npos) << series;
  }
}

TEST_F(MetricsTest, AHostileNameDoesNotBreakTheScrape) {
  NodeSnapshot s = training_node();
  s.members.push_back(peer(
      "x\"} 1\nkith_evil_total 7 \\ \xff\xc0\xaf\xed\xa0\x80" + std::string(5000, 'y'), "dd44"));
  const std::string text = metrics_.render(s);
  EXPECT_THAT(parse_exposition(text).problems, IsEmpty());
  EXPECT_FALSE(parse_exposition(text).has("kith_evil_total"));
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_EQ(text.find(std::string(65, 'y')), std::string::npos);
}

TEST_F(MetricsTest, AScrapeStaysBoundedInAHugeCluster) {
  NodeSnapshot s = training_node();
  for (int i = 0; i < 5000; ++i)
    s.members.push_back(peer("n" + std::to_string(i), "id" + std::to_string(i)));
  const Scrape out = scrape(s);
  EXPECT_EQ(out.value("kith_members{state=\"alive\"}"), 5002);
  EXPECT_EQ(out.count("kith_peer_rtt_seconds"), kMemberSeriesMax);
}

TEST_F(MetricsTest, KnowsItsOwnProcess) {
  const Scrape out = scrape(training_node());
  EXPECT_GT(out.value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(out.value("process_virtual_memory_bytes"), out.value("process_resident_memory_bytes"));
  EXPECT_GE(out.value("process_open_fds"), 3);
  EXPECT_GT(out.value("process_max_fds"), out.value("process_open_fds"));
  EXPECT_GE(out.value("process_threads"), 1);
  const double age = static_cast<double>(time(nullptr)) - out.value("process_start_time_seconds");
  EXPECT_GE(age, -2);
  EXPECT_LT(age, 3600);
  volatile double sink = 0;  // CPU time is counted in ticks: burn until one has passed
  const double before = out.value("process_cpu_seconds_total");
  for (int tries = 0; tries < 1000; ++tries) {
    for (int i = 0; i < 1'000'000; ++i) sink = sink + i;
    if (scrape(training_node()).value("process_cpu_seconds_total") > before) return;
  }
  FAIL() << "CPU time stands still";
}

struct CommaNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_F(MetricsTest, NumbersKeepTheirPointUnderACommaLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new CommaNumbers));
  const std::string text = metrics_.render(training_node());
  std::locale::global(before);
  const Scrape out = parse_exposition(text);
  EXPECT_THAT(out.problems, IsEmpty());
  EXPECT_EQ(out.value("kith_train_samples_total"), 3840);
  EXPECT_EQ(out.value("kith_train_flops_total"), 2.5e11);
  EXPECT_EQ(out.value("kith_train_loss"), 0.25);
}

TEST_F(MetricsTest, NumbersKeepTheirPointUnderGermanSettings) {
  const auto folder = std::filesystem::path(KITH_BINARY_DIR) / "locales";
  std::filesystem::create_directories(folder);
  const std::string make =
      "localedef -i de_DE -f UTF-8 '" + (folder / "de_DE.UTF-8").string() + "' 2>/dev/null";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "the package locales is not installed";
  setenv("LOCPATH", folder.c_str(), 1);
  ASSERT_NE(setlocale(LC_ALL, "de_DE.UTF-8"), nullptr);
  const std::string comma = localeconv()->decimal_point;
  const std::string text = metrics_.render(training_node());
  setlocale(LC_ALL, "C");
  EXPECT_EQ(comma, ",");
  EXPECT_THAT(parse_exposition(text).problems, IsEmpty());
  EXPECT_EQ(parse_exposition(text).value("kith_train_loss"), 0.25);
}

TEST_F(MetricsTest, PassesPromtool) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "promtool is not installed";
  const std::string file = std::string(KITH_BINARY_DIR) + "/scrape." + std::to_string(getpid());
  metrics_.observe_step(0.05);
  std::ofstream(file) << metrics_.render(training_node());
  EXPECT_EQ(std::system(("promtool check metrics < " + file).c_str()), 0);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace kith::monitoring
