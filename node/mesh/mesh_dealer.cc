#include "node/mesh/mesh_dealer.h"

#include <zmq.h>

#include <cerrno>

namespace kith::node {

Result<std::unique_ptr<MeshDialler::Dealer>> MeshDialler::Dealer::open(MeshCore& core,
                                                                       const std::string& endpoint,
                                                                       std::uint64_t number) {
  auto dealer = std::make_unique<Dealer>(number, endpoint, core.retry_min);
  KITH_ASSIGN(dealer->socket, ZmqSocket::make(core.context, ZMQ_DEALER));
  SocketSettings settings = core.socket_settings;
  settings.ipv6 = endpoint.find('[') != std::string::npos;
  apply_dialler_options(dealer->socket, settings, core.jittered(core.retry_min), core.retry_max);
  KITH_ASSIGN(dealer->monitor, ConnectionMonitor::attach(core.context, dealer->socket,
                                                         "dealer-" + std::to_string(number)));
  if (zmq_connect(dealer->socket.get(), endpoint.c_str()) != 0)
    return fail(std::string("cannot be dialled: ") + zmq_strerror(errno));
  return dealer;
}

std::string MeshDialler::Dealer::why_silent() const {
  if (state == State::kGreeting || state == State::kProving)
    return "connected, but the greeting is not answered";
  return trouble.empty() ? "no connection (nobody listens there, or it cannot be reached)"
                         : trouble;
}

}  // namespace kith::node
