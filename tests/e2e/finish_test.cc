// The end of a run: what takes long there is nobody's business but the node's own.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

TEST(Finish, ANodeWhoseDiskIsSlowIsAliveToTheOthersWhileItWritesTheFinalModel) {
  Cluster cluster(digits_config("linear", 5));
  const std::vector<std::string> sets = {"run.epochs=0.5", "checkpoint.every_seconds=0",
                                         "train.min_step_ms=10", "run.start_members=2"};
  // The first file is the checkpoint at the start, the second the final model.
  NodeOptions slow = with(sets);
  slow.environment["KITH_FAULTS"] = "checkpoint-written=wait@2";
  cluster.add(slow);
  cluster.add(with(sets));
  EXPECT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_NE(cluster[0].log().find("final model written"), std::string::npos);
  EXPECT_EQ(cluster[0].log().find("did not run for a while"), std::string::npos)
      << cluster[0].log();
  EXPECT_EQ(cluster[1].log().find("suspect"), std::string::npos) << cluster[1].log();
  EXPECT_EQ(bytes_of(cluster[0].folder() + "/data/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

// All were restarted and one has lost its disk: to the node that it became, what it did before is
// unknown, until the other tells it. Or else it would make that up alone.
TEST(Finish, WhoLostItsDiskHearsOfTheWorkThatItDidBeforeAndEndsWithTheOthers) {
  Cluster cluster(digits_config("linear", 3));
  const NodeOptions options =
      with({"run.epochs=12", "train.min_step_ms=4", "checkpoint.every_seconds=0.2"});
  cluster.add(options);
  cluster.add(options);
  const auto has_step = [](const Node& node, double step) {
    return node.metric("kith_train_steps_total") >= step;
  };
  ASSERT_TRUE(cluster.wait(seconds(30), "300 steps of both", [&] {
    return has_step(cluster[0], 300) && has_step(cluster[1], 300) &&
           cluster[1].metric("kith_run_progress_samples") > 600 * 32;
  }));
  cluster[0].kill_now();
  cluster[1].kill_now();
  fs::remove_all(cluster[0].folder() + "/data");
  cluster.restart(1);
  cluster.restart(0);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const std::string log = cluster[0].log(), words = "the run's length is reached  progress=";
  const auto at = log.find(words);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_GT(std::stod(log.substr(at + words.size())), 12 * 9000 - 100 * 32)
      << "it has not heard of 300 steps of its own";
  EXPECT_EQ(bytes_of(cluster[0].folder() + "/data/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

// A folder where the file should be: nobody but the test can take it away.
class InTheWay {
 public:
  explicit InTheWay(const Node& node) : path_(node.folder() + "/data/model.safetensors") {
    fs::create_directories(path_ + "/not-empty");
  }
  void take_away() const { fs::remove_all(path_); }

 private:
  std::string path_;
};

// A text of its status; empty if it does not answer.
std::string told(const Node& node, const char* key) {
  const nlohmann::json status = node.get("/status");
  return status.is_object() ? status.value(key, "") : "";
}

std::string waiting_for(const Node& node) { return told(node, "waiting_for"); }

// The longest announced pause tells how often it was tried: they double from 1 s.
bool has_tried_three_times(const Node& node) {
  const std::string text = waiting_for(node), words = "tried again within ";
  const auto at = text.find(words);
  return at != std::string::npos && std::stoi(text.substr(at + words.size())) >= 2;
}

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

std::string last_line(const std::string& log) {
  const auto end = log.find_last_not_of('\n');
  return log.substr(log.rfind('\n', end) + 1, end - log.rfind('\n', end));
}

TEST(Finish, AFinalModelThatCannotBeWrittenIsTriedAgainUntilItIsAndHoldsNobodyUp) {
  Cluster cluster(digits_config("linear", 5));
  const NodeOptions options =
      with({"run.epochs=0.5", "checkpoint.every_seconds=0", "run.start_members=2"});
  cluster.add(options);
  const InTheWay obstacle(cluster[0]);
  cluster.add(options);
  ASSERT_TRUE(cluster.wait(seconds(60), "it tries again and again",
                           [&] { return has_tried_three_times(cluster[0]); }));
  EXPECT_EQ(told(cluster[0], "state"), "finishing");
  const std::string error = told(cluster[0], "last_error");
  EXPECT_NE(error.find("data/model.safetensors: "), std::string::npos) << error;
  const auto health = run_program({kith_path(), "health", "--at", cluster[0].folder() + "/data"});
  EXPECT_EQ(health.exit.code, 10) << health.output;
  EXPECT_NE(health.output.find("final model"), std::string::npos) << health.output;
  EXPECT_EQ(count(cluster[0].log(), "final model not written"), 1U) << cluster[0].log();
  EXPECT_EQ(count(cluster[0].log(), "checkpoint written  step="), 2U)
      << "the state is not in a checkpoint\n"
      << cluster[0].log();
  const auto other = cluster[1].wait_exit(seconds(20));
  ASSERT_TRUE(other.has_value()) << "the other waits for a disk that is not its own\n"
                                 << cluster[1].log();
  EXPECT_EQ(other->code, 0);
  ASSERT_TRUE(cluster[0].running());
  obstacle.take_away();
  const auto exit = cluster[0].wait_exit(seconds(60));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0) << cluster[0].log();
  EXPECT_NE(cluster[0].log().find("final model written"), std::string::npos);
  EXPECT_EQ(bytes_of(cluster[0].folder() + "/data/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

TEST(Finish, StoppedBeforeTheFinalModelIsWrittenANodeEndsWithOneAndGoesOnFromItsCheckpoint) {
  Cluster cluster(digits_config("linear", 5));
  Node& node = cluster.add(with({"run.epochs=0.2", "checkpoint.every_seconds=0"}));
  const InTheWay obstacle(node);
  ASSERT_TRUE(cluster.wait(seconds(60), "it tries again", [&] {
    return waiting_for(node).find("tried again") != std::string::npos;
  }));
  const double steps = node.metric("kith_train_steps_total");
  node.signal(SIGTERM);
  auto exit = node.wait_exit(seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1) << node.log();
  const std::string last = last_line(node.log());
  EXPECT_NE(last.find("ending without the final model: a start goes on from the checkpoint"),
            std::string::npos)
      << last;
  obstacle.take_away();
  cluster.restart(0);
  exit = node.wait_exit(seconds(60));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0) << node.log();
  const auto meta = metadata_of(node.folder() + "/data/model.safetensors");
  ASSERT_TRUE(meta.contains("progress")) << node.log();
  EXPECT_EQ(std::stod(meta.at("progress")), steps * 32) << "it trained again";
}

TEST(Finish, AFinalModelThatCannotBeWrittenForTooLongEndsTheNodeWithOne) {
  Cluster cluster(digits_config("linear", 5));
  Node& node = cluster.add(with({"run.epochs=0.2", "checkpoint.final_timeout=2s"}));
  const InTheWay obstacle(node);
  const auto exit = node.wait_exit(seconds(60));
  ASSERT_TRUE(exit.has_value()) << node.log();
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(node.log().find("no further try"), std::string::npos) << node.log();
  EXPECT_NE(last_line(node.log()).find("ending without the final model"), std::string::npos)
      << node.log();
}

// Three nodes, of which the third is stopped while it finishes: the second stands still until then,
// so that nobody can be done before.
struct Stopped {
  Stopped() : cluster(digits_config("linear", 5)) {
    const NodeOptions options = with({"run.epochs=3", "checkpoint.every_seconds=0",
                                      "train.min_step_ms=10", "run.start_members=3"});
    for (int i = 0; i < 3; ++i) cluster.add(options);
  }
  bool stop_in_finishing() {
    const auto progress = [&] { return cluster[0].metric("kith_run_progress_samples"); };
    if (!cluster.wait(seconds(60), "most is done", [&] { return progress() > 2.4 * 9000; }))
      return false;
    cluster[1].signal(SIGSTOP);
    const bool finishing = cluster.wait(seconds(30), "the third finishes",
                                        [&] { return told(cluster[2], "state") == "finishing"; });
    if (finishing) cluster[2].signal(SIGSTOP);
    cluster[1].signal(SIGCONT);
    return finishing;
  }
  bool ends_with(std::size_t node, int code) {
    const auto exit = cluster[node].wait_exit(seconds(90));
    if (!exit) cluster.print_logs();
    if (exit) EXPECT_EQ(exit->code, code) << cluster[node].log();
    return exit && exit->code == code;
  }
  std::string model(std::size_t node) {
    return bytes_of(cluster[node].folder() + "/data/model.safetensors");
  }
  Cluster cluster;
};

TEST(Finish, WhoStoodStillUntilAllOthersHadEndedSaysThatItsModelMayDifferAndEndsWithOne) {
  Stopped run;
  ASSERT_TRUE(run.stop_in_finishing());
  ASSERT_TRUE(run.ends_with(0, 0) && run.ends_with(1, 0));
  EXPECT_EQ(run.model(0), run.model(1));
  Node& late = run.cluster[2];
  late.signal(SIGCONT);
  EXPECT_TRUE(run.cluster.wait(seconds(30), "it says what it waits for", [&] {
    return waiting_for(late).find("asking the members for the final state") != std::string::npos;
  }));
  ASSERT_TRUE(run.ends_with(2, 1));
  EXPECT_NE(last_line(late.log()).find("warn"), std::string::npos) << late.log();
  EXPECT_NE(last_line(late.log()).find("the final model is this node's own"), std::string::npos)
      << late.log();
  EXPECT_FALSE(run.model(2).empty());
}

TEST(Finish, WhoStoodStillWritesTheSameModelWhileAnybodyIsLeftToAsk) {
  Stopped run;
  const InTheWay obstacle(run.cluster[0]);
  ASSERT_TRUE(run.stop_in_finishing());
  ASSERT_TRUE(run.ends_with(1, 0));
  run.cluster[2].signal(SIGCONT);
  ASSERT_TRUE(run.ends_with(2, 0));
  EXPECT_EQ(run.model(2), run.model(1));
  obstacle.take_away();
  ASSERT_TRUE(run.ends_with(0, 0));
  EXPECT_EQ(run.model(0), run.model(1));
}

// Two nodes of which the one with the lower id declares; the other can follow nothing for 8 s,
// since it writes a checkpoint. So what was declared and written is taken back after a standstill.
struct TakenBack {
  TakenBack() : cluster(digits_config("linear", 5)) {
    const NodeOptions waiting =
        with({"run.epochs=0.5", "train.min_step_ms=10", "run.start_members=3"});
    cluster.add(waiting);
    cluster.add(waiting);
    if (!cluster.wait(seconds(30), "both answer", [&] {
          return !told(cluster[0], "id").empty() && !told(cluster[1], "id").empty();
        }))
      return;
    declarer = told(cluster[0], "id") < told(cluster[1], "id") ? 0 : 1;
    for (const std::size_t i : {0U, 1U}) cluster[i].kill_now();
    const std::string start = "run.start_members=2";
    cluster.restart(declarer, with({start, "checkpoint.every_seconds=0"}));
    NodeOptions busy = with({start, "checkpoint.every_seconds=0.1"});
    busy.environment["KITH_FAULTS"] = "checkpoint-written=wait@2,checkpoint-renamed=wait@2";
    cluster.restart(1 - declarer, busy);
  }
  Node& first() { return cluster[declarer]; }
  bool says(const std::string& what) {
    return cluster.wait(seconds(30), what,
                        [&] { return first().log().find(what) != std::string::npos; });
  }
  // `then` while it stands still.
  bool take_back(const std::function<void()>& then) {
    if (!says("final model written")) return false;
    first().signal(SIGSTOP);
    then();
    const auto until = std::chrono::steady_clock::now() + milliseconds(2500);
    wait_until(seconds(10), [&] { return std::chrono::steady_clock::now() > until; });
    first().signal(SIGCONT);
    return says("what was declared before is asked for again");
  }
  Cluster cluster;
  std::size_t declarer = 0;
};

TEST(Finish, AFinalModelThatIsTakenBackGoesFromTheDiskAndAllEndWithTheNext) {
  TakenBack run;
  ASSERT_TRUE(run.take_back([] {}));
  ASSERT_TRUE(run.says("final model removed"));
  ASSERT_TRUE(run.cluster.all_exit_zero(seconds(60)));
  EXPECT_EQ(count(run.first().log(), "final model written"), 2U) << run.first().log();
  const std::string model = bytes_of(run.cluster[0].folder() + "/data/model.safetensors");
  EXPECT_FALSE(model.empty());
  EXPECT_EQ(model, bytes_of(run.cluster[1].folder() + "/data/model.safetensors"));
}

TEST(Finish, AFinalModelThatIsTakenBackAndStaysOnDiskIsSaidAndEndsTheNodeWithOne) {
  TakenBack run;
  ASSERT_TRUE(run.take_back([&] {
    fs::remove(run.first().folder() + "/data/model.safetensors");
    const InTheWay obstacle(run.first());
  }));
  run.first().signal(SIGTERM);
  const auto exit = run.first().wait_exit(seconds(60));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1) << run.first().log();
  EXPECT_NE(run.first().log().find("one that was given up: it could not be removed"),
            std::string::npos)
      << run.first().log();
}

TEST(Finish, WhoStoodStillInMidRunWhileTheOtherLeftEndsAloneWithZero) {
  Cluster cluster(digits_config("linear", 5));
  const NodeOptions options = with({"run.epochs=6", "train.min_step_ms=10", "run.start_members=2"});
  cluster.add(options);
  cluster.add(options);
  ASSERT_TRUE(cluster.wait(seconds(30), "both train",
                           [&] { return cluster[0].metric("kith_run_progress_samples") > 2000; }));
  cluster[0].signal(SIGSTOP);
  const auto until = std::chrono::steady_clock::now() + milliseconds(2500);
  cluster[1].signal(SIGTERM);
  const auto left = cluster[1].wait_exit(seconds(60));
  ASSERT_TRUE(left && left->code == 0) << cluster[1].log();
  wait_until(seconds(10), [&] { return std::chrono::steady_clock::now() > until; });
  cluster[0].signal(SIGCONT);
  const auto exit = cluster[0].wait_exit(seconds(90));
  ASSERT_TRUE(exit.has_value()) << cluster[0].log();
  EXPECT_NE(cluster[0].log().find("did not run for a while"), std::string::npos);
  EXPECT_EQ(exit->code, 0) << cluster[0].log();
}

}  // namespace
}  // namespace kith::e2e
