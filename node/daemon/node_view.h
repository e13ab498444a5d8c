// NodeViewAdapter: what the outside sees of a running daemon: /status and /members as JSON, health
// checks, the metrics snapshot, and the commands that come through the Unix socket. Thread: any
// (HTTP workers); reads copies only.
#pragma once

#include <chrono>

#include "compute/trainer.h"
#include "monitoring/routes.h"
#include "node/config/reload.h"
#include "node/daemon/control_loop.h"
#include "node/daemon/step_log.h"

namespace kith::node {

class NodeViewAdapter final : public monitoring::NodeView {
 public:
  NodeViewAdapter(const Config& config, ControlLoop& loop, compute::Trainer& trainer,
                  Hash256 schema_hash, const Clock& clock, const StepLog* step_log,
                  const LiveSettings& live);

  monitoring::NodeSnapshot snapshot() override;
  std::string status_json() override;
  std::string members_json() override;
  monitoring::HealthReport health() override;
  monitoring::HttpReply command(const std::string& name,
                                const monitoring::HttpQuery& query) override;

 private:
  [[nodiscard]] monitoring::HealthReport health_from(const NodeStatus& status,
                                                     const compute::TrainerStats& trainer) const;
  // Empty: a checkpoint; else the model alone, to that file.
  monitoring::HttpReply checkpoint(const std::string& export_to);
  monitoring::HttpReply export_model(const monitoring::HttpQuery& query);

  const Config& config_;
  ControlLoop& loop_;
  compute::Trainer& trainer_;
  const Hash256 schema_hash_;
  const Clock& clock_;
  const StepLog* const step_log_;  // null: none was asked for
  const LiveSettings& live_;
};

}  // namespace kith::node
