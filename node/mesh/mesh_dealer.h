// One DEALER of a Mesh with its handshake's state: a connection that this node makes. See
// mesh_dialler.h for the states. Thread: the Mesh's owner.
#pragma once

#include <memory>
#include <string>

#include "node/mesh/mesh_dialler.h"

namespace kith::node {

struct MeshDialler::Dealer {
  enum class State {
    kConnecting,  // libzmq is at it
    kGreeting,    // HELLO sent
    kProving,     // HELLO with proof sent
    kLinked,
    kWaiting,  // refused: greets again at next_try
  };

  static Result<std::unique_ptr<Dealer>> open(MeshCore& core, const std::string& endpoint,
                                              std::uint64_t number);
  [[nodiscard]] std::string why_silent() const;
  [[nodiscard]] bool key_refused() const { return hung_up >= 2; }
  void forget_trouble() {
    trouble.clear();
    hung_up = 0;
  }

  const std::uint64_t number;
  const std::string endpoint;
  ZmqSocket socket;
  ConnectionMonitor monitor;
  State state = State::kConnecting;
  int fd = -1;  // of the TCP connection, while there is one
  schema::Nonce nonce{};
  TimePoint next_try;
  Duration backoff;
  std::uint64_t last_use = 0;
  bool refused = false;  // the last try ended with REJECT
  // Times in a row that the other side ended the key exchange. Once proves nothing, since a process
  // that is killed does so too; a wrong answer counts twice, after it libzmq does not ask again.
  unsigned hung_up = 0;
  std::string trouble;  // what libzmq said last about a connection that failed

  Dealer(std::uint64_t its_number, std::string its_endpoint, Duration first_backoff)
      : number(its_number), endpoint(std::move(its_endpoint)), backoff(first_backoff) {}
};

}  // namespace kith::node
