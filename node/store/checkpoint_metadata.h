// Texts in the metadata of checkpoints and final models: every value is a string there, and the
// same value must be the same text on every machine. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/model.h"
#include "compute/trainer.h"
#include "node/store/checkpoint.h"
#include "node/store/safetensors.h"

namespace kith::node {

using Metadata = std::map<std::string, std::string>;

inline constexpr char kCheckpointFormat[] = "kith-checkpoint-1";
inline constexpr char kFinalFormat[] = "kith-model-1";
inline constexpr char kOptimizerTensor[] = "kith.optimizer";
inline constexpr char kLedgerTensor[] = "kith.ledger";

// Reads keys one after the other; the first that is absent or malformed is remembered (kCorrupt,
// with its name).
class MetadataReader {
 public:
  explicit MetadataReader(const Metadata& metadata) : metadata_(metadata) {}
  std::string text(const std::string& key);
  std::uint64_t count_or_zero(const std::string& key);  // of keys that earlier versions lack
  std::uint64_t count(const std::string& key);
  double number(const std::string& key);
  Hash256 hash(const std::string& key);
  [[nodiscard]] Status status() const { return status_; }

 private:
  void fault(const std::string& key, const std::string& what);
  const Metadata& metadata_;
  Status status_;
};

// Shortest round-trip text; any NaN is "nan".
std::string metadata_number(double value);

Metadata checkpoint_metadata(const CheckpointFacts& facts, const compute::TrainerImage& image);
Status read_checkpoint_metadata(const Metadata& metadata, CheckpointFacts& facts,
                                compute::TrainerImage& image);
Metadata final_metadata(const FinalFacts& facts);
Result<FinalFacts> read_final_metadata(const Metadata& metadata);

// Tensors of a model: floats in flat order, then integer buffers as I64.
std::vector<TensorEntry> model_entries(const compute::ModelSchema& schema);
// The file's tensors, each with the name, shape and type of the schema's. kCorrupt names the first
// that is not.
Status match_schema(const SafetensorsFile& file, const compute::ModelSchema& schema);
// All floats in flat order / all integers, out of a file that matches. kNonFinite: NaN or infinity
// among the floats.
Result<std::vector<float>> read_values(const SafetensorsFile& file,
                                       const compute::ModelSchema& schema);
Result<std::vector<std::int64_t>> read_integers(const SafetensorsFile& file,
                                                const compute::ModelSchema& schema);

// Streams a frozen replica into a file of model_entries(), fragment by fragment: laid end to end
// they are the tensors in flat order. kNonFinite as above.
Status append_values(SafetensorsWriter& writer, compute::Replica& replica);

}  // namespace kith::node
