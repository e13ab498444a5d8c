#include <cmath>

#include "base/check.h"
#include "node/store/checkpoint.h"
#include "node/store/checkpoint_metadata.h"

namespace kith::node {

// Nothing that differs between nodes or moments may enter: no time, no name, no path. Then equal
// inputs give equal bytes.
Status write_final_model(const std::string& path, const compute::ModelSchema& schema,
                         std::span<const float> values, std::span<const std::int64_t> integers,
                         const FinalFacts& facts) {
  KITH_CHECK(values.size() == schema.value_count && integers.size() == schema.integer_count,
             "the final state has every value of the model");
  for (const float v : values)
    if (!std::isfinite(v))
      return fail(ErrorCode::kNonFinite, path + ": the model holds NaN or infinity: not written");
  KITH_ASSIGN(auto writer,
              SafetensorsWriter::create(path, model_entries(schema), final_metadata(facts)));
  KITH_TRY(writer.append(std::as_bytes(values)));
  KITH_TRY(writer.append(std::as_bytes(integers)));
  return writer.commit();
}

Result<std::optional<LoadedFinal>> load_final_model(const std::string& path,
                                                    const compute::ModelSchema& schema) {
  const auto in_file = [&](Error error) { return fail(error.code, path + ": " + error.message); };
  auto file = SafetensorsFile::open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return std::optional<LoadedFinal>();
  if (!file) return fail(std::move(file.error()));
  KITH_TRY(file->verify_content());
  LoadedFinal loaded;
  auto facts = read_final_metadata(file->metadata());
  if (!facts) return in_file(facts.error());
  loaded.facts = std::move(*facts);
  if (auto matched = match_schema(*file, schema); !matched)
    return fail(ErrorCode::kIncompatible, path + ": " + matched.error().message);
  auto values = read_values(*file, schema);
  if (!values) return in_file(values.error());
  auto integers = read_integers(*file, schema);
  if (!integers) return in_file(integers.error());
  loaded.values = std::move(*values);
  loaded.integers = std::move(*integers);
  return std::optional(std::move(loaded));
}

}  // namespace kith::node
