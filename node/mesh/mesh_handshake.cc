#include "node/mesh/mesh_handshake.h"

#include <sodium.h>

#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace kith::node {
namespace {

Hash256 proof(std::string_view label, schema::Plane plane, const schema::Nonce& nonce,
              const schema::Nonce& peer_nonce, const NodeId& id) {
  Hasher hasher;
  hasher.add(label).add(static_cast<std::uint64_t>(plane));
  hasher.add(std::as_bytes(std::span(nonce))).add(std::as_bytes(std::span(peer_nonce)));
  hasher.add(std::as_bytes(std::span(id.bytes)));
  return hasher.finish();
}

}  // namespace

Hash256 hello_proof(schema::Plane plane, const schema::Nonce& nonce,
                    const schema::Nonce& peer_nonce, const NodeId& id) {
  return proof("kith hello", plane, nonce, peer_nonce, id);
}

Hash256 welcome_proof(schema::Plane plane, const schema::Nonce& nonce,
                      const schema::Nonce& peer_nonce, const NodeId& id) {
  return proof("kith welcome", plane, nonce, peer_nonce, id);
}

schema::Nonce random_nonce() {
  KITH_CHECK(sodium_init() >= 0, "libsodium starts");
  schema::Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Challenger::Challenger() : secret_(random_nonce()) {}

schema::Nonce Challenger::nonce_for(std::string_view routing_id, const schema::Hello& hello) const {
  const auto length = static_cast<std::uint64_t>(routing_id.size());
  schema::Nonce nonce{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret_.data(), secret_.size(), nonce.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&length), sizeof length);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(routing_id.data()),
                            routing_id.size());
  crypto_generichash_update(&state, hello.nonce.data(), hello.nonce.size());
  crypto_generichash_update(&state, hello.record.id.bytes.data(), hello.record.id.bytes.size());
  crypto_generichash_final(&state, nonce.data(), nonce.size());
  return nonce;
}

std::string_view find_flaw(const schema::Hello& hello, const schema::Nonce& challenge) {
  if (sodium_memcmp(hello.peer_nonce.data(), challenge.data(), challenge.size()) != 0)
    return "the challenge that was answered belongs to another connection";
  const auto hash = hello_proof(hello.plane, hello.nonce, hello.peer_nonce, hello.record.id);
  if (!verify(hello.record.id, hash, hello.signature))
    return "the proof is not signed by the node's own key";
  if (!verify_record(hello.record)) return "the member record is not signed by the node's own key";
  return {};
}

std::string_view find_flaw(const schema::Welcome& welcome, schema::Plane plane,
                           const schema::Nonce& nonce) {
  if (welcome.peer_nonce != nonce) return "the welcome answers another greeting";
  const auto hash = welcome_proof(plane, welcome.nonce, welcome.peer_nonce, welcome.record.id);
  if (!verify(welcome.record.id, hash, welcome.signature))
    return "the proof is not signed by the node's own key";
  if (!verify_record(welcome.record))
    return "the member record is not signed by the node's own key";
  return {};
}

}  // namespace kith::node
