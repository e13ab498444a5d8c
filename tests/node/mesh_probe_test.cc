// A probe (kith doctor) at a real Mesh: it is told who is there, remembered by nobody, and what it
// can have dialled back is its own address alone.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/mesh/mesh_dial_back.h"
#include "node/mesh/mesh_listener.h"
#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

using schema::DialBackOutcome;

schema::Hello probe_of(const Identity& identity, std::uint16_t dial_back_port = 0) {
  FakePolicy policy(identity);
  auto hello = policy.make_hello(schema::Plane::kControl);
  hello.probe = true;
  hello.dial_back_port = dial_back_port;
  return hello;
}

// A port that somebody listens on, or just listened on.
class Port {
 public:
  explicit Port(bool listens) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&any), size) != 0 ||
        (listens && ::listen(fd_, 8) != 0) ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size) != 0)
      ADD_FAILURE() << "no port on loopback";
    number_ = ntohs(any.sin_port);
  }
  ~Port() { ::close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  int fd_;
  std::uint16_t number_ = 0;
};

DialBackOutcome dialled_back(std::uint16_t port) {
  Node node(1);
  const auto stranger = Identity::ephemeral(2);
  RawClient client(node.address(), nullptr);
  const auto welcome = raw_handshake(client, node, probe_of(stranger, port), stranger);
  if (!welcome || !std::holds_alternative<schema::Welcome>(*welcome))
    return DialBackOutcome::kUnknown;
  std::optional<schema::Message> answer;
  run_until({&node}, [&] { return (answer = client.receive()).has_value(); });
  const auto* report = answer ? std::get_if<schema::DialBack>(&*answer) : nullptr;
  if (report == nullptr) return DialBackOutcome::kUnknown;
  EXPECT_EQ(report->address, "127.0.0.1:" + std::to_string(port));
  return report->outcome;
}

TEST(MeshProbe, IsWelcomedAndNeverBoundAndWhatItSendsHasNoSender) {
  Node node(1);
  const auto stranger = Identity::ephemeral(2);
  RawClient client(node.address(), nullptr);
  const auto answer = raw_handshake(client, node, probe_of(stranger), stranger);
  ASSERT_TRUE(answer && std::holds_alternative<schema::Welcome>(*answer));
  client.send(ping(1));
  ASSERT_TRUE(run_until({&node}, [&] { return node.mesh->counters().dropped_unbound == 1; }));
  EXPECT_EQ(node.count<PeerUp>(), 0U);
  EXPECT_EQ(node.count<Received>(), 0U);
  EXPECT_FALSE(node.mesh->linked(stranger.id()));
}

TEST(MeshProbe, MayAskAFewTimesOnOneConnectionWhichIsThenClosedWithAReason) {
  Node node(1);
  const auto stranger = Identity::ephemeral(2);
  RawClient client(node.address(), nullptr);
  for (unsigned i = 0; i < MeshListener::kProbesMax; ++i) {
    const auto answer = raw_handshake(client, node, probe_of(stranger), stranger);
    ASSERT_TRUE(answer && std::holds_alternative<schema::Welcome>(*answer)) << i;
  }
  const auto last = raw_handshake(client, node, probe_of(stranger), stranger);
  ASSERT_TRUE(last && std::holds_alternative<schema::Reject>(*last));
  EXPECT_EQ(std::get<schema::Reject>(*last).code, schema::RejectCode::kFull);
  EXPECT_NE(std::get<schema::Reject>(*last).detail.find("probes on one connection"),
            std::string::npos);
  ASSERT_TRUE(run_until({&node}, [&] { return client.lost(); }));
  // A new connection begins anew, and what is no probe was never counted.
  RawClient again(node.address(), nullptr);
  const auto answer = raw_handshake(again, node, probe_of(stranger), stranger);
  EXPECT_TRUE(answer && std::holds_alternative<schema::Welcome>(*answer));
}

TEST(MeshProbe, IsRefusedLikeAnyoneWithoutItsProof) {
  Node node(1);
  const auto stranger = Identity::ephemeral(2), other = Identity::ephemeral(3);
  RawClient client(node.address(), nullptr);
  const auto answer = raw_handshake(client, node, probe_of(stranger), other);
  ASSERT_TRUE(answer && std::holds_alternative<schema::Reject>(*answer));
}

TEST(MeshProbe, IsToldWhetherItsPortCanBeReached) {
  const Port listening(true), closed(false);
  EXPECT_EQ(dialled_back(listening.number()), DialBackOutcome::kReached);
  EXPECT_EQ(dialled_back(closed.number()), DialBackOutcome::kRefused);
}

TEST(DialBacks, AreFewAtOnceAndNotInQuickSuccession) {
  const Port port(true);
  DialBacks dial_backs;
  const TimePoint now = SystemClock().now();
  dial_backs.start("a", {}, "127.0.0.1", port.number(), now);
  dial_backs.start("b", {}, "127.0.0.1", port.number(), now + DialBacks::kPause / 2);
  dial_backs.start("c", {}, "127.0.0.1", port.number(), now + DialBacks::kPause);
  std::map<std::string, DialBackOutcome> outcomes;
  const bool all = [&] {
    for (TimePoint at = now + DialBacks::kPause; at < now + std::chrono::minutes(1);
         at = at + std::chrono::milliseconds(10)) {
      for (const auto& answer : dial_backs.tick(at))
        outcomes[answer.routing_id] = answer.message.outcome;
      if (outcomes.size() == 3) return true;
    }
    return false;
  }();
  ASSERT_TRUE(all);
  EXPECT_EQ(outcomes["a"], DialBackOutcome::kReached);
  EXPECT_EQ(outcomes["b"], DialBackOutcome::kBusy);
  EXPECT_EQ(outcomes["c"], DialBackOutcome::kReached);
}

TEST(DialBacks, ToNoAddressIsUnreachable) {
  DialBacks dial_backs;
  dial_backs.start("a", {}, "not numeric", 1, SystemClock().now());
  const auto answers = dial_backs.tick(SystemClock().now());
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].message.outcome, DialBackOutcome::kUnreachable);
}

}  // namespace
}  // namespace kith::node::testing
