#include "gossip/topology.h"

#include <array>
#include <bit>

#include "gossip/topology_names.h"

namespace kith::gossip {
namespace {

using Partner = std::optional<std::uint32_t>;

// Uniform over the others. Not a matching of a round: its pairs form one at a time, whenever
// somebody is ready.
class RandomChooser final : public PartnerChooser {
 public:
  Partner partner(std::uint32_t index, std::uint32_t count, std::uint64_t /*round*/,
                  Random& random) const override {
    if (count < 2) return std::nullopt;
    const auto drawn = static_cast<std::uint32_t>(random.below(count - 1));
    return drawn < index ? drawn : drawn + 1;
  }
  bool is_matching() const override { return false; }
};

// Rounds alternate between the two kinds of edges, (0,1) (2,3) ... and (1,2) (3,4) ... With an odd
// number of nodes the pairs start one place further each round and one node rests, which moves on;
// any three rounds in a row use every edge.
class RingChooser final : public PartnerChooser {
 public:
  Partner partner(std::uint32_t index, std::uint32_t count, std::uint64_t round,
                  Random& /*random*/) const override {
    if (count < 2) return std::nullopt;
    const bool odd = count % 2 != 0;
    const auto start = static_cast<std::uint32_t>(round % (odd ? count : 2));
    const std::uint32_t place = (index + count - start) % count;
    if (odd && place == count - 1) return std::nullopt;
    return place % 2 == 0 ? (index + 1) % count : (index + count - 1) % count;
  }
  bool is_matching() const override { return true; }
};

// Everybody meets everybody once in n-1 rounds (n if odd, resting once): the circle method. On m =
// n-1 (or n) places, i and j meet in round r when i + j = r mod m; who would meet itself meets the
// last node, or rests.
class CompleteChooser final : public PartnerChooser {
 public:
  Partner partner(std::uint32_t index, std::uint32_t count, std::uint64_t round,
                  Random& /*random*/) const override {
    if (count < 2) return std::nullopt;
    const bool odd = count % 2 != 0;
    const std::uint64_t m = odd ? count : count - 1;
    const std::uint64_t r = round % m;
    if (index == m) return static_cast<std::uint32_t>(r * ((m + 1) / 2) % m);  // 2 i = r mod m
    const auto other = static_cast<std::uint32_t>((r + m - index) % m);
    if (other != index) return other;
    if (odd) return std::nullopt;
    return static_cast<std::uint32_t>(m);
  }
  bool is_matching() const override { return true; }
};

// i with i xor 2^k, k rotating. With a count that is not a power of two, partners that do not exist
// are rested for; the top dimension folds the nodes beyond the largest power of two onto the lower
// ones, so that all mix.
class HypercubeChooser final : public PartnerChooser {
 public:
  Partner partner(std::uint32_t index, std::uint32_t count, std::uint64_t round,
                  Random& /*random*/) const override {
    if (count < 2) return std::nullopt;
    const auto dimensions = static_cast<std::uint64_t>(std::bit_width(count - 1));
    const std::uint32_t other = index ^ (std::uint32_t{1} << (round % dimensions));
    if (other >= count) return std::nullopt;
    return other;
  }
  bool is_matching() const override { return true; }
};

template <typename Chooser>
std::unique_ptr<PartnerChooser> make() {
  return std::make_unique<Chooser>();
}

constexpr std::array<TopologyInfo, 4> kTopologies{{
    {"random", "one uniformly random member at a time", "Boyd, Ghosh, Prabhakar, Shah 2006", true,
     &make<RandomChooser>},
    {"ring", "edge-coloured ring: left and right neighbour in turn",
     "Lian et al. 2017 (ring), as matchings", true, &make<RingChooser>},
    {"complete", "everybody in turn, a perfect matching each round", "circle method, Kirkman 1847",
     true, &make<CompleteChooser>},
    {"hypercube", "i xor 2^k, k rotating: exact mean in log2 n rounds", "Daily et al. 2018", true,
     &make<HypercubeChooser>},
}};

}  // namespace

std::span<const TopologyInfo> topologies() { return kTopologies; }

Result<const TopologyInfo*> find_topology(std::string_view name) {
  std::array<std::string_view, kTopologies.size()> known;
  for (std::size_t i = 0; i < kTopologies.size(); ++i) {
    if (kTopologies[i].name == name) return &kTopologies[i];
    known[i] = kTopologies[i].name;
  }
  return fail(ErrorCode::kUsage, unknown_name("topology", name, known));
}

}  // namespace kith::gossip
