// ControlLoop: what members have done, those included that were gone before this node came.
#include "gossip/membership/swim_table.h"
#include "node/daemon/control_loop.h"

namespace kith::node {

using schema::MemberState;

void ControlLoop::count(const schema::MemberRecord& record) {
  const auto counted = belief_.counted(record.samples, record.step);
  progress_.note(record.id, counted.samples, counted.steps);
}

// Again and again, since what is believed grows.
void ControlLoop::count_members() {
  for (const auto& [id, member] : roster_.members()) count(member.record());
}

Tallies ControlLoop::tallies_by(gossip::Progress::Word least) const {
  const auto record_of = [this](const NodeId& id) -> const schema::MemberRecord* {
    if (id == self_) return &record_;
    const gossip::SwimMember* member = roster_.find(id);
    return member != nullptr && gossip::is_living(member->state()) ? &member->record() : nullptr;
  };
  return tallies_of(progress_, record_of, least);
}

const Tallies& ControlLoop::tallies() {
  if (!tallies_) tallies_ = tallies_by(gossip::Progress::Word::kVouched);
  return *tallies_;
}

std::size_t ControlLoop::others_living() const {
  return roster_.count(MemberState::kAlive) + roster_.count(MemberState::kSuspect);
}

// Each beat.
void ControlLoop::ask_tallies() {
  tallies_.reset();
  std::vector<NodeId> peers;
  for (const auto& [id, member] : roster_.members())
    if (member.state() == MemberState::kAlive && tally_peers_.contains(id)) peers.push_back(id);
  // The only other is silent if it could tell what we count already.
  const auto digest = [this] {
    return digest_of(others_living() <= 1 ? tallies_by(gossip::Progress::Word::kOne) : tallies());
  };
  const auto question = tally_asker_.beat(std::move(peers), random_, digest);
  if (!question) return;
  for (const NodeId& to : question->to) parts_.control->send(to, question->message);
}

void ControlLoop::on_tally(const NodeId& from, const schema::Tally& tally) {
  if (tally.asks) {
    if (!tallies_told_.take(now(), from)) return;
    if (const auto answer = answer_to(tally, tallies())) parts_.control->send(from, *answer);
    return;
  }
  bool news = false;
  const auto learned = tally_asker_.on_answer(from, tally, others_living());
  for (schema::TallyEntry entry : learned.entries) {
    const auto counted = belief_.counted(entry.samples, entry.steps);
    entry.samples = counted.samples;
    entry.steps = counted.steps;
    news = progress_.note_gone(entry, learned.word) || news;
  }
  if (news) tally_asker_.hurry();
}

}  // namespace kith::node
