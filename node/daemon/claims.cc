#include "node/daemon/claims.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace kith::node {

namespace {

template <typename T>
T second_or_only(std::vector<T> values) {
  if (values.empty()) return T{};
  if (values.size() == 1) return values.front();
  std::nth_element(values.begin(), values.begin() + 1, values.end(), std::greater<>());
  return values[1];
}

}  // namespace

Step sum(Step a, Step b) { return a > ~Step{0} - b ? ~Step{0} : a + b; }

Step vouched(std::vector<Step> values) { return second_or_only(std::move(values)); }

double vouched(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return second_or_only(std::move(values));
}

bool Belief::is_level(Step depth_of_member) const {
  return sum(depth_of_member, max_lag) >= depth &&
         (witnesses < 2 || depth_of_member <= sum(depth, max_lag));
}

gossip::Progress::Count Belief::counted(Samples samples, Step steps) const {
  const Step believed = std::min(steps, steps_max);
  const double most = std::min(static_cast<double>(believed) * samples_per_step_max, 1e18);
  return {std::min(samples, static_cast<Samples>(most)), believed};
}

double believed_pace(double own, const std::vector<double>& others) {
  double greatest = own;
  for (const double pace : others) greatest = std::max(greatest, pace);  // ignores NaN
  const double witnessed = std::max({own, vouched(others), kPaceMin});
  return std::min(greatest, others.size() < 2 ? greatest : witnessed * kPaceFactor);
}

}  // namespace kith::node
