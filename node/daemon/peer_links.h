// PeerLinks: which of its peers a node dials itself. A pair needs one link: the member with the
// lower id dials, the other waits for it a while and then dials too. At most links_max peers are
// dialled; the living come first, and one who is dead gives its place to a living one, but is
// dialled (a cut that heals must be noticed) while there is room. Peers without room will dial us,
// and are looked at again later. Two peers may have one address, one after the other: it is hung up
// with the last of them. Costs: keep_all n log n, keep and drop log n. Thread: one owner.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace kith::node {

class Mesh;

class PeerLinks {
 public:
  struct Peer {
    NodeId id;
    std::string address;
    bool living = true;
    bool at_once = true;  // false: it dials us first
  };
  // The transport, as far as this goes.
  struct Wires {
    std::function<bool(const NodeId&)> linked;
    std::function<std::size_t()> links_max;
    std::function<void(const std::string&)> dial, undial;
  };
  static Wires wires_of(Mesh& mesh);

  explicit PeerLinks(Wires wires) : wires_(std::move(wires)) {}

  // These and no others.
  void keep_all(const std::vector<Peer>& peers, TimePoint now);
  void keep(const Peer& peer, TimePoint now);
  void drop(const NodeId& id);

  // When keep_all should be called again though nothing has changed.
  [[nodiscard]] TimePoint next_deadline() const { return next_; }
  [[nodiscard]] std::size_t dials() const { return dials_; }

 private:
  struct Link {
    std::string dialled;               // empty: not dialled by us
    std::optional<TimePoint> dial_at;  // without a link: when to dial
  };
  void dial(Link& link, const Peer& peer);
  void hang_up(const NodeId& id, Link& link);
  bool make_room();

  Wires wires_;
  std::map<NodeId, Link> links_;
  std::map<std::string, std::size_t> users_;  // of an address that is dialled
  std::set<NodeId> dead_;                     // of those dialled
  std::size_t dials_ = 0;
  TimePoint next_ = TimePoint::max();
};

}  // namespace kith::node
