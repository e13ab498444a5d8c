#include "gossip/sim/sim_authority.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossip/sim/node_ids.h"

namespace kith::sim {
namespace {

std::uint64_t word(const NodeId& id, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, id.bytes.data() + 8 * index, sizeof value);
  return value;
}

void add(TraceHash& hash, const NodeId& id) {
  hash.add(word(id, 0));
  hash.add(word(id, 3));
}

std::uint64_t hash_of(std::uint64_t seed, const schema::MemberRecord& r) {
  TraceHash hash;
  hash.add(seed);
  add(hash, r.id);
  hash.add(r.incarnation);
  hash.add(r.version);
  hash.add(r.boot_nonce);
  hash.add(r.left ? 1 : 0);
  hash.add(r.step);
  return hash.value();
}

std::uint64_t hash_of(std::uint64_t seed, const schema::Accusation& a) {
  TraceHash hash;
  hash.add(~seed);
  add(hash, a.subject);
  hash.add(a.incarnation);
  add(hash, a.accuser);
  return hash.value();
}

void put(schema::Signature& signature, std::uint64_t value) {
  std::memcpy(signature.data(), &value, sizeof value);
}

bool matches(const schema::Signature& signature, std::uint64_t value) {
  return std::memcmp(signature.data(), &value, sizeof value) == 0;
}

bool same(const schema::MemberRecord& a, const schema::MemberRecord& b) {
  return a.version == b.version && a.incarnation == b.incarnation && a.state == b.state &&
         a.boot_nonce == b.boot_nonce && a.left == b.left;
}

}  // namespace

void SimAuthority::sign(schema::MemberRecord& own) { put(own.signature, hash_of(seed_, own)); }
void SimAuthority::sign(schema::Accusation& own) { put(own.signature, hash_of(seed_, own)); }
bool SimAuthority::verify(const schema::MemberRecord& record) {
  return matches(record.signature, hash_of(seed_, record));
}
bool SimAuthority::verify(const schema::Accusation& accusation) {
  return matches(accusation.signature, hash_of(seed_, accusation));
}

std::shared_ptr<const schema::MemberRecord> SimAuthority::keep(schema::MemberRecord record) {
  const NodeIndex index = index_of(record.id);
  if (index >= shelves_.size()) shelves_.resize(index + 1);
  Shelf& shelf = shelves_[index];
  for (auto kept = shelf.kept.rbegin(); kept != shelf.kept.rend(); ++kept) {
    auto held = kept->lock();
    if (held != nullptr && same(*held, record)) return held;
  }
  if (shelf.kept.size() >= shelf.sweep_at) {
    std::erase_if(shelf.kept, [](const Kept& kept) { return kept.expired(); });
    shelf.sweep_at = std::max<std::size_t>(16, 2 * shelf.kept.size());
  }
  auto made = std::make_shared<const schema::MemberRecord>(std::move(record));
  shelf.kept.push_back(made);
  return made;
}

}  // namespace kith::sim
