// A small set of member records from which one is drawn: half of a PartialView. Linear searches,
// since it holds at most some dozens. Thread: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "schema/messages.h"

namespace kith::gossip {

class ViewSet {
 public:
  // Shared: RecordAuthority::keep().
  using RecordPtr = std::shared_ptr<const schema::MemberRecord>;

  // Enters it, or puts it in the place of the record of the same id.
  void put(RecordPtr record);
  bool remove(const NodeId& id);
  [[nodiscard]] const schema::MemberRecord* find(const NodeId& id) const;
  [[nodiscard]] bool contains(const NodeId& id) const { return find(id) != nullptr; }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] const schema::MemberRecord& at(std::size_t index) const { return *records_[index]; }
  [[nodiscard]] RecordPtr pointer_at(std::size_t index) const { return records_[index]; }
  [[nodiscard]] std::vector<NodeId> ids() const;
  // Up to `count` different ones in random order, without `except`.
  [[nodiscard]] std::vector<RecordPtr> draw(Random& random, std::size_t count,
                                            const NodeId& except) const;

 private:
  std::vector<RecordPtr> records_;
};

}  // namespace kith::gossip
