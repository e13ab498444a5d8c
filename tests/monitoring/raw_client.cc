#include "tests/monitoring/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace kith::monitoring::testing {

RawClient::RawClient(Fd fd) : fd_(std::move(fd)) {
  const timeval bound{10, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
}

RawClient RawClient::unconnected() {
  return RawClient(Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}

bool RawClient::connect_to(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  const auto colon = address.rfind(':');
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  return connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

RawClient RawClient::tcp(const std::string& address) {
  RawClient client = unconnected();
  client.connect_to(address);
  return client;
}

RawClient RawClient::local(const std::string& path) {
  auto fd = connect_unix(path);
  return RawClient(fd ? std::move(*fd) : Fd());
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string RawClient::read_all() {
  std::string out;
  char buffer[65536];
  while (true) {
    const ssize_t count = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (count <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string RawClient::read_within(Duration bound) {
  pollfd waiting{fd_.get(), POLLIN, 0};
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(bound);
  return poll(&waiting, 1, static_cast<int>(timeout.count())) > 0 ? read_all() : "";
}

void RawClient::shrink_receive_buffer() {
  const int small = 4096;
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
}

std::string request(const std::string& address, const std::string& path) {
  RawClient client = RawClient::tcp(address);
  client.send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return client.read_all();
}

}  // namespace kith::monitoring::testing
