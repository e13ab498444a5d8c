// Rows 27, 28 and 31 to 33: what is on disk, who one is, what one sends.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/faults/fault_row.h"
#include "tests/faults/limits.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

class Row27 : public FaultRow {
 protected:
  std::unique_ptr<SmallDisk> disk_;  // outlives TearDown
};
using Row28 = FaultRow;
using Row31 = FaultRow;
using Row32 = FaultRow;
using Row33 = FaultRow;

TEST_F(Row27, AFullDiskKeepsTheOldCheckpointAlarmsAndDoesNotStopTraining) {
  if (!SmallDisk::missing().empty()) GTEST_SKIP() << SmallDisk::missing();
  start(3, {.sets = {"checkpoint.every_seconds=1"}, .spare = 1});
  disk_ = std::make_unique<SmallDisk>(1 << 20);
  const std::string data = cluster().folder() + "/n4/data";
  fs::create_directories(cluster().folder() + "/n4");
  fs::create_directory_symlink(disk_->folder(), data);
  add();
  ASSERT_TRUE(agree());
  const auto errors = [&] { return node(3).metric("kith_checkpoint_errors_total"); };
  const auto written = [&] { return node(3).metric("kith_checkpoints_total"); };
  ASSERT_TRUE(cluster().wait(seconds(20), "it writes checkpoints", [&] { return written() >= 3; }));
  disk_->fill();
  ASSERT_TRUE(cluster().wait(seconds(20), "the error is counted", [&] { return errors() >= 2; }));
  EXPECT_TRUE(newest_checkpoint(data)) << "the old checkpoint is damaged";
  EXPECT_TRUE(step({3}, 20));
  EXPECT_TRUE(exchange({3}));
  EXPECT_EQ(run_program({kith_path(), "health", "--at", data}).exit.code, 10) << "no alarm";
  disk_->make_room();
  const double before = written();
  ASSERT_TRUE(cluster().wait(seconds(20), "it writes again", [&] { return written() > before; }));
  EXPECT_EQ(run_program({kith_path(), "health", "--at", data}).exit.code, 0);
}

// On loopback, since this cluster ends by itself.
TEST_F(Row27, ADiskThatIsFullAtTheEndCostsTimeAndNotTheFinalModel) {
  if (!SmallDisk::missing().empty()) GTEST_SKIP() << SmallDisk::missing();
  disk_ = std::make_unique<SmallDisk>(1 << 20);
  Cluster cluster(digits_config("linear", 5));
  const std::string data = cluster.folder() + "/n1/data";
  fs::create_directories(cluster.folder() + "/n1");
  fs::create_directory_symlink(disk_->folder(), data);
  const NodeOptions options =
      with({"run.epochs=4", "checkpoint.every_seconds=0", "run.start_members=3"});
  for (int i = 0; i < 2; ++i) cluster.add(options);
  disk_->fill();
  cluster.add(options);
  const auto status = [&](const char* key) {
    const nlohmann::json answer = cluster[0].get("/status");
    return answer.is_object() ? answer.value(key, "") : "";
  };
  ASSERT_TRUE(cluster.wait(seconds(60), "it says that it tries again", [&] {
    return status("waiting_for").find("tried again") != std::string::npos;
  }));
  EXPECT_NE(status("last_error").find("No space left on device"), std::string::npos);
  for (const std::size_t other : {1, 2}) {
    const auto exit = cluster[other].wait_exit(seconds(20));
    ASSERT_TRUE(exit.has_value()) << cluster[other].log();
    EXPECT_EQ(exit->code, 0);
  }
  ASSERT_TRUE(cluster[0].running());
  disk_->make_room();
  EXPECT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_EQ(bytes_of(data + "/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

std::vector<std::string> checkpoints_of(const std::string& data_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_dir + "/checkpoints"))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  return names;
}

void flip_bit(const std::string& file, std::uintmax_t at) {
  std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
  io.seekg(static_cast<std::streamoff>(at));
  const char old = static_cast<char>(io.get());
  io.seekp(static_cast<std::streamoff>(at));
  io.put(static_cast<char>(old ^ 1));
}

TEST_F(Row28, ADamagedCheckpointOrLedgerFallsBackLoudlyAndNeverToZero) {
  start(3, {.sets = {"checkpoint.every_seconds=0.5"}});
  const std::string data = data_dir(2);
  struct Damage {
    const char* name;
    std::function<void(const std::string&)> harm;
  };
  const Damage damages[] = {
      {"half the file", [](const std::string& f) { fs::resize_file(f, fs::file_size(f) / 2); }},
      {"no byte left", [](const std::string& f) { fs::resize_file(f, 0); }},
      {"a bit of the weights", [](const std::string& f) { flip_bit(f, fs::file_size(f) / 3); }},
      {"a bit of the ledger", [](const std::string& f) { flip_bit(f, fs::file_size(f) - 40); }},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    ASSERT_TRUE(cluster().wait(seconds(30), "three checkpoints, none of them the first", [&] {
      const auto names = checkpoints_of(data);
      return names.size() >= 3 && names.front().find("step-000000000000") == std::string::npos;
    }));
    node(2).kill_now();
    const auto names = checkpoints_of(data);
    damage.harm(names.back());
    const auto complaints = lines(2, {"checkpoint unusable"});
    restart(2);
    EXPECT_EQ(lines(2, {"checkpoint unusable"}), complaints + 1) << node(2).log();
    EXPECT_GE(lines(2, {"resuming from a checkpoint", fs::path(*(names.end() - 2)).filename()}), 1U)
        << node(2).log();
    ASSERT_TRUE(agree());
    EXPECT_TRUE(exchange({2}));
  }
}

TEST_F(Row28, ADamagedIdentityIsRefusedByNameAndADamagedIncarnationIsNotZero) {
  start(3, {.sets = {"checkpoint.every_seconds=0.5"}});
  ASSERT_TRUE(exchange(healthy()));
  const std::string key = data_dir(2) + "/identity.key", old_key = bytes_of(key);
  node(2).kill_now();
  fs::resize_file(key, 20);
  NodeOptions hopeless;
  hopeless.wait_ready = false;
  restart(2, hopeless);
  gone(2);
  const auto exit = node(2).wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value()) << "it runs with half an identity";
  EXPECT_NE(exit->code, 0);
  EXPECT_NE(node(2).log().find("identity.key"), std::string::npos) << node(2).log();
  std::ofstream(key, std::ios::binary) << old_key;
  const std::string incarnation = data_dir(2) + "/incarnation";
  ASSERT_TRUE(agree());
  fs::resize_file(incarnation, 0);
  restart(2, hopeless);
  if (node(2).wait_ready(seconds(10))) {
    // The others hold the higher incarnation of the life before: it must have jumped above, or it
    // would stay dead.
    ASSERT_TRUE(agree());
    EXPECT_TRUE(exchange({2}));
    note("an empty incarnation file: goes on above what the others hold");
  } else {
    const auto refused = node(2).wait_exit(seconds(10));
    gone(2);
    ASSERT_TRUE(refused.has_value());
    EXPECT_NE(node(2).log().find("incarnation"), std::string::npos) << node(2).log();
    note("an empty incarnation file: refused");
  }
}

TEST_F(Row31, OfTwoWithOneIdentityOneEndsWithSevenAndTheOtherStays) {
  start(3, {.sets = {"checkpoint.every_seconds=1"}, .spare = 1});
  ASSERT_TRUE(exchange(healthy()));
  const std::string copy = cluster().folder() + "/n4/data";
  fs::create_directories(copy + "/checkpoints");
  for (const char* file : {"identity.key", "incarnation"})
    fs::copy_file(data_dir(2) + "/" + file, copy + "/" + file);
  for (const auto& file : checkpoints_of(data_dir(2)))
    if (std::error_code gone_already; true)
      fs::copy_file(file, copy + "/checkpoints/" + fs::path(file).filename().string(),
                    gone_already);
  NodeOptions at_once;
  at_once.wait_ready = false;
  const Stopwatch watch;
  add(at_once);
  ASSERT_TRUE(cluster().wait(seconds(30), "one of the two ends",
                             [&] { return !node(2).running() || !node(3).running(); }));
  const std::size_t ended = node(2).running() ? 3 : 2, stays = 5 - ended;
  note(std::string(ended == 2 ? "the older" : "the newer") + " ended after " +
       std::to_string(watch.seconds()) + " s");
  gone(ended);
  EXPECT_EQ(node(ended).wait_exit(milliseconds(0))->code, 7) << node(ended).log();
  ASSERT_TRUE(node(stays).wait_ready());
  holds_for(seconds(15), "the other stays",
            [&] { return node(stays).running() && node(0).running() && node(1).running(); });
  ASSERT_TRUE(agree());
  EXPECT_TRUE(exchange({stays}));
  for (const std::size_t i : {0, 1})
    EXPECT_EQ(view_of(node(i)).size(), 3U) << "one identity is one member";
}

TEST_F(Row32, AnotherSchemaIsRejectedByNameAndTheClusterGoesOn) {
  start(2, {.spare = 1});
  NodeOptions other = with({"exchange.fragment_bytes=8192"});
  other.wait_ready = false;
  add(other);
  gone(2);
  const auto exit = node(2).wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value()) << node(2).log();
  EXPECT_EQ(exit->code, 5);
  EXPECT_NE(node(2).log().find("schema"), std::string::npos) << node(2).log();
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row32, TheVersionBeforeTakesPart) {
  const char* old_kithd = std::getenv("KITH_OLD_KITHD");
  if (old_kithd == nullptr)
    GTEST_SKIP() << "no kithd of the version before: name one in KITH_OLD_KITHD (its messages are "
                    "tested as bytes in tests/schema)";
  start(2, {.spare = 1});
  NodeOptions older;
  older.program = old_kithd;
  add(older);
  ASSERT_TRUE(agree());
  EXPECT_TRUE(exchange({0, 1, 2}));
}

TEST_F(Row33, WhatIsNotFiniteInOneNodeReachesNobody) {
  const std::string folder = std::string(KITH_BINARY_DIR) + "/e2e";
  const std::vector<float> values(16 * 784, 3e38F);
  std::string labels(16, '\0');
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<char>(i % 10);
  write_npy(
      folder + "/poison-x.npy", "<f4", "(16, 784)",
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  write_npy(folder + "/poison-y.npy", "|u1", "(16,)", labels);
  start(
      4,
      {.sets = {"data.mean=0.13", "data.std=0.3", "data.classes=10", "exchange.max_lag=100000"},
       .of_node = {{},
                   {},
                   {},
                   {"data.format=npy",
                    "data.train=[\"" + folder + "/poison-x.npy\",\"" + folder + "/poison-y.npy\"]",
                    "data.test=[]"}}});
  ASSERT_TRUE(cluster().wait(seconds(40), "it meets values that are not finite, again and again",
                             [&] { return node(3).metric("kith_train_nonfinite_total") >= 2; }));
  EXPECT_TRUE(exchange({0, 1, 2}, 20));
  for (const std::size_t i : {0, 1, 2}) {
    EXPECT_TRUE(node(i).get("/status")["healthy"].get<bool>());
    EXPECT_TRUE(node(i).get("/status")["loss"].is_number());
  }
  ASSERT_TRUE(cluster().wait(seconds(30), "the others learn",
                             [&] { return node(0).get("/status").value("loss", 9.0) < 1.0; }));
  gone(3);
  node(3).kill_now();
}

}  // namespace
}  // namespace kith::e2e
