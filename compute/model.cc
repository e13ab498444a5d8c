#include "compute/model.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/hash.h"
#include "compute/affinity.h"
#include "compute/linear_model.h"
#include "compute/model_module.h"

namespace kith::compute {
namespace {

constexpr std::array<ModelInfo, 4> kKinds = {{
    {"linear", "softmax regression in plain C++, without LibTorch", "", false},
    {"mlp", "dense layers with ReLU", "hidden", true},
    {"cnn", "blocks of 3x3 convolution, ReLU and 2x2 max pooling, then dense layers",
     "channels, hidden", true},
    {"cnn-batchnorm", "the same with batch normalisation after each convolution",
     "channels, hidden", true},
}};

// Number of single-letter edits between two words (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

tl::unexpected<Error> unknown_kind(const std::string& kind) {
  std::string lower = kind;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto nearest =
      std::min_element(kKinds.begin(), kKinds.end(), [&](const auto& a, const auto& b) {
        return edit_distance(lower, a.kind) < edit_distance(lower, b.kind);
      });
  std::string known;
  for (const ModelInfo& info : kKinds)
    known += (known.empty() ? "" : ", ") + std::string(info.kind);
  return fail(ErrorCode::kUsage, "unknown model kind '" + kind + "': did you mean '" +
                                     std::string(nearest->kind) + "'? Known are " + known);
}

}  // namespace

Hash256 ModelSchema::hash(std::size_t fragment_bytes) const {
  Hasher hasher;
  hasher.add(std::string_view("kith model schema 1"));
  hasher.add(std::uint64_t{fragment_bytes})
      .add(std::uint64_t{classes})
      .add(std::uint64_t{tensors.size()});
  for (const TensorInfo& tensor : tensors) {
    hasher.add(std::string_view(tensor.name)).add(static_cast<std::uint64_t>(tensor.kind));
    hasher.add(std::uint64_t{tensor.shape.size()});
    for (const std::int64_t dim : tensor.shape) hasher.add(static_cast<std::uint64_t>(dim));
  }
  return hasher.finish();
}

std::span<const ModelInfo> model_kinds() { return kKinds; }

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const OptimizerSpec& optimizer,
                                          const std::string& module_path) {
  const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const auto& info) { return info.kind == spec.kind; });
  if (known == kKinds.end()) return unknown_kind(spec.kind);
  if (!known->needs_torch) return LinearModel::make(spec, optimizer);
  KITH_TRY(validate(optimizer));
  ModelSpec allowed = spec;
  allowed.threads = std::clamp(spec.threads, 1U, allowed_cores());
  return make_model_from_module(module_path, allowed, optimizer);
}

}  // namespace kith::compute
