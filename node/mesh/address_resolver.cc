#include "node/mesh/address_resolver.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "node/text/address.h"

namespace kith::node {

struct AddressResolver::Shared {
  Lookup lookup;
  int event_fd = -1;
  std::mutex mutex;
  std::deque<std::string> waiting;  // guarded by mutex, like all below
  std::vector<Answer> answers;
  unsigned threads = 0;
  bool closed = false;

  ~Shared() { close(event_fd); }
  bool next(std::string& host);
  void answer(Answer answer);
  static void run(const std::shared_ptr<Shared>& shared);
};

bool AddressResolver::Shared::next(std::string& host) {
  const std::lock_guard lock(mutex);
  if (waiting.empty() || closed) {
    --threads;
    return false;
  }
  host = std::move(waiting.front());
  waiting.pop_front();
  return true;
}

void AddressResolver::Shared::answer(Answer answer) {
  {
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(answer));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      write(event_fd, &one, sizeof one);  // full counter: readable already
}

void AddressResolver::Shared::run(const std::shared_ptr<Shared>& shared) {
  std::string host;
  while (shared->next(host)) {
    auto addresses = shared->lookup(host);
    shared->answer({host, std::move(addresses)});
  }
}

AddressResolver::AddressResolver(Lookup lookup) : shared_(std::make_shared<Shared>()) {
  shared_->lookup = lookup ? std::move(lookup) : Lookup(&lookup_host);
  shared_->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  KITH_CHECK(shared_->event_fd >= 0, "an eventfd can be made at start");
}

AddressResolver::~AddressResolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
}

void AddressResolver::start(const std::string& host) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->waiting.push_back(host);
    if (shared_->threads >= kThreads) return;
    ++shared_->threads;
  }
  std::thread([shared = shared_] { Shared::run(shared); }).detach();
}

std::vector<AddressResolver::Answer> AddressResolver::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got =
      read(shared_->event_fd, &count, sizeof count);  // empty: nothing to take
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

int AddressResolver::fd() const { return shared_->event_fd; }

}  // namespace kith::node
