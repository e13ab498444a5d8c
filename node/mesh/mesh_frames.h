// Frames of a Mesh's sockets: exactly two per message, header and payload, after the routing id on
// a ROUTER. Payloads go out and come in without a copy: libzmq reads a sent Slice in place and lets
// go of it on its own thread; a received one stays inside its zmq message, which the Slice keeps
// alive. Thread: the owner of the socket.
#pragma once

#include <zmq.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/buffer.h"

namespace kith::node {

class Frame {
 public:
  Frame() { zmq_msg_init(&message_); }
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;
  ~Frame() { zmq_msg_close(&message_); }
  [[nodiscard]] zmq_msg_t* raw() const { return &message_; }
  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] Slice into_slice() &&;

 private:
  mutable zmq_msg_t message_;
};

struct Incoming {
  std::string routing_id;  // ROUTER only
  Frame header, payload;
  bool authenticated =
      false;    // ROUTER: the body carries a User-Id, which only the ZAP handler gives
  int fd = -1;  // ROUTER: TCP connection it came by
  std::size_t body_frames = 0;
  // ROUTER: numeric address of the other end; empty if libzmq does not say.
  [[nodiscard]] std::string peer_host() const;
  [[nodiscard]] std::size_t byte_count() const {
    return header.bytes().size() + payload.bytes().size();
  }
};

enum class ReceiveResult { kNothing, kMessage, kMalformed };
// Takes one whole multipart message. More than two body frames: all are drained, one at a time, and
// kMalformed.
ReceiveResult receive_message(void* socket, bool is_router, Incoming& out);

enum class SendResult { kSent, kNoRoom, kNoRoute };
// `routing_id` null for a DEALER. Never blocks. A payload is let go of whatever the result.
SendResult send_message(void* socket, const std::string* routing_id,
                        std::span<const std::byte> header, const Slice& payload);

}  // namespace kith::node
