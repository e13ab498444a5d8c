#include "trainer_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "compute/linear_model.h"
#include "compute/trainer.h"

namespace kith::bench {
namespace {

using namespace compute;

struct Options {
  double seconds = 2.0;
  std::size_t rounds = 5, features = 784;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const double value = i + 1 < argc ? std::atof(argv[i + 1]) : 0.0;
    if (value <= 0.0 || (flag != "--seconds" && flag != "--rounds" && flag != "--features")) {
      std::fprintf(stderr, "usage: trainer [--seconds S] [--rounds N] [--features N]\n");
      return false;
    }
    if (flag == "--seconds") options.seconds = value;
    if (flag == "--rounds") options.rounds = static_cast<std::size_t>(value);
    if (flag == "--features") options.features = static_cast<std::size_t>(value);
  }
  return true;
}

Dataset random_data(std::size_t count, std::size_t features) {
  Random random(1);
  Dataset data;
  data.count = count;
  data.sample_shape = {static_cast<std::int64_t>(features)};
  data.inputs.resize(count * features);
  for (float& v : data.inputs) v = static_cast<float>(random.uniform(-1, 1));
  for (std::size_t i = 0; i < count; ++i)
    data.labels.push_back(static_cast<std::int64_t>(random.below(10)));
  return data;
}

// The exchange thread of a node: one exchange per step with a neighbour that stands still, each
// fragment in turn, once as initiator and once as responder.
class Exchanger final : public TrainerListener {
 public:
  Exchanger(Replica& own, Replica& neighbour, bool active)
      : own_(own), neighbour_(neighbour), active_(active) {}
  ~Exchanger() override { stop(); }

  void start(Trainer& trainer) {
    trainer_ = &trainer;
    if (active_) thread_ = std::thread([this] { run(); });
  }
  void stop() {
    stopping_ = true;
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void on_step(Step) override {
    pending_.fetch_add(1);
    wake_.notify_one();
  }
  void on_nonfinite(const std::string& what) override {
    std::fprintf(stderr, "trainer: %s\n", what.c_str());
  }
  std::atomic<std::uint64_t> exchanges{0};

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait_for(lock, std::chrono::milliseconds(1),
                     [this] { return stopping_.load() || pending_.load() > 0; });
      if (pending_.exchange(0) == 0) continue;
      exchange(own_, neighbour_);
      exchange(neighbour_, own_);
      trainer_->nudge();
      fragment_ = (fragment_ + 1) % own_.fragment_count();
    }
  }
  void exchange(Replica& initiator, Replica& responder) {
    const std::size_t bytes = Replica::encoded_bytes(own_.range(fragment_).count, CodecId::kFp32);
    auto proposal = std::make_shared<std::vector<std::byte>>(bytes),
         delta = std::make_shared<std::vector<std::byte>>(bytes);
    if (!initiator.snapshot(fragment_, CodecId::kFp32, *proposal)) return;
    if (!responder.commit(fragment_, {{Slice(proposal, *proposal)}}, CodecId::kFp32, 0.5, *delta))
      return;
    if (initiator.apply(fragment_, {{Slice(delta, *delta)}}, CodecId::kFp32)) ++exchanges;
  }

  Replica& own_;
  Replica& neighbour_;
  const bool active_;
  Trainer* trainer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> pending_{0};
  std::atomic<bool> stopping_{false};
  FragmentIndex fragment_ = 0;
  std::thread thread_;
};

struct Measured {
  double steps_per_second = 0.0, merge_share = 0.0, wait_share = 0.0, exchanges_per_step = 0.0;
};

Measured run_once(const Dataset& data, const Options& options, bool averaging, Duration min_step) {
  ModelSpec spec;
  spec.kind = "linear";
  spec.input_shape = data.sample_shape;
  const OptimizerSpec optimizer{.name = "sgd", .momentum = 0.9};
  LinearModel model(spec, optimizer), other(spec, optimizer);
  constexpr std::size_t kFragmentBytes = std::size_t{4} << 20;
  Replica replica(model.schema().value_count, kFragmentBytes),
      neighbour(model.schema().value_count, kFragmentBytes);
  neighbour.reset(other);
  const SystemClock clock;
  NullLog log;
  Dataset none;
  Exchanger exchanger(replica, neighbour, averaging);
  Trainer trainer(
      {.batch_size = 32, .schedule = {.base = 1e-4}, .min_step = min_step}, model, replica, data,
      none, clock, [] { return Samples{0}; }, exchanger, log);
  trainer.start();
  exchanger.start(trainer);
  const auto start = std::chrono::steady_clock::now();
  trainer.resume();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  trainer.stop();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  exchanger.stop();
  const TrainerStats stats = trainer.stats();
  const auto share = [&](TrainerPhase phase) {
    return stats.phase_seconds[static_cast<int>(phase)] / seconds;
  };
  return {static_cast<double>(stats.steps) / seconds, share(TrainerPhase::kMerge),
          share(TrainerPhase::kWait),
          static_cast<double>(exchanger.exchanges) / static_cast<double>(stats.steps)};
}

void print(const char* name, const Measured& measured, double steps_per_second) {
  std::printf(
      "  %-10s %10.1f steps/s, %.2f exchanges a step, merge %.3f %%, wait %.3f %% of the time\n",
      name, steps_per_second, measured.exchanges_per_step, 100 * measured.merge_share,
      100 * measured.wait_share);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int run_trainer_bench(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return 2;
  const Dataset data = random_data(1000, options.features);
  std::vector<double> alone, averaging;
  Measured last;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    alone.push_back(run_once(data, options, false, Duration{0}).steps_per_second);
    last = run_once(data, options, true, Duration{0});
    averaging.push_back(last.steps_per_second);
  }
  std::printf("linear model, %zu features, batch 32, medians of %zu interleaved rounds\n",
              options.features, options.rounds);
  std::printf("  %-10s %10.1f steps/s\n", "alone", median(alone));
  print("averaging", last, median(averaging));
  const Measured paced = run_once(data, options, true, std::chrono::milliseconds(50));
  print("at 50 ms", paced, paced.steps_per_second);
  std::printf("ratio=%.4f\n", median(averaging) / median(alone));
  return 0;
}

}  // namespace kith::bench
