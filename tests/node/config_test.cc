#include "node/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <clocale>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "node/config/config_check.h"
#include "node/config/config_keys.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kDigits = std::string(KITH_SOURCE_DIR) + "/data/mnist/";

// -- what is refused, and in which words --

struct BadConfig {
  const char* name;
  const char* toml;
  std::vector<const char*> words;  // all of them are in the message, beside "run.toml:"
};

class RefusedConfig : public testing::TestWithParam<BadConfig> {};

TEST_P(RefusedConfig, NamesLineKeyAndRemedy) {
  const ScratchFolder folder;
  const auto config = load_config(folder.write("run.toml", GetParam().toml), {}, {});
  ASSERT_FALSE(config) << "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::kUsage);
  EXPECT_THAT(config.error().message, HasSubstr("run.toml:"));
  for (const char* word : GetParam().words) EXPECT_THAT(config.error().message, HasSubstr(word));
}

const BadConfig kBad[] = {
    {"MisspeltKey",
     "[train]\n\nmomentun = 0.9\n",
     {":3:", "train.momentun", "did you mean \"train.momentum\"?"}},
    {"SwappedLetters", "[train]\nbacth_size = 1\n", {":2:", "\"train.batch_size\"?"}},
    {"UsualOtherName", "[train]\nlr = 0.1\n", {":2:", "\"train.learning_rate\"?"}},
    {"KeyOfAnotherTable", "[node]\nseed = 1\n", {":2:", "node.seed", "\"run.seed\"?"}},
    {"KeyOutsideTables", "momentum = 0.9\n", {":1:", "\"momentum\"", "\"train.momentum\"?"}},
    {"MisspeltTable", "[trian]\nmomentum = 0.9\n", {":2:", "\"train.momentum\"?"}},
    {"UnknownTable", "[zzzzzz]\nqqqqqqqqqqqq = 1\n", {":2:", "known tables: cluster, node, run"}},
    {"TableInTable", "[train.sgd]\nmomentum = 0.9\n", {":1:", "\"train.sgd\""}},
    {"NumberForTable", "train = 3\n", {":1:", "expected a table [train]", "got 3"}},
    {"ArrayOfTables", "[[train]]\nmomentum = 0.5\n", {":1:", "expected a table [train]"}},
    {"NotToml", "[train]\nmomentum = = 1\n", {":2:", "not valid TOML"}},
    {"UnclosedText", "[run]\nid = \"abc\n", {":2:", "not valid TOML"}},
    {"KeyTwice", "[train]\nmomentum = 0.1\nmomentum = 0.2\n", {":3:", "not valid TOML"}},
    {"TextForNumber",
     "[train]\nmomentum = \"0.9\"\n",
     {":2:", "train.momentum", "a number from 0 to 1 (excluded)", "got \"0.9\""}},
    {"NumberForText", "[run]\nid = 7\n", {":2:", "run.id", "got 7"}},
    {"NumberForBool", "[train]\nnesterov = 1\n", {":2:", "true or false", "got 1"}},
    {"FractionForInteger", "[train]\nbatch_size = 32.0\n", {":2:", "an integer from 1", "got 32"}},
    {"DateForNumber", "[run]\nseed = 2024-01-01\n", {":2:", "run.seed", "a date"}},
    {"ListForNumber", "[run]\nseed = [1]\n", {":2:", "got a list"}},
    {"MomentumOfOne", "[train]\nmomentum = 1.0\n", {":2:", "train.momentum"}},
    {"NegativeMomentum", "[train]\nmomentum = -0.1\n", {":2:", "got -0.1"}},
    {"RateOfZero", "[train]\nlearning_rate = 0\n", {":2:", "above 0", "got 0"}},
    {"InfiniteRate", "[train]\nlearning_rate = inf\n", {":2:", "got inf"}},
    {"RateNotANumber", "[train]\nlearning_rate = nan\n", {":2:", "got nan"}},
    {"BatchOfZero", "[train]\nbatch_size = 0\n", {":2:", "train.batch_size", "got 0"}},
    {"BatchBeyond32Bits", "[train]\nbatch_size = 4294967297\n", {":2:", "got 4294967297"}},
    {"NegativeSeed", "[run]\nseed = -1\n", {":2:", "run.seed", "got -1"}},
    {"SeedBeyond64Bits", "[run]\nseed = 99999999999999999999\n", {":2:", "TOML"}},
    {"UnknownOptimizer",
     "[train]\noptimizer = \"adamm\"\n",
     {":2:", "sgd | adam | adamw", "did you mean \"adam\"?"}},
    {"UnknownSchedule", "[train]\nschedule = \"cosin\"\n", {":2:", "\"cosine\"?"}},
    {"UnknownPreset", "[cluster]\npreset = \"lam\"\n", {":2:", "local | lan | wan", "\"lan\"?"}},
    {"UnknownFormat",
     "[data]\nformat = \"parquet\"\n",
     {":2:", "idx | csv | npy", "got \"parquet\""}},
    {"UnknownModel", "[model]\nkind = \"cmn\"\n", {":2:", "model.kind", "linear", "\"cnn\"?"}},
    {"UnknownMethod", "[method]\nname = \"adpsgd\"\n", {":2:", "ad-psgd"}},
    {"UnknownTopology",
     "[method]\ntopology = \"hypercub\"\n",
     {":2:", "method.topology", "hypercube"}},
    {"UnknownCodec", "[method]\ncodec = \"fp23\"\n", {":2:", "method.codec", "fp32"}},
    {"AlphaTooLarge",
     "[method]\nname = \"elastic-gossip\"\nalpha = 0.75\n",
     {":3:", "method.alpha"}},
    {"EveryZeroSteps", "[method]\nevery_steps = 0\n", {":2:", "method.every_steps", "got 0"}},
    {"EpochsAndSteps",
     "[run]\nepochs = 3\nsteps = 100\n",
     {":3:", "run.steps", "run.epochs", "run.toml:2"}},
    {"NesterovAlone", "[train]\nnesterov = true\n", {":2:", "train.nesterov", "train.momentum"}},
    {"StepWithoutLength", "[train]\nschedule = \"step\"\n", {":2:", "train.step_every"}},
    {"CosineWithoutEnd", "[train]\nschedule = \"cosine\"\n", {":2:", "run.epochs or run.steps"}},
    {"FloorAboveRate",
     "[run]\nepochs = 1\n[train]\nschedule = \"cosine\"\nfloor = 0.5\n",
     {":5:", "train.floor"}},
    {"OneIdxFile", "[data]\ntrain = [\"a\"]\n", {":2:", "two files, inputs and labels", "got 1"}},
    {"TwoCsvFiles",
     "[data]\nformat = \"csv\"\ntrain = [\"a\", \"b\"]\n",
     {":3:", "one file", "got 2"}},
    {"EmptyFileName", "[data]\ntrain = [\"a\", \"\"]\n", {":2:", "data.train"}},
    {"OneTestFile", "[data]\ntest = \"a\"\n", {":2:", "data.test"}},
    {"MeanWithoutStd", "[data]\nmean = 0.1\n", {":2:", "data.std"}},
    {"StdOfZero", "[data]\nmean = 0\nstd = 0\n", {":3:", "data.std", "above 0"}},
    {"OneClass", "[data]\nclasses = 1\n", {":2:", "data.classes"}},
    {"ShardBeyondCount", "[data]\nshard = \"5/4\"\n", {":2:", "k/n", "got \"5/4\""}},
    {"ShardFromZero", "[data]\nshard = \"0/4\"\n", {":2:", "data.shard"}},
    {"ShardWord", "[data]\nshard = \"half\"\n", {":2:", "\"auto\", \"all\""}},
    {"UnknownDevice", "[train]\ndevice = \"gpu\"\n", {":2:", "cuda:N"}},
    {"EmptyChannels", "[model]\nchannels = []\n", {":2:", "at least one block"}},
    {"ChannelOfZero", "[model]\nchannels = [16, 0]\n", {":2:", "integers from 1", "got 0"}},
    {"ChannelsOfText", "[model]\nchannels = [\"16\"]\n", {":2:", "model.channels"}},
    {"OneChannel", "[model]\nchannels = 16\n", {":2:", "a list of integers"}},
    {"FragmentNotOfFour", "[exchange]\nfragment_bytes = 4194303\n", {":2:", "multiple of 4"}},
    {"FragmentOfZero", "[exchange]\nfragment_bytes = 0\n", {":2:", "from 4"}},
    {"ChunkNotOfFour", "[exchange]\nchunk_bytes = 1022\n", {":2:", "multiple of 4"}},
    {"ChunkAboveMebibyte", "[exchange]\nchunk_bytes = 2097152\n", {":2:", "to 1048576"}},
    {"ChunkAboveFragment",
     "[exchange]\nfragment_bytes = 16384\nchunk_bytes = 32768\n",
     {":3:", "exchange.fragment_bytes"}},
    {"TooManyChunks",
     "[exchange]\nfragment_bytes = 4194304\nchunk_bytes = 64\n",
     {":3:", "at most 4096"}},
    {"LagOfZero", "[exchange]\nmax_lag = \"0%\"\n", {":2:", "\"10%\""}},
    {"LagAboveAll", "[exchange]\nmax_lag = \"101%\"\n", {":2:", "exchange.max_lag"}},
    {"LagWord", "[exchange]\nmax_lag = \"much\"\n", {":2:", "got \"much\""}},
    {"KeepZero", "[checkpoint]\nkeep = 0\n", {":2:", "checkpoint.keep", "from 1"}},
    {"DurationWithoutUnit", "[run]\nstart_timeout = 5\n", {":2:", "\"1.5s\"", "got 5"}},
    {"NegativeDuration", "[run]\nstart_timeout = \"-1s\"\n", {":2:", "run.start_timeout"}},
    {"DurationOfUnknownUnit", "[run]\nstart_timeout = \"5 parsecs\"\n", {":2:", "parsecs"}},
    {"NoMembers", "[run]\nstart_members = 0\n", {":2:", "run.start_members"}},
    {"NameWithSlash", "[node]\nname = \"a/b\"\n", {":2:", "node.name", "got \"a/b\""}},
    {"EmptyRunId", "[run]\nid = \"\"\n", {":2:", "run.id"}},
    {"KeyForItsFile",
     "[cluster]\nkey_file = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n",
     {":2:", "path of a file"}},
    {"PlanesCollide",
     "[node]\nlisten = \"127.0.0.1:7400\"\nlisten_bulk = \"127.0.0.1:7400\"\n",
     {":3:", "same address"}},
    {"HttpOnBulkPlane",
     "[node]\nlisten = \"127.0.0.1:7400\"\nhttp = \"127.0.0.1:7401\"\n",
     {":3:", "bulk plane"}},
    {"NoPortForBulk", "[node]\nlisten = \"127.0.0.1:65535\"\n", {":2:", "node.listen_bulk"}},
    {"UnknownLogLevel",
     "[log]\nlevel = \"warning\"\n",
     {":2:", "trace | debug | info | warn | error"}},
};
INSTANTIATE_TEST_SUITE_P(Table, RefusedConfig, testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Config, NeverRepeatsAKeyThatStandsWhereItsFileBelongs) {
  const std::string key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  const auto config = load_config("", {{"cluster.key_file", key}}, {});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, Not(HasSubstr("001122")));
}

TEST(Config, ReportsTheFirstWrongLine) {
  const ScratchFolder folder;
  const auto config = load_config(
      folder.write("run.toml", "[train]\nbatch_size = 0\n[cluster]\nzzz = 1\n"), {}, {});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("run.toml:2:"));
}

TEST(Config, SaysWhyAFileCannotBeRead) {
  const ScratchFolder folder;
  const auto missing = load_config(folder.file("none.toml"), {}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(exit_code(missing.error().code), 2);
  EXPECT_THAT(missing.error().message, HasSubstr("none.toml: No such file"));
  const auto is_folder = load_config(folder.path(), {}, {});
  ASSERT_FALSE(is_folder);
  EXPECT_THAT(is_folder.error().message, HasSubstr("not a file"));
}

// -- precedence and origins --

TEST(Precedence, IsFlagThenEnvironmentThenFileThenDefault) {
  const ScratchFolder folder;
  const std::string file =
      folder.write("run.toml", "[train]\nmomentum = 0.1\nbatch_size = 8\n[run]\nseed = 1\n");
  const auto config = load_config(file, {{"train.momentum", "0.3"}, {"train.momentum", "0.4"}},
                                  {{"KITH_TRAIN_MOMENTUM", "0.2"}, {"KITH_RUN_SEED", "2"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->train.momentum, 0.4);  // the last of two flags
  EXPECT_EQ(config->run.seed, 2U);
  EXPECT_EQ(config->train.batch_size, 8U);
  EXPECT_EQ(config->origin.at("train.momentum"), "flag");
  EXPECT_EQ(config->origin.at("run.seed"), "environment KITH_RUN_SEED");
  EXPECT_EQ(config->origin.at("train.batch_size"), "file " + file + ":3");
  EXPECT_EQ(config->origin.at("train.threads"), "default");
}

TEST(Environment, RefusesWhatLooksLikeAKeyAndIsNone) {
  const auto config = load_config("", {}, {{"KITH_NODE_LISTN", "127.0.0.1:7400"}});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("KITH_NODE_LISTN"));
  EXPECT_THAT(config.error().message, HasSubstr("KITH_NODE_LISTEN?"));
  EXPECT_TRUE(
      load_config("", {}, {{"KITH_AT", "x"}, {"KITH_TORCH_ROOT", "y"}, {"KITH_FAULTS", "z"}}));
}

TEST(Environment, NamesTheVariableInItsErrors) {
  const auto config = load_config("", {}, {{"KITH_TRAIN_BATCH_SIZE", "many"}});
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message,
              HasSubstr("KITH_TRAIN_BATCH_SIZE: train.batch_size: expected an integer"));
}

TEST(Environment, AnEmptyVariableIsNone) {
  const auto config = load_config("", {}, {{"KITH_RUN_SEED", ""}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->origin.at("run.seed"), "default");
}

TEST(Flags, TakeTheValueAsTomlAndElseAsText) {
  const auto config = load_config("",
                                  {{"run.id", "7"},
                                   {"node.name", "'x'"},
                                   {"model.hidden", "[8, 9]"},
                                   {"model.channels", "4,5"},
                                   {"exchange.max_lag", "500"},
                                   {"run.start_timeout", "2m"},
                                   {"data.train", "a b,c"},
                                   {"data.mean", "1"},
                                   {"data.std", "0.5"}},
                                  {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->run.id, "7");
  EXPECT_EQ(config->node.name, "x");
  EXPECT_EQ(config->model.hidden, (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(config->model.channels, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(config->exchange.max_lag, "500");
  EXPECT_EQ(config->run.start_timeout, std::chrono::minutes(2));
  EXPECT_EQ(config->data.train, (std::vector<std::string>{"a b", "c"}));
}

TEST(Flags, RefuseUnknownKeysAndInjectedLines) {
  const auto unknown = load_config("", {{"trian.momentum", "1"}}, {});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(
      unknown.error().message,
      HasSubstr("command line: unknown key \"trian.momentum\"; did you mean \"train.momentum\"?"));
  EXPECT_FALSE(load_config("", {{"run.seed", "1\nmomentum = 2"}}, {}));
  EXPECT_FALSE(load_config("", {{"node.name", "a\x1b[31m"}}, {}));
  EXPECT_FALSE(load_config("", {{"node.name", "a\xff"}}, {}));
}

// -- defaults, paths, notes --

TEST(Defaults, NameTheHostAndGiveEachNodeItsOwnFolder) {
  const auto config = load_config("", {{"node.name", "b"}}, {});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->node.data_dir, "kith-data/b");
  EXPECT_FALSE(load_config("", {}, {})->node.name.empty());
}

TEST(Defaults, TheChunkFollowsASmallFragment) {
  const auto config = load_config("", {{"exchange.fragment_bytes", "16384"}}, {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->exchange.chunk_bytes, 16384U);
}

TEST(Paths, InTheFileAreRelativeToItsFolder) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "sub/run.toml", "[data]\ntrain = [\"../x\", \"/abs/y\"]\n[node]\ndata_dir = \"d\"\n");
  const auto config = load_config(file, {}, {});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->data.train[0], folder.file("x"));
  EXPECT_EQ(config->data.train[1], "/abs/y");
  EXPECT_EQ(config->node.data_dir, folder.file("sub/d"));
  EXPECT_EQ(load_config(file, {{"node.data_dir", "e"}}, {})->node.data_dir, "e");
  const std::string automatic = folder.write("sub/auto.toml", "[node]\ndata_dir = \"auto:d\"\n");
  EXPECT_EQ(load_config(automatic, {}, {})->node.data_dir, "auto:" + folder.file("sub/d"));
}

TEST(Notes, NameKeysThatDoNotApplyOnce) {
  const ScratchFolder folder;
  const auto config = load_config(folder.write("run.toml",
                                               "[train]\noptimizer = \"adam\"\nmomentum = "
                                               "0.9\n[model]\nkind = \"linear\"\nhidden = [5]\n"),
                                  {}, {});
  ASSERT_TRUE(config);
  ASSERT_EQ(config->notes.size(), 2U);
  EXPECT_THAT(config->notes[0],
              HasSubstr("run.toml:3: train.momentum does not apply to adam: ignored"));
  EXPECT_THAT(config->notes[1], HasSubstr("model.hidden does not apply to model linear"));
  EXPECT_TRUE(load_config("", {{"train.optimizer", "adam"}}, {})->notes.empty());
}

TEST(Files, AreLookedForBeforeAnythingStarts) {
  const ScratchFolder folder;
  const auto none = load_config("", {}, {});
  EXPECT_EQ(exit_code(check_files(*none).error().code), 2);
  const auto missing = load_config(
      "", {{"data.train", kDigits + "train-images-idx3-ubyte.gz," + folder.file("labels")}}, {});
  ASSERT_TRUE(missing) << missing.error().message;
  const Status status = check_files(*missing);
  ASSERT_FALSE(status);
  EXPECT_EQ(exit_code(status.error().code), 8);
  EXPECT_THAT(status.error().message, HasSubstr("labels\": No such file"));
  const auto keyless = load_config("",
                                   {{"data.train", kDigits + "train-images-idx3-ubyte.gz," +
                                                       kDigits + "train-labels-idx1-ubyte.gz"},
                                    {"cluster.key_file", folder.file("key")}},
                                   {});
  EXPECT_THAT(check_files(*keyless).error().message, HasSubstr("kith keygen"));
  EXPECT_EQ(exit_code(check_files(*keyless).error().code), 2);
}

TEST(Example, OfTheInterfaceIsAccepted) {
  const ScratchFolder folder;
  const std::string file = folder.write("run.toml", R"(
[cluster]
name = "digits"
join = ["127.0.0.1:7400"]
key_file = "cluster.key"
preset = "local"
[node]
name = "a"
listen = "127.0.0.1:7400"
advertise = ""
http = "127.0.0.1:7480"
data_dir = "run/a"
[run]
id = "digits-1"
seed = 7
epochs = 3
start_members = 1
start_timeout = "0s"
[model]
kind = "cnn"
channels = [16, 32]
hidden = [64]
[data]
format = "idx"
train = ["train-images.gz", "train-labels.gz"]
test = ["test-images.gz", "test-labels.gz"]
classes = 10
shard = "auto"
shard_by = "index"
[train]
optimizer = "sgd"
learning_rate = 0.05
momentum = 0.9
schedule = "constant"
batch_size = 32
weight_decay = 0.0
threads = 1
device = "auto"
min_step_ms = 0
[method]
name = "ad-psgd"
[exchange]
fragment_bytes = 4194304
chunk_bytes = 1048576
max_lag = "10%"
[checkpoint]
every_seconds = 30
keep = 3
)");
  const auto config = load_config(file, {}, {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->run.epochs, 3);
  EXPECT_EQ(config->cluster.preset.grace, std::chrono::seconds(2));
  EXPECT_EQ(config->data.classes, 10);
}

TEST(Presets, SetTheTimeoutsOfTheInterface) {
  const auto wan = load_config("", {{"cluster.preset", "wan"}}, {});
  ASSERT_TRUE(wan);
  EXPECT_EQ(wan->cluster.preset.probe_interval, std::chrono::seconds(5));
  EXPECT_EQ(wan->cluster.preset.grace, std::chrono::seconds(30));
  EXPECT_EQ(wan->cluster.preset.seed_retry, std::chrono::seconds(15));
}

// -- show --

TEST(Show, ListsEveryKeyWithValueAndOrigin) {
  const auto config = load_config("", {{"train.momentum", "0.25"}}, {});
  ASSERT_TRUE(config);
  const std::string table = show_config(*config, false);
  const auto json = nlohmann::json::parse(show_config(*config, true));
  for (const KeyInfo& key : config_keys()) {
    EXPECT_THAT(table, HasSubstr(std::string(key.name)));
    EXPECT_TRUE(json["values"].contains(std::string(key.name))) << key.name;
  }
  EXPECT_EQ(json["values"]["train.momentum"]["value"], 0.25);
  EXPECT_EQ(json["values"]["train.momentum"]["origin"], "flag");
  EXPECT_TRUE(json["values"]["data.mean"]["value"].is_null());
}

TEST(Show, WhatItPrintsCanBeReadBack) {
  const auto config = load_config(
      "", {{"run.start_timeout", "1.5s"}, {"model.hidden", "[3]"}, {"node.name", "n"}}, {});
  ASSERT_TRUE(config);
  std::vector<Flag> flags;
  for (const KeyInfo& key : config_keys())
    if (const std::string text = value_text(key, *config); !text.empty())
      flags.push_back({std::string(key.name), text});
  const auto again = load_config("", flags, {});
  ASSERT_TRUE(again) << again.error().message;
  for (const KeyInfo& key : config_keys())
    EXPECT_EQ(value_text(key, *again), value_text(key, *config)) << key.name;
}

TEST(Keys, EachHasHelpAndADefaultWithinItsRange) {
  for (const KeyInfo& key : config_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(expected_of(key).empty()) << key.name;
    EXPECT_THAT(describe_keys(), HasSubstr(std::string(key.name)));
  }
}

// A locale whose decimal sign is a comma must not change what is read or written. It is made for
// the test, since small machines have none; run in a child, because a locale is a property of the
// whole process.
TEST(Locale, WithDecimalCommaChangesNothing) {
  const ScratchFolder folder;
  const std::string command =
      "localedef -i de_DE -f UTF-8 " + folder.file("de_DE.UTF-8") + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0)
    GTEST_SKIP() << "localedef cannot make a de_DE locale here";
  const std::string file =
      folder.write("run.toml", "[train]\nmomentum = 0.75\n[run]\nstart_timeout = \"1.5s\"\n");
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("LOCPATH", folder.path().c_str(), 1);
    if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) ::_exit(3);
    if (std::string(std::localeconv()->decimal_point) != ",") ::_exit(4);
    try {
      std::locale::global(std::locale("de_DE.UTF-8"));
    } catch (const std::exception&) {
      ::_exit(5);
    }
    const auto config =
        load_config(file, {{"train.floor", "0.125"}}, {{"KITH_TRAIN_BETA1", "0.5"}});
    const bool same = config && config->train.momentum == 0.75 && config->train.floor == 0.125 &&
                      config->train.beta1 == 0.5 &&
                      config->run.start_timeout == std::chrono::milliseconds(1500);
    const bool dots = same && show_config(*config, true).find("0.75") != std::string::npos &&
                      show_config(*config, false).find("0.75") != std::string::npos;
    ::_exit(!same ? 1 : !dots ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "the locale that was made cannot be used here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace kith::node
