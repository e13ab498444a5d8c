#include "node/cli/top_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/check.h"
#include "node/cli/control_client.h"
#include "node/text/address.h"

namespace kith::node {
namespace {

constexpr int kPatienceSeconds = 2;  // of the node; members get one
constexpr double kLeftAloneSeconds = 10;
constexpr std::size_t kAskers = 8;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Members to ask: alive, with an address that means something here.
std::vector<const TopMember*> to_ask(const TopSample& sample, const std::vector<std::string>& first,
                                     const Unreachable& unreachable) {
  const std::set<std::string> preferred(first.begin(), first.end());
  std::vector<const TopMember*> list;
  for (const TopMember& member : sample.members) {
    if (member.id == sample.self.id || (member.state != "alive" && member.state != "suspect"))
      continue;
    const auto address = parse_address(member.http, PortRule::kRequired);
    if (!address || !is_numeric_host(address->host) || is_any_host(address->host)) continue;
    const auto silent = unreachable.find(member.http);
    if (silent == unreachable.end() || silent->second < sample.at_seconds) list.push_back(&member);
  }
  std::ranges::stable_partition(list,
                                [&](const TopMember* m) { return preferred.contains(m->id); });
  if (list.size() > kAskedMax) list.resize(kAskedMax);
  return list;
}

// Nothing if nobody answers there, or another node does: an address of loopback means another
// machine to each.
std::optional<TopNode> ask(const TopMember& member) {
  auto client = ControlClient::at(member.http);
  if (!client) return std::nullopt;
  client->set_patience(1);
  const auto body = client->read("/status");
  auto node = body ? read_top_node(*body) : Result<TopNode>(fail("no answer"));
  if (!node || node->id != member.id) return std::nullopt;
  return std::move(*node);
}

void ask_members(TopSample& sample, const std::vector<std::string>& first,
                 Unreachable& unreachable) {
  const auto list = to_ask(sample, first, unreachable);
  std::vector<std::optional<TopNode>> answers(list.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> askers;
  for (std::size_t i = 0; i < std::min(kAskers, list.size()); ++i)
    askers.emplace_back([&] {
      for (std::size_t at = next++; at < list.size(); at = next++) answers[at] = ask(*list[at]);
    });
  for (std::thread& asker : askers) asker.join();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (answers[i])
      sample.told[list[i]->id] = std::move(*answers[i]);
    else
      unreachable[list[i]->http] = sample.at_seconds + kLeftAloneSeconds;
  }
}

Result<TopSample> sample_of(const std::string& where) {
  KITH_ASSIGN(ControlClient client, ControlClient::at(where));
  client.set_patience(kPatienceSeconds);
  TopSample sample;
  KITH_ASSIGN(const std::string status, client.read("/status"));
  KITH_ASSIGN(sample.self, read_top_node(status));
  KITH_ASSIGN(const std::string members, client.read("/members"));
  KITH_ASSIGN(sample.members, read_top_members(members));
  sample.at_seconds = steady_seconds();
  sample.told[sample.self.id] = sample.self;
  return sample;
}

}  // namespace

TopLook look_at(const std::string& where, bool alone, const std::vector<std::string>& first,
                Unreachable& unreachable) {
  TopLook look;
  auto sample = sample_of(where);
  if (!sample) {
    look.trouble = sample.error().message;
    look.code = sample.error().code;
    return look;
  }
  if (!alone) ask_members(*sample, first, unreachable);
  look.sample = std::move(*sample);
  return look;
}

struct TopPoller::Shared {
  std::string where;
  bool alone = false;
  Duration interval{};
  int event_fd = -1;
  std::mutex mutex;
  std::condition_variable closing;
  std::vector<TopLook> looks;  // guarded by mutex, like all below
  std::vector<std::string> preferred;
  bool closed = false;

  ~Shared() { ::close(event_fd); }
  void run() {
    Unreachable unreachable;
    auto next = std::chrono::steady_clock::now() + interval;
    std::unique_lock lock(mutex);
    while (!closing.wait_until(lock, next, [this] { return closed; })) {
      next = std::chrono::steady_clock::now() + interval;
      const std::vector<std::string> first = preferred;
      lock.unlock();
      TopLook look = look_at(where, alone, first, unreachable);
      lock.lock();
      looks.push_back(std::move(look));
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(event_fd, &one, sizeof one);
    }
  }
};

TopPoller::TopPoller(std::string where, bool alone, Duration interval)
    : shared_(std::make_shared<Shared>()) {
  shared_->where = std::move(where);
  shared_->alone = alone;
  shared_->interval = interval;
  shared_->event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  KITH_CHECK(shared_->event_fd >= 0, "an eventfd can be made at start");
  std::thread([shared = shared_] { shared->run(); }).detach();
}

TopPoller::~TopPoller() {
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  shared_->closing.notify_all();
}

int TopPoller::fd() const { return shared_->event_fd; }

std::vector<TopLook> TopPoller::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(shared_->event_fd, &count, sizeof count);
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->looks, {});
}

void TopPoller::prefer(std::vector<std::string> ids) {
  const std::lock_guard lock(shared_->mutex);
  shared_->preferred = std::move(ids);
}

}  // namespace kith::node
