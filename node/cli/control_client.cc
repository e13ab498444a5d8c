#include "node/cli/control_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "node/cli/http_exchange.h"
#include "node/config/config_value.h"
#include "node/identity/data_dir.h"
#include "node/text/address.h"
#include "node/text/small_file.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

constexpr int kReadSeconds = 10;
constexpr int kCommandSeconds = 90;  // a checkpoint of a large model on a slow disk

// A socket's path has room for about a hundred bytes in its address. A longer one is reached
// through a descriptor of its folder, which lives as long as this.
class SocketPath {
 public:
  explicit SocketPath(const std::string& path) : path_(path) {
    if (path.size() < sizeof(sockaddr_un::sun_path)) return;
    const fs::path whole(path);
    folder_ = ::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    path_ = "/proc/self/fd/" + std::to_string(folder_) + "/" + whole.filename().string();
  }
  ~SocketPath() {
    if (folder_ >= 0) ::close(folder_);
  }
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  [[nodiscard]] const std::string& text() const { return path_; }

 private:
  std::string path_;
  int folder_ = -1;
};

using Sent = Result<ControlClient::Reply>;

Sent send(const sockaddr* address, socklen_t size, const HttpRequest& request,
          const std::string& where) {
  auto answer = http_exchange(address, size, request);
  if (!answer) return fail(answer.error().code, where + ": " + answer.error().message);
  return ControlClient::Reply{answer->status, std::move(answer->body)};
}

Duration patience_for(const std::string& method, int seconds) {
  return std::chrono::seconds(method == "POST" ? kCommandSeconds
                              : seconds > 0    ? seconds
                                               : kReadSeconds);
}

Sent over_socket(const std::string& socket, const std::string& method, const std::string& path,
                 int patience = 0) {
  const SocketPath reachable(socket);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (reachable.text().size() >= sizeof address.sun_path)
    return fail(ErrorCode::kNoDaemon, socket + ": nobody answers");
  reachable.text().copy(address.sun_path, sizeof address.sun_path - 1);
  return send(reinterpret_cast<const sockaddr*>(&address), sizeof address,
              {method, path, "localhost", patience_for(method, patience)}, socket);
}

Sent over_tcp(const std::string& address, const std::string& path, int patience) {
  KITH_ASSIGN(const HostPort parsed, parse_address(address, PortRule::kRequired));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string where = "http://" + address;
  if (::getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found) != 0)
    return fail(ErrorCode::kNoDaemon, where + ": the name has no address");
  Sent sent = fail(ErrorCode::kNoDaemon, where + ": nobody answers");
  for (const addrinfo* at = found; at != nullptr && !sent; at = at->ai_next)
    sent = send(at->ai_addr, at->ai_addrlen, {"GET", path, address, patience_for("GET", patience)},
                where);
  ::freeaddrinfo(found);
  return sent;
}

std::string address_in(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  return std::string(rest.substr(0, rest.find('/')));
}

ErrorCode code_of(int exit) {
  for (const ErrorCode code :
       {ErrorCode::kUsage, ErrorCode::kNoDaemon, ErrorCode::kNoSeed, ErrorCode::kIncompatible,
        ErrorCode::kAddressInUse, ErrorCode::kDataDirInUse, ErrorCode::kDataRefused,
        ErrorCode::kUnhealthy})
    if (exit_code(code) == exit) return code;
  return ErrorCode::kFailed;
}

}  // namespace

std::string percent_encoded(const std::string& text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
    if (plain)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

Result<ControlClient> ControlClient::at(const std::string& where) {
  if (is_automatic(where)) {
    KITH_ASSIGN(const std::string taken, find_data_dir(where, host_name()));
    return at(taken);
  }
  ControlClient client;
  std::error_code error;
  if (fs::is_directory(where, error)) {
    client.folder_ = where;
    const std::string socket = (fs::path(where) / "control.sock").string();
    if (fs::is_socket(socket, error)) client.socket_ = socket;
    KITH_ASSIGN(const std::string http, first_line_in((fs::path(where) / "http").string()));
    client.address_ = address_in(http);
    if (client.socket_.empty() && client.address_.empty())
      return fail(ErrorCode::kNoDaemon,
                  where +
                      " has no control.sock and no http file: no daemon runs with "
                      "--data-dir " +
                      where);
    return client;
  }
  if (where.find('/') != std::string::npos && !where.starts_with("http://"))
    return fail(ErrorCode::kNoDaemon,
                where + ": no such directory; expected the data_dir of a running kithd");
  client.address_ = address_in(where);
  const auto parsed = parse_address(client.address_, PortRule::kRequired);
  if (!parsed)
    return fail(ErrorCode::kUsage,
                parsed.error().message + ", and no directory of this name exists");
  return client;
}

Result<ControlClient::Reply> ControlClient::get(const std::string& path) const {
  std::string tried;
  if (!socket_.empty()) {
    auto reply = over_socket(socket_, "GET", path, patience_seconds_);
    if (reply || address_.empty()) return reply;
    tried = reply.error().message + "; ";
  }
  auto reply = over_tcp(address_, path, patience_seconds_);
  if (!reply)
    return fail(ErrorCode::kNoDaemon, tried + reply.error().message + " (is kithd running?)");
  return reply;
}

Result<std::string> ControlClient::read(const std::string& path) const {
  KITH_ASSIGN(Reply reply, get(path));
  if (reply.status == 200) return std::move(reply.body);
  return fail("the daemon answered " + path + " with status " + std::to_string(reply.status) +
              ": " + reply.body.substr(0, reply.body.find('\n')));
}

Result<std::string> ControlClient::command(const std::string& name,
                                           const Parameters& parameters) const {
  // The http file outlives the daemon.
  if (socket_.empty() && !folder_.empty())
    return fail(ErrorCode::kNoDaemon,
                folder_ + " has no control.sock: no daemon runs with --data-dir " + folder_);
  if (socket_.empty())
    return fail(ErrorCode::kUsage,
                "this changes the daemon, which works only over its own socket: use --at "
                "DATA_DIR on its machine instead of --at " +
                    address_);
  std::string path = "/control/" + name;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    path +=
        (i == 0 ? "?" : "&") + parameters[i].first + "=" + percent_encoded(parameters[i].second);
  KITH_ASSIGN(const Reply reply, over_socket(socket_, "POST", path));
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!json.is_object() || !json.contains("ok") || !json["ok"].is_boolean())
    return fail("the daemon's answer to " + name + " makes no sense (status " +
                std::to_string(reply.status) + ")");
  const auto message = json.contains("message") && json["message"].is_string()
                           ? json["message"].get<std::string>()
                           : std::string();
  if (json["ok"].get<bool>()) return message;
  const bool has_code = json.contains("code") && json["code"].is_number_integer();
  return fail(has_code ? code_of(json["code"].get<int>()) : ErrorCode::kFailed, message);
}

}  // namespace kith::node
