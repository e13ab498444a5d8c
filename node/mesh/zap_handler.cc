#include "node/mesh/zap_handler.h"

#include <sodium.h>
#include <zmq.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace kith::node {
namespace {

constexpr std::string_view kVersion = "1.0";
constexpr std::size_t kFramesMax = 16;

// Frames of a ZAP request, in the order of RFC 27.
enum Field : std::size_t {
  kRequestVersion,
  kRequestId,
  kDomainField,
  kAddress,
  kIdentity,
  kMechanism,
  kCredential,
  kFields
};

// False: the context is going down.
bool receive_all(void* socket, std::vector<std::string>& frames) {
  frames.clear();
  int more = 1;
  while (more != 0) {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    int rc = 0;
    do rc = zmq_msg_recv(&frame, socket, 0);
    while (rc < 0 && errno == EINTR);
    if (rc < 0) return false;
    if (frames.size() < kFramesMax)
      frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
    more = zmq_msg_more(&frame);
    zmq_msg_close(&frame);
  }
  return true;
}

void send_frame(void* socket, std::string_view text, bool more) {
  while (zmq_send(socket, text.data(), text.size(), more ? ZMQ_SNDMORE : 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

ZapHandler::ZapHandler(void* context, const std::array<std::uint8_t, 32>& allowed_key)
    : allowed_key_(allowed_key) {
  void* socket = zmq_socket(context, ZMQ_REP);
  KITH_CHECK(socket != nullptr, "a socket for authentication can be made at start");
  const int linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  KITH_CHECK(zmq_bind(socket, "inproc://zeromq.zap.01") == 0,
             "one authentication handler per context");
  thread_ = std::thread([this, socket] { run(socket); });
}

ZapHandler::~ZapHandler() { thread_.join(); }

void ZapHandler::run(void* socket) {
  std::vector<std::string> request;
  while (receive_all(socket, request)) {
    const bool well_formed = request.size() == kFields && request[kRequestVersion] == kVersion;
    const bool in =
        well_formed && request[kDomainField] == kDomain && request[kMechanism] == "CURVE" &&
        request[kCredential].size() == allowed_key_.size() &&
        sodium_memcmp(request[kCredential].data(), allowed_key_.data(), allowed_key_.size()) == 0;
    if (!in) refused_.fetch_add(1, std::memory_order_relaxed);
    send_frame(socket, kVersion, true);
    send_frame(socket, request.size() > kRequestId ? request[kRequestId] : "", true);
    send_frame(socket, in ? "200" : "400", true);
    send_frame(socket, in ? "OK" : "not a member of this cluster", true);
    send_frame(socket, in ? kUserId : "", true);
    send_frame(socket, "", false);
  }
  zmq_close(socket);
}

}  // namespace kith::node
