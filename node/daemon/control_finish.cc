// ControlLoop at the end of a run: converge, declare or fetch, linger. The file: control_final.cc.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "node/daemon/control_loop.h"
#include "node/daemon/rest.h"
#include "node/text/text.h"

namespace kith::node {

using gossip::FinishPhase;
using gossip::ItemKey;
using schema::MemberState;
using schema::RunState;

namespace {

Hash256 final_hash(const schema::Final& final) {
  return Hasher()
      .add(std::string_view("kith final"))
      .add(std::as_bytes(std::span(final.declarer.bytes)))
      .add(std::as_bytes(std::span(final.run_digest.bytes)))
      .add(std::as_bytes(std::span(final.root.bytes)))
      .add(final.progress)
      .finish();
}

}  // namespace

void ControlLoop::begin_finish() {
  say(LogLevel::kInfo, "the run's length is reached",
      {{"progress", std::to_string(progress_.samples())},
       {"epoch", std::to_string(progress_.epoch())}});
  finish_.begin(now());
  enter(RunState::kFinishing);
  if (parts_.composition.finish == gossip::Finish::kNone) write_own_final();
}

std::vector<gossip::FinishMachine::Peer> ControlLoop::finish_peers() const {
  std::vector<gossip::FinishMachine::Peer> peers;
  for (const auto& [id, member] : roster_.members()) {
    const auto& r = member.record();
    const bool live = r.state == MemberState::kAlive || r.state == MemberState::kSuspect;
    peers.push_back({id, r.run_state, r.converged, live});
  }
  return peers;
}

void ControlLoop::advance_finish() {
  retry_final();
  if (parts_.composition.finish == gossip::Finish::kNone) {
    if (state_ == RunState::kComplete) enter(RunState::kLeaving);
    return;
  }
  if (parts_.donor->last_given() > finish_.began()) finish_.served(parts_.donor->last_given());
  finish_.update(now(), finish_peers());
  if (finish_.take_reverted()) {
    say(LogLevel::kWarn,
        "the declared state is gone with its declarer, or taken back: agreeing again");
    agree_again();
  }
  switch (finish_.phase()) {
    case FinishPhase::kConverging:
      if (absence_)
        waiting_for_ = "this process stood still for " + seconds_text(absence_->length) +
                       ": asking the members for the final state that they agreed on";
      break;
    case FinishPhase::kDeclaring:
      if (!settling_ && !parts_.checkpointer->busy()) declare();
      break;
    case FinishPhase::kFetching:
      waiting_for_ = "fetching the final state that " + roster_.name_of(finish_.final()->declarer) +
                     " declared";
      if (!settling_ && fetching_ == Fetching::kNothing && now() >= retry_fetch_at_)
        fetch_final_manifest();
      break;
    case FinishPhase::kOver:
      enter(RunState::kLeaving);
      break;
    default:
      break;
  }
}

// Exchanges go on; what was copied, evaluated or hashed for another end is void.
void ControlLoop::agree_again() {
  ++rest_;
  settling_ = false;
  after_evaluation_ = nullptr;
  waiting_for_.clear();
  if (fetching_ != Fetching::kNothing) parts_.exchange->cancel_fetch();
  fetching_ = Fetching::kNothing;
  assembly_.reset();
  manifest_.reset();
  void_final();
  parts_.exchange->set_active(true);
  parts_.exchange->set_rounds_every(preset_.probe_interval / 10);
}

void ControlLoop::settle(std::function<void(std::shared_ptr<StateAssembly>)> then) {
  settling_ = true;
  after_evaluation_ = nullptr;  // of an older rest's copy
  const auto copied = [this, mine = ++rest_,
                       then = std::move(then)](std::shared_ptr<StateAssembly> copy) {
    post([this, mine, then, copy = std::move(copy)]() mutable {
      if (mine != rest_) return;
      settling_ = false;
      then(std::move(copy));
    });
  };
  ExchangeLoop* exchange = parts_.exchange;
  if (exchange == nullptr)
    return copy_at_rest(
        *parts_.trainer, *parts_.replica, [] {}, copied);
  exchange->set_active(false);
  exchange->set_rounds_every(Duration{0});
  exchange->abandon_open();
  exchange->pause_exchanges([this, exchange, copied](gossip::LedgerImage) {
    const auto resume = [exchange] { exchange->resume_exchanges(); };
    copy_at_rest(*parts_.trainer, *parts_.replica, resume, copied);
  });
}

std::shared_ptr<ControlLoop::FinalState> ControlLoop::final_state(StateAssembly& copy,
                                                                  const FinalFacts& facts) {
  auto made = std::make_shared<FinalState>();
  made->facts = facts;
  compute::TrainerState state = copy.take(false);
  made->values = std::move(state.values);
  made->integers = std::move(state.integers);
  return made;
}

FinalFacts ControlLoop::final_facts(double accuracy) const {
  FinalFacts facts;
  facts.run_id = parts_.config->run.id;
  facts.model_json = parts_.model_json;
  facts.version = KITH_VERSION;
  facts.progress = progress_.samples();
  facts.epoch = progress_.epoch();
  facts.data_mean = parts_.data->mean;
  facts.data_std = parts_.data->std;
  facts.accuracy = accuracy;
  facts.classes = parts_.data->classes;
  return facts;
}

void ControlLoop::declare() {
  waiting_for_.clear();
  if (nobody_lives() && (absence_ || !roster_.members().empty()))
    say(LogLevel::kWarn,
        "no other member is left: this final state is this node's own, theirs may differ");
  else
    say(LogLevel::kInfo, "the members agree: declaring the final state");
  settle([this](std::shared_ptr<StateAssembly> copy) { declare_with(std::move(copy)); });
}

void ControlLoop::declare_with(std::shared_ptr<StateAssembly> copy) {
  settling_ = true;
  after_evaluation_ = [this, copy = std::move(copy)](const compute::EvalResult& result) {
    // Hashed while the loop goes on: a FINAL may come meanwhile, and be lost again.
    parts_.checkpointer->run_task([this, copy, mine = rest_, facts = final_facts(result.accuracy)] {
      std::vector<std::byte> manifest = copy->manifest(facts).encode();
      auto made = final_state(*copy, facts);
      made->manifest = std::move(manifest);
      post([this, made, mine] {
        if (mine == rest_) declare_made(made);
      });
    });
  };
  parts_.trainer->evaluate();
}

void ControlLoop::declare_made(const std::shared_ptr<const FinalState>& made) {
  settling_ = false;
  schema::Final final;
  final.declarer = self_;
  final.run_digest = run_digest(parts_.config->cluster.name, parts_.config->run.id);
  final.root = hash_bytes(made->manifest);
  final.progress = made->facts.progress;
  final.signature = parts_.identity->sign(final_hash(final));
  parts_.donor->set_final(Slice::copy_of(made->manifest), made->integers);
  finish_.declared(now(), final);
  complete(made);
}

// A declarer that we know, of a run that has ended as far as we see, or as most living members say.
bool ControlLoop::is_credible(const schema::Final& final) const {
  if (final.declarer != self_ && roster_.find(final.declarer) == nullptr) return false;
  if (progress_.done() || state_ == RunState::kFinishing || state_ == RunState::kComplete)
    return true;
  return most_have_ended();
}

// More than half of the other living members, two at least where there are two.
bool ControlLoop::most_have_ended() const {
  std::size_t living = 0, ended = 0;
  for (const auto& peer : finish_peers()) {
    if (!peer.live) continue;
    ++living;
    ended +=
        peer.run_state == RunState::kFinishing || peer.run_state == RunState::kComplete ? 1 : 0;
  }
  return ended * 2 > living;
}

void ControlLoop::accept_final(const NodeId& from, const schema::Final& final) {
  if (parts_.composition.finish == gossip::Finish::kNone || state_ == RunState::kLeaving) return;
  if (final.run_digest != run_digest(parts_.config->cluster.name, parts_.config->run.id)) return;
  if (finish_.final() && finish_.final()->root == final.root) return;
  // Repeated with each beat until we have it: it can wait for a checkpoint, whose moment must not
  // be mixed with another.
  if (!is_credible(final) || parts_.checkpointer->busy()) return;
  if (!verify(final.declarer, final_hash(final), final.signature)) {
    if (false_finals_.insert(from).second)
      say(LogLevel::kWarn, "a FINAL with a wrong signature was dropped",
          {{"peer", from.short_hex()}, {"declarer", final.declarer.short_hex()}});
    return;
  }
  if (!finish_.on_final(now(), from, final)) return;
  say(LogLevel::kInfo, "final state declared", {{"declarer", final.declarer.short_hex()}});
  if (fetching_ != Fetching::kNothing) parts_.exchange->cancel_fetch();
  fetching_ = Fetching::kNothing;
  assembly_.reset();
  void_final();
  waiting_for_.clear();
  followed_ = final.declarer;
  synced_ = true;
  enter(RunState::kFinishing);
  settle([this](std::shared_ptr<StateAssembly> copy) {
    assembly_ = std::move(copy);
    retry_fetch_at_ = now();
  });
}

// The declarer, and whoever has it by now.
std::vector<NodeId> ControlLoop::final_givers() {
  std::vector<NodeId> givers;
  for (const auto& [id, member] : roster_.members()) {
    const auto& r = member.record();
    const bool live = r.state == MemberState::kAlive || r.state == MemberState::kSuspect;
    const auto failed = donors_failed_.find(id);
    const bool has_it = r.run_state == RunState::kComplete || id == finish_.final()->declarer;
    if (live && has_it && (failed == donors_failed_.end() || now() >= failed->second))
      givers.push_back(id);
  }
  return givers;
}

void ControlLoop::fetch_final_manifest() {
  std::vector<NodeId> givers = final_givers();
  if (givers.empty()) {
    retry_fetch_at_ = now() + preset_.probe_interval;
    return;
  }
  if (!assembly_) {
    // A failed try threw it away; the replica still rests.
    settle([this](std::shared_ptr<StateAssembly> copy) { assembly_ = std::move(copy); });
    return;
  }
  std::rotate(givers.begin(),
              givers.begin() + static_cast<std::ptrdiff_t>(random_.below(givers.size())),
              givers.end());
  fetching_ = Fetching::kFinalManifest;
  parts_.exchange->fetch(std::move(givers), assembly_->manifest_order(finish_.final()->root));
}

void ControlLoop::on_manifest(const Slice& bytes) {
  auto manifest = Manifest::decode(bytes.bytes(), parts_.replica->fragment_count());
  if (!manifest) {
    say(LogLevel::kError, "the declared final state has a manifest that makes no sense",
        {{"why", manifest.error().message}});
    donors_failed_[donor_] = now() + std::chrono::seconds(2);
    manifest_.reset();
    return;
  }
  manifest_ = std::move(*manifest);
  manifest_bytes_ = bytes;
}

// Compares what we have with the manifest, off the loop; `then` with what differs, if that still
// matters by then.
void ControlLoop::compare_with_final(std::function<void(gossip::FetchOrder)> then) {
  fetching_ = Fetching::kFinalItems;
  parts_.checkpointer->run_task(
      [this, assembly = assembly_, manifest = *manifest_, then = std::move(then)] {
        post([this, assembly, then, differing = assembly->differing(manifest)] {
          if (assembly != assembly_ || finish_.phase() != FinishPhase::kFetching) return;
          fetching_ = Fetching::kNothing;
          then(differing);
        });
      });
}

// The manifest is here: now what differs.
void ControlLoop::fetch_final_items() {
  if (finish_.phase() != FinishPhase::kFetching || !assembly_ || !manifest_) return;
  compare_with_final([this](gossip::FetchOrder order) {
    say(LogLevel::kInfo, "fetching what differs from the final state",
        {{"items", std::to_string(order.wanted.size())}});
    if (order.wanted.empty()) return adopt_final();
    std::vector<NodeId> givers = final_givers();
    if (givers.empty()) return;  // asked for again when somebody has it
    fetching_ = Fetching::kFinalItems;
    parts_.exchange->fetch(std::move(givers), std::move(order));
  });
}

void ControlLoop::check_final_items() {
  if (finish_.phase() != FinishPhase::kFetching || !assembly_ || !manifest_) return;
  compare_with_final([this](const gossip::FetchOrder& order) {
    if (order.wanted.empty()) return adopt_final();
    say(LogLevel::kError, "what was fetched is not the declared final state: fetching again");
    assembly_.reset();
  });
}

void ControlLoop::adopt_final() {
  const auto facts = facts_from_json(manifest_->facts_json);
  if (!facts) {
    say(LogLevel::kError, "the declared final state's facts make no sense",
        {{"why", facts.error().message}});
    exit_code_ = exit_code(ErrorCode::kFailed);
    return;
  }
  fetching_ = Fetching::kFinalItems;  // until the trainer has it
  auto made = std::make_shared<FinalState>();
  made->facts = *facts;
  made->values = assembly_->values();
  made->integers = assembly_->integers();
  parts_.trainer->adopt(assembly_->take(false), [this, made, mine = rest_] {
    post([this, made, mine] {
      if (mine != rest_) return;
      fetching_ = Fetching::kNothing;
      assembly_.reset();
      parts_.donor->set_final(manifest_bytes_, made->integers);
      finish_.completed(now());
      complete(made);
    });
  });
}

void ControlLoop::write_own_final() {
  settle([this](std::shared_ptr<StateAssembly> copy) {
    settling_ = true;
    after_evaluation_ = [this, copy = std::move(copy)](const compute::EvalResult& result) {
      settling_ = false;
      complete(final_state(*copy, final_facts(result.accuracy)));
    };
    parts_.trainer->evaluate();
  });
}

}  // namespace kith::node
