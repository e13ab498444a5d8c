// Methods: a training method is a composition of independent choices; a name is a preset over them
// (design: section 5). One visible table each for methods and codecs here, for topologies in
// topology.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "gossip/topology.h"

namespace kith::gossip {

enum class What { kNothing, kParameters };
enum class When { kNever, kContinuously, kEverySteps };
enum class How { kNone, kPairDelta };
enum class Wait { kNever };
enum class Outer { kNone };
enum class LocalUpdate { kOptimizer };
enum class Finish { kConsensus, kNone };

struct Composition {
  What what = What::kParameters;
  When when = When::kContinuously;
  std::uint64_t every_steps = 1;  // kEverySteps: >= 1
  std::string topology = "random";
  How how = How::kPairDelta;
  double weight = 0.5;  // pair delta's w (alpha), 0 < w <= 1/2
  Wait wait = Wait::kNever;
  Outer outer = Outer::kNone;
  CodecId codec = CodecId::kFp32;
  LocalUpdate local_update = LocalUpdate::kOptimizer;
  Finish finish = Finish::kConsensus;
};

struct MethodInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Composition preset;
};
// local, ad-psgd, elastic-gossip, pair-averaging.
std::span<const MethodInfo> methods();

struct CodecInfo {
  CodecId id;
  std::string_view name;
  double bytes_per_value;
  std::string_view summary;
};
// fp32, bf16.
std::span<const CodecInfo> codecs();
Result<CodecId> find_codec(std::string_view name);

// Overrides of the configuration's [method] table; absent = the preset's.
struct MethodOverrides {
  std::optional<std::string> topology, codec, wait, finish;
  std::optional<double> alpha;
  std::optional<std::uint64_t> every_steps;
};
// The composition, or kUsage with the reason: unknown names (nearest known one), an override that
// the method has no use for, a topology that is not a matching under pair deltas, alpha out of (0,
// 1/2], every_steps = 0.
Result<Composition> compose(std::string_view method, const MethodOverrides& overrides);

// "parameters, continuously, random, pair delta w=0.5, never wait, none, fp32, consensus"
std::string describe(const Composition& composition);

}  // namespace kith::gossip
