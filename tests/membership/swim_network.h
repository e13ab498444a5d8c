// A small network of Swim machines on one clock: latency, loss, cuts, pauses, crashes, restarts.
// Deterministic in its seed. Keys are toys: a signature is the hash of what it covers under the
// signer's id, so a forged one is found out and anybody in the test can sign as anybody.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gossip/membership/swim.h"

namespace kith::gossip::testing {

NodeId test_id(std::size_t number);

// Signs and checks for one node.
class ToyAuthority final : public RecordAuthority {
 public:
  void sign(schema::MemberRecord& own) override;
  void sign(schema::Accusation& own) override;
  bool verify(const schema::MemberRecord& record) override;
  bool verify(const schema::Accusation& accusation) override;
  std::uint64_t verified = 0;
};

// About what the codec makes of it.
std::size_t bytes_of(const schema::Message& message);

struct TestNode {
  NodeId id;
  std::unique_ptr<Swim> swim;  // null: crashed
  ToyAuthority authority;
  std::uint64_t boot = 1;
  bool paused = false;
  TimePoint paused_since;
  std::vector<std::pair<NodeId, schema::Message>> inbox;  // what arrives in a pause waits here
  Duration slowness{0};  // every message to it and from it takes up to this longer
  std::vector<SwimEvent> events;
  std::uint64_t bytes_out = 0;
  std::uint64_t messages_out = 0;
  TimePoint wake = TimePoint::max();
};

class SwimNetwork {
 public:
  SwimNetwork(std::size_t count, SwimSettings settings, std::uint64_t seed);

  // Everybody has shaken hands with everybody.
  void introduce_all();
  // Handshake of two nodes, as over a link made between them.
  void introduce(std::size_t a, std::size_t b);
  void start(std::size_t index, std::uint64_t boot_nonce, const std::string& address);
  void crash(std::size_t index);
  void pause(std::size_t index);
  // Hands over what arrived meanwhile, after telling the machine of its pause.
  void resume(std::size_t index);

  void run(Duration duration);
  // Until it holds, at most so long; false if it never did.
  bool run_until(const std::function<bool()>& holds, Duration at_most);

  [[nodiscard]] TimePoint now() const { return clock_.now(); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  TestNode& node(std::size_t index) { return nodes_[index]; }
  Swim& swim(std::size_t index) { return *nodes_[index].swim; }
  [[nodiscard]] std::optional<schema::MemberState> view(std::size_t observer,
                                                        std::size_t subject) const;
  [[nodiscard]] bool all_see(std::size_t subject, schema::MemberState state) const;
  // Every running node sees every other running one alive.
  [[nodiscard]] bool all_well() const;
  [[nodiscard]] std::size_t events_of(SwimEvent::Kind kind) const;
  void send(std::size_t from, std::size_t to, schema::Message message);

  // ---- faults
  double loss = 0.0;
  Duration latency = std::chrono::milliseconds(1);
  Duration jitter = std::chrono::milliseconds(1);
  std::function<bool(std::size_t from, std::size_t to)> cut;  // true: it does not get through
  std::function<void(TestNode&)> each_tick;                   // before a node's machine ticks

 private:
  struct Event {
    TimePoint at;
    std::uint64_t order = 0;
    std::size_t to = 0;
    std::size_t from = 0;
    std::shared_ptr<schema::Message> message;  // null: a wake; shared only because queues copy
    bool operator>(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  bool step(TimePoint until);
  void after_call(std::size_t index);
  void deliver(const Event& event);

  ManualClock clock_;
  SwimSettings settings_;
  Random random_;
  std::vector<TestNode> nodes_;
  std::map<NodeId, std::size_t> index_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::uint64_t order_ = 0;
};

}  // namespace kith::gossip::testing
