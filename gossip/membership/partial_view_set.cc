#include "gossip/membership/partial_view_set.h"

#include <algorithm>
#include <span>
#include <utility>

namespace kith::gossip {

void ViewSet::put(RecordPtr record) {
  for (RecordPtr& held : records_) {
    if (held->id != record->id) continue;
    held = std::move(record);
    return;
  }
  records_.push_back(std::move(record));
}

bool ViewSet::remove(const NodeId& id) {
  return std::erase_if(records_, [&](const RecordPtr& record) { return record->id == id; }) > 0;
}

const schema::MemberRecord* ViewSet::find(const NodeId& id) const {
  for (const RecordPtr& record : records_)
    if (record->id == id) return record.get();
  return nullptr;
}

std::vector<NodeId> ViewSet::ids() const {
  std::vector<NodeId> out;
  out.reserve(records_.size());
  for (const RecordPtr& record : records_) out.push_back(record->id);
  return out;
}

std::vector<ViewSet::RecordPtr> ViewSet::draw(Random& random, std::size_t count,
                                              const NodeId& except) const {
  std::vector<RecordPtr> out;
  for (const RecordPtr& record : records_)
    if (record->id != except) out.push_back(record);
  random.shuffle(std::span(out));
  out.resize(std::min(out.size(), count));
  return out;
}

}  // namespace kith::gossip
