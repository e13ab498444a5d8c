// ZapHandler: answers libzmq's question "may this client in?" (ZAP, RFC 27) for one context, on a
// thread of its own. It lets in exactly one CURVE public key, the cluster's, and gives its
// connections a User-Id, which the Mesh then demands on every message body. Without a running
// handler CURVE accepts any key unless option 93 is set (measured); so both are there: the handler
// is bound before any other socket of its context, and the option is set. Thread: construct before,
// destroy after the context's shutdown; counters on any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace kith::node {

class ZapHandler {
 public:
  // `context`: a zmq context that has no socket yet. It must be shut down (zmq_ctx_shutdown) before
  // the destructor.
  ZapHandler(void* context, const std::array<std::uint8_t, 32>& allowed_key);
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  static constexpr const char* kDomain = "kith";
  static constexpr const char* kUserId = "kith-member";

 private:
  void run(void* socket);

  const std::array<std::uint8_t, 32> allowed_key_;
  std::atomic<std::uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace kith::node
