// A member that lies about itself: it holds the cluster's handshake and membership, says whatever
// figures it is told to, and trains nothing. It lives in the test's own process, on a thread of its
// own until destruction.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "node/config/config.h"
#include "node/daemon/handshake.h"
#include "node/daemon/roster.h"

namespace kith::e2e {

class Liar {
 public:
  // Joins the run of `config_file` through `seed`, with these figures from its first record on;
  // `flags` as the others have them.
  Liar(const std::string& config_file, const std::string& folder, const std::string& seed,
       const schema::MemberRecord& figures, const std::vector<node::Flag>& flags);
  ~Liar();
  // A FINAL in its own name with a wrong signature, to everybody, again and again from now on.
  void declare_falsely() { declaring_ = true; }
  [[nodiscard]] int declared() const { return declared_; }

 private:
  void run();
  void declare();

  MemoryLog log_;
  SystemClock clock_;
  std::unique_ptr<node::Identity> identity_;
  std::unique_ptr<node::RunPolicy> policy_;
  std::unique_ptr<node::Mesh> mesh_;
  std::unique_ptr<node::Roster> roster_;
  Hash256 run_digest_;
  std::atomic<bool> declaring_{false};
  std::atomic<int> declared_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace kith::e2e
