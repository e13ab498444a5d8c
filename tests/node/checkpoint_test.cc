#include "node/store/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/fault_point.h"
#include "tests/node/store_harness.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::size_t files_in(const std::string& folder, const std::string& word) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    count += entry.path().filename().string().find(word) != std::string::npos ? 1 : 0;
  return count;
}

TEST(Checkpoint, BringsBackEveryBit) {
  StoreHarness h;
  const auto path = h.write(100);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_THAT(*path, HasSubstr("step-000000000100.safetensors"));
  const auto loaded = h.load();
  ASSERT_TRUE(loaded && *loaded);
  const LoadedCheckpoint& c = **loaded;
  EXPECT_EQ(c.path, *path);
  EXPECT_EQ(c.state.values, h.model.values());
  EXPECT_EQ(c.state.integers, h.image.integers);
  EXPECT_EQ(c.state.optimizer, h.image.optimizer);
  EXPECT_EQ(c.ledger.bytes, h.ledger.bytes);
  ASSERT_TRUE(c.state.own);
  EXPECT_EQ(c.state.own->step, 100U);
  EXPECT_EQ(c.state.own->samples, 3200U);
  EXPECT_EQ(c.state.own->cursor, h.image.cursor);
  EXPECT_EQ(c.state.own->seed, 77U);
  EXPECT_EQ(c.state.own->lr_scale, 0.5);
  EXPECT_EQ(c.state.own->loss, 0.1);
  EXPECT_EQ(c.facts.run_id, "digits-1");
  EXPECT_EQ(c.facts.cluster, "digits");
  EXPECT_EQ(c.facts.schema_hash, h.facts.schema_hash);
  EXPECT_EQ(c.facts.node, h.facts.node);
  EXPECT_EQ(c.facts.incarnation, h.facts.incarnation);
  EXPECT_EQ(c.facts.cluster_progress, h.facts.cluster_progress);
  EXPECT_EQ(c.facts.others_samples, h.facts.others_samples);
  EXPECT_EQ(c.facts.others_steps, h.facts.others_steps);
  EXPECT_EQ(c.facts.epoch, 1.0 / 3.0);
  EXPECT_EQ(c.facts.data_mean, 0.1307);
  EXPECT_TRUE(c.facts.has_trained);
  EXPECT_EQ(c.facts.depth_ahead, -17.0);
}

TEST(Checkpoint, ALossThatIsNotANumberYetComesBackAsSuch) {
  StoreHarness h;
  h.image.loss = std::numeric_limits<double>::quiet_NaN();
  ASSERT_TRUE(h.write(1));
  EXPECT_TRUE(std::isnan((*h.load())->state.own->loss));
}

TEST(Checkpoint, NoneIsNotAnError) {
  StoreHarness h;
  const auto loaded = h.load();
  ASSERT_TRUE(loaded);
  EXPECT_FALSE(*loaded);
}

TEST(Checkpoint, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  StoreHarness h;
  CheckpointStore store(h.scratch.write("file", ""), 3, h.log);
  const auto loaded = store.load_newest(h.schema, h.facts.schema_hash, h.facts.run_id);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("cannot read the folder"));
}

TEST(Checkpoint, TellsWhenTheReplicaIsNoLongerReadOnceAlsoOnError) {
  StoreHarness h;
  int told = 0;
  h.image.step = 1;
  ASSERT_TRUE(h.store.write(h.schema, h.replica, h.image, h.ledger, h.facts, [&] { ++told; }));
  EXPECT_EQ(told, 1);
  CheckpointStore nowhere(h.scratch.write("file", "") + "/sub", 3, h.log);
  const auto failed =
      nowhere.write(h.schema, h.replica, h.image, h.ledger, h.facts, [&] { ++told; });
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("Not a directory"));
  EXPECT_EQ(told, 2);
}

TEST(Checkpoint, NeverHoldsNonFiniteValues) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  h.model.values()[1500] = std::numeric_limits<float>::infinity();
  compute::Replica broken(h.schema.value_count, kFragmentBytes);
  broken.reset(h.model);
  h.image.step = 2;
  const auto failed = h.store.write(h.schema, broken, h.image, h.ledger, h.facts);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kNonFinite);
  EXPECT_EQ(h.loaded_step(), 1U);
  EXPECT_EQ(files_in(h.folder, ""), 1U);
}

// -- numbers, not names --

TEST(CheckpointOrder, IsByNumberAcrossDecimalEdges) {
  for (const auto& [from, to] :
       {std::pair<Step, Step>{8, 12}, {98, 102}, {999999999998, 1000000000002}}) {
    StoreHarness h;
    for (Step step = from; step <= to; ++step) ASSERT_TRUE(h.write(step));
    EXPECT_EQ(h.loaded_step(), to);
    EXPECT_EQ(h.store.files().size(), 3U);
  }
}

TEST(CheckpointOrder, CountsNamesWithoutLeadingZerosToo) {
  StoreHarness h;
  ASSERT_TRUE(h.write(9000));
  ASSERT_TRUE(h.write(10000));
  fs::rename(h.store.files()[1], h.folder + "/step-9000.safetensors");
  fs::rename(h.store.files()[0], h.folder + "/step-10000.safetensors");
  EXPECT_EQ(h.loaded_step(), 10000U);
}

TEST(CheckpointOrder, StrangersInTheFolderAreLeftAlone) {
  StoreHarness h;
  ASSERT_TRUE(h.write(5));
  const std::vector<std::string> names = {
      "step-.safetensors",   "step-x.safetensors", "step-99.safetensors.bak",
      "step--9.safetensors", "notes.txt",          "step-99999999999999999999999.safetensors"};
  for (const std::string& name : names) std::ofstream(h.folder + "/" + name) << "x";
  EXPECT_EQ(h.loaded_step(), 5U);
  for (Step step = 6; step < 10; ++step) ASSERT_TRUE(h.write(step));
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(h.folder + "/" + name)) << name;
}

TEST(CheckpointKeep, OneKeepsTheNewest) {
  StoreHarness h(1);
  for (Step step = 1; step <= 4; ++step) {
    ASSERT_TRUE(h.write(step));
    ASSERT_EQ(h.store.files().size(), 1U);
    EXPECT_EQ(h.loaded_step(), step);
  }
}

TEST(CheckpointKeep, WhatWasJustWrittenStaysWhateverItsNumber) {
  StoreHarness h(1);
  ASSERT_TRUE(h.write(10));
  const auto lower = h.write(4);
  ASSERT_TRUE(lower);
  EXPECT_TRUE(fs::exists(*lower));
}

// -- damage --

void cut_to(const std::string& path, std::uintmax_t size) { fs::resize_file(path, size); }

struct Damage {
  const char* name;
  void (*apply)(const std::string& path);
};
class DamagedCheckpoint : public testing::TestWithParam<Damage> {};

TEST_P(DamagedCheckpoint, FallsBackToTheOneBeforeLoudly) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  const auto newest = h.write(2);
  ASSERT_TRUE(newest);
  GetParam().apply(*newest);
  const auto loaded = h.load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->state.own->step, 1U);
  EXPECT_EQ((*loaded)->state.values, h.model.values());
  EXPECT_TRUE(h.log.contains("error checkpoint"));
  EXPECT_TRUE(h.log.contains("file=" + *newest));
}

void flip_last(const std::string& path) {
  std::string bytes = read_whole(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}
void huge_header(const std::string& path) {
  std::string bytes = read_whole(path);
  std::fill_n(bytes.begin(), 8, '\xff');
  std::ofstream(path, std::ios::binary) << bytes;
}

const Damage kDamages[] = {
    {"ZeroBytes", [](const std::string& p) { cut_to(p, 0); }},
    {"SevenBytes", [](const std::string& p) { cut_to(p, 7); }},
    {"HeaderCut", [](const std::string& p) { cut_to(p, 200); }},
    {"Half", [](const std::string& p) { cut_to(p, fs::file_size(p) / 2); }},
    {"LastByteMissing", [](const std::string& p) { cut_to(p, fs::file_size(p) - 1); }},
    {"OneByteMore", [](const std::string& p) { cut_to(p, fs::file_size(p) + 1); }},
    {"LastByteFlipped", flip_last},
    {"HugeHeaderLength", huge_header},
    {"AllZeros",
     [](const std::string& p) {
       const auto size = fs::file_size(p);
       cut_to(p, 0);
       cut_to(p, size);
     }},
    {"OtherText", [](const std::string& p) { std::ofstream(p) << "<html>404</html>"; }},
    {"Folder",
     [](const std::string& p) {
       fs::remove(p);
       fs::create_directory(p);
     }},
    {"DanglingLink",
     [](const std::string& p) {
       fs::remove(p);
       fs::create_symlink("/nowhere/at/all", p);
     }},
};
INSTANTIATE_TEST_SUITE_P(Table, DamagedCheckpoint, testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CheckpointDamage, AFlippedByteInAnyBlockIsFound) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  const auto newest = h.write(2);
  ASSERT_TRUE(newest);
  const std::string good = read_whole(*newest);
  for (std::size_t at = 17; at < good.size(); at += 4096) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    std::ofstream(*newest, std::ios::binary) << bad;
    EXPECT_EQ(h.loaded_step(), 1U) << "byte " << at;
    fs::remove(*newest + ".corrupt");
  }
  std::ofstream(*newest, std::ios::binary) << good;
  EXPECT_EQ(h.loaded_step(), 2U);
}

TEST(CheckpointDamage, NeverMeansStartingFromZero) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  ASSERT_TRUE(h.write(2));
  for (const std::string& path : h.store.files()) cut_to(path, 0);
  const auto loaded = h.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(loaded.error().message, HasSubstr("step-000000000001"));
  EXPECT_THAT(loaded.error().message, HasSubstr("step-000000000002"));
  EXPECT_THAT(loaded.error().message, HasSubstr("move " + h.folder));
  EXPECT_EQ(h.store.files().size(), 2U) << "nothing was removed or renamed";
}

// The corrupt 100 must not count as one of the newest when training goes on from 50.
TEST(CheckpointDamage, ACorruptFileNeverPushesOutAGoodOne) {
  StoreHarness h(1);
  ASSERT_TRUE(h.write(100));
  const std::string broken = h.store.files()[0];
  CheckpointStore wide(h.folder, 3, h.log);
  h.image.step = 50;
  ASSERT_TRUE(wide.write(h.schema, h.replica, h.image, h.ledger, h.facts));
  cut_to(broken, 10);
  EXPECT_EQ(h.loaded_step(), 50U);
  EXPECT_TRUE(fs::exists(broken + ".corrupt"));
  ASSERT_TRUE(h.write(60));
  EXPECT_EQ(h.loaded_step(), 60U);
}

TEST(CheckpointMatch, AnotherRunOrSchemaIsIncompatibleAndNamesBoth) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  const auto run = h.store.load_newest(h.schema, h.facts.schema_hash, "digits-2");
  ASSERT_FALSE(run);
  EXPECT_EQ(exit_code(run.error().code), 5);
  EXPECT_THAT(run.error().message, HasSubstr("digits-1"));
  EXPECT_THAT(run.error().message, HasSubstr("digits-2"));
  const Hash256 other = hash_bytes(some_bytes(4));
  const auto schema = h.store.load_newest(h.schema, other, "digits-1");
  ASSERT_FALSE(schema);
  EXPECT_EQ(schema.error().code, ErrorCode::kIncompatible);
  EXPECT_THAT(schema.error().message, HasSubstr(other.hex().substr(0, 16)));
  EXPECT_THAT(schema.error().message, HasSubstr(h.facts.schema_hash.hex().substr(0, 16)));
  EXPECT_EQ(h.loaded_step(), 1U);
}

TEST(CheckpointMatch, TensorsThatDoNotFitTheirSchemaAreCorrupt) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  const auto loaded = h.store.load_newest(small_schema(2999), h.facts.schema_hash, "digits-1");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("'0.weight' has another shape"));
}

// -- crashes and full disks --

int run_until_killed(StoreHarness& h, const char* faults) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!arm_faults(faults)) ::_exit(99);
    (void)h.write(2);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

std::string fault(FaultPoint point) { return std::string(to_string(point)) + "=kill@1"; }

TEST(CheckpointCrash, BeforeTheRenameTheOldOneStands) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  ASSERT_EQ(run_until_killed(h, fault(FaultPoint::kCheckpointWritten).c_str()), SIGKILL);
  EXPECT_EQ(files_in(h.folder, ".tmp-"), 1U);
  EXPECT_EQ(h.loaded_step(), 1U);
  EXPECT_EQ(files_in(h.folder, ".tmp-"), 0U) << "what the dead writer left is cleared away";
}

TEST(CheckpointCrash, AfterTheRenameTheNewOneStands) {
  StoreHarness h;
  ASSERT_TRUE(h.write(1));
  ASSERT_EQ(run_until_killed(h, fault(FaultPoint::kCheckpointRenamed).c_str()), SIGKILL);
  EXPECT_EQ(h.loaded_step(), 2U);
}

TEST(CheckpointDisk, FullLeavesTheOldOnesAndNamesFileAndReason) {
  const ScratchFolder mount_point;
  if (::mount("tmpfs", mount_point.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "cannot mount a small tmpfs here: " << std::strerror(errno);
  {
    StoreHarness h(5, mount_point.file("checkpoints"), 30000);  // 240 KB each
    Step step = 1;
    Result<std::string> written = h.write(step);
    while (written && step < 20) written = h.write(++step);
    ASSERT_FALSE(written) << "the disk never filled";
    EXPECT_THAT(written.error().message, HasSubstr("No space left on device"));
    EXPECT_THAT(written.error().message, HasSubstr(mount_point.path()));
    EXPECT_EQ(files_in(h.folder, ".tmp-"), 0U);
    EXPECT_EQ(h.loaded_step(), step - 1);
    fs::remove(h.store.files().back());  // somebody makes room: it goes on
    EXPECT_TRUE(h.write(step));
    EXPECT_EQ(h.loaded_step(), step);
  }
  ::umount(mount_point.path().c_str());
}

// -- export and show --

TEST(Export, KeepsParametersAndBuffersOnly) {
  StoreHarness h;
  const auto path = h.write(1);
  const std::string to = h.scratch.file("out.safetensors");
  const Status done = export_checkpoint(*path, to);
  ASSERT_TRUE(done) << done.error().message;
  const auto file = SafetensorsFile::open(to);
  ASSERT_TRUE(file);
  std::vector<std::string> names;
  for (const auto& t : file->tensors()) names.push_back(t.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("0.weight", "0.bias", "1.running_mean",
                                                   "1.running_var", "1.num_batches_tracked"));
  EXPECT_EQ(file->find("1.num_batches_tracked")->dtype, "I64");
  EXPECT_EQ(std::memcmp(file->bytes("0.weight")->data(), h.model.values().data(), 24000), 0);
  for (const char* key : {"run_id", "progress", "epoch", "model", "data_mean", "data_std",
                          "classes", "accuracy", "version"})
    EXPECT_TRUE(file->metadata().contains(key)) << key;
  EXPECT_FALSE(file->metadata().at("version").empty());
  EXPECT_FALSE(file->metadata().contains("node"));
}

TEST(Export, OfALiveStateGivesWhatItsCheckpointWouldAndCostsNone) {
  StoreHarness h(2);
  ASSERT_TRUE(h.write(1));
  const auto path = h.write(2);
  const auto before = h.store.files();
  ASSERT_EQ(before.size(), 2U);
  const std::string live = h.scratch.file("live.safetensors"),
                    to = h.scratch.file("to.safetensors");
  const Status done = export_values(live, h.schema, h.model.values(), h.image, h.facts);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(h.store.files(), before);
  ASSERT_TRUE(export_checkpoint(*path, to));
  EXPECT_EQ(read_whole(live), read_whole(to));
  EXPECT_FALSE(export_values("/no/such/folder/x", h.schema, h.model.values(), h.image, h.facts));
}

TEST(Export, RefusesACorruptSource) {
  StoreHarness h;
  const auto path = h.write(1);
  flip_last(*path);
  EXPECT_FALSE(export_checkpoint(*path, h.scratch.file("out")));
  EXPECT_FALSE(fs::exists(h.scratch.file("out")));
}

TEST(Show, SaysWhetherTheContentIsIntact) {
  StoreHarness h;
  const auto path = h.write(1);
  EXPECT_THAT(*show_checkpoint(*path, false), HasSubstr("intact"));
  const auto json = nlohmann::json::parse(*show_checkpoint(*path, true));
  EXPECT_EQ(json["metadata"]["step"], "1");
  EXPECT_EQ(json["tensors"].size(), 7U);
  flip_last(*path);
  EXPECT_EQ(nlohmann::json::parse(*show_checkpoint(*path, true))["content"], "corrupt");
}

// -- the final model --

FinalFacts final_facts() {
  return {"digits-1", R"({"kind":"cnn"})", "0.1.0", 24000, 6.0, 0.1307, 0.3081, 0.976, 10};
}

TEST(FinalModel, IsByteIdenticalForEqualInputs) {
  const StoreHarness h;
  StoreHarness& m = const_cast<StoreHarness&>(h);
  const std::vector<std::int64_t> integers = {7};
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(write_final_model(h.scratch.file(name), h.schema, m.model.values(), integers,
                                  final_facts()));
  EXPECT_EQ(read_whole(h.scratch.file("a")), read_whole(h.scratch.file("b")));
  m.model.values()[0] += 1;
  ASSERT_TRUE(
      write_final_model(h.scratch.file("b"), h.schema, m.model.values(), integers, final_facts()));
  EXPECT_NE(read_whole(h.scratch.file("a")), read_whole(h.scratch.file("b")));
}

TEST(FinalModel, BringsBackFactsValuesAndIntegers) {
  StoreHarness h;
  const std::string path = h.scratch.file("model.safetensors");
  EXPECT_FALSE(*load_final_model(path, h.schema));
  const std::vector<std::int64_t> integers = {7};
  ASSERT_TRUE(write_final_model(path, h.schema, h.model.values(), integers, final_facts()));
  const auto loaded = load_final_model(path, h.schema);
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->values, h.model.values());
  EXPECT_EQ((*loaded)->integers, integers);
  EXPECT_EQ((*loaded)->facts.accuracy, 0.976);
  EXPECT_EQ((*loaded)->facts.progress, 24000U);
  EXPECT_EQ(load_final_model(path, small_schema(2)).error().code, ErrorCode::kIncompatible);
  flip_last(path);
  EXPECT_EQ(load_final_model(path, h.schema).error().code, ErrorCode::kCorrupt);
}

TEST(FinalModel, IsNotWrittenWhenNonFinite) {
  StoreHarness h;
  h.model.values()[3] = std::nanf("");
  EXPECT_FALSE(write_final_model(h.scratch.file("m"), h.schema, h.model.values(), h.image.integers,
                                 final_facts()));
  EXPECT_FALSE(fs::exists(h.scratch.file("m")));
}

// What users do next: load the file in Python. Needs Python's own safetensors package.
TEST(FinalModel, LoadsInPythonWithItsSafetensors) {
  const std::string python = "PYTHONPATH='" KITH_BINARY_DIR "/python' python3 ";
  if (std::system((python + "-c 'import safetensors.numpy' >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "no Python with safetensors here (the test python_safetensors fetches it)";
  StoreHarness h;
  const auto checkpoint = h.write(3);
  const std::string model = h.scratch.file("model.safetensors");
  const std::string exported = h.scratch.file("export.safetensors");
  ASSERT_TRUE(
      write_final_model(model, h.schema, h.model.values(), h.image.integers, final_facts()));
  ASSERT_TRUE(export_checkpoint(*checkpoint, exported));
  const std::string script = h.scratch.write("check.py", R"(
import sys
from safetensors import safe_open
from safetensors.numpy import load_file
for path in sys.argv[1:]:
    t = load_file(path)
    assert t["0.weight"].shape == (3000, 2) and t["0.weight"].dtype == "float32", t["0.weight"]
    assert t["0.weight"][1, 1] == 0.75, t["0.weight"][1, 1]
    assert t["1.num_batches_tracked"].shape == () and int(t["1.num_batches_tracked"]) == 1234567890123
    with safe_open(path, framework="numpy") as f:
        assert f.metadata()["run_id"] == "digits-1"
)");
  const std::string command = python + script + " " + model + " " + exported + " " + *checkpoint;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace kith::node
