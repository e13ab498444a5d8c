// Probe: the doctor's greeting over a real Mesh: encrypted with the cluster key, signed by a key
// made for this once, and marked as a probe, so that the other side answers and remembers nothing.
// Thread: one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "node/mesh/mesh.h"

namespace kith::node {

class Probe {
 public:
  // `dial_back_port` 0: nothing is dialled back.
  Probe(const std::string& address, const ClusterKey* key, std::uint16_t dial_back_port);
  ~Probe();

  struct Outcome {
    std::optional<schema::Welcome> welcome;
    std::optional<schema::Reject> reject;
    std::string trouble;  // neither came: what the connection said last
  };
  Outcome greet(Duration patience);
  // After a welcome: what came of the dial-back; nullopt: nothing was said in time.
  std::optional<schema::DialBack> dial_back(Duration patience);

  // This machine's clock when the WELCOME was there, and how long that had taken.
  [[nodiscard]] double welcome_wall_seconds() const;
  [[nodiscard]] double welcome_took_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::node
