// RunPolicy: who may join this run. It makes our HELLO and WELCOME and judges others' HELLOs; a
// refusal names both values. Thread: any (both Meshes ask on their own threads); the control loop
// keeps the changing parts up to date.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "node/mesh/mesh.h"
#include "node/setup/run_setup.h"
#include "schema/messages.h"

namespace kith::node {

struct RunIdentity {
  std::string cluster;
  std::string run_id;
  Hash256 schema_hash;
  schema::Facts facts;  // must agree: seed, method, length, classes, normalisation
};

// BLAKE2b(cluster, run id): carried by every exchange.
Hash256 run_digest(const std::string& cluster, const std::string& run_id);

// What the handshake on the control plane asks about members (Roster answers).
class MemberBook {
 public:
  virtual ~MemberBook() = default;
  virtual std::optional<schema::MemberRecord> record_of(const NodeId& id) const = 0;
  virtual std::vector<schema::MemberRecord> sample(std::size_t most) = 0;
};

// Two processes with one key (a copied data directory): true if `a` is the one that goes on. The
// later boot, then the higher nonce; never refutations, which both raise against each other.
bool outlives(const schema::MemberRecord& a, const schema::MemberRecord& b);

class RunPolicy final : public HandshakePolicy {
 public:
  RunPolicy(RunIdentity identity, NodeId self);

  schema::Hello make_hello(schema::Plane plane) override;
  schema::Welcome make_welcome(schema::Plane plane, const schema::Hello& hello) override;
  std::optional<schema::Reject> judge(const schema::Hello& hello) override;
  // The same judgement of a WELCOME that we got: what differs, or nullopt.
  [[nodiscard]] std::optional<std::string> judge_welcome(const schema::Welcome& welcome) const;

  void set_record(const schema::MemberRecord& own);  // signed
  // Before the control Mesh is polled; asked on the control Mesh's thread only.
  void set_book(MemberBook* book) { book_ = book; }
  // A process with our own key that greeted us since the last call, and would outlive us.
  std::optional<schema::MemberRecord> take_twin();

 private:
  [[nodiscard]] schema::Reject refuse(schema::RejectCode code, std::string detail) const;
  std::optional<schema::Reject> judge_identity(const schema::Hello& hello);

  const RunIdentity identity_;
  const NodeId self_;
  std::mutex mutex_;  // guards all below
  schema::MemberRecord record_;
  std::optional<schema::MemberRecord> twin_;
  MemberBook* book_ = nullptr;  // control Mesh's thread
};

}  // namespace kith::node
