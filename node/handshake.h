// RunPolicy: who may join this run. It makes our HELLO and WELCOME and judges others' HELLOs; a refusal names both values.
// Thread: any (both Meshes ask on their own threads); the control loop keeps the changing parts up to date.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "node/mesh.h"
#include "schema/messages.h"

namespace kith::node {

struct RunIdentity {
  std::string cluster;
  std::string run_id;
  Hash256 schema_hash;
  schema::Facts facts;   // must agree: seed, method, length, classes, normalisation
};

// BLAKE2b(cluster, run id): carried by every exchange.
Hash256 run_digest(const std::string& cluster, const std::string& run_id);

// First difference between two lists of facts as "run.seed: 7 here, 8 there", nullopt if they agree.
std::optional<std::string> first_difference(const schema::Facts& here, const schema::Facts& there);

class RunPolicy final : public HandshakePolicy {
 public:
  RunPolicy(RunIdentity identity, NodeId self);

  schema::Hello make_hello(schema::Plane plane) override;
  schema::Welcome make_welcome(schema::Plane plane, const schema::Hello& hello) override;
  std::optional<schema::Reject> judge(const schema::Hello& hello) override;
  // The same judgement of a WELCOME that we got: what differs, or nullopt.
  [[nodiscard]] std::optional<std::string> judge_welcome(const schema::Welcome& welcome) const;

  void set_record(const schema::MemberRecord& own);                 // signed
  void set_members(std::vector<schema::MemberRecord> others, Samples progress);

 private:
  [[nodiscard]] schema::Reject refuse(schema::RejectCode code, std::string detail) const;

  const RunIdentity identity_;
  const NodeId self_;
  std::mutex mutex_;                       // guards all below
  schema::MemberRecord record_;
  std::vector<schema::MemberRecord> members_;
  Samples progress_ = 0;
};

}  // namespace kith::node
