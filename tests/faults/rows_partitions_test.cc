// Rows 14 to 20: parts of the cluster that do not hear each other.
#include <span>

#include "base/random.h"
#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

using Row14 = FaultRow;
using Row15 = FaultRow;
using Row16 = FaultRow;
using Row17 = FaultRow;
using Row18 = FaultRow;
using Row19 = FaultRow;
using Row20 = FaultRow;

TEST_F(Row14, HalvesCutFor30SecondsBothTrainAndMergeWithinAMinute) {
  start(6);
  ASSERT_TRUE(exchange(healthy()));
  lab().split({0, 1, 2});
  const Stopwatch cut;
  ASSERT_TRUE(cluster().wait(kSuspicionMax + seconds(4), "each half sees the other dead", [&] {
    return all_see({0, 1, 2}, 3, {"dead"}) && all_see({3, 4, 5}, 0, {"dead"});
  }));
  note("halves dead to each other after " + std::to_string(cut.seconds()) + " s");
  EXPECT_TRUE(step(healthy(), 20));
  EXPECT_TRUE(exchange(healthy()));
  holds_for(
      seconds(30) -
          std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(cut.seconds())),
      "nobody dies within a half", [&] {
        return !any_sees({0, 1, 2}, {0, 1, 2}, "dead") && !any_sees({3, 4, 5}, {3, 4, 5}, "dead");
      });
  lab().heal();
  const auto took = agree(seconds(60));
  ASSERT_TRUE(took);
  note("merged after " + std::to_string(*took) + " s");
  EXPECT_TRUE(exchange(healthy()));
}

// Long enough that each half has forgotten the other: only seeds lead back.
TEST_F(Row15, HalvesThatHaveForgottenEachOtherMergeUnaided) {
  start(6, {.sets = {"cluster.forget_after=20s"}});
  ASSERT_TRUE(exchange(healthy()));
  lab().split({0, 1, 2});
  const Stopwatch cut;
  ASSERT_TRUE(cluster().wait(kSuspicionMax + seconds(60), "each half has forgotten the other", [&] {
    for (const std::size_t a : {0, 1, 2})
      for (const std::size_t b : {3, 4, 5})
        if (!seen(a, b).empty() || !seen(b, a).empty()) return false;
    return true;
  }));
  note("forgotten after " + std::to_string(cut.seconds()) + " s");
  EXPECT_TRUE(step(healthy(), 20));
  passes(seconds(10));
  lab().heal();
  const auto took = agree(seconds(60));
  ASSERT_TRUE(took);
  note("merged after " + std::to_string(*took) + " s");
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row16, ALinkThatIsDeafOneWayKillsNobody) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  lab().cut(0, 1);  // n2 hears nothing from n1
  holds_for(seconds(25), "nobody is dead", [&] { return !any_sees(healthy(), healthy(), "dead"); });
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row17, WithOneNodeThatHearsBothHalvesNobodyDiesAndViewsConverge) {
  start(5);
  ASSERT_TRUE(exchange(healthy()));
  for (const std::size_t a : {0, 1})
    for (const std::size_t b : {3, 4}) lab().cut_both(a, b);
  holds_for(seconds(30), "nobody is dead", [&] { return !any_sees(healthy(), healthy(), "dead"); });
  EXPECT_TRUE(agree()) << "still cut, and views must be equal";
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row18, ANodeThatIsCutOffSaysSoAndTrainsOn) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  lab().isolate(3);
  const Stopwatch cut;
  const auto says_so = [&] {
    return node(3).get("/status").value("isolated", false) &&
           run_program({kith_path(), "health", "--at", data_dir(3)}).output.find("isolated") !=
               std::string::npos &&
           lines(3, {"cut off"}) == 1;
  };
  ASSERT_TRUE(cluster().wait(kSuspicionMax + seconds(6),
                             "status, health and log say that it is cut off", says_so));
  note("reported after " + std::to_string(cut.seconds()) + " s");
  EXPECT_TRUE(step({3}, 10));
  for (const std::size_t i : {0, 1, 2})
    EXPECT_FALSE(node(i).get("/status").value("isolated", true)) << "n" << i + 1 << " is not";
  lab().heal();
  EXPECT_TRUE(cluster().wait(seconds(30), "healed, it takes that back",
                             [&] { return !node(3).get("/status").value("isolated", true); }));
}

TEST_F(Row19, AFlappingLinkCostsABoundedNumberOfMessages) {
  start(5);
  ASSERT_TRUE(exchange(healthy()));
  const char* text = std::getenv("KITH_FLAP_SECONDS");
  const int flap_seconds = text != nullptr ? std::atoi(text) : 80;
  const auto control = [&] {
    double sum = 0.0;
    for (const std::size_t i : {0, 1, 2, 3})
      sum += node(i).metric("kith_network_bytes_total{direction=\"sent\",kind=\"control\"}");
    return sum;
  };
  const double start_bytes = control();
  passes(seconds(20));
  const double calm = (control() - start_bytes) / 20.0;
  const double before = control();
  const Stopwatch watch;
  while (watch.seconds() < flap_seconds) {
    lab().isolate(4);
    passes(seconds(2));
    lab().heal();
    passes(seconds(2));
  }
  const double flapping = (control() - before) / watch.seconds();
  note("control bytes per second of four: calm " + std::to_string(calm) + ", flapping " +
       std::to_string(flapping));
  EXPECT_LT(flapping, 3.0 * calm);
  for (const std::size_t i : {0, 1, 2, 3}) {
    const auto said = lines(i, {"name=n5"});
    EXPECT_LT(said, static_cast<std::size_t>(4 * (flap_seconds / 4 + 1)))
        << "log lines about n5 on n" << i + 1;
  }
}

// Links clogged one by one in random order, and opened in another.
TEST_F(Row20, SwizzleCloggingMovesNoMassAndHeals) {
  start(5, {.sets = {"method.name=elastic-gossip", "method.alpha=0.02"}, .still = true});
  Random random(20);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::size_t, std::size_t>> links;
    for (std::size_t a = 0; a < 5; ++a)
      for (std::size_t b = 0; b < 5; ++b)
        if (a != b && random.below(2) == 0) links.emplace_back(a, b);
    random.shuffle(std::span(links));
    for (const auto& [a, b] : links) {
      lab().cut(a, b);
      passes(milliseconds(static_cast<long>(random.below(800))));
    }
    random.shuffle(std::span(links));
    for (const auto& [a, b] : links) {
      lab().restore(a, b);
      passes(milliseconds(static_cast<long>(random.below(800))));
    }
  }
  EXPECT_TRUE(exchange(healthy(), 3, seconds(60)));
}

}  // namespace
}  // namespace kith::e2e
