// Who is there, with real processes: islands that meet, an incarnation file that was lost, and more members than a node
// keeps links with. Cuts, pauses and kills in namespaces are in tests/faults.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

// How many members this node sees in `state`.
std::size_t seen(const Node& node, const std::string& state) {
  const auto body = node.get("/members");
  if (!body.is_object()) return 0;
  std::size_t count = 0;
  for (const auto& member : body["members"]) count += member["state"] == state ? 1 : 0;
  return count;
}

bool everybody_sees(Cluster& cluster, std::size_t alive) {
  for (std::size_t i = 0; i < cluster.size(); ++i)
    if (cluster[i].running() && seen(cluster[i], "alive") != alive) return false;
  return true;
}

double number(const Node& node, const std::string& key) {
  const auto status = node.get("/status");
  return status.is_object() && status[key].is_number() ? status[key].get<double>() : -1.0;
}

std::size_t ready_lines(const Node& node) {
  const std::string out = bytes_of(node.folder() + "/out");
  return static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
}
std::string last_http(const Node& node) {
  const std::string out = bytes_of(node.folder() + "/out");
  const auto at = out.rfind("http=") + 5;
  return out.substr(at, out.find('\n', at) - at);
}

// Endless, light, and with a small max_lag so that a difference shows soon.
std::string light() { return digits_config("linear", 5, "[exchange]\nmax_lag = \"100\"\n"); }

NodeOptions island(std::vector<std::string> sets) {
  sets.insert(sets.end(), {"run.epochs=0", "train.min_step_ms=20"});
  return with(sets);
}

void join(const Node& from, const Node& to) {
  const auto done = run_program({kith_path(), "--at", from.folder() + "/data", "join", to.address()});
  ASSERT_EQ(done.exit.code, 0) << done.output;
}

TEST(Islands, OfUnequalAgeMergeAndAllOfTheYoungerAdoptFromTheOlder) {
  Cluster cluster(light());
  for (int i = 0; i < 2; ++i) cluster.add(island({}));
  ASSERT_TRUE(cluster.wait(seconds(60), "the first island has made 500 steps",
                           [&] { return number(cluster[0], "depth") >= 500 && number(cluster[1], "depth") >= 500; }));
  const double adopted_before = number(cluster[0], "adoptions") + number(cluster[1], "adoptions");
  NodeOptions apart = island({});
  apart.flags.insert(apart.flags.end(), {"--join", ""});
  cluster.add(apart);
  NodeOptions beside = island({});
  beside.flags.insert(beside.flags.end(), {"--join", cluster[2].address()});
  cluster.add(beside);
  ASSERT_TRUE(cluster.wait(seconds(30), "the second island has made 50 steps",
                           [&] { return number(cluster[2], "step") >= 50 && number(cluster[3], "step") >= 20; }));
  EXPECT_EQ(seen(cluster[2], "alive"), 2U);
  const double of_fourth = number(cluster[3], "adoptions");  // it joined the third, in a run in progress
  join(cluster[3], cluster[0]);
  EXPECT_TRUE(cluster.wait(seconds(15), "one cluster of four", [&] { return everybody_sees(cluster, 4); }));
  EXPECT_TRUE(cluster.wait(seconds(15), "both of the younger island have adopted", [&] {
    return number(cluster[2], "adoptions") == 1 && number(cluster[3], "adoptions") == of_fourth + 1;
  }));
  EXPECT_EQ(number(cluster[0], "adoptions") + number(cluster[1], "adoptions"), adopted_before)
      << "the older island gives nothing up";
  for (std::size_t i : {2, 3}) {
    EXPECT_NE(cluster[i].log().find("what was trained here meanwhile is given up"), std::string::npos) << cluster[i].log();
    EXPECT_GE(number(cluster[i], "depth"), 500.0);
  }
}

TEST(Islands, OfEqualAgeMergeAndNobodyGivesUpAnything) {
  Cluster cluster(light());
  cluster.add(island({}));
  NodeOptions apart = island({});
  apart.flags.insert(apart.flags.end(), {"--join", ""});
  cluster.add(apart);
  ASSERT_TRUE(cluster.wait(seconds(30), "both have begun",
                           [&] { return number(cluster[0], "step") >= 30 && number(cluster[1], "step") >= 30; }));
  join(cluster[0], cluster[1]);
  EXPECT_TRUE(cluster.wait(seconds(15), "they average", [&] {
    return everybody_sees(cluster, 2) && number(cluster[0], "exchanges_total") > 10;
  }));
  EXPECT_EQ(number(cluster[0], "adoptions") + number(cluster[1], "adoptions"), 0.0);
}

TEST(Incarnation, ALostFileIsPassedByWhatMembersRemember) {
  Cluster cluster(light());
  for (int i = 0; i < 3; ++i) cluster.add(island({}));
  for (int boot = 2; boot <= 3; ++boot) {  // its third life, so that one is not just the next
    cluster[2].signal(SIGTERM);
    ASSERT_TRUE(cluster[2].wait_exit(seconds(30)));
    cluster.restart(2);
  }
  ASSERT_TRUE(cluster.wait(seconds(15), "three", [&] { return everybody_sees(cluster, 3); }));
  cluster[2].signal(SIGTERM);
  ASSERT_TRUE(cluster[2].wait_exit(seconds(30)));
  fs::remove(cluster[2].folder() + "/data/incarnation");
  fs::remove_all(cluster[2].folder() + "/data/checkpoints");
  cluster.restart(2);
  // The process begins anew in its own place, with another ready line.
  ASSERT_TRUE(cluster.wait(seconds(15), "it starts again", [&] { return ready_lines(cluster[2]) == 2; }));
  cluster[2].set_http(last_http(cluster[2]));
  EXPECT_TRUE(cluster.wait(seconds(15), "it is back everywhere", [&] { return everybody_sees(cluster, 3); }));
  EXPECT_NE(cluster[2].log().find("starting again above it"), std::string::npos) << cluster[2].log();
  EXPECT_EQ(bytes_of(cluster[2].folder() + "/data/incarnation"), "5\n") << "raised above 3, and one more for the new start";
  const double before = number(cluster[2], "exchanges_total");
  EXPECT_TRUE(cluster.wait(seconds(15), "it takes part", [&] { return number(cluster[2], "exchanges_total") > before + 5; }));
}

TEST(Incarnation, ANodeWithoutSeedsPassesItWhenMembersFindIt) {
  Cluster cluster(light());
  for (int i = 0; i < 2; ++i) cluster.add(island({}));
  ASSERT_TRUE(cluster.wait(seconds(15), "two", [&] { return everybody_sees(cluster, 2); }));
  const std::string address = cluster[0].address();
  NodeOptions again;
  again.flags = {"--join", "", "--listen", address};
  for (int boot = 2; boot <= 3; ++boot) {  // so that its first start is not told from another by its nonce alone
    cluster[0].signal(SIGTERM);
    ASSERT_TRUE(cluster[0].wait_exit(seconds(30)));
    cluster.restart(0, again);
    ASSERT_TRUE(cluster.wait(seconds(20), "two again", [&] { return everybody_sees(cluster, 2); }));
  }
  cluster[0].signal(SIGTERM);
  ASSERT_TRUE(cluster[0].wait_exit(seconds(30)));
  fs::remove(cluster[0].folder() + "/data/incarnation");
  fs::remove_all(cluster[0].folder() + "/data/checkpoints");
  cluster.restart(0, again);
  ASSERT_TRUE(cluster.wait(seconds(20), "it starts again", [&] { return ready_lines(cluster[0]) == 2; }));
  cluster[0].set_http(last_http(cluster[0]));
  EXPECT_TRUE(cluster.wait(seconds(20), "both see two", [&] { return everybody_sees(cluster, 2); }));
  // It had begun to train before it was found: nothing of that is lost.
  const std::string log = cluster[0].log();
  const auto again_at = log.rfind("starting again above it");
  ASSERT_NE(again_at, std::string::npos) << log;
  const auto resumed = log.find("step-", log.find("resuming from a checkpoint", again_at));
  ASSERT_NE(resumed, std::string::npos) << log;
  EXPECT_NE(log.substr(resumed, 17), "step-000000000000") << log;
}

// How many samples the cluster holds, as this node sees it.
double data_samples(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() && status["epoch"].get<double>() > 0 ? status["progress"].get<double>() / status["epoch"].get<double>() : 0.0;
}

// A third of the file each, and short memories: the third leaves and is forgotten before the fourth comes.
TEST(Forgotten, WhatMembersDidThatAreForgottenCountsForOneThatComesLate) {
  Cluster cluster(light());
  for (int i = 0; i < 3; ++i) cluster.add(island({"cluster.forget_after=2s", "data.shard=" + std::to_string(i + 1) + "/3"}));
  ASSERT_TRUE(cluster.wait(seconds(60), "the third has made 400 steps", [&] { return number(cluster[2], "step") >= 400; }));
  cluster[2].signal(SIGTERM);
  ASSERT_TRUE(cluster[2].wait_exit(seconds(30)));
  ASSERT_TRUE(cluster.wait(seconds(30), "it is forgotten", [&] {
    return cluster[0].log().find("member forgotten") != std::string::npos && cluster[1].log().find("member forgotten") != std::string::npos;
  }));
  cluster.add(island({"cluster.forget_after=2s", "data.shard=1/3"}));
  ASSERT_TRUE(cluster.wait(seconds(30), "the fourth trains", [&] { return number(cluster[3], "step") >= 1; }));
  EXPECT_EQ(seen(cluster[3], "left"), 0U);
  // News of each other's figures is a probe interval or two old; the third did 12,800 samples and more.
  EXPECT_TRUE(cluster.wait(seconds(15), "the fourth counts what the others count", [&] {
    const double of_first = number(cluster[0], "progress"), of_fourth = number(cluster[3], "progress");
    return of_first > 12800 * 3 && std::abs(of_first - of_fourth) < 6400;
  })) << number(cluster[0], "progress") << " and " << number(cluster[3], "progress");
  EXPECT_NEAR(data_samples(cluster[3]), data_samples(cluster[0]), 1.0) << "and the data that it held";
}

TEST(Refusals, AreSaidOnceAndNotPerRetry) {
  Cluster cluster(light());
  cluster.add(island({}));
  NodeOptions other = island({"run.id=other"});
  other.flags.insert(other.flags.end(), {"--join", cluster[0].address() + ",127.0.0.1:9"});
  cluster.add(other);
  const double greeted = cluster[0].metric("kith_network_refused_total{reason=\"handshake\"}");
  ASSERT_TRUE(cluster.wait(seconds(30), "it has been refused four times more", [&] {
    return cluster[0].metric("kith_network_refused_total{reason=\"handshake\"}") >= greeted + 4;
  }));
  const std::string log = cluster[1].log();
  std::size_t lines = 0;
  for (auto at = log.find("refused by a seed"); at != std::string::npos; at = log.find("refused by a seed", at + 1)) ++lines;
  EXPECT_EQ(lines, 1U) << log;
  EXPECT_NE(log.find("run.id: other here, digits-1 there"), std::string::npos) << log;
}

TEST(Checkpoints, OfNoIntervalAreWrittenAtTheStartAndWhenLeavingOnly) {
  Cluster cluster(light());
  cluster.add(island({"checkpoint.every_seconds=0"}));
  ASSERT_TRUE(cluster.wait(seconds(15), "60 steps", [&] { return number(cluster[0], "step") >= 60; }));
  EXPECT_EQ(cluster[0].metric("kith_checkpoints_total"), 1.0);
  cluster[0].signal(SIGTERM);
  ASSERT_TRUE(cluster[0].wait_exit(seconds(30)));
  EXPECT_NE(cluster[0].log().find("leaving: checkpoint written"), std::string::npos);
}

TEST(PartialViews, TwelveNodesWithLinksToAFewSeeAllOfThemAndADeathIsKnownEverywhere) {
  Cluster cluster(light());
  constexpr std::size_t kNodes = 12;
  for (std::size_t i = 0; i < kNodes; ++i) cluster.add(island({"cluster.partial_view_above=8"}));
  ASSERT_TRUE(cluster.wait(seconds(30), "all see twelve", [&] { return everybody_sees(cluster, kNodes); }));
  EXPECT_TRUE(cluster.wait(seconds(10), "partial views", [&] {
    return cluster[0].log().find("links only with the neighbours of a partial view") != std::string::npos;
  }));
  cluster[5].kill_now();
  // Suspicion under preset local ends after 8.6 s at most with twelve members; then news spreads.
  EXPECT_TRUE(cluster.wait(seconds(20), "eleven know of the death", [&] {
    for (std::size_t i = 0; i < kNodes; ++i)
      if (i != 5 && (seen(cluster[i], "dead") != 1 || seen(cluster[i], "alive") != kNodes - 1)) return false;
    return true;
  }));
  cluster.restart(5);
  EXPECT_TRUE(cluster.wait(seconds(20), "all see twelve again", [&] { return everybody_sees(cluster, kNodes); }));
  const double before = number(cluster[5], "exchanges_total");
  EXPECT_TRUE(cluster.wait(seconds(15), "it takes part", [&] { return number(cluster[5], "exchanges_total") > before + 5; }));
}

}  // namespace
}  // namespace kith::e2e
