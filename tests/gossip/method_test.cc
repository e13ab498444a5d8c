// Methods: presets, overrides, and refusals that say why.
#include "gossip/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kith::gossip {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view method, const MethodOverrides& overrides) {
  const auto composed = compose(method, overrides);
  if (composed) return "accepted";
  EXPECT_EQ(composed.error().code, ErrorCode::kUsage);
  return composed.error().message;
}

TEST(Methods, EveryPresetComposesToItself) {
  for (const MethodInfo& method : methods()) {
    const auto composed = compose(method.name, {});
    ASSERT_TRUE(composed) << method.name;
    EXPECT_EQ(describe(*composed), describe(method.preset));
    EXPECT_TRUE(find_topology(composed->topology));
  }
}

TEST(Methods, AdPsgdIsDescribedAsInItsDesign) {
  EXPECT_EQ(
      describe(*compose("ad-psgd", {})),
      "parameters, continuously, random, pair delta w=0.5, never wait, none, fp32, consensus");
}

TEST(Methods, PresetsDifferWhereTheirNamesSay) {
  EXPECT_EQ(compose("elastic-gossip", {})->weight, 0.25);
  EXPECT_EQ(compose("pair-averaging", {})->every_steps, 4U);
  EXPECT_EQ(compose("pair-averaging", {})->when, When::kEverySteps);
  EXPECT_EQ(compose("local", {})->what, What::kNothing);
  EXPECT_EQ(compose("local", {})->finish, Finish::kNone);
  EXPECT_EQ(compose("local", {})->every_steps, 0U);
}

TEST(Methods, OverridesReplaceOneChoiceEach) {
  const auto c = compose(
      "ad-psgd",
      {.topology = "ring", .codec = "bf16", .finish = "none", .alpha = 0.1, .every_steps = 7});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->topology, "ring");
  EXPECT_EQ(c->codec, CodecId::kBf16);
  EXPECT_EQ(c->weight, 0.1);
  EXPECT_EQ(c->every_steps, 7U);
  EXPECT_EQ(c->when, When::kEverySteps);
  EXPECT_EQ(c->finish, Finish::kNone);
  EXPECT_EQ(compose("pair-averaging", {.every_steps = 1})->when, When::kContinuously);
}

TEST(Methods, RefusesAlphaOutsideItsRange) {
  for (const double alpha : {0.0, -0.1, 0.51, std::nan("")}) {
    EXPECT_THAT(error_of("elastic-gossip", {.alpha = alpha}), HasSubstr("alpha")) << alpha;
  }
  EXPECT_TRUE(compose("elastic-gossip", {.alpha = 0.5}));
}

TEST(Methods, RefusesWhatMakesNoSenseAndSaysWhy) {
  EXPECT_THAT(error_of("ad-psgd", {.every_steps = 0}), HasSubstr("never average"));
  EXPECT_THAT(error_of("local", {.topology = "ring"}),
              HasSubstr("topology has no meaning for local"));
  EXPECT_THAT(error_of("local", {.alpha = 0.5}), HasSubstr("alpha has no meaning for local"));
  EXPECT_THAT(error_of("local", {.finish = "consensus"}), HasSubstr("one model per node"));
  EXPECT_TRUE(compose("local", {.finish = "none"}));
}

TEST(Methods, UnknownWordsGetTheNearestKnownOne) {
  EXPECT_THAT(error_of("adpsgd", {}), HasSubstr("did you mean \"ad-psgd\""));
  EXPECT_THAT(error_of("ad-psgd", {.topology = "hypercub"}),
              HasSubstr("did you mean \"hypercube\""));
  EXPECT_THAT(error_of("ad-psgd", {.codec = "bf61"}), HasSubstr("did you mean \"bf16\""));
  EXPECT_THAT(error_of("ad-psgd", {.wait = "nevr"}), HasSubstr("did you mean \"never\""));
  EXPECT_THAT(error_of("ad-psgd", {.finish = "concensus"}),
              HasSubstr("did you mean \"consensus\""));
}

TEST(Codecs, AreFoundByName) {
  EXPECT_EQ(*find_codec("fp32"), CodecId::kFp32);
  EXPECT_EQ(*find_codec("bf16"), CodecId::kBf16);
  for (const CodecInfo& codec : codecs()) EXPECT_EQ(*find_codec(codec.name), codec.id);
}

}  // namespace
}  // namespace kith::gossip
