#include "tests/membership/partial_view_network.h"

#include <algorithm>
#include <numeric>

namespace kith::gossip::testing {

ViewNetwork::ViewNetwork(std::size_t count, PartialViewSettings settings, std::uint64_t seed)
    : up_(count, true), random_(seed) {
  for (std::size_t i = 0; i < count; ++i) {
    schema::MemberRecord record;
    record.id = test_id(i);
    record.incarnation = 1ULL << 32;
    authority.sign(record);
    index_[record.id] = i;
    records_.push_back(record);
    views_.push_back(
        std::make_unique<PartialView>(settings, record, authority, Random(random_.next()), now_));
  }
}

void ViewNetwork::join(std::size_t joiner, std::size_t contact) {
  views_[joiner]->join(now_, records_[contact]);
  take_outgoing(joiner);
}

void ViewNetwork::refute(std::size_t index) {
  ++records_[index].incarnation;
  authority.sign(records_[index]);
  views_[index]->set_own(records_[index]);
}

void ViewNetwork::crash(std::size_t index) { up_[index] = false; }

void ViewNetwork::take_outgoing(std::size_t from) {
  for (SwimOutgoing& out : views_[from]->take_outgoing()) flying_.push_back({from, std::move(out)});
}

void ViewNetwork::run(Duration duration) {
  const TimePoint end = now_ + duration;
  while (now_ < end) {
    now_ = now_ + std::chrono::milliseconds(100);
    for (Flight& flight : std::exchange(flying_, {})) {
      const std::size_t to = index_.at(flight.out.to);
      if (!up_[flight.from] || random_.chance(loss)) continue;
      const std::size_t acts = up_[to] ? to : flight.from;
      if (up_[to])
        views_[to]->on_view(now_, test_id(flight.from), std::get<schema::View>(flight.out.message));
      else
        views_[flight.from]->on_link_lost(now_, flight.out.to);
      take_outgoing(acts);
    }
    for (std::size_t i = 0; i < size(); ++i) {
      if (!up_[i] || views_[i]->next_deadline() > now_) continue;
      views_[i]->tick(now_);
      take_outgoing(i);
    }
  }
}

std::size_t ViewNetwork::running() const {
  return static_cast<std::size_t>(std::ranges::count(up_, true));
}

std::vector<bool> ViewNetwork::reached_ones() const {
  std::vector<bool> seen(size(), false);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < size() && open.empty(); ++i)
    if (up_[i]) open.push_back(i);
  if (!open.empty()) seen[open.front()] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const NodeId& id : views_[at]->active()) {
      const std::size_t next = index_.at(id);
      if (!up_[next] || seen[next]) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
  return seen;
}

std::size_t ViewNetwork::reached() const {
  return static_cast<std::size_t>(std::ranges::count(reached_ones(), true));
}

std::size_t ViewNetwork::one_sided() const {
  std::size_t out = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!up_[i]) continue;
    for (const NodeId& id : views_[i]->active()) {
      const auto back = views_[index_.at(id)]->active();
      if (!up_[index_.at(id)] || std::ranges::find(back, test_id(i)) == back.end()) ++out;
    }
  }
  return out;
}

std::vector<double> ViewNetwork::in_degrees() const {
  std::vector<double> all(size(), 0.0);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!up_[i]) continue;
    for (const NodeId& id : views_[i]->active()) ++all[index_.at(id)];
    for (const NodeId& id : views_[i]->passive()) ++all[index_.at(id)];
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < size(); ++i)
    if (up_[i]) out.push_back(all[i]);
  return out;
}

double chi_square_per_degree(const std::vector<double>& counts) {
  const double mean =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0.0;
  for (const double count : counts) sum += (count - mean) * (count - mean) / mean;
  return sum / static_cast<double>(counts.size() - 1);
}

}  // namespace kith::gossip::testing
