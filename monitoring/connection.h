// Connection: one client of HttpServer as a state machine over a non-blocking socket:
//   reading  -> waits for the end of the headers, until the read deadline
//   serving  -> its request is with a worker; bytes that still come are left alone
//   writing  -> the answer goes out as fast as the client takes it, until the write deadline
//   draining -> half closed: reads on until the client closes, so that unread input does not reset
//   the answer away closed
// Thread: the server's loop. It never blocks and never calls anybody.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "monitoring/http_server.h"
#include "monitoring/listen_socket.h"

namespace kith::monitoring {

class Connection {
 public:
  enum class State { kReading, kServing, kWriting, kDraining, kClosed };

  Connection(Fd fd, bool commands, const HttpLimits& limits, TimePoint now);

  // The socket is readable (or has an error). True when a whole request is there: take it with
  // take_request().
  [[nodiscard]] bool on_readable(TimePoint now);
  void on_writable(TimePoint now);
  void on_deadline(TimePoint now);
  [[nodiscard]] std::string take_request();
  void answer(TimePoint now, std::string bytes);
  void close();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] short poll_events() const;
  [[nodiscard]] TimePoint deadline() const { return deadline_; }  // max() while serving
  [[nodiscard]] TimePoint accepted() const { return accepted_; }
  [[nodiscard]] bool commands() const { return commands_; }

 private:
  [[nodiscard]] bool read_request(TimePoint now);
  void drain();

  const bool commands_;  // came through the Unix socket
  const HttpLimits& limits_;
  const TimePoint accepted_;
  Fd fd_;
  State state_ = State::kReading;
  TimePoint deadline_;
  std::string input_;
  std::string output_;
  std::size_t written_ = 0;
};

}  // namespace kith::monitoring
