// Addresses and names: what parses, what a name with several addresses becomes, and that a slow
// look-up stops nobody.
#include <condition_variable>
#include <mutex>

#include "node/text/address.h"
#include "node/text/text.h"
#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

using Hosts = std::vector<std::string>;

bool linked(const Node& a, const Node& b) {
  return a.mesh->linked(b.id()) && b.mesh->linked(a.id());
}

std::string port_of(const Node& node) {
  return node.address().substr(node.address().rfind(':') + 1);
}

// A resolver that tests write; shared with look-ups that run on threads of their own.
class FakeNames {
 public:
  void set(const std::string& host, Hosts addresses) {
    const std::lock_guard lock(mutex_);
    names_[host] = std::move(addresses);
  }
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  Result<Hosts> lookup(const std::string& host) {
    std::unique_lock lock(mutex_);
    ++lookups_;
    changed_.wait(lock, [this] { return !held_; });
    const auto it = names_.find(host);
    if (it == names_.end()) return fail("name '" + host + "' cannot be looked up: no such host");
    return it->second;
  }
  [[nodiscard]] int lookups() {
    const std::lock_guard lock(mutex_);
    return lookups_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Hosts> names_;
  bool held_ = false;
  int lookups_ = 0;
};

MeshSettings settings_with(const std::shared_ptr<FakeNames>& names) {
  auto settings = quick_settings();
  settings.lookup = [names](const std::string& host) { return names->lookup(host); };
  return settings;
}

TEST(Address, ParsesHostsAddressesAndBracketedIpv6) {
  EXPECT_EQ((HostPort{"10.0.0.5", 7400}), *parse_mesh_address("10.0.0.5:7400"));
  EXPECT_EQ((HostPort{"::1", 0}), *parse_mesh_address("[::1]:0"));
  EXPECT_EQ((HostPort{"node-1.example", 65535}), *parse_mesh_address("  node-1.example:65535 "));
  EXPECT_EQ("[fe80::1]:80", parse_mesh_address("[fe80::1]:80")->text());
}

TEST(Address, RefusesWhatIsNoAddressAndShowsOne) {
  for (const char* text :
       {"", "  ", "host", "host:", ":80", "host:70000", "host:-1", "host:8o", "::1:80", "[::1:80",
        "[::1]", "[::1]80", "[name]:80", "a b:80", "tcp://a:80", "a:80,b:80", "host:+80"}) {
    const auto parsed = parse_mesh_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(ErrorCode::kUsage, parsed.error().code);
    EXPECT_NE(std::string::npos, parsed.error().message.find("host:port"))
        << parsed.error().message;
  }
}

TEST(Address, ListsTakeBlanksAndEmptyPlaces) {
  EXPECT_EQ((Hosts{"a:1", "b:2"}), split_list("a:1, b:2,"));
  EXPECT_TRUE(split_list("").empty());
  EXPECT_TRUE(split_list(" , ,").empty());
}

TEST(Address, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "fe80::1", "localhost", "::ffff:10.0.0.1", "*"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

TEST(MeshNames, LocalhostIsFoundByTheSystemsResolver) {
  Node a(1), b(2);
  a.mesh->dial("localhost:" + port_of(b));
  EXPECT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshNames, ANameWhoseFirstAddressesAreDeadIsReachedThroughTheLiveOne) {
  const auto names = std::make_shared<FakeNames>();
  names->set("seed", {"127.0.0.101", "127.0.0.102", "127.0.0.1"});
  Node a(1, settings_with(names)), b(2);
  a.mesh->dial("seed:" + port_of(b));
  EXPECT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshNames, ANameOfManyNodesReachesThemAll) {
  const auto names = std::make_shared<FakeNames>();
  Node b(2);
  auto settings = quick_settings();
  settings.listen = "127.0.0.2:" + port_of(b);
  Node c(3, settings);
  names->set("service", {"127.0.0.1", "127.0.0.2"});
  Node a(1, settings_with(names));
  a.mesh->dial("service:" + port_of(b));
  EXPECT_TRUE(run_until({&a, &b, &c}, [&] { return linked(a, b) && linked(a, c); }));
}

TEST(MeshNames, ANameHasRefusedOnlyOnceAllItsAddressesHave) {
  const auto names = std::make_shared<FakeNames>();
  Node b(2);
  auto settings = quick_settings();
  settings.listen = "127.0.0.2:" + port_of(b);
  Node c(3, settings);
  b.policy.verdict = schema::Reject{};
  names->set("service", {"127.0.0.1", "127.0.0.2"});
  Node a(1, settings_with(names));
  a.mesh->dial("service:" + port_of(b));
  ASSERT_TRUE(run_until({&a, &b, &c}, [&] { return linked(a, c) && a.count<Refused>() >= 2; }));
  for (const Refused& refused : a.all<Refused>()) EXPECT_FALSE(refused.by_all);
  c.stop();
  settings.listen = "127.0.0.2:" + port_of(b);
  c.restart(settings);
  c.policy.verdict = schema::Reject{};
  EXPECT_TRUE(run_until({&a, &b, &c}, [&] { return a.all<Refused>().back().by_all; }));
}

// As in Compose, where one name stands for all replicas.
TEST(MeshNames, ANameThatStandsForOthersAndItselfReachesTheOthers) {
  const auto names = std::make_shared<FakeNames>();
  names->set("service", {"127.0.0.1", "127.0.0.2"});
  Node a(1, settings_with(names));
  auto settings = quick_settings();
  settings.listen = "127.0.0.2:" + port_of(a);
  Node b(2, settings);
  a.mesh->dial("service:" + port_of(a));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b) && a.count<Refused>() == 1; }));
  EXPECT_EQ(schema::RejectCode::kSelf, a.all<Refused>()[0].reject.code);
  EXPECT_EQ(a.address(), a.all<Refused>()[0].address);
}

TEST(MeshNames, ANameIsLookedUpAgainOnEveryRetry) {
  const auto names = std::make_shared<FakeNames>();
  names->set("seed", {"127.0.0.101"});
  Node a(1, settings_with(names)), b(2);
  const std::string address = "seed:" + port_of(b);
  a.mesh->dial(address);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return names->lookups() >= 3; }));
  EXPECT_EQ(0U, b.mesh->counters().messages_received);
  names->set("seed", {"127.0.0.1"});
  EXPECT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshNames, AnUnknownNameIsReportedAndTriedAgain) {
  const auto names = std::make_shared<FakeNames>();
  Node a(1, settings_with(names)), b(2);
  const std::string address = "nowhere:" + port_of(b);
  a.mesh->dial(address);
  ASSERT_TRUE(run_until({&a}, [&] { return a.count<DialFailed>() >= 2; }));
  EXPECT_EQ(address, a.all<DialFailed>()[0].address);
  EXPECT_NE(std::string::npos, a.all<DialFailed>()[0].why.find("nowhere"));
  names->set("nowhere", {"127.0.0.1"});
  EXPECT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshNames, ASilentResolverStopsNeitherOtherLinksNorTheEnd) {
  const auto names = std::make_shared<FakeNames>();
  names->hold(true);
  {
    Node a(1, settings_with(names)), b(2);
    a.mesh->dial("black-hole:7400");
    a.mesh->dial(b.address());
    ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b) && names->lookups() == 1; }));
    const SystemClock clock;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const TimePoint before = clock.now();
      ASSERT_TRUE(a.mesh->send(b.id(), ping(i)));
      ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == i + 1; }));
      EXPECT_LT(to_seconds(clock.now() - before), 1.0);
    }
    EXPECT_EQ(1, names->lookups());  // asked once, not once per retry
  }                                  // destroyed while the look-up is still out
  names->hold(false);
}

TEST(MeshNames, WhatDoesNotParseFailsAtOnceAndIsNotTriedAgain) {
  Node a(1);
  a.mesh->dial("no port");
  a.mesh->dial("127.0.0.1:0");
  run_rounds({&a}, 50);
  ASSERT_EQ(2U, a.count<DialFailed>());
  EXPECT_EQ("no port", a.all<DialFailed>()[0].address);
}

}  // namespace
}  // namespace kith::node::testing
