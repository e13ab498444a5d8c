// MeshListener: the bound half of a Mesh: one ROUTER, through which others' connections come in.
//
// Per connection: unknown -> HELLO: CHALLENGE, nothing remembered -> HELLO with proof: WELCOME,
// bound | REJECT
//   HELLO of a probe (kith doctor): WELCOME or REJECT, and DIAL_BACK if it asks; never bound. Each
//   costs two signatures checked and one made, so one connection gets kProbesMax of them; the next
//   is told so with REJECT, and the connection is closed kLastWords later.
//                 bound -> messages are delivered under the proven id -> connection lost: unbound
// Thread: the Mesh's owner.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "node/mesh/mesh_core.h"
#include "node/mesh/mesh_dial_back.h"
#include "node/mesh/mesh_handshake.h"

namespace kith::node {

class MeshListener {
 public:
  // `own_nonce`: is this the nonce of a greeting of ours? (Then we have dialled ourselves.)
  MeshListener(MeshCore& core, std::function<bool(const schema::Nonce&)> own_nonce);

  Status bind(bool insecure);
  [[nodiscard]] bool bound() const { return router_.get() != nullptr; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] void* socket() const { return router_.get(); }
  [[nodiscard]] void* monitor() const { return monitor_.handle(); }

  void drain_monitor();
  // Sends what came of dial-backs.
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const {
    return std::min(dial_backs_.next_deadline(), next_closing_);
  }
  // Takes what came in, up to a batch. True: more may wait.
  bool drain();
  SendResult send(const std::string& routing_id, const schema::Message& message,
                  const Slice& payload);

  static constexpr unsigned kProbesMax = 8;  // kith doctor needs one
  static constexpr Duration kLastWords = std::chrono::milliseconds(200);

 private:
  struct Probes {
    unsigned asked = 0;
    TimePoint close_at = TimePoint::max();
  };
  bool may_probe(const Incoming& incoming);
  void close_due(TimePoint now);
  void on_incoming(Incoming& incoming);
  void on_hello(const Incoming& incoming, const schema::Hello& hello);
  void on_proof(const Incoming& incoming, const schema::Hello& hello,
                const schema::Nonce& challenge);
  std::optional<schema::Reject> find_objection(const schema::Hello& hello,
                                               const schema::Nonce& challenge);
  void welcome(const Incoming& incoming, const schema::Hello& hello);
  void answer_probe(const Incoming& incoming, const schema::Hello& hello);
  SendResult send_welcome(const Incoming& incoming, const schema::Hello& hello);
  void refuse(const std::string& routing_id, schema::RejectCode code, std::string detail);
  void refuse(const std::string& routing_id, schema::Reject reject);
  void hint(const std::string& routing_id);
  void made(int fd);
  void lost(int fd);

  MeshCore& core_;
  const std::function<bool(const schema::Nonce&)> own_nonce_;
  const Challenger challenger_;
  ZmqSocket router_;
  ConnectionMonitor monitor_;
  std::string address_;
  std::unordered_set<int> live_fds_;  // connections that libzmq has accepted and not lost
  std::unordered_map<int, std::string> route_of_fd_;  // of bound ones
  std::unordered_map<int, Probes> probes_of_fd_;      // of connections that probe
  TimePoint next_closing_ = TimePoint::max();
  TimePoint next_hint_;
  DialBacks dial_backs_;
};

}  // namespace kith::node
