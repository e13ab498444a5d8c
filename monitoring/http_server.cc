#include "monitoring/http_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "monitoring/connection.h"
#include "monitoring/listen_socket.h"
#include "monitoring/request_answerer.h"

namespace kith::monitoring {
namespace {

// After accept() ran out of descriptors, the loop leaves the listeners alone for so long instead of
// spinning.
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);

constexpr int kCommandThreads = 3;

struct Job {
  std::uint64_t connection = 0;
  std::string request;
  bool commands = false;
};
struct Done {
  std::uint64_t connection = 0;
  std::string answer;
};

// Answers made by workers, on their way to the loop; its eventfd wakes the loop.
class Outbox {
 public:
  Outbox() : wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  [[nodiscard]] int wake_fd() const { return wake_.get(); }

  void put(Done done) {
    {
      const std::lock_guard lock(mutex_);
      done_.push_back(std::move(done));
    }
    wake();
  }
  void wake() {
    const std::uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) return;  // full counter: the loop is awake anyway
  }
  std::vector<Done> take() {
    std::uint64_t count = 0;
    if (read(wake_.get(), &count, sizeof count) < 0) count = 0;  // nothing there: also fine
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
  }

 private:
  Fd wake_;
  std::mutex mutex_;
  std::vector<Done> done_;  // guarded by mutex_
};

// Threads that answer requests; with one of them, in order.
class Worker {
 public:
  Worker(RequestAnswerer& answerer, Outbox& outbox, int threads)
      : answerer_(answerer), outbox_(outbox) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void give(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    ready_.notify_one();
  }

 private:
  std::optional<Job> next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return std::nullopt;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }
  void run() {
    while (const auto job = next()) {
      outbox_.put({job->connection, answerer_.answer(job->request, job->commands)});
    }
  }

  RequestAnswerer& answerer_;
  Outbox& outbox_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Job> jobs_;  // guarded by mutex_; at most one a connection
  bool stop_ = false;     // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(HttpHandler& handler, const Clock& c, HttpLimits l)
      : clock(c),
        limits(l),
        answerer(handler),
        reads(answerer, outbox, 1),
        commands(answerer, outbox, kCommandThreads) {}
  ~Impl() {
    stopping = true;
    outbox.wake();
    if (loop.joinable()) loop.join();
    if (!unix_path.empty()) unlink(unix_path.c_str());
  }

  void run();
  std::vector<pollfd> poll_set() const;
  void wait(std::vector<pollfd>& set) const;
  void dispatch(const std::vector<pollfd>& set);
  void accept_from(const Fd& listener, bool takes_commands);
  [[nodiscard]] bool make_room();
  void hand_over(std::uint64_t id, Connection& connection);
  void finish_answers();
  void expire();
  [[nodiscard]] TimePoint next_deadline() const;

  // Constant once started.
  const Clock& clock;
  const HttpLimits limits;
  std::string address, unix_path;
  Fd tcp, local;
  std::atomic<bool> stopping = false;

  // Loop thread only.
  std::map<std::uint64_t, Connection> connections;  // by running number, so the first is the oldest
  std::uint64_t next_id = 1;
  TimePoint accept_again;

  Outbox outbox;  // any thread
  RequestAnswerer answerer;
  Worker reads, commands;  // a command may take long: it must not delay a scrape
  std::thread loop;
};

void HttpServer::Impl::run() {
  while (!stopping) {
    std::vector<pollfd> set = poll_set();
    wait(set);
    finish_answers();
    dispatch(set);
    expire();
  }
}

std::vector<pollfd> HttpServer::Impl::poll_set() const {
  const bool accepting = clock.now() >= accept_again;
  std::vector<pollfd> set = {{outbox.wake_fd(), POLLIN, 0},
                             {accepting ? tcp.get() : -1, POLLIN, 0},
                             {accepting ? local.get() : -1, POLLIN, 0}};
  for (const auto& [id, connection] : connections) {
    // While its request is with a worker even a hang-up is of no interest (and poll would report it
    // for ever).
    const bool serving = connection.state() == Connection::State::kServing;
    set.push_back({serving ? -1 : connection.fd(), connection.poll_events(), 0});
  }
  return set;
}

TimePoint HttpServer::Impl::next_deadline() const {
  TimePoint soonest = accept_again > clock.now() ? accept_again : TimePoint::max();
  for (const auto& [id, connection] : connections)
    soonest = std::min(soonest, connection.deadline());
  return soonest;
}

void HttpServer::Impl::wait(std::vector<pollfd>& set) const {
  const TimePoint deadline = next_deadline();
  int timeout_ms = -1;
  if (deadline != TimePoint::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }
  if (poll(set.data(), set.size(), timeout_ms) < 0) {
    for (pollfd& one : set) one.revents = 0;  // a signal: nothing is known to be ready
  }
}

void HttpServer::Impl::dispatch(const std::vector<pollfd>& set) {
  // `set` was made from `connections` in order, and none has been added or removed since.
  auto one = set.begin() + 3;
  for (auto& [id, connection] : connections) {
    const short happened = (one++)->revents;
    if (happened == 0) continue;
    if ((happened & POLLOUT) != 0) connection.on_writable(clock.now());
    if ((happened & ~POLLOUT) != 0 && connection.on_readable(clock.now()))
      hand_over(id, connection);
  }
  if (set[1].revents != 0) accept_from(tcp, false);
  if (set[2].revents != 0) accept_from(local, true);
}

void HttpServer::Impl::accept_from(const Fd& listener, bool takes_commands) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.open()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      accept_again = clock.now() + kAcceptPause;
    }
    return;
  }
  if (!make_room()) return;  // the new one is closed
  connections.try_emplace(next_id++, std::move(fd), takes_commands, limits, clock.now());
}

bool HttpServer::Impl::make_room() {
  if (connections.size() < limits.connections_max) return true;
  const auto idle = std::ranges::find_if(connections, [](const auto& item) {
    return item.second.state() != Connection::State::kServing;
  });
  if (idle == connections.end()) return false;
  connections.erase(idle);
  return true;
}

void HttpServer::Impl::hand_over(std::uint64_t id, Connection& connection) {
  std::string request = connection.take_request();
  Worker& worker = connection.commands() && request.starts_with("POST ") ? commands : reads;
  worker.give({id, std::move(request), connection.commands()});
}

void HttpServer::Impl::finish_answers() {
  for (Done& done : outbox.take()) {
    const auto found = connections.find(done.connection);
    if (found == connections.end()) continue;
    if (done.answer.empty()) {
      found->second.close();
    } else {
      found->second.answer(clock.now(), std::move(done.answer));
    }
  }
}

void HttpServer::Impl::expire() {
  for (auto& [id, connection] : connections) connection.on_deadline(clock.now());
  std::erase_if(connections,
                [](const auto& item) { return item.second.state() == Connection::State::kClosed; });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::address() const { return impl_->address; }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpSettings& settings,
                                                      HttpHandler& handler, const Clock& clock) {
  ListenSocket tcp, local;
  if (!settings.listen.empty()) {
    KITH_ASSIGN(tcp, listen_tcp(settings.listen));
  }
  if (!settings.unix_path.empty()) {
    KITH_ASSIGN(local, listen_unix(settings.unix_path));
  }
  auto impl = std::make_unique<Impl>(handler, clock, settings.limits);
  impl->address = tcp.address;
  impl->unix_path = local.address;
  impl->tcp = std::move(tcp.fd);
  impl->local = std::move(local.fd);
  impl->loop = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace kith::monitoring
