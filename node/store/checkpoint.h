// Checkpoints: data_dir/checkpoints/step-NNNNNNNNNNNN.safetensors, newest `keep`. One file holds
// parameters and buffers under their names, optimiser state, integers, ledger, data cursor, RNG and
// schedule position, with a BLAKE2b-256 of everything else in the metadata. A newest file that is
// broken falls back to the one before, loudly; never to zero: if files exist and none is usable,
// that is an error, not a fresh start. A corrupt file that a good one stood in for is renamed to
// *.corrupt, so that it never counts as one of the newest again. Thread: write() on the checkpoint
// thread; load at start.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "compute/model.h"
#include "compute/replica.h"
#include "compute/trainer.h"
#include "gossip/exchange/exchange.h"
#include "gossip/membership/progress.h"
#include "node/store/safetensors.h"

namespace kith::node {

// Everything a checkpoint knows besides the tensors.
struct CheckpointFacts {
  std::string run_id;
  std::string cluster;
  Hash256 schema_hash;
  NodeId node;
  Incarnation incarnation = 0;
  Samples cluster_progress = 0;  // known to the node, its own samples included
  // Hex id -> what others are known to have done, so that a whole cluster can restart.
  std::map<std::string, Samples> others_samples;
  std::map<std::string, Step> others_steps;
  // Of those of them that are partly one member's word, what more than one vouched for.
  std::map<std::string, Samples> vouched_samples;
  std::map<std::string, Step> vouched_steps;
  gossip::Progress::Folded folded;  // and of those of them that have no entry any more
  double epoch = 0.0;
  std::string model_json;  // the [model] table
  double data_mean = 0.0, data_std = 1.0;
  std::size_t classes = 0;
  bool has_trained = false;
  double depth_ahead = 0.0;  // of the model's depth over this node's own steps
                             // (schema::MemberRecord::depth); a whole number
};

struct LoadedCheckpoint {
  std::string path;
  CheckpointFacts facts;
  compute::TrainerState state;  // own set; its integers and optimizer are empty, state has them
  gossip::LedgerImage ledger;
};

class CheckpointStore {
 public:
  CheckpointStore(std::string folder, unsigned keep, LogSink& log);  // keep >= 1
  void set_keep(unsigned keep) { keep_ = keep; }                     // any thread

  // Streams the replica's fragments (replica is frozen by the caller) into a new file, then prunes.
  // On error the old files are intact. Returns the path. `after_read` is called exactly once, also
  // on error, as soon as the replica is no longer read (before fsync): the caller thaws it and lets
  // exchanges go on.
  Result<std::string> write(const compute::ModelSchema& schema, compute::Replica& replica,
                            const compute::TrainerImage& image, const gossip::LedgerImage& ledger,
                            const CheckpointFacts& facts,
                            const std::function<void()>& after_read = {});
  // Nullopt: no checkpoint at all. Highest step first (numerically). kCorrupt: files exist, none
  // usable (names them). kIncompatible: another run id or schema (names both values).
  Result<std::optional<LoadedCheckpoint>> load_newest(const compute::ModelSchema& schema,
                                                      const Hash256& schema_hash,
                                                      const std::string& run_id);
  [[nodiscard]] std::vector<std::string> files() const;  // newest first

 private:
  struct Begun {
    std::string path;
    SafetensorsWriter writer;
  };
  Result<Begun> begin_file(const compute::ModelSchema& schema, const compute::TrainerImage& image,
                           const gossip::LedgerImage& ledger, const CheckpointFacts& facts) const;
  void prune(const std::string& written);
  static void set_aside(const std::string& path);

  std::string folder_;
  std::atomic<unsigned> keep_;
  LogSink& log_;
};

// `kith checkpoint export`: parameters and buffers only, under their names, metadata as
// interface.md lists for model.safetensors. `kith checkpoint show FILE`: text or JSON.
Status export_checkpoint(const std::string& from, const std::string& to);
// The same out of a live node, whose checkpoints stay as they are: `values` are a copy that was
// made at the image's safe point. The image's moments are not needed.
Status export_values(const std::string& to, const compute::ModelSchema& schema,
                     std::span<const float> values, const compute::TrainerImage& image,
                     const CheckpointFacts& facts);
Result<std::string> show_checkpoint(const std::string& path, bool json);

// data_dir/model.safetensors, byte-identical on every node when values, integers and facts are.
struct FinalFacts {
  std::string run_id, model_json, version;
  Samples progress = 0;
  double epoch = 0.0, data_mean = 0.0, data_std = 1.0, accuracy = 0.0;
  std::size_t classes = 0;
};
Status write_final_model(const std::string& path, const compute::ModelSchema& schema,
                         std::span<const float> values, std::span<const std::int64_t> integers,
                         const FinalFacts& facts);
struct LoadedFinal {
  FinalFacts facts;
  std::vector<float> values;
  std::vector<std::int64_t> integers;
};
Result<std::optional<LoadedFinal>> load_final_model(const std::string& path,
                                                    const compute::ModelSchema& schema);

}  // namespace kith::node
