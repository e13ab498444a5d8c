#include "node/cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gossip/method.h"
#include "node/cli/cli_table.h"
#include "node/cli/control_client.h"
#include "node/config/config_keys.h"
#include "tests/node/fake_daemon.h"
#include "tests/node/store_harness.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int code;
  std::string out, err;
};

Outcome kith(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& environment = {}) {
  std::ostringstream out, err;
  const int code = run_cli(arguments, environment, out, err);
  return {code, out.str(), err.str()};
}

// -- usage --

TEST(CliUsage, WrongCommandLinesExitWithTwoAndSayWhat) {
  struct Case {
    std::vector<std::string> arguments;
    const char* word;
  };
  const Case cases[] = {
      {{}, "subcommand"},
      {{"statsu"}, "did you mean \"status\"?"},
      {{"checkpoint"}, "subcommand"},
      {{"checkpoint", "sohw"}, "did you mean \"show\"?"},
      {{"status", "--bogus"}, "--bogus"},
      {{"status", "-o", "yaml"}, "yaml"},
      {{"join"}, "address"},
      {{"join", "a:99999", "--at", "/tmp"}, "65535"},
      {{"checkpoint", "export"}, "kith checkpoint export --at DATA_DIR -o model.safetensors"},
      {{"checkpoint", "export", "--averaged", "--at", "run/a"},
       "kith checkpoint export --averaged --at run/a -o model.safetensors"},
      {{"checkpoint", "export", "old"}, "kith checkpoint export old -o model.safetensors"},
      {{"checkpoint", "export", "-o", "x"}, "--at DATA_DIR"},
      {{"checkpoint", "now"}, "--at DATA_DIR"},
      {{"status", "--at", "nonsense"}, "nonsense"},
      {{"simulate", "--nodes", "none"}, "--nodes"},
      {{"simulate", "--method", "adpsgd"}, "ad-psgd"},
      {{"config", "show", "-c", "/no/such.toml"}, "/no/such.toml"},
      {{"config", "show", "--set", "train.lr=1"}, "train.learning_rate"},
  };
  for (const Case& c : cases) {
    const Outcome result = kith(c.arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(c.arguments) << result.err;
    EXPECT_THAT(result.err, StartsWith("kith: "));
    EXPECT_THAT(result.err, HasSubstr(c.word));
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliUsage, HelpAndVersionGoToOutAndSucceed) {
  EXPECT_THAT(kith({"--help"}).out, HasSubstr("checkpoint"));
  EXPECT_EQ(kith({"--help"}).code, 0);
  EXPECT_THAT(kith({"checkpoint", "export", "--help"}).out, HasSubstr("--averaged"));
  EXPECT_THAT(kith({"simulate", "--help"}).out, HasSubstr("--loss"));
  EXPECT_THAT(kith({"--version"}).out, HasSubstr("kith 0."));
}

// -- no daemon --

TEST(CliNoDaemon, EveryCommandThatNeedsOneExitsWithThree) {
  const ScratchFolder folder;
  folder.write("stale/control.sock", "");
  folder.write("stale/http", "127.0.0.1:1\n");
  for (const std::string& at :
       {folder.path(), folder.file("stale"), folder.file("missing"), std::string("127.0.0.1:1")}) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"status"}, {"members"}, {"health"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--at", at});
      const Outcome result = kith(arguments);
      EXPECT_EQ(result.code, 3) << at << result.err;
      EXPECT_THAT(result.err, HasSubstr(at == folder.file("stale") ? "127.0.0.1:1" : at));
      EXPECT_EQ(result.out, "");
    }
  }
  for (const char* command : {"leave", "join"}) {
    std::vector<std::string> arguments = {command, "--at", folder.path()};
    if (std::string(command) == "join") arguments.push_back("a:1");
    EXPECT_EQ(kith(arguments).code, 3);
  }
  EXPECT_EQ(kith({"checkpoint", "now", "--at", folder.path()}).code, 3);
  EXPECT_EQ(kith({"status"}, {{"KITH_AT", folder.file("missing")}}).code, 3);
}

TEST(CliNoDaemon, WhatADaemonThatLeftWroteStandsForNone) {
  const ScratchFolder folder;
  folder.write("http", "127.0.0.1:1\n");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"checkpoint", "now"}, {"leave"}, {"join", "a:1"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--at", folder.path()});
    const Outcome result = kith(arguments);
    EXPECT_EQ(result.code, 3) << command[0] << result.err;
    EXPECT_THAT(result.err, HasSubstr("no daemon runs with --data-dir " + folder.path()));
  }
}

TEST(CliNoDaemon, AnHttpFileThatIsNoRegularFileIsNamedAndNotWaitedFor) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("http").c_str(), 0600), 0);
  const Outcome result = kith({"status", "--at", folder.path()});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("http is no regular file"));
}

TEST(CliNoDaemon, ASocketThatNobodyServesIsNamed) {
  const ScratchFolder folder;
  { FakeDaemon gone(folder.path()); }
  ASSERT_TRUE(fs::is_socket(folder.file("control.sock")));
  const Outcome result = kith({"leave", "--at", folder.path()});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("control.sock: nobody answers"));
}

// -- reads --

TEST(CliReads, WorkOverAddressDirectoryAndEnvironment) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  for (const std::string& at :
       {folder.path(), daemon.address(), "http://" + daemon.address() + "/"}) {
    const Outcome result = kith({"status", "--at", at, "-o", "json"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out)["step"], 1240);
  }
  EXPECT_EQ(kith({"status"}, {{"KITH_AT", folder.path()}}).code, 0);
  fs::remove(folder.file("control.sock"));
  EXPECT_EQ(kith({"status", "--at", folder.path()}).code, 0)
      << "falls back to the address in data_dir/http";
}

TEST(CliReads, ASocketDeepInTheTreeIsReached) {
  const ScratchFolder folder;
  const std::string deep = folder.file(std::string(90, 'd') + "/" + std::string(90, 'e'));
  fs::create_directories(deep);
  {
    FakeDaemon daemon(folder.path());
    fs::rename(folder.file("control.sock"), deep + "/control.sock");
    EXPECT_EQ(kith({"leave", "--at", deep}).code, 0);
    EXPECT_EQ(daemon.commands(), std::vector<std::string>{"leave"});
  }
}

TEST(CliReads, StatusAsTableHasOneLineAKey) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  const Outcome result = kith({"status", "--at", folder.path()});
  EXPECT_THAT(result.out, HasSubstr("step      1240\n"));
  EXPECT_THAT(result.out, HasSubstr("loss      0.123457\n"));
  EXPECT_THAT(result.out, HasSubstr("accuracy  -\n"));
}

TEST(CliReads, MembersAreAlignedAndTamed) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  const Outcome result = kith({"members", "--at", folder.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("NAME"));
  EXPECT_THAT(result.out, HasSubstr("00112233 "));
  EXPECT_THAT(result.out, HasSubstr("evil\\x1b[2J"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out, HasSubstr("LAG: steps that its model is behind the deepest living one"));
  EXPECT_EQ(
      nlohmann::json::parse(kith({"members", "-o", "json", "--at", folder.path()}).out)["members"]
          .size(),
      2U);
}

TEST(CliReads, HealthExitsWithTenWhenUnhealthy) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  EXPECT_EQ(kith({"health", "--at", folder.path()}).code, 0);
  EXPECT_EQ(kith({"health", "--at", folder.path()}).out, "ok    trainer: step 3\n");
  daemon.health =
      R"({"healthy": false, "ready": false, "checks": [{"name": "trainer", "ok": false, "text": "not finite"}]})";
  const Outcome result = kith({"health", "--at", folder.path()});
  EXPECT_EQ(result.code, 10);
  EXPECT_EQ(result.out, "FAIL  trainer: not finite\n");
  EXPECT_EQ(kith({"health", "--at", daemon.address(), "-o", "json"}).code, 10);
  daemon.health = R"({"healthy": true, "well": false, "ready": false, "checks": [
      {"name": "members", "concern": "people", "ok": false, "text": "isolated"}]})";
  EXPECT_EQ(kith({"health", "--at", folder.path()}).code, 10);
  EXPECT_EQ(kith({"health", "--at", folder.path()}).out, "FAIL  members: isolated\n");
  daemon.health = R"({"healthy": true, "well": true, "ready": false, "checks": [
      {"name": "joined", "concern": "readiness", "ok": false, "text": "waiting"}]})";
  EXPECT_EQ(kith({"health", "--at", folder.path()}).code, 0);
  EXPECT_EQ(kith({"health", "--at", folder.path()}).out, "wait  joined: waiting\n");
}

TEST(CliReads, SomethingElseOnThePortIsAnErrorNotACrash) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  for (const char* nonsense :
       {"", "hello", "[1]", "{\"members\": 3}", "{\"checks\": 3}", "{\"members\": [3]}"}) {
    daemon.status = daemon.members = daemon.health = nonsense;
    for (const char* command : {"status", "members", "health"}) {
      const int code = kith({command, "--at", folder.path()}).code;
      EXPECT_TRUE(code == 0 || code == 1 || code == 10)
          << command << " " << nonsense << " " << code;
    }
  }
}

// -- commands --

TEST(CliCommands, GoOnlyOverTheSocket) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  const Outcome refused = kith({"leave", "--at", daemon.address()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--at DATA_DIR"));
  EXPECT_TRUE(daemon.commands().empty());
  EXPECT_EQ(kith({"leave", "--at", folder.path()}).out, "done\n");
  EXPECT_EQ(kith({"join", "hostA", "--at", folder.path()}).code, 0);
  EXPECT_EQ(kith({"checkpoint", "now", "--at", folder.path()}).code, 0);
  EXPECT_EQ(daemon.commands(),
            (std::vector<std::string>{"leave", "join address=hostA:7400", "checkpoint"}));
}

TEST(CliCommands, ExportOfALiveStateNamesAnAbsolutePath) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  EXPECT_EQ(
      kith({"checkpoint", "export", "--averaged", "-o", "a &b.safetensors", "--at", folder.path()})
          .code,
      0);
  const std::string absolute = (fs::current_path() / "a &b.safetensors").string();
  EXPECT_EQ(daemon.commands(), std::vector<std::string>{"export averaged=1 path=" + absolute});
}

TEST(CliCommands, TheDaemonsRefusalKeepsItsCode) {
  const ScratchFolder folder;
  FakeDaemon daemon(folder.path());
  daemon.reply = R"({"ok": false, "code": 5, "message": "another run"})";
  EXPECT_EQ(kith({"join", "a:1", "--at", folder.path()}).code, 5);
  EXPECT_THAT(kith({"join", "a:1", "--at", folder.path()}).err, HasSubstr("another run"));
  daemon.reply = R"({"ok": false, "message": "no room"})";
  EXPECT_EQ(kith({"checkpoint", "now", "--at", folder.path()}).code, 1);
  for (const char* nonsense : {"", "{}", "{\"ok\": 1}", "[]"}) {
    daemon.reply = nonsense;
    EXPECT_EQ(kith({"leave", "--at", folder.path()}).code, 1) << nonsense;
  }
}

// -- files --

TEST(CliKeygen, WritesAPrivateKeyOnceAndNeverOverwrites) {
  const ScratchFolder folder;
  const std::string path = folder.file("cluster.key");
  EXPECT_EQ(kith({"keygen", path}).code, 0);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  const std::string key = read_whole(path);
  EXPECT_EQ(key.size(), 65U);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), 64U);
  const Outcome again = kith({"keygen", path});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists"));
  EXPECT_EQ(read_whole(path), key);
  EXPECT_EQ(kith({"keygen", folder.file("other")}).code, 0);
  EXPECT_NE(read_whole(folder.file("other")), key);
  EXPECT_EQ(kith({"keygen", folder.file("no/folder/key")}).code, 1);
}

TEST(CliCheckpoint, ShowsAndExportsWithoutADaemon) {
  StoreHarness h(3, "", 300);
  h.folder = h.scratch.file("checkpoints");
  ASSERT_TRUE(h.write(9));
  ASSERT_TRUE(h.write(10));
  const std::string newest = h.store.files()[0];
  EXPECT_THAT(kith({"checkpoint", "show", newest}).out, HasSubstr("intact"));
  EXPECT_EQ(
      nlohmann::json::parse(
          kith({"checkpoint", "show", h.scratch.path(), "-o", "json"}).out)["metadata"]["step"],
      "10");
  const std::string to = h.scratch.file("out.safetensors");
  for (const std::vector<std::string>& from : std::vector<std::vector<std::string>>{
           {newest}, {h.scratch.path()}, {"--at", h.scratch.path()}}) {
    fs::remove(to);
    std::vector<std::string> arguments = {"checkpoint", "export", "-o", to};
    arguments.insert(arguments.end(), from.begin(), from.end());
    const Outcome result = kith(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(SafetensorsFile::open(to));
  }
  EXPECT_EQ(kith({"checkpoint", "export", "--averaged", "-o", to, h.scratch.path()}).code, 1);
  EXPECT_EQ(kith({"checkpoint", "show", h.scratch.file("none")}).code, 1);
  const Outcome bad = kith({"checkpoint", "show", h.scratch.write("x", "nonsense")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr(h.scratch.file("x")));
}

TEST(CliConfig, ShowsAndChecks) {
  const ScratchFolder folder;
  folder.write("d.csv", "1,0\n");
  const std::string file =
      folder.write("run.toml", "[data]\nformat = \"csv\"\ntrain = \"d.csv\"\n");
  EXPECT_THAT(kith({"config", "check", "-c", file}).out, HasSubstr("is valid (digest"));
  const Outcome shown = kith({"config", "show", "-c", file, "--set", "run.seed=5", "--set",
                              "model.hidden=[1, 2]", "-o", "json"},
                             {{"KITH_NODE_NAME", "n"}});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto values = nlohmann::json::parse(shown.out)["values"];
  EXPECT_EQ(values["run.seed"]["value"], 5);
  EXPECT_EQ(values["model.hidden"]["value"], nlohmann::json({1, 2}));
  EXPECT_EQ(values["node.name"]["origin"], "environment KITH_NODE_NAME");
  fs::remove(folder.file("d.csv"));
  EXPECT_EQ(kith({"config", "check", "-c", file}).code, 8);
  EXPECT_EQ(nlohmann::json::parse(kith({"config", "keys", "-o", "json"}).out).size(),
            config_keys().size());
}

// -- lists and the simulator --

TEST(CliLists, ComeFromTheTables) {
  for (const auto& m : gossip::methods())
    EXPECT_THAT(kith({"methods"}).out, HasSubstr(std::string(m.name)));
  EXPECT_EQ(nlohmann::json::parse(kith({"methods", "-o", "json"}).out).size(),
            gossip::methods().size());
  EXPECT_THAT(kith({"models"}).out, HasSubstr("linear"));
  EXPECT_THAT(kith({"topologies"}).out, HasSubstr("hypercube"));
  EXPECT_THAT(kith({"-o", "json", "codecs"}).out, HasSubstr("\"bf16\""));
}

TEST(CliSimulate, EndsWithTheLineThatScriptsRead) {
  const std::vector<std::string> arguments = {"simulate", "--nodes", "8",      "--seconds", "2",
                                              "--seed",   "7",       "--loss", "0.1"};
  const Outcome result = kith(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  const auto last = result.out.substr(result.out.rfind('\n', result.out.size() - 2) + 1);
  EXPECT_THAT(last, StartsWith("seed=7 events="));
  EXPECT_THAT(last, HasSubstr("violations=0"));
  EXPECT_EQ(kith(arguments).out, result.out);
}

TEST(CliSimulate, AViolationExitsWithOneAndTheCommandThatReplaysIt) {
  const Outcome result =
      kith({"simulate", "--nodes", "8", "--seconds", "5", "--seed", "7", "--loss", "0.2",
            "--duplicate", "0.2", "--plant", "apply-result-twice"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out + result.err, HasSubstr("kith simulate --nodes 8"));
  EXPECT_THAT(result.out, HasSubstr("violations=1"));
}

// -- tables --

TEST(CliTableText, AlignsWordsLeftAndNumbersRight) {
  CliTable table({"NAME", "STEP"});
  table.add({"B\xc3\xbcro", "7"});
  table.add({"longer", "1240"});
  EXPECT_EQ(table.text(), "NAME    STEP\nB\xc3\xbcro       7\nlonger  1240\n");
}

TEST(PercentEncoding, LeavesNothingThatAQueryWouldSplitAt) {
  EXPECT_EQ(percent_encoded("/a b&c=d%+\xc3\xa4"), "/a%20b%26c%3Dd%25%2B%C3%A4");
}

}  // namespace
}  // namespace kith::node
