// A copy at rest beside a thread that exchanges: `make_active` may come at any moment, as when a
// declared state is lost with its declarer while another is being hashed.
#include "node/daemon/rest.h"

#include <gtest/gtest.h>

#include <future>

#include "base/hash.h"
#include "tests/compute/trainer_fixture.h"

namespace kith::node {
namespace {

using compute::testing::eventually;
using compute::testing::FakeModel;

constexpr std::size_t kValues = 64, kFragmentBytes = 16;  // 16 fragments of 4

// What an exchange loop is to the replica: whole rounds of deltas while it is not paused. A round
// adds 1 to every value, so that fragments of one moment are equal.
class Exchanges {
 public:
  explicit Exchanges(compute::Replica& replica) : replica_(replica), thread_([this] { run(); }) {}
  ~Exchanges() {
    stopping_ = true;
    thread_.join();
  }
  Exchanges(const Exchanges&) = delete;
  Exchanges& operator=(const Exchanges&) = delete;

  void pause(std::function<void()> then) { then_ = std::move(then), wants_pause_ = true; }
  void resume() { wants_pause_ = false; }
  [[nodiscard]] int rounds() const { return rounds_; }

 private:
  void run() {
    const std::vector<float> ones(kFragmentBytes / sizeof(float), 1.0F);
    const Slice bytes = Slice::copy_of(std::as_bytes(std::span(ones)));
    while (!stopping_) {
      if (!wants_pause_) {
        for (FragmentIndex f = 0; f < replica_.fragment_count(); ++f)
          EXPECT_TRUE(replica_.apply(f, Payload{{bytes}}, CodecId::kFp32));
        ++rounds_;
        told_ = false;
      } else if (!told_) {
        told_ = true;
        then_();
      }
    }
  }

  compute::Replica& replica_;
  std::function<void()> then_;
  std::atomic<bool> wants_pause_{false}, stopping_{false};
  std::atomic<int> rounds_{0};
  bool told_ = false;
  std::thread thread_;
};

struct Rest : ::testing::Test {
  FakeModel model{kValues};
  compute::Replica replica{kValues, kFragmentBytes};
  compute::Dataset data = compute::testing::tiny_data(4);
  SystemClock clock;
  NullLog log;
  compute::testing::RecordingListener listener;
  compute::Trainer trainer{{},       model, replica, data, data, clock, [] { return Samples{0}; },
                           listener, log};

  // Asked for while deltas land; exchanges go on as soon as they may.
  std::shared_ptr<StateAssembly> copy_beside(Exchanges& exchanges) {
    std::promise<std::shared_ptr<StateAssembly>> taken;
    exchanges.pause([&] {
      copy_at_rest(
          trainer, replica, [&] { exchanges.resume(); },
          [&](std::shared_ptr<StateAssembly> copy) { taken.set_value(std::move(copy)); });
    });
    return taken.get_future().get();
  }
};

TEST_F(Rest, ACopyIsOfOneMomentHoweverSoonExchangesGoOn) {
  trainer.start();
  Exchanges exchanges(replica);
  for (int i = 0; i < 50; ++i) {
    const int before = exchanges.rounds();
    ASSERT_TRUE(eventually([&] { return exchanges.rounds() > before; }));
    const auto copy = copy_beside(exchanges);
    for (const float value : copy->values()) ASSERT_EQ(value, copy->values().front());
  }
}

TEST_F(Rest, WhatIsHashedIsTheCopyAlthoughTheReplicaHasGoneOn) {
  trainer.start();
  Exchanges exchanges(replica);
  const auto copy = copy_beside(exchanges);
  const std::vector<float> values = copy->values();
  const int before = exchanges.rounds();
  ASSERT_TRUE(eventually([&] { return exchanges.rounds() > before + 2; }));
  const Manifest manifest = copy->manifest({});
  EXPECT_TRUE(copy->differing(manifest).wanted.empty());
  ASSERT_EQ(manifest.fragments.size(), 16U);
  for (std::size_t f = 0; f < manifest.fragments.size(); ++f)
    EXPECT_EQ(manifest.fragments[f],
              hash_bytes(std::as_bytes(std::span(values).subspan(f * 4, 4))));
  EXPECT_EQ(StateAssembly(replica, {}).differing(manifest).wanted.size(), 16U)
      << "the replica has not moved: nothing was shown";
}

}  // namespace
}  // namespace kith::node
