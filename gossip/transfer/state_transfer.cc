#include "gossip/transfer/state_transfer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "gossip/transfer/state_transfer_fetch.h"
#include "gossip/transfer/state_transfer_serve.h"

namespace kith::gossip {
namespace {

constexpr int kRetriesMin = 12;  // a slow link's chunk takes some of them

}  // namespace

struct StateTransfer::Impl {
  Impl(TransferSettings settings_in, DonorSource& source)
      : settings(settings_in), donor(settings, source), fetcher(settings) {}

  const TransferSettings settings;
  StateDonor donor;
  StateFetcher fetcher;
  std::vector<Outgoing> out;

  void handle(TimePoint now, const NodeId& from, const schema::StateRequest& message,
              const Slice& /*payload*/) {
    donor.on_request(now, from, message, out);
  }
  void handle(TimePoint now, const NodeId& from, const schema::StateHeader& message,
              const Slice& /*payload*/) {
    fetcher.on_header(now, from, message, out);
  }
  void handle(TimePoint now, const NodeId& from, const schema::Chunk& message,
              const Slice& payload) {
    if (message.stream == schema::Stream::kState) {
      fetcher.on_chunk(now, from, message, payload, out);
    }
  }
  void handle(TimePoint now, const NodeId& from, const schema::Credit& message,
              const Slice& /*payload*/) {
    if (message.stream == schema::Stream::kState) donor.on_credit(now, from, message, out);
  }
  void handle(TimePoint now, const NodeId& from, const schema::Busy& message,
              const Slice& /*payload*/) {
    fetcher.on_busy(now, from, message, out);
  }
  void handle(TimePoint now, const NodeId& from, const schema::Aborted& message,
              const Slice& /*payload*/) {
    if (message.e.initiator == settings.self) {
      fetcher.on_aborted(now, from, message, out);
    } else {
      donor.on_withdrawn(from, message.e);
    }
  }
};

StateTransfer::StateTransfer(TransferSettings settings, DonorSource& source) {
  KITH_CHECK(settings.chunk_bytes > 0 && settings.chunk_bytes <= schema::kChunkBytesMax &&
                 settings.window_chunks > 0 && settings.fetchers_max > 0 &&
                 settings.retry_interval > Duration{0},
             "transfer settings out of range");
  settings.give_up_after = std::max(settings.give_up_after, kRetriesMin * settings.retry_interval);
  impl_ = std::make_unique<Impl>(settings, source);
}

StateTransfer::~StateTransfer() = default;

void StateTransfer::fetch(TimePoint now, const std::vector<NodeId>& donors, FetchOrder order) {
  impl_->fetcher.begin(now, donors, std::move(order), impl_->out);
}
void StateTransfer::set_donors(TimePoint now, const std::vector<NodeId>& donors) {
  impl_->fetcher.set_donors(now, donors, impl_->out);
}

void StateTransfer::cancel() { impl_->fetcher.cancel(impl_->out); }
bool StateTransfer::fetching() const { return impl_->fetcher.fetching(); }

std::vector<StateTransfer::Fetched> StateTransfer::take_fetched() {
  return impl_->fetcher.take_fetched();
}
std::vector<StateTransfer::Trouble> StateTransfer::take_troubles() {
  return impl_->fetcher.take_troubles();
}
std::optional<Status> StateTransfer::take_end() { return impl_->fetcher.take_end(); }

void StateTransfer::on_message(TimePoint now, const NodeId& from, const schema::Message& message,
                               const Slice& payload) {
  std::visit(
      [&](const auto& value) {
        if constexpr (requires { impl_->handle(now, from, value, payload); }) {
          if (is_transfer(value.e)) impl_->handle(now, from, value, payload);
        }
      },
      message);
}

void StateTransfer::peer_up(TimePoint now, const NodeId& peer) {
  impl_->fetcher.peer_up(now, peer);
}

void StateTransfer::peer_gone(TimePoint now, const NodeId& peer) {
  impl_->donor.peer_gone(peer);
  impl_->fetcher.peer_gone(now, peer, impl_->out);
}

void StateTransfer::tick(TimePoint now) {
  impl_->donor.tick(now);
  impl_->fetcher.tick(now, impl_->out);
}

TimePoint StateTransfer::next_deadline() const {
  return std::min(impl_->donor.next_deadline(), impl_->fetcher.next_deadline());
}

std::vector<Outgoing> StateTransfer::take_outgoing() { return std::exchange(impl_->out, {}); }

}  // namespace kith::gossip
