// One member that lies about itself neither ends the others' run nor makes them give up what they
// trained; and an honest one that nobody can vouch for is not left outside.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/e2e/cluster.h"
#include "tests/e2e/liar.h"

namespace kith::e2e {
namespace {

double number(const Node& node, const std::string& key) {
  const auto status = node.get("/status");
  return status.is_object() && status[key].is_number() ? status[key].get<double>() : -1.0;
}

std::string state(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() ? status["state"].get<std::string>() : "";
}

schema::MemberRecord enormous() {
  schema::MemberRecord figures;
  figures.depth = 1ULL << 60;
  figures.step = 1ULL << 60;
  figures.samples = 1ULL << 62;
  figures.steps_per_second = 1e18;
  return figures;
}

TEST(Liar, ThatAnnouncesEnormousFiguresNeitherEndsTheRunNorIsAdoptedFrom) {
  Cluster cluster(digits_config("linear", 5, "[exchange]\nmax_lag = \"100\"\n"));
  for (int i = 0; i < 3; ++i) cluster.add(with({"run.epochs=2000", "train.min_step_ms=20"}));
  ASSERT_TRUE(cluster.wait(seconds(30), "three train together", [&] {
    for (std::size_t i = 0; i < 3; ++i)
      if (number(cluster[i], "step") < 50 || number(cluster[i], "members") < 3) return false;
    return true;
  }));
  double adoptions = 0;
  for (std::size_t i = 0; i < 3; ++i) adoptions += number(cluster[i], "adoptions");
  const Liar liar(cluster.config_file(), cluster.folder() + "/liar", cluster[0].address(),
                  enormous(), {{"run.epochs", "2000"}});
  ASSERT_TRUE(cluster.wait(seconds(15), "all see it", [&] {
    for (std::size_t i = 0; i < 3; ++i)
      if (number(cluster[i], "members") < 4) return false;
    return true;
  }));
  const double step = number(cluster[0], "step");
  // Ten beats and more of everybody.
  EXPECT_TRUE(cluster.wait(seconds(30), "they train on",
                           [&] { return number(cluster[0], "step") > step + 150; }));
  double adopted = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(state(cluster[i]), "training");
    EXPECT_LT(number(cluster[i], "epoch"), 1000.0);
    EXPECT_LT(number(cluster[i], "depth"), 1e6);
    adopted += number(cluster[i], "adoptions");
  }
  EXPECT_EQ(adopted, adoptions);
}

TEST(Liar, ThatDeclaresAFinalStateWithAWrongSignatureIsMentionedOncePerState) {
  Cluster cluster(digits_config("linear", 5));
  for (int i = 0; i < 2; ++i) cluster.add(with({"run.epochs=0.5", "train.min_step_ms=20"}));
  schema::MemberRecord nothing;  // it never finishes, so that the others go on waiting
  Liar liar(cluster.config_file(), cluster.folder() + "/liar", cluster[0].address(), nothing,
            {{"run.epochs", "0.5"}});
  ASSERT_TRUE(cluster.wait(seconds(60), "both finish", [&] {
    return state(cluster[0]) == "finishing" && state(cluster[1]) == "finishing";
  }));
  liar.declare_falsely();
  ASSERT_TRUE(
      cluster.wait(seconds(20), "it has declared often", [&] { return liar.declared() >= 40; }));
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string log = cluster[i].log();
    std::size_t lines = 0;
    for (auto at = log.find("wrong signature"); at != std::string::npos;
         at = log.find("wrong signature", at + 1))
      ++lines;
    EXPECT_EQ(lines, 1U) << log;
  }
}

TEST(Survivor, OfAnOlderIslandAloneAmongSeveralYoungerOnesGoesOnWithThem) {
  Cluster cluster(digits_config("linear", 5, "[exchange]\nmax_lag = \"100\"\n"));
  const auto island = [](const std::string& seeds) {
    NodeOptions options = with({"run.epochs=0", "train.min_step_ms=20"});
    options.flags.insert(options.flags.end(), {"--join", seeds});
    return options;
  };
  cluster.add(island(""));
  ASSERT_TRUE(cluster.wait(seconds(60), "the old one has made 250 steps",
                           [&] { return number(cluster[0], "step") >= 250; }));
  cluster.add(island(""));
  cluster.add(island(cluster[1].address()));
  ASSERT_TRUE(cluster.wait(seconds(30), "the young island trains", [&] {
    return number(cluster[1], "step") >= 30 && number(cluster[2], "step") >= 10;
  }));
  const auto done = run_program(
      {kith_path(), "--at", cluster[0].folder() + "/data", "join", cluster[1].address()});
  ASSERT_EQ(done.exit.code, 0) << done.output;
  // Whether it meets both at once or one before the other is chance: one cluster of one depth in
  // any case.
  EXPECT_TRUE(cluster.wait(seconds(40), "three of one depth that average", [&] {
    double least = 1e18, most = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      least = std::min(least, number(cluster[i], "depth"));
      most = std::max(most, number(cluster[i], "depth"));
    }
    return least > 0 && most - least < 100 && number(cluster[0], "exchanges_total") > 20;
  }));
}

}  // namespace
}  // namespace kith::e2e
