#include "base/random.h"

#include <cmath>

#include "base/check.h"
#include "base/mix.h"

namespace kith {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t rotate_left(std::uint64_t value, int bits) {
  return (value << bits) | (value >> (64 - bits));
}

// splitmix64 (Steele, Lea and Flood 2014): spreads a seed over the generator's state.
std::uint64_t split_mix(std::uint64_t& state) {
  state += kMixStep;
  return mix64(state);
}

// Natural logarithm from exactly rounded operations only (frexp, + - * /), so that it is the same
// number on every machine; libm's may differ in the last bit between processors. ln m = 2 atanh((m
// - 1) / (m + 1)), with m within [sqrt(1/2), sqrt 2): the series' term 13 is below 1e-20. Needs
// -ffp-contract=off (CMakeLists.txt).
double portable_log(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kHalfRoot = 0.707106781186547524401;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kHalfRoot) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int k = 12; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return exponent * kLn2 + 2.0 * s * sum;
}

}  // namespace

Random::Random(std::uint64_t seed) : seed_(seed) {
  std::uint64_t mixer = seed;
  for (std::uint64_t& word : s_) word = split_mix(mixer);
}

std::uint64_t Random::next() {
  const std::uint64_t result = rotate_left(s_[1] * 5, 7) * 9;
  const std::uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = rotate_left(s_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  KITH_CHECK(bound > 0, "a random number below 0 does not exist");
  Wide product = static_cast<Wide>(next()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<Wide>(next()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::uniform(double low, double high) {
  const double value = low + (high - low) * uniform();
  return value < high ? value : low;  // rounding may reach `high`
}

bool Random::chance(double probability) { return uniform() < probability; }

double Random::normal() {
  for (;;) {
    const double u = uniform() * 2.0 - 1.0;
    const double v = uniform() * 2.0 - 1.0;
    const double square = u * u + v * v;
    if (square >= 1.0 || square == 0.0) continue;
    return u * std::sqrt(-2.0 * portable_log(square) / square);
  }
}

double Random::exponential(double mean) { return -mean * portable_log(1.0 - uniform()); }

Random Random::fork(std::string_view label) const {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : label) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  std::uint64_t mixer = seed_;
  mixer = split_mix(mixer) ^ hash;
  return Random(split_mix(mixer));
}

void Random::restore(const State& state) {
  s_ = {state[0], state[1], state[2], state[3]};
  seed_ = state[4];
  KITH_CHECK((s_[0] | s_[1] | s_[2] | s_[3]) != 0, "a generator whose state is zero stays at zero");
}

}  // namespace kith
