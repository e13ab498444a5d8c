// Owners of libzmq's handles, and the options that every socket of a Mesh gets. The plain C API:
// Debian's cppzmq cannot compile its poller against this libzmq, and options 93 and the draft ones
// are missing from its enums.
//
// Why these options (measured facts in tests/node/mesh_zmq_facts_test.cc):
//   ZAP domain enforced (option 93)   CURVE without it lets any key in when no handler answers
//   HANDSHAKE_IVL 3 s                 an unfinished handshake holds a message of memory for so long
//   no HEARTBEAT_IVL                  with it this libzmq aborts the process when a peer closes a
//                                     connection whose messages were not all read (any peer could)
//   TCP_MAXRT 10 s, TCP_KEEPALIVE     the kernel closes connections to hosts that are gone; who is
//                                     there but does not answer is membership's to find out
//   IMMEDIATE 1                       nothing is queued for a peer that is not there
//   LINGER 0, DONTWAIT                nothing ever blocks on a peer
//   ROUTER_MANDATORY 1                sending to a peer that is gone is an error, not silence
//   MAXMSGSIZE                        cuts connections that claim more, before memory is taken
//   never ROUTING_ID                  a routing id that a peer may choose can be squatted; it is no
//                                     identity
// Thread: as libzmq says: contexts any, sockets one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace kith::node {

struct CurveKeys;

class ZmqContext {
 public:
  ZmqContext(int io_threads, int sockets_max);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  [[nodiscard]] void* get() const { return handle_; }
  void shutdown();  // blocking calls in this context return ETERM from now on

 private:
  void* handle_;
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  // kBusy: no file descriptor or socket left.
  static Result<ZmqSocket> make(const ZmqContext& context, int type);
  ZmqSocket(ZmqSocket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;
  ~ZmqSocket();
  [[nodiscard]] void* get() const { return handle_; }
  void close();

  void set(int option, int value) const;
  void set64(int option, std::int64_t value) const;
  void set(int option, const void* value, std::size_t size) const;
  [[nodiscard]] std::string last_endpoint() const;

 private:
  explicit ZmqSocket(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

struct SocketSettings {
  int hwm = 256;                          // messages, both ways
  std::size_t message_bytes_max = 65536;  // per frame
  int tcp_buffer_bytes = 0;               // 0: the system's
  const CurveKeys* curve = nullptr;       // null: no encryption
  // On for IPv6 addresses and for *. With it, libzmq puts IPv4 addresses on IPv6 sockets, too,
  // which machines without IPv6 refuse; every socket here has one numeric address, so nothing is
  // lost.
  bool ipv6 = false;
};
// 4 MiB, what a full window of chunks needs, if the kernel grants it to both directions
// (net.core.wmem_max and rmem_max); else 0: asking for more than allowed would get little and
// switch off the kernel's own growing of buffers, which does as well.
int bulk_buffer_bytes();

// For the bound ROUTER, and for each DEALER. `reconnect`: shortest and longest pause between
// attempts to connect.
void apply_listener_options(const ZmqSocket& socket, const SocketSettings& settings);
void apply_dialler_options(const ZmqSocket& socket, const SocketSettings& settings,
                           Duration reconnect_min, Duration reconnect_max);

// What libzmq's I/O threads say about the connections of one socket.
struct ConnectionEvent {
  enum class Kind {
    kMade,
    kReady,
    kLost,
    kUnmade,   // an attempt ended without a connection
    kRefused,  // the key exchange failed
    kOther
  } kind = Kind::kOther;
  int fd = -1;        // kMade, kLost: of the TCP connection
  std::string why;    // kRefused
  bool slow = false;  // likewise: it was not finished in time, which says nothing of keys
  bool sure = false;  // likewise: the other side said what no kith node with this key says
};
class ConnectionMonitor {
 public:
  ConnectionMonitor() = default;
  // Before bind or connect. `name` is unique in the context. `socket` must outlive the monitor: an
  // I/O thread that has something to tell waits for ever when only the reading end is gone.
  static Result<ConnectionMonitor> attach(const ZmqContext& context, const ZmqSocket& socket,
                                          const std::string& name);
  ConnectionMonitor(ConnectionMonitor&& other) noexcept
      : watched_(std::exchange(other.watched_, nullptr)), pair_(std::move(other.pair_)) {}
  ConnectionMonitor& operator=(ConnectionMonitor&& other) noexcept;
  ~ConnectionMonitor() { stop(); }
  [[nodiscard]] void* handle() const { return pair_.get(); }
  // False: nothing waits.
  bool next(ConnectionEvent& event) const;

 private:
  void stop();

  void* watched_ = nullptr;
  ZmqSocket pair_;
};

}  // namespace kith::node
