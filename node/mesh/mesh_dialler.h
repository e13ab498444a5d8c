// MeshDialler: the half of a Mesh that goes to others: addresses as users gave them (targets), the
// endpoints they stand for, and one DEALER with its handshake per endpoint.
//
// Per endpoint:  connecting -> (libzmq: ready) greeting -> (CHALLENGE) proving -> (WELCOME) linked
//                connection lost: back to connecting, by itself; no answer in time, or REJECT:
//                greets again, later and later kSelf: closed and left alone for long; least
//                recently used above the cap: closed until dialled again
// Thread: the Mesh's owner.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/mesh/address_resolver.h"
#include "node/mesh/mesh_core.h"
#include "node/text/address.h"

namespace kith::node {

class MeshDialler {
 public:
  explicit MeshDialler(MeshCore& core);

  void dial(const std::string& address);
  void undial(const std::string& address);

  // Look-ups, greetings that are due, DEALERs to open. Cheap when nothing is due.
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const { return dirty_ ? TimePoint{} : next_due_; }
  [[nodiscard]] bool is_own_nonce(const schema::Nonce& nonce) const;

  [[nodiscard]] int resolver_fd() const { return resolver_.fd(); }
  void take_answers();

  // Endpoints whose last connections ended in the key exchange.
  [[nodiscard]] std::vector<KeyRefusal> key_refusals() const;

  struct Dealer;
  // Changes whenever a DEALER was opened or closed: the sockets to poll are others then.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] std::vector<std::pair<void*, void*>> handles()
      const;  // socket and monitor, in the order of drain()
  // Takes what came in at the index-th of handles(). True: more may wait.
  bool drain(std::size_t index);
  SendResult send(std::uint64_t number, const schema::Message& message, const Slice& payload);
  ~MeshDialler();

 private:
  struct Target {
    HostPort address;
    bool numeric = false;
    bool looking_up = false;
    TimePoint next_lookup;
    Duration backoff{0};
    std::vector<std::string> endpoints;
  };

  void look_up_due(TimePoint now);
  void open_missing(TimePoint now);
  void open(const std::string& endpoint, TimePoint now);
  void make_room();
  void close_unused();
  void close(const std::string& endpoint);
  void retry_due(TimePoint now);
  void schedule();
  [[nodiscard]] bool any_linked(const Target& target) const;
  [[nodiscard]] bool all_refused(const Target& target) const;
  [[nodiscard]] Dealer* find(std::uint64_t number);
  [[nodiscard]] std::vector<std::string> addresses_of(const std::string& endpoint) const;
  void report_failure(const std::string& endpoint, const std::string& why);

  void on_connection(Dealer& dealer, const ConnectionEvent& event);
  void on_incoming(Dealer& dealer, Incoming& incoming);
  void on_challenge(Dealer& dealer, const schema::Challenge& challenge);
  void on_welcome(Dealer& dealer, schema::Welcome welcome);
  void on_reject(Dealer& dealer, const schema::Reject& reject);
  void greet(Dealer& dealer, TimePoint now);
  void unlink(Dealer& dealer);

  MeshCore& core_;
  AddressResolver resolver_;
  std::map<std::string, Target> targets_;                   // by address as given
  std::map<std::string, std::unique_ptr<Dealer>> dealers_;  // by endpoint
  std::vector<Dealer*> order_;                              // as in handles()
  std::map<std::string, TimePoint> parked_;  // endpoints not to be opened before then
  std::uint64_t next_number_ = 1;
  std::uint64_t generation_ = 0;
  std::uint64_t uses_ = 0;  // counts sends and receipts, for "least recently used"
  bool dirty_ = true;       // targets or endpoints changed: tick has work
  TimePoint next_due_ = TimePoint::max();
};

}  // namespace kith::node
