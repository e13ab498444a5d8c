// Rows 21 to 25: links that lose, delay, throttle, break and shorten.
#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

using Row21 = FaultRow;
using Row22 = FaultRow;
using Row23 = FaultRow;
using Row24 = FaultRow;
using Row25 = FaultRow;

// Deltas that stay large for long: an exchange halves nothing, it moves two percent.
const std::vector<std::string> kSlowMixing = {"method.name=elastic-gossip", "method.alpha=0.02"};

TEST_F(Row21, LossOfPacketsStopsNoExchangeAndUpToFivePercentKillNobody) {
  start(4, {.sets = kSlowMixing, .still = true});
  for (const unsigned percent : {1U, 5U, 30U}) {
    SCOPED_TRACE(std::to_string(percent) + " % loss");
    for (std::size_t i = 0; i < 4; ++i) lab().loss(i, percent);
    const double before = exchanges_of(node(0));
    const Stopwatch watch;
    if (percent <= 5) {
      holds_for(seconds(20), "nobody is dead",
                [&] { return !any_sees(healthy(), healthy(), "dead"); });
    } else {
      passes(seconds(20));
    }
    EXPECT_TRUE(exchange(healthy(), 2, seconds(60)));
    note(std::to_string(percent) + " %: " +
         std::to_string((exchanges_of(node(0)) - before) / watch.seconds()) + " exchanges/s");
  }
}

TEST_F(Row22, DelayWithJitterKillsNobody) {
  start(4, {.proxy = true});
  proxy().delay(milliseconds(200), milliseconds(150));
  holds_for(seconds(40), "nobody is dead", [&] { return !any_sees(healthy(), healthy(), "dead"); });
  EXPECT_TRUE(exchange(healthy(), 2));
  note(std::to_string(proxy().bytes_forwarded() / 1024) + " KiB went through the proxy");
}

TEST_F(Row23, OverOneMegabitChunksGetThroughAndNobodyDies) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  lab().rate(3, "1mbit");
  const double before = exchanges_of(node(3));
  holds_for(seconds(30), "nobody is dead", [&] { return !any_sees(healthy(), healthy(), "dead"); });
  EXPECT_TRUE(exchange({3}, 3, seconds(30)));
  note(std::to_string(exchanges_of(node(3)) - before) + " exchanges over the slow link");
  lab().rate(3, "");
}

TEST_F(Row24, ConnectionsResetEverySecondLoseNothingAndRepeatNothing) {
  start(4, {.sets = kSlowMixing, .still = true});
  std::size_t resets = 0;
  for (int second = 0; second < 20; ++second) {
    for (std::size_t i = 0; i < 4; ++i) resets += lab().reset_connections(i);
    passes(seconds(1));
  }
  note(std::to_string(resets) + " connections reset");
  EXPECT_GT(resets, 20U);
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row25, AnMtuThatShrinksUnderwayStopsNothing) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  for (std::size_t i = 0; i < 4; ++i) lab().mtu(i, 576);
  EXPECT_TRUE(exchange(healthy(), 5));
  holds_for(seconds(10), "nobody is dead", [&] { return !any_sees(healthy(), healthy(), "dead"); });
}

// Long packets to and from n4 vanish, short ones pass: the treacherous kind of broken link.
TEST_F(Row25, WhereLongPacketsVanishExchangesFailLoudlyAndTheOthersGoOn) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  for (std::size_t i = 0; i < 4; ++i)
    if (i != 3) lab().longest_packet(i, 0);
  lab().longest_packet(3, 600);
  const auto failed = [&] {
    double sum = 0.0;
    for (const std::size_t i : {0, 1, 2})
      sum += node(i).metric("kith_exchanges_failed_total{role=\"initiator\",reason=\"timeout\"}");
    return sum;
  };
  const double failed_before = failed(), done_before = exchanges_of(node(3));
  EXPECT_TRUE(exchange({0, 1, 2}, 10));
  EXPECT_TRUE(cluster().wait(seconds(40), "n4 exchanges, or timeouts are reported", [&] {
    return failed() > failed_before || exchanges_of(node(3)) > done_before + 3;
  }));
  EXPECT_TRUE(step({3}, 10));
  lab().heal();
  EXPECT_TRUE(exchange({3}, 2, seconds(60)));
}

}  // namespace
}  // namespace kith::e2e
