// What the daemon is given, checked before anything of it is written or sent: what is trained, on
// what, how (RunInput), and the data directory with who this node is (Home). Thread: the process's
// main thread, at start.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "compute/data.h"
#include "compute/model.h"
#include "compute/schedule.h"
#include "gossip/method.h"
#include "node/config/config.h"
#include "node/identity/data_dir.h"
#include "node/identity/identity.h"
#include "node/mesh/cluster_key.h"
#include "node/store/checkpoint.h"

namespace kith::node {

struct RunInput {
  std::optional<ClusterKey> key;
  gossip::Composition composition;
  compute::LoadedData data;
  std::unique_ptr<compute::Model> model;
  Hash256 schema_hash;
  compute::ScheduleSpec schedule;

  static Result<RunInput> load(const Config& config);
  [[nodiscard]] const compute::ModelSchema& schema() const { return model->schema(); }
};

// A data directory that is taken, and the identity in it.
struct Home {
  DataDir dir;
  Identity identity;

  // That we are the only one there, and who we are: made at the first start. From then on `config`
  // names the directory that was taken; a node that was given no name of its own is called like it.
  static Result<Home> take(Config& config, LogSink& log);
  [[nodiscard]] const std::string& path() const { return dir.path; }
  [[nodiscard]] std::string final_path() const { return dir.path + "/model.safetensors"; }
  // The final model of this very run, if it is there.
  [[nodiscard]] Result<std::optional<LoadedFinal>> finished(const Config& config,
                                                            const RunInput& input) const;
};

}  // namespace kith::node
