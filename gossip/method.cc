#include "gossip/method.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "gossip/topology_names.h"

namespace kith::gossip {
namespace {

Composition local_preset() {
  Composition c;
  c.what = What::kNothing;
  c.when = When::kNever;
  c.every_steps = 0;
  c.how = How::kNone;
  c.finish = Finish::kNone;
  return c;
}

Composition elastic_preset() {
  Composition c;
  c.weight = 0.25;
  return c;
}

Composition pair_averaging_preset() {
  Composition c;
  c.when = When::kEverySteps;
  c.every_steps = 4;
  return c;
}

const std::array<MethodInfo, 4>& table() {
  static const std::array<MethodInfo, 4> methods{{
      {"local", "every node trains alone; nothing is averaged", "", local_preset()},
      {"ad-psgd", "after every step, the mean with one random member, without waiting",
       "Lian, Zhang, Zhang, Liu 2018", Composition{}},
      {"elastic-gossip", "like ad-psgd, but pulled together only by alpha of the difference",
       "Pramod 2018", elastic_preset()},
      {"pair-averaging", "every few steps, the mean with one random member",
       "Blot, Picard, Cord, Thome 2016", pair_averaging_preset()},
  }};
  return methods;
}

constexpr std::array<CodecInfo, 2> kCodecs{{
    {CodecId::kFp32, "fp32", 4.0, "32-bit floats, exact"},
    {CodecId::kBf16, "bf16", 2.0, "the upper 16 bits, rounded: half the bytes, consensus to 1e-3"},
}};

tl::unexpected<Error> refuse(std::string reason) {
  return fail(ErrorCode::kUsage, "[method] " + std::move(reason));
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

Result<const MethodInfo*> find_method(std::string_view name) {
  std::array<std::string_view, 4> known;
  for (std::size_t i = 0; i < table().size(); ++i) {
    if (table()[i].name == name) return &table()[i];
    known[i] = table()[i].name;
  }
  return fail(ErrorCode::kUsage, unknown_name("method", name, known));
}

// One word out of a few.
Status expect(std::string_view key, const std::string& value,
              std::span<const std::string_view> known) {
  for (const std::string_view word : known) {
    if (word == value) return {};
  }
  return refuse(unknown_name(key, value, known));
}

// What a method that exchanges nothing has no use for.
Status check_local(const MethodOverrides& overrides) {
  const char* key = overrides.topology      ? "topology"
                    : overrides.codec       ? "codec"
                    : overrides.alpha       ? "alpha"
                    : overrides.every_steps ? "every_steps"
                    : overrides.wait        ? "wait"
                                            : nullptr;
  if (key != nullptr) {
    return refuse(std::string(key) +
                  " has no meaning for local, which averages nothing: leave it out");
  }
  if (overrides.finish && *overrides.finish == "consensus") {
    return refuse(
        "finish = \"consensus\" needs a method that averages; local writes one model per node");
  }
  return {};
}

Status set_topology(Composition& c, const std::string& name) {
  KITH_ASSIGN(const TopologyInfo* topology, find_topology(name));
  if (c.how == How::kPairDelta && !topology->matching) {
    return refuse(
        "topology = \"" + name +
        "\" is not a matching: pair deltas would never mix all nodes; use one of those that "
        "`kith topologies` shows as matchings");
  }
  c.topology = name;
  return {};
}

Status set_weight(Composition& c, double alpha) {
  if (!(alpha > 0.0 && alpha <= 0.5)) {
    return refuse("alpha = " + number(alpha) +
                  " is not in (0, 0.5]: 0.5 is the mean of the two, more would overshoot");
  }
  c.weight = alpha;
  return {};
}

Status set_every(Composition& c, std::uint64_t every) {
  if (every == 0) {
    return refuse("every_steps = 0 would never average: use 1 or more, or method = \"local\"");
  }
  c.every_steps = every;
  c.when = every == 1 ? When::kContinuously : When::kEverySteps;
  return {};
}

constexpr std::array<std::string_view, 1> kWaits{"never"};
constexpr std::array<std::string_view, 2> kFinishes{"consensus", "none"};

}  // namespace

std::span<const MethodInfo> methods() { return table(); }
std::span<const CodecInfo> codecs() { return kCodecs; }

Result<CodecId> find_codec(std::string_view name) {
  std::array<std::string_view, kCodecs.size()> known;
  for (std::size_t i = 0; i < kCodecs.size(); ++i) {
    if (kCodecs[i].name == name) return kCodecs[i].id;
    known[i] = kCodecs[i].name;
  }
  return fail(ErrorCode::kUsage, unknown_name("codec", name, known));
}

Result<Composition> compose(std::string_view method, const MethodOverrides& overrides) {
  KITH_ASSIGN(const MethodInfo* info, find_method(method));
  Composition c = info->preset;
  if (overrides.finish) KITH_TRY(expect("finish", *overrides.finish, kFinishes));
  if (overrides.wait) KITH_TRY(expect("wait", *overrides.wait, kWaits));
  if (c.what == What::kNothing) {
    KITH_TRY(check_local(overrides));
    return c;
  }
  if (overrides.topology) KITH_TRY(set_topology(c, *overrides.topology));
  if (overrides.codec) {
    KITH_ASSIGN(c.codec, find_codec(*overrides.codec));
  }
  if (overrides.alpha) KITH_TRY(set_weight(c, *overrides.alpha));
  if (overrides.every_steps) KITH_TRY(set_every(c, *overrides.every_steps));
  if (overrides.finish) {
    c.finish = *overrides.finish == "none" ? Finish::kNone : Finish::kConsensus;
  }
  return c;
}

std::string describe(const Composition& c) {
  const bool averages = c.what != What::kNothing;
  std::string text = averages ? "parameters" : "nothing";
  text += c.when == When::kNever          ? ", never"
          : c.when == When::kContinuously ? ", continuously"
                                          : ", every " + std::to_string(c.every_steps) + " steps";
  text += ", " + (averages ? c.topology : std::string("nobody"));
  text += averages ? ", pair delta w=" + number(c.weight) : std::string(", none");
  text += ", never wait, none";
  for (const CodecInfo& codec : kCodecs) {
    if (averages && codec.id == c.codec) text += ", " + std::string(codec.name);
  }
  text += c.finish == Finish::kConsensus ? ", consensus" : ", none";
  return text;
}

}  // namespace kith::gossip
