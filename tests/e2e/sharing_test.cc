// shard = "auto" with real processes: the digits are shared out among whoever lives, and nobody
// else's data moves.
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <numeric>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

// Preset local: a silent member is dead after 8 s at most (suspicion's maximum); then the change
// settles for 0.8 s.
constexpr seconds kDeathBound{13};
constexpr seconds kJoinBound{15};

double samples_of(const Node& node, const char* field) {
  const auto status = node.get("/status");
  return status.is_object() ? status.value(field, -1.0) : -1.0;
}

std::string text_of(const Node& node, const char* field) {
  const auto status = node.get("/status");
  return status.is_object() ? status.value(field, "") : "";
}

std::vector<double> shares(Cluster& cluster, const std::vector<std::size_t>& live) {
  std::vector<double> all;
  for (const std::size_t i : live) all.push_back(samples_of(cluster[i], "shard_samples"));
  return all;
}

// The shares of the live nodes are a fair part each and together the file.
bool shared_out(Cluster& cluster, const std::vector<std::size_t>& live, double file) {
  const auto all = shares(cluster, live);
  const double fair = file / static_cast<double>(live.size());
  for (const double share : all)
    if (share < 0.85 * fair || share > 1.04 * fair) return false;
  return std::accumulate(all.begin(), all.end(), 0.0) == file;
}

void print(const std::string& what, const std::vector<double>& all,
           std::chrono::steady_clock::time_point since) {
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  std::cout << what << " after " << took << " s:";
  for (const double share : all) std::cout << " " << share;
  std::cout << std::endl;
}

std::size_t place_of(const std::string& log, const std::string& text) { return log.find(text); }

const std::vector<std::string> kEndless = {"run.epochs=0", "run.start_members=4",
                                           "train.min_step_ms=20"};

TEST(Sharing, FollowsWhoLives) {
  Cluster cluster(digits_config("linear", 3));
  cluster.add(with(kEndless));
  const double file = samples_of(cluster[0], "shard_samples");
  ASSERT_GT(file, 1000.0) << "waiting alone it would have all the data";
  for (int i = 0; i < 3; ++i) cluster.add(with(kEndless));
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster.wait(kJoinBound, "four shares are the file", [&] {
    return shared_out(cluster, {0, 1, 2, 3}, file) && samples_of(cluster[0], "step") > 20;
  }));
  print("four", shares(cluster, {0, 1, 2, 3}), start);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string log = cluster[i].log();
    EXPECT_LT(place_of(log, "members=4"), place_of(log, "to=training"))
        << "shared out before the first step: n" << i + 1;
  }

  cluster[3].kill_now();
  start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster.wait(kDeathBound, "three shares are the file", [&] {
    return shared_out(cluster, {0, 1, 2}, file);
  }));
  print("three, one killed", shares(cluster, {0, 1, 2}), start);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(samples_of(cluster[i], "members"), 3);

  cluster.add(with(kEndless));
  start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster.wait(kJoinBound, "four shares again", [&] {
    return shared_out(cluster, {0, 1, 2, 4}, file);
  }));
  print("a fifth joined", shares(cluster, {0, 1, 2, 4}), start);
  EXPECT_EQ(text_of(cluster[4], "state"), "training");

  cluster.restart(3);
  start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster.wait(kJoinBound, "five shares", [&] {
    return shared_out(cluster, {0, 1, 2, 3, 4}, file);
  }));
  print("the dead one came back", shares(cluster, {0, 1, 2, 3, 4}), start);
  const auto members = cluster[0].get("/members");
  ASSERT_TRUE(members.is_object());
  EXPECT_EQ(members["members"].size(), 5U);
  for (const auto& member : members["members"])
    EXPECT_EQ(member["state"], "alive") << member["name"];
}

TEST(Sharing, LeavesAMemberWithAFileOfItsOwnOrAPartByHandAlone) {
  Cluster cluster(digits_config("linear", 3));
  const std::vector<std::string> sets = {"run.epochs=0", "run.start_members=3",
                                         "train.min_step_ms=20"};
  cluster.add(with(sets));
  const double file = samples_of(cluster[0], "shard_samples");
  cluster.add(with(sets));
  auto by_hand = sets;
  by_hand.push_back("data.shard=1/10");
  cluster.add(with(by_hand));
  ASSERT_TRUE(cluster.wait(kJoinBound, "two share the file", [&] {
    return shared_out(cluster, {0, 1}, file);
  }));
  EXPECT_EQ(samples_of(cluster[2], "shard_samples"), file / 10);
}

TEST(Sharing, TwoEpochsEndWithEqualFilesAndNothingMovesAtTheEnd) {
  Cluster cluster(digits_config("linear", 3));
  const std::vector<std::string> sets = {"run.epochs=2", "run.start_members=4",
                                         "train.min_step_ms=20"};
  cluster.add(with(sets));
  const double file = samples_of(cluster[0], "shard_samples");
  for (int i = 0; i < 3; ++i) cluster.add(with(sets));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(120)));
  const auto model = [&](std::size_t i) { return cluster[i].folder() + "/data/model.safetensors"; };
  const std::string first = bytes_of(model(0));
  ASSERT_FALSE(first.empty());
  for (std::size_t i = 1; i < 4; ++i) EXPECT_TRUE(first == bytes_of(model(i))) << "n" << i + 1;
  const double progress = std::stod(metadata_of(model(0))["progress"]);
  EXPECT_GE(progress, 2 * file);
  EXPECT_LE(progress, 2 * file + 20 * 32 * 4)
      << "what four nodes do in the time that the news takes";
  std::cout << "accuracy " << metadata_of(model(0))["accuracy"] << " after " << progress / file
            << " epochs" << std::endl;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string log = cluster[i].log();
    EXPECT_LT(log.rfind("data shared out"), place_of(log, "to=training"))
        << "one share through the whole run: n" << i + 1;
  }
}

NodeOptions alone(const std::string& shard) {
  NodeOptions options =
      with({"run.epochs=0", "run.steps=700", "train.min_step_ms=2", "data.shard=" + shard});
  options.flags.push_back("--standalone");
  return options;
}

TEST(Sharing, AloneIsAllOfTheDataInTheSameOrderAlsoWhenResumed) {
  Cluster cluster(digits_config("linear", 3));
  cluster.add(alone("all"));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const auto bytes = [&](std::size_t i) {
    return bytes_of(cluster[i].folder() + "/data/model.safetensors");
  };
  ASSERT_FALSE(bytes(0).empty());
  cluster.add(alone("auto"));
  ASSERT_TRUE(cluster.wait(seconds(30), "100 steps",
                           [&] { return samples_of(cluster[1], "step") >= 100; }));
  cluster[1].signal(SIGTERM);
  const auto exit = cluster[1].wait_exit(seconds(30));
  ASSERT_TRUE(exit && exit->code == 0) << cluster[1].log();
  ASSERT_TRUE(bytes(1).empty()) << "it had not finished yet";
  cluster.restart(1);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_TRUE(bytes(1) == bytes(0));
}

TEST(Sharing, AClusterThatIsStoppedAndStartedAgainSharesAsBefore) {
  Cluster cluster(digits_config("linear", 3));
  for (int i = 0; i < 4; ++i) cluster.add(with(kEndless));
  const auto training = [&](std::size_t i) { return text_of(cluster[i], "state") == "training"; };
  ASSERT_TRUE(cluster.wait(kJoinBound, "all train", [&] {
    return training(0) && training(1) && training(2) && training(3) &&
           samples_of(cluster[3], "step") > 30;
  }));
  const auto before = shares(cluster, {0, 1, 2, 3});
  for (std::size_t i = 0; i < 4; ++i) cluster[i].signal(SIGTERM);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(30)));
  for (std::size_t i = 0; i < 4; ++i) cluster.restart(i);
  ASSERT_TRUE(cluster.wait(kJoinBound, "the shares of before", [&] {
    return shares(cluster, {0, 1, 2, 3}) == before && training(0) && training(1) && training(2) &&
           training(3);
  }));
  EXPECT_GT(samples_of(cluster[3], "step"), 30);
}

// Two classes, told apart by the first of eight values.
std::vector<std::string> own_data(const std::string& folder, const std::string& name, std::size_t samples) {
  std::string inputs, labels;
  for (std::size_t i = 0; i < samples; ++i) {
    labels += static_cast<char>(i % 2);
    for (std::size_t v = 0; v < 8; ++v)
      inputs += static_cast<char>(v == 0 ? 200 * (i % 2) : (i * 7 + v * 31) % 97);
  }
  const std::string x = folder + "/" + name + "-x.npy", y = folder + "/" + name + "-y.npy";
  write_npy(x, "|u1", "(" + std::to_string(samples) + ", 8)", inputs);
  write_npy(y, "|u1", "(" + std::to_string(samples) + ",)", labels);
  return {"data.format=npy", "data.train=[\"" + x + "\", \"" + y + "\"]", "data.test=[]", "data.classes=2",
          "data.mean=0.3", "data.std=0.3",      "train.min_step_ms=5", "run.epochs=3", "run.start_members=2"};
}

// A hundred samples on one node, a thousand on the other: neither waits for the other's last batches, and the run ends when
// three times 1,100 samples are done.
TEST(Sharing, NodesWithDataOfTheirOwnAndOfUnequalSizeEndTogether) {
  Cluster cluster(digits_config("linear", 3));
  cluster.add(with(own_data(cluster.folder(), "small", 100)));
  cluster.add(with(own_data(cluster.folder(), "large", 1000)));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const auto metadata = metadata_of(cluster.folder() + "/n1/data/model.safetensors");
  ASSERT_TRUE(metadata.contains("progress"));
  EXPECT_GE(std::stod(metadata.at("progress")), 3 * 1100.0);
  EXPECT_TRUE(bytes_of(cluster.folder() + "/n1/data/model.safetensors") ==
              bytes_of(cluster.folder() + "/n2/data/model.safetensors"));
}

}  // namespace
}  // namespace kith::e2e
