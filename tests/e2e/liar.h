// A member that lies about itself: it holds the cluster's handshake and membership, says whatever figures it is told to, and
// trains nothing. It lives in the test's own process, on a thread of its own until destruction.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "node/config.h"
#include "node/handshake.h"
#include "node/roster.h"

namespace kith::e2e {

class Liar {
 public:
  // Joins the run of `config_file` through `seed`, with these figures from its first record on; `flags` as the others have them.
  Liar(const std::string& config_file, const std::string& folder, const std::string& seed, const schema::MemberRecord& figures,
       const std::vector<node::Flag>& flags);
  ~Liar();
  [[nodiscard]] std::size_t members() const { return members_; }

 private:
  void run();

  MemoryLog log_;
  SystemClock clock_;
  std::unique_ptr<node::Identity> identity_;
  std::unique_ptr<node::RunPolicy> policy_;
  std::unique_ptr<node::Mesh> mesh_;
  std::unique_ptr<node::Roster> roster_;
  std::atomic<std::size_t> members_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace kith::e2e
