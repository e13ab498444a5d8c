#include "node/mesh/mesh_socket.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "node/mesh/cluster_key.h"
#include "node/mesh/zap_handler.h"

namespace kith::node {
namespace {

constexpr int kZapEnforceDomain =
    93;  // ZMQ_ZAP_ENFORCE_DOMAIN: hidden behind the draft macro, works by number
constexpr int kHandshakeMs = 3000;
constexpr int kUnacknowledgedMs = 10000;  // then the kernel gives the connection up
constexpr int kKeepaliveIdleSeconds = 2;  // an idle one is asked after, and given up after as long
constexpr int kKeepaliveIntervalSeconds = 2;
constexpr int kKeepaliveTimes = 4;

int to_ms(Duration d) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

int kernel_limit(const char* name) {
  std::ifstream file(std::string("/proc/sys/net/core/") + name);
  int bytes = 0;
  return file >> bytes ? bytes : 0;
}

void apply_common_options(const ZmqSocket& socket, const SocketSettings& settings) {
  socket.set(ZMQ_LINGER, 0);
  socket.set(ZMQ_IPV6, settings.ipv6 ? 1 : 0);
  socket.set(ZMQ_SNDHWM, settings.hwm);
  socket.set(ZMQ_RCVHWM, settings.hwm);
  socket.set64(ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(settings.message_bytes_max));
  socket.set(ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  socket.set(ZMQ_TCP_MAXRT, kUnacknowledgedMs);
  socket.set(ZMQ_TCP_KEEPALIVE, 1);
  socket.set(ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleSeconds);
  socket.set(ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalSeconds);
  socket.set(ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveTimes);
  if (settings.tcp_buffer_bytes > 0) {
    socket.set(ZMQ_SNDBUF, settings.tcp_buffer_bytes);
    socket.set(ZMQ_RCVBUF, settings.tcp_buffer_bytes);
  }
}

}  // namespace

int bulk_buffer_bytes() {
  constexpr int kBytes = 4 << 20;
  return std::min(kernel_limit("wmem_max"), kernel_limit("rmem_max")) >= kBytes ? kBytes : 0;
}

ZmqContext::ZmqContext(int io_threads, int sockets_max) : handle_(zmq_ctx_new()) {
  KITH_CHECK(handle_ != nullptr, "a ZeroMQ context can be made at start");
  zmq_ctx_set(handle_, ZMQ_IO_THREADS, io_threads);
  const int limit = zmq_ctx_get(handle_, ZMQ_SOCKET_LIMIT);
  zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, std::min(sockets_max, limit));
}

ZmqContext::~ZmqContext() {
  while (zmq_ctx_term(handle_) != 0 && errno == EINTR) {
  }
}

void ZmqContext::shutdown() { zmq_ctx_shutdown(handle_); }

Result<ZmqSocket> ZmqSocket::make(const ZmqContext& context, int type) {
  void* handle = zmq_socket(context.get(), type);
  if (handle == nullptr)
    return fail(ErrorCode::kBusy, std::string("no more sockets: ") + zmq_strerror(errno));
  return ZmqSocket(handle);
}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this == &other) return *this;
  close();
  handle_ = std::exchange(other.handle_, nullptr);
  return *this;
}

ZmqSocket::~ZmqSocket() { close(); }

void ZmqSocket::close() {
  if (handle_ != nullptr) zmq_close(handle_);
  handle_ = nullptr;
}

void ZmqSocket::set(int option, const void* value, std::size_t size) const {
  const int rc = zmq_setsockopt(handle_, option, value, size);
  KITH_CHECK(rc == 0, "libzmq takes option " + std::to_string(option) + ": " + zmq_strerror(errno));
}
void ZmqSocket::set(int option, int value) const { set(option, &value, sizeof value); }
void ZmqSocket::set64(int option, std::int64_t value) const { set(option, &value, sizeof value); }

std::string ZmqSocket::last_endpoint() const {
  char text[512] = {};
  std::size_t size = sizeof text;
  return zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, text, &size) == 0 ? text : "";
}

void apply_listener_options(const ZmqSocket& socket, const SocketSettings& settings) {
  apply_common_options(socket, settings);
  socket.set(ZMQ_ROUTER_MANDATORY, 1);
  socket.set(ZMQ_BACKLOG, 256);
  if (settings.curve == nullptr) return;
  socket.set(kZapEnforceDomain, 1);
  socket.set(ZMQ_ZAP_DOMAIN, ZapHandler::kDomain, std::strlen(ZapHandler::kDomain));
  socket.set(ZMQ_CURVE_SERVER, 1);
  socket.set(ZMQ_CURVE_SECRETKEY, settings.curve->secret_key.bytes().data(), 32);
}

void apply_dialler_options(const ZmqSocket& socket, const SocketSettings& settings,
                           Duration reconnect_min, Duration reconnect_max) {
  apply_common_options(socket, settings);
  socket.set(ZMQ_IMMEDIATE, 1);
  socket.set(ZMQ_RECONNECT_IVL, std::max(1, to_ms(reconnect_min)));
  socket.set(ZMQ_RECONNECT_IVL_MAX, std::max(1, to_ms(reconnect_max)));
  if (settings.curve == nullptr) return;
  socket.set(ZMQ_CURVE_SERVERKEY, settings.curve->public_key.data(), 32);
  socket.set(ZMQ_CURVE_PUBLICKEY, settings.curve->public_key.data(), 32);
  socket.set(ZMQ_CURVE_SECRETKEY, settings.curve->secret_key.bytes().data(), 32);
}

Result<ConnectionMonitor> ConnectionMonitor::attach(const ZmqContext& context,
                                                    const ZmqSocket& socket,
                                                    const std::string& name) {
  constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                          ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
                          ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
  const std::string endpoint = "inproc://" + name;
  ConnectionMonitor monitor;
  KITH_ASSIGN(monitor.pair_, ZmqSocket::make(context, ZMQ_PAIR));
  monitor.pair_.set(ZMQ_LINGER, 0);
  monitor.pair_.set(ZMQ_RCVHWM, 0);  // unbounded: a full pipe would block the I/O thread
  if (zmq_socket_monitor(socket.get(), endpoint.c_str(), kEvents) != 0)
    return fail(ErrorCode::kBusy, std::string("no more sockets: ") + zmq_strerror(errno));
  monitor.watched_ = socket.get();
  KITH_CHECK(zmq_connect(monitor.pair_.get(), endpoint.c_str()) == 0,
             "a monitor that was just bound can be reached");
  return monitor;
}

ConnectionMonitor& ConnectionMonitor::operator=(ConnectionMonitor&& other) noexcept {
  if (this == &other) return *this;
  stop();
  watched_ = std::exchange(other.watched_, nullptr);
  pair_ = std::move(other.pair_);
  return *this;
}

// libzmq ends the telling side first, after what is being told has been told.
void ConnectionMonitor::stop() {
  if (watched_ != nullptr) (void)zmq_socket_monitor(watched_, nullptr, 0);
  watched_ = nullptr;
  pair_.close();
}

namespace {

// The events of a key exchange that failed. `error`: where nothing more is known, errno's value.
void read_failure(std::uint16_t number, int error, ConnectionEvent& event) {
  if (number == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    event.why = "the other side has another cluster key";
    event.sure = true;
  } else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
    event.why = "no kith node of this cluster answers there, or only one side uses a cluster key";
    event.sure = true;
  } else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
    const bool hung_up = error == EPIPE || error == ECONNRESET;
    event.slow = !hung_up;
    event.why = hung_up ? "the connection was closed during the key exchange: another cluster key, "
                          "or no kith node"
                        : "the key exchange was not finished in time";
  }
  if (!event.why.empty()) event.kind = ConnectionEvent::Kind::kRefused;
}

}  // namespace

bool ConnectionMonitor::next(ConnectionEvent& event) const {
  std::uint8_t head[6] = {};
  int rc = 0;
  do rc = zmq_recv(pair_.get(), head, sizeof head, ZMQ_DONTWAIT);
  while (rc < 0 && errno == EINTR);
  if (rc != static_cast<int>(sizeof head)) return false;
  char endpoint[16];
  zmq_recv(pair_.get(), endpoint, sizeof endpoint, ZMQ_DONTWAIT);  // second frame: not needed

  std::uint16_t number = 0;
  std::uint32_t value = 0;
  std::memcpy(&number, head, sizeof number);
  std::memcpy(&value, head + sizeof number, sizeof value);
  event = {};
  event.fd = static_cast<int>(value);
  if (number == ZMQ_EVENT_ACCEPTED || number == ZMQ_EVENT_CONNECTED)
    event.kind = ConnectionEvent::Kind::kMade;
  if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) event.kind = ConnectionEvent::Kind::kReady;
  if (number == ZMQ_EVENT_DISCONNECTED) event.kind = ConnectionEvent::Kind::kLost;
  if (number == ZMQ_EVENT_CLOSED) event.kind = ConnectionEvent::Kind::kUnmade;
  read_failure(number, static_cast<int>(value), event);
  return true;
}

}  // namespace kith::node
