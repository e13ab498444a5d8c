// The arithmetic of the handshake HELLO / CHALLENGE / HELLO / WELCOME: what is signed, and how a
// listener challenges without remembering anybody.
//
//   dialler                                   listener
//   HELLO nonce=d peer_nonce=0        -->
//                                     <--     CHALLENGE nonce=l peer_nonce=d
//   HELLO nonce=d peer_nonce=l, sig   -->     l recomputed, sig, record verified, policy asked
//                                     <--     WELCOME nonce=l peer_nonce=d, sig | REJECT
//
// l = BLAKE2b(secret of this process; routing id, d, claimed id): a flood of first HELLOs costs no
// memory, and a recorded second HELLO is worthless on another connection, whose routing id differs.
// What it proves: who is at the other end holds the node's key and does so now. What it cannot
// prove while all nodes share one CURVE key: that nobody with the cluster key relays in between (a
// per-node transport key will; records have its field). Thread: any.
#pragma once

#include <array>
#include <string_view>

#include "node/identity/identity.h"
#include "schema/messages.h"

namespace kith::node {

// What the signature of a HELLO (by the dialler) and of a WELCOME (by the listener) covers. `id` is
// the signer's.
Hash256 hello_proof(schema::Plane plane, const schema::Nonce& nonce,
                    const schema::Nonce& peer_nonce, const NodeId& id);
Hash256 welcome_proof(schema::Plane plane, const schema::Nonce& nonce,
                      const schema::Nonce& peer_nonce, const NodeId& id);

schema::Nonce random_nonce();  // from the system's generator

class Challenger {
 public:
  Challenger();
  [[nodiscard]] schema::Nonce nonce_for(std::string_view routing_id,
                                        const schema::Hello& hello) const;

 private:
  std::array<std::uint8_t, 32> secret_;
};

inline bool is_first(const schema::Hello& hello) { return hello.peer_nonce == schema::Nonce{}; }
// Empty if the HELLO proves its record's id on this connection, else what is wrong.
std::string_view find_flaw(const schema::Hello& hello, const schema::Nonce& challenge);
// Likewise for the WELCOME that answers our HELLO with `nonce`.
std::string_view find_flaw(const schema::Welcome& welcome, schema::Plane plane,
                           const schema::Nonce& nonce);

}  // namespace kith::node
