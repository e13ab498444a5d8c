#include "node/daemon/happenings.h"

#include <utility>

namespace kith::node {

Happenings::FetchNumber Happenings::next_fetch() {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [](const Happening& happening) {
    return !std::holds_alternative<gossip::ExchangeEvent>(happening);
  });
  return ++last_;
}

void Happenings::add(std::vector<gossip::ExchangeEvent> events) {
  const std::lock_guard lock(mutex_);
  for (auto& event : events) waiting_.emplace_back(std::move(event));
}

bool Happenings::add(FetchNumber fetch, gossip::StateTransfer::Fetched item) {
  const std::lock_guard lock(mutex_);
  if (fetch != last_) return false;
  waiting_.emplace_back(std::move(item));
  return true;
}

bool Happenings::add(FetchNumber fetch, FetchEnded end) {
  const std::lock_guard lock(mutex_);
  if (fetch != last_) return false;
  waiting_.emplace_back(std::move(end));
  return true;
}

std::vector<Happening> Happenings::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

}  // namespace kith::node
