#include "node/daemon/data_share.h"

#include <cmath>
#include <string>
#include <utility>

namespace kith::node {

using schema::RunState;

DataShare::DataShare(DataShareSettings settings, Apply apply, LogSink& log)
    : settings_(settings),
      apply_(std::move(apply)),
      log_(log),
      watch_(settings.probe_interval * kSettleIntervals),
      share_samples_(settings.loaded) {}

void DataShare::describe(schema::MemberRecord& own) const {
  own.shares_data = settings_.shares;
  own.shard_samples = share_samples_;
}

bool DataShare::wants_look(const View& view) {
  if (!settings_.shares) return false;
  const bool over = view.state == RunState::kFinishing || view.state == RunState::kComplete ||
                    view.state == RunState::kLeaving;
  if (over) return false;
  collect();
  follow_cluster(view);
  if (view.state == RunState::kTraining && view.now < next_look_) return false;
  next_look_ = view.now + settings_.probe_interval * kSettleIntervals / kLooksPerSettle;
  return true;
}

void DataShare::look(const View& view, std::vector<NodeId> seen) {
  std::sort(seen.begin(), seen.end());
  if (watch_.look(view.now, seen, view.state != RunState::kTraining)) compute();
}

void DataShare::compute() {
  if (computing_.valid()) {
    stale_ = true;
    return;
  }
  const auto share = [self = settings_.self, sharers = watch_.taken(), seed = settings_.seed,
                      samples = settings_.samples] {
    return gossip::share_of(self, sharers, seed, samples);
  };
  if (watch_.taken().size() * gossip::slot_count(settings_.samples) <= kPairsAtOnce)
    take(share());
  else
    computing_ = std::async(std::launch::async, share);
}

void DataShare::collect() {
  if (!computing_.valid() || computing_.wait_for(Duration{0}) != std::future_status::ready) return;
  auto mask = computing_.get();
  if (std::exchange(stale_, false))
    compute();
  else
    take(std::move(mask));
}

void DataShare::take(compute::SampleMask mask) {
  if (mask == mask_) return;
  mask_ = std::move(mask);
  share_samples_ = settings_.samples;
  if (!mask_.empty())
    share_samples_ =
        static_cast<std::size_t>(std::count(mask_.begin(), mask_.end(), std::uint8_t{1}));
  log_.log(LogLevel::kInfo, "node", "data shared out",
           {{"members", std::to_string(watch_.taken().size())},
            {"samples", std::to_string(share_samples_)},
            {"of", std::to_string(settings_.samples)}});
  apply_(mask_, std::nullopt);
}

void DataShare::follow_cluster(const View& view) {
  if (view.adoptions == adoptions_) return;
  adoptions_ = view.adoptions;
  const double pass = std::floor(view.epoch);
  const double place = (view.epoch - pass) * static_cast<double>(settings_.samples);
  apply_(mask_, compute::BatchCursor::Position{static_cast<std::uint64_t>(pass),
                                               static_cast<std::uint64_t>(place)});
}

}  // namespace kith::node
