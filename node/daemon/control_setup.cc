// ControlLoop: from the configuration to its parts, and this node's first record.
#include <algorithm>
#include <utility>

#include "node/daemon/control_loop.h"
#include "node/daemon/counts.h"
#include "node/text/address.h"

namespace kith::node {

namespace {

// Answers of one message to one member.
constexpr double kTalliesAtOnce = 4;
constexpr std::size_t kTallyPeersMax = 1024;

JoinSettings join_settings(const ControlParts& parts) {
  const Config& config = *parts.config;
  JoinSettings settings;
  if (parts.control != nullptr) settings.seeds = config.cluster.join;
  const std::string bound = parts.control != nullptr ? parts.control->bound_address() : "";
  settings.own_address_among_seeds =
      std::any_of(settings.seeds.begin(), settings.seeds.end(), [&](const std::string& seed) {
        return seed == bound || seed == config.node.listen || seed == config.node.advertise;
      });
  settings.bootstrap = config.bootstrap;
  settings.grace = config.cluster.preset.grace;
  settings.join_timeout = config.join_timeout;
  return settings;
}

gossip::FinishSettings finish_settings(const ControlParts& parts) {
  gossip::FinishSettings settings;
  settings.self = parts.identity->id();
  settings.fragments = parts.replica->fragment_count();
  // Four times the silence after which a member is dead: time to fetch again from somebody else.
  settings.linger_max = parts.config->cluster.preset.probe_interval * 100;
  return settings;
}

// What others should dial: `advertise` (host or host:port) over the bound address.
std::string advertised(const std::string& advertise, const std::string& bound) {
  if (advertise.empty() || bound.empty()) return bound;
  if (const auto given = parse_mesh_address(advertise)) return advertise;
  const auto colon = bound.rfind(':');
  return advertise + bound.substr(colon);
}

// The bulk plane is advertised under the same host as the control plane, with its own port.
std::string advertised_bulk(const std::string& control, const std::string& bulk) {
  if (control.empty() || bulk.empty()) return bulk;
  return control.substr(0, control.rfind(':')) + bulk.substr(bulk.rfind(':'));
}

schema::MemberRecord first_record(const ControlParts& parts) {
  schema::MemberRecord record;
  record.id = parts.identity->id();
  record.incarnation = parts.incarnation;
  record.boot_nonce = parts.boot_nonce;
  record.name = parts.config->node.name;
  if (parts.control != nullptr) {
    record.control_address =
        advertised(parts.config->node.advertise, parts.control->bound_address());
    record.bulk_address = advertised_bulk(record.control_address, parts.bulk_address);
  }
  record.http_address = parts.http_address;
  record.data_fingerprint = parts.data->fingerprint;
  record.data_samples = parts.data->whole_count;
  record.shard_samples = parts.data->train.count;
  record.shard_index = parts.data->shard_index;
  record.shard_count = parts.data->shard_count;
  record.version_text = KITH_VERSION;
  return record;
}

DataShareSettings share_settings(const ControlParts& parts) {
  const compute::LoadedData& data = *parts.data;
  return {parts.identity->id(),
          parts.config->data.shard == "auto",
          data.fingerprint,
          data.whole_count,
          data.train.count,
          parts.config->run.seed,
          parts.config->cluster.preset.probe_interval};
}

}  // namespace

ControlLoop::ControlLoop(ControlParts parts,
                         std::function<void(const gossip::ExchangeEvent&)> observe_exchange)
    : parts_(std::move(parts)),
      observe_exchange_(std::move(observe_exchange)),
      preset_(parts_.config->cluster.preset),
      self_(parts_.identity->id()),
      random_(parts_.seed),
      record_(first_record(parts_)),
      roster_({preset_.probe_interval, parts_.config->cluster.forget_after,
               parts_.config->cluster.partial_view_above},
              *parts_.identity, record_, parts_.control, *parts_.clock, *parts_.log, random_),
      progress_(parts_.length),
      tallies_told_(preset_.probe_interval, kTalliesAtOnce, kTallyPeersMax),
      data_share_(
          share_settings(parts_),
          [this](auto mask, auto at) { parts_.trainer->share(std::move(mask), at); }, *parts_.log),
      finish_(finish_settings(parts_)),
      join_(join_settings(parts_), parts_.clock->now()),
      last_turn_(now()),
      waiting_since_(now()),
      next_waiting_word_(now() + std::chrono::seconds(2)),
      final_retry_(parts_.config->checkpoint.final_timeout) {
  schedule_checkpoint();
  data_share_.describe(record_);
  parts_.policy->set_book(&roster_);
  if (parts_.restored) {
    depth_ahead_ = static_cast<std::int64_t>(std::clamp(parts_.restored->depth_ahead, -1e15, 1e15));
    take_counts(*parts_.restored, progress_);
    synced_ = false;  // decided when the others' progress is known
  }
  refresh_record();
}

ControlLoop::~ControlLoop() = default;

}  // namespace kith::node
