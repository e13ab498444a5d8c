// `kith doctor` against real nodes, one failure each: what it finds first, the remedy that it
// names, and that it leaves no trace in the cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Slow steps: the run lasts as long as the test.
std::string doctor_config() { return digits_config("linear", 7, "min_step_ms = 50\n"); }

struct Findings {
  int code = -1;
  json report;
  [[nodiscard]] json check(const std::string& name) const {
    for (const json& c : report.value("checks", json::array()))
      if (c["name"] == name) return c;
    return json::object();
  }
  [[nodiscard]] std::string result(const std::string& name) const {
    return check(name).value("result", "absent");
  }
  // "name: text -> remedy" of the first failure.
  [[nodiscard]] std::string first_failure() const {
    for (const json& c : report.value("checks", json::array()))
      if (c["result"] == "failed")
        return c["name"].get<std::string>() + ": " + c["text"].get<std::string>() + " -> " +
               c["remedy"].get<std::string>();
    return "none";
  }
};

Findings doctor(std::vector<std::string> arguments, const std::vector<std::string>& before = {},
                const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> argv = before;
  argv.insert(argv.end(), {kith_path(), "doctor", "-o", "json"});
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Finished run = run_program(argv, seconds(60), environment);
  Findings findings;
  findings.code = run.exit.code;
  const auto at = run.output.find('{');
  findings.report =
      json::parse(at == std::string::npos ? "" : run.output.substr(at), nullptr, false);
  if (!findings.report.is_object()) {
    ADD_FAILURE() << "no report: " << run.output;
    findings.report = json::object();
  }
  return findings;
}

void expect_failure(const Findings& findings, const std::string& begins,
                    const std::string& remedy) {
  EXPECT_EQ(findings.code, 10);
  EXPECT_THAT(findings.first_failure(), testing::StartsWith(begins));
  EXPECT_THAT(findings.first_failure(), HasSubstr(remedy));
}

// A socket on loopback: bound only, or listening; with a backlog that is full nobody gets in.
class LoopbackSocket {
 public:
  LoopbackSocket() {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&any), size) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size) != 0)
      ADD_FAILURE() << "no port on loopback";
    port_ = ntohs(any.sin_port);
  }
  ~LoopbackSocket() {
    ::close(fd_);
    for (const int fd : waiting_) ::close(fd);
  }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;
  // From now on the kernel drops what asks for a connection.
  void become_black_hole() {
    ::listen(fd_, 0);
    for (int i = 0; i < 4; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      to.sin_port = htons(port_);
      (void)::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
      waiting_.push_back(fd);
    }
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_;
  std::uint16_t port_ = 0;
  std::vector<int> waiting_;
};

// What leaves for any address of loopback leaves from this one, and the doctor compares the two.
NodeOptions on_the_usual_loopback() { return {.flags = {"--listen", "127.0.0.1:0"}}; }

TEST(Doctor, NamesWhatIsInTheWayBeforeAnyNodeAnswers) {
  expect_failure(doctor({"no-such-host.invalid"}), "dns: ", "getent hosts no-such-host.invalid");
  LoopbackSocket socket;
  expect_failure(doctor({socket.address()}), "tcp: " + socket.address() + ": refused",
                 "nothing listens");
  socket.become_black_hole();
  expect_failure(doctor({socket.address()}), "tcp: " + socket.address() + ": no answer",
                 "firewalls");
}

TEST(Doctor, FindsNothingWrongBetweenTwoOfOneRunAndLeavesNoTrace) {
  Cluster cluster(doctor_config());
  Node& node = cluster.add(on_the_usual_loopback());
  LoopbackSocket free;
  const std::string listen = free.address();
  const Findings findings =
      doctor({node.address(), "-c", cluster.config_file(), "--listen", node.address()});
  EXPECT_EQ(findings.code, 0) << findings.report.dump(2);
  for (const char* name : {"tcp", "key", "handshake", "version", "cluster", "run", "model",
                           "settings", "advertised", "clock", "dial-back", "bulk"})
    EXPECT_EQ(findings.result(name), "ok") << findings.check(name);
  // Nobody listens there but for the socket that is only bound.
  expect_failure(doctor({node.address(), "--listen", listen}), "dial-back: ", "node.advertise");
  // The bulk plane has a port of its own, which may be the only one in the way.
  const Findings bulk_only = doctor({node.address(), "-c", cluster.config_file(), "--listen",
                                     node.address(), "--set", "node.listen_bulk=" + listen});
  EXPECT_EQ(bulk_only.result("dial-back"), "ok") << bulk_only.report.dump(2);
  expect_failure(bulk_only, "bulk: that node does not reach this side's bulk plane at " + listen,
                 "node.advertise");
  EXPECT_EQ(node.get("/members")["members"].size(), 1U);
  EXPECT_THAT(node.log(), testing::Not(HasSubstr("identity")));
  EXPECT_EQ(node.get("/status")["state"], "training");
  // By name, and by name and with a port that is not a node's control address.
  const std::string port = node.address().substr(node.address().rfind(':'));
  EXPECT_EQ(doctor({"localhost" + port}).result("dns"), "ok");
  const std::string http = node.get("/status")["http"], bulk = node.get("/status")["bulk_address"];
  expect_failure(doctor({http}), "key: ", "not the HTTP address");
  expect_failure(doctor({bulk}), "handshake: ", "bulk port");
}

TEST(Doctor, NamesWhatDiffersInTheRun) {
  Cluster cluster(doctor_config());
  Node& node = cluster.add(on_the_usual_loopback());
  const auto with_setting = [&](const std::string& setting) {
    return doctor({node.address(), "-c", cluster.config_file(), "--set", setting});
  };
  // A file that names no cluster means the default, as for kithd.
  const std::string nameless = cluster.folder() + "/nameless.toml";
  std::ofstream(nameless) << "[run]\nid = \"digits-1\"\n";
  const Findings by_default = doctor({node.address(), "-c", nameless});
  expect_failure(by_default, "cluster: cluster.name: \"kith\" here", "one file for all nodes");
  EXPECT_EQ(by_default.result("run"), "ok");
  expect_failure(with_setting("cluster.name=other"), "cluster: cluster.name: \"other\" here",
                 "one file for all nodes");
  expect_failure(with_setting("run.id=digits-2"),
                 "run: run.id: \"digits-2\" here, \"digits-1\" there", "wrong node");
  expect_failure(with_setting("data.classes=12"), "model: schema ", "[model]");
  expect_failure(with_setting("run.seed=8"), "settings: run.seed: 8 here, 7 there", "same file");
}

TEST(Doctor, TellsAMissingKeyFromAWrongOneAndFromOneTooMany) {
  const std::string folder = std::string(KITH_BINARY_DIR) + "/e2e";
  std::filesystem::create_directories(folder);
  const std::string key = folder + "/doctor.key", other = folder + "/doctor-other.key";
  for (const std::string& file : {key, other}) {
    std::filesystem::remove(file);
    ASSERT_EQ(run_program({kith_path(), "keygen", file}).exit.code, 0);
  }
  Cluster cluster(doctor_config());
  Node& locked = cluster.add(with({"cluster.key_file=" + key, "cluster.join=[]"}));
  expect_failure(doctor({locked.address()}), "key: that node wants a cluster key",
                 "KITH_CLUSTER_KEY_FILE");
  expect_failure(doctor({locked.address(), "--set", "cluster.key_file=" + other}),
                 "handshake: ", "the two key files differ");
  expect_failure(doctor({locked.address(), "--set", "cluster.key_file=" + key + ".gone"}),
                 "key: ", "copy the cluster's key file");
  EXPECT_EQ(doctor({locked.address()}, {}, {{"KITH_CLUSTER_KEY_FILE", key}}).code, 0);
  Node& open = cluster.add(with({"cluster.join=[]"}));
  expect_failure(doctor({open.address(), "--set", "cluster.key_file=" + key}),
                 "key: that node has no cluster key", "everywhere or nowhere");
}

TEST(Doctor, SeesAClockThatIsAheadOrBehind) {
  if (::access("/usr/bin/faketime", X_OK) != 0) GTEST_SKIP() << "needs Debian's faketime";
  Cluster cluster(doctor_config());
  Node& node = cluster.add(on_the_usual_loopback());
  expect_failure(doctor({node.address()}, {"/usr/bin/faketime", "-f", "-90s"}),
                 "clock: that machine's clock is 90 s ahead", "NTP");
  expect_failure(doctor({node.address()}, {"/usr/bin/faketime", "-f", "+1h"}), "clock: ", "NTP");
}

}  // namespace
}  // namespace kith::e2e
