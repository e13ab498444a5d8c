#include "node/mesh/mesh_frames.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace kith::node {
namespace {

bool receive_frame(void* socket, Frame& frame) {
  int rc = 0;
  do rc = zmq_msg_recv(frame.raw(), socket, ZMQ_DONTWAIT);
  while (rc < 0 && errno == EINTR);
  return rc >= 0;
}

bool send_frame(void* socket, zmq_msg_t& message, int flags) {
  int rc = 0;
  do rc = zmq_msg_send(&message, socket, ZMQ_DONTWAIT | flags);
  while (rc < 0 && errno == EINTR);
  if (rc >= 0) return true;
  const int error = errno;
  zmq_msg_close(&message);
  errno = error;
  return false;
}

bool send_copy(void* socket, std::string_view data, int flags) {
  zmq_msg_t message;
  KITH_CHECK(zmq_msg_init_size(&message, data.size()) == 0, "there is memory for a message header");
  if (!data.empty()) std::memcpy(zmq_msg_data(&message), data.data(), data.size());
  return send_frame(socket, message, flags);
}

// The first frame decides whether there is room. libzmq looks at what its I/O threads tell it (a
// connection is there, there is room again) only now and then; asking for the events makes it look,
// so a "no" is tried once more after that.
bool send_first(void* socket, std::string_view data) {
  if (send_copy(socket, data, ZMQ_SNDMORE)) return true;
  if (errno != EAGAIN) return false;
  int events = 0;
  std::size_t size = sizeof events;
  zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size);
  return send_copy(socket, data, ZMQ_SNDMORE);
}

void release_slice(void*, void* hint) { delete static_cast<Slice*>(hint); }

bool send_slice(void* socket, const Slice& slice) {
  if (slice.empty()) return send_copy(socket, {}, 0);
  auto owner = std::make_unique<Slice>(slice);
  auto* data = const_cast<std::byte*>(slice.data());  // libzmq's signature; it only reads
  zmq_msg_t message;
  KITH_CHECK(zmq_msg_init_data(&message, data, slice.size(), &release_slice, owner.get()) == 0,
             "there is memory for a message");
  static_cast<void>(owner.release());  // release_slice deletes it
  return send_frame(socket, message, 0);
}

}  // namespace

Frame::Frame(Frame&& other) noexcept {
  zmq_msg_init(&message_);
  zmq_msg_move(&message_, &other.message_);
}
Frame& Frame::operator=(Frame&& other) noexcept {
  if (this != &other) zmq_msg_move(&message_, &other.message_);
  return *this;
}

std::span<const std::byte> Frame::bytes() const {
  return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
}

Slice Frame::into_slice() && {
  if (zmq_msg_size(&message_) == 0) return {};
  const auto owner = std::make_shared<Frame>(std::move(*this));
  return {owner, owner->bytes()};
}

std::string Incoming::peer_host() const {
  const char* text = zmq_msg_gets(header.raw(), "Peer-Address");
  return text != nullptr ? text : "";
}

ReceiveResult receive_message(void* socket, bool is_router, Incoming& out) {
  out.body_frames = 0;
  out.authenticated = false;
  out.fd = -1;
  Frame frame;
  if (!receive_frame(socket, frame)) return ReceiveResult::kNothing;
  if (is_router) {
    const auto id = frame.bytes();
    out.routing_id.assign(reinterpret_cast<const char*>(id.data()), id.size());
    if (zmq_msg_more(frame.raw()) == 0 || !receive_frame(socket, frame))
      return ReceiveResult::kMalformed;
  }
  for (;;) {
    const bool more = zmq_msg_more(frame.raw()) != 0;
    if (out.body_frames == 0) {
      // The frame with the routing id has no User-Id after zmq_poll; the body has.
      out.authenticated = is_router && zmq_msg_gets(frame.raw(), "User-Id") != nullptr;
      out.fd = is_router ? zmq_msg_get(frame.raw(), ZMQ_SRCFD) : -1;
      out.header = std::move(frame);
    } else if (out.body_frames == 1) {
      out.payload = std::move(frame);
    }
    ++out.body_frames;
    if (!more || !receive_frame(socket, frame)) break;
  }
  return out.body_frames == 2 ? ReceiveResult::kMessage : ReceiveResult::kMalformed;
}

SendResult send_message(void* socket, const std::string* routing_id,
                        std::span<const std::byte> header, const Slice& payload) {
  const std::string_view head(reinterpret_cast<const char*>(header.data()), header.size());
  const std::string_view first = routing_id != nullptr ? std::string_view(*routing_id) : head;
  if (!send_first(socket, first))
    return errno == EHOSTUNREACH ? SendResult::kNoRoute : SendResult::kNoRoom;
  if (routing_id != nullptr && !send_copy(socket, head, ZMQ_SNDMORE)) return SendResult::kNoRoom;
  return send_slice(socket, payload) ? SendResult::kSent : SendResult::kNoRoom;
}

}  // namespace kith::node
