#include "gossip/membership/finish.h"

#include <gtest/gtest.h>

namespace kith::gossip {
namespace {

using schema::RunState;
using std::chrono::milliseconds;

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}
TimePoint at(int ms) { return {milliseconds(ms)}; }

FinishMachine machine(std::uint8_t self, std::uint32_t fragments = 2) {
  FinishSettings s;
  s.self = id(self);
  s.fragments = fragments;
  return FinishMachine(s);
}

schema::Final final_by(std::uint8_t declarer, std::uint8_t root) {
  schema::Final f;
  f.declarer = id(declarer);
  f.root.bytes[0] = root;
  return f;
}

void agree(FinishMachine& m) {
  m.on_distance(0, 1e-6);
  m.on_distance(1, 1e-6);
}

TEST(Finish, ConvergedNeedsEveryFragmentsLastDistanceBelowTheBound) {
  FinishMachine m = machine(1);
  m.begin(at(0));
  m.update(at(0), {{id(2), RunState::kFinishing, false, true}});
  m.on_distance(0, 1e-6);
  EXPECT_FALSE(m.converged());
  m.on_distance(1, 1e-3);
  EXPECT_FALSE(m.converged());
  m.on_distance(1, 1e-5);
  EXPECT_TRUE(m.converged());
  m.on_distance(0, 1e-3);
  EXPECT_FALSE(m.converged());
}

TEST(Finish, DistancesSeenBeforeTheEndOfTrainingDoNotCount) {
  FinishMachine m = machine(1);
  agree(m);
  m.begin(at(0));
  m.update(at(0), {{id(2), RunState::kFinishing, true, true}});
  EXPECT_FALSE(m.converged());
}

TEST(Finish, OnlyTheLowestLiveIdDeclaresAndOnlyWhenAllAgree) {
  FinishMachine low = machine(1);
  FinishMachine high = machine(3);
  for (FinishMachine* m : {&low, &high}) {
    m->begin(at(0));
    agree(*m);
  }
  low.update(at(1), {{id(3), RunState::kFinishing, false, true}});
  EXPECT_EQ(low.phase(), FinishPhase::kConverging);
  low.update(at(2), {{id(3), RunState::kTraining, true, true}});  // has not seen the end yet
  EXPECT_EQ(low.phase(), FinishPhase::kConverging);
  low.update(at(3), {{id(3), RunState::kFinishing, true, true}});
  EXPECT_EQ(low.phase(), FinishPhase::kDeclaring);
  high.update(at(3), {{id(1), RunState::kFinishing, true, true}});
  EXPECT_EQ(high.phase(), FinishPhase::kConverging);
}

TEST(Finish, WhenTheDeclarerDiesTheNextIdGoesOn) {
  FinishMachine m = machine(3);
  m.begin(at(0));
  agree(m);
  m.update(at(1),
           {{id(1), RunState::kFinishing, true, true}, {id(4), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kConverging);
  m.update(at(2),
           {{id(1), RunState::kFinishing, true, false}, {id(4), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kDeclaring);
}

TEST(Finish, WhenTheDeclarerDiesBeforeAnybodyHasItsStateTheOthersGoOn) {
  FinishMachine m = machine(3);
  m.begin(at(0));
  m.update(at(1),
           {{id(1), RunState::kComplete, true, true}, {id(4), RunState::kFinishing, true, true}});
  ASSERT_TRUE(m.on_final(at(2), id(1), final_by(1, 9)));
  m.update(at(3),
           {{id(1), RunState::kFinishing, true, true}, {id(4), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kFetching);
  m.update(at(4),
           {{id(1), RunState::kComplete, true, false}, {id(4), RunState::kComplete, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kFetching) << "n4 has it";
  m.update(at(5),
           {{id(1), RunState::kComplete, true, false}, {id(4), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kConverging);
  EXPECT_TRUE(m.take_reverted());
  EXPECT_FALSE(m.take_reverted());
  EXPECT_FALSE(m.final().has_value());
  EXPECT_TRUE(m.on_final(at(6), id(4), final_by(4, 8)))
      << "another declaration is followed, a higher id's too";
}

TEST(Finish, AnOldSignOfAFetcherDoesNotShortenTheLinger) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  m.update(at(1), {});
  m.declared(at(60000), final_by(2, 4));
  m.written();
  m.served(at(100));
  m.update(at(60100), {{id(3), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kComplete);
}

TEST(Finish, ADeclaredHashWinsAndOfTwoTheLowerDeclarers) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  EXPECT_TRUE(m.on_final(at(1), id(5), final_by(5, 7)));
  EXPECT_EQ(m.phase(), FinishPhase::kFetching);
  EXPECT_FALSE(m.on_final(at(2), id(5), final_by(5, 7)));
  EXPECT_FALSE(m.on_final(at(2), id(6), final_by(6, 8)));
  EXPECT_TRUE(m.on_final(at(3), id(1), final_by(1, 9)));
  EXPECT_EQ(m.final()->root.bytes[0], 9);
}

TEST(Finish, AFinalThatArrivesWhileDeclaringIsFollowed) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  m.update(at(1), {});
  ASSERT_EQ(m.phase(), FinishPhase::kDeclaring);
  EXPECT_TRUE(m.on_final(at(2), id(1), final_by(1, 9)));
  m.declared(at(3), final_by(2, 4));  // too late
  EXPECT_EQ(m.phase(), FinishPhase::kFetching);
  EXPECT_EQ(m.final()->root.bytes[0], 9);
}

TEST(Finish, AloneConvergesAtOnceButNobodyIsAloneBeforeLooking) {
  FinishMachine m = machine(2);
  EXPECT_FALSE(m.converged());
  m.begin(at(0));
  EXPECT_FALSE(m.converged());
  m.update(at(1),
           {{id(1), RunState::kFinishing, false, false}, {id(3), RunState::kJoining, false, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kDeclaring);
}

TEST(Finish, LingersUntilEveryLiveMemberHasIt) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  m.update(at(1), {});
  m.declared(at(2), final_by(2, 4));
  m.written();
  m.update(at(3), {{id(3), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kComplete);
  m.update(at(4),
           {{id(3), RunState::kComplete, true, true}, {id(4), RunState::kTraining, false, false}});
  EXPECT_EQ(m.phase(), FinishPhase::kOver);
}

TEST(Finish, AfterAStandstillWhatWasKnownOfTheOthersIsNoReasonToDeclare) {
  FinishMachine m = machine(1);
  const std::vector<FinishMachine::Peer> others = {{id(2), RunState::kFinishing, true, true}};
  m.begin(at(0));
  agree(m);
  m.update(at(1), {{id(2), RunState::kFinishing, false, true}});
  EXPECT_FALSE(m.on_own_pause()) << "nothing was declared";
  m.update(at(60000), others);
  EXPECT_EQ(m.phase(), FinishPhase::kConverging);
  agree(m);
  m.update(at(60001), others);
  EXPECT_EQ(m.phase(), FinishPhase::kDeclaring);
  EXPECT_TRUE(m.on_own_pause());
  m.update(at(60002), others);
  EXPECT_EQ(m.phase(), FinishPhase::kConverging);
  EXPECT_TRUE(m.on_final(at(60003), id(2), final_by(2, 9))) << "they have declared meanwhile";
}

TEST(Finish, AStandstillTakesBackADeclarationUnlessALivingMemberHasIt) {
  for (const bool taken : {false, true}) {
    FinishMachine m = machine(1);
    m.begin(at(0));
    agree(m);
    m.update(at(1), {{id(2), RunState::kFinishing, true, true}});
    m.declared(at(2), final_by(1, 4));
    m.written();
    m.update(at(3), {{id(2), taken ? RunState::kComplete : RunState::kFinishing, true, true},
                     {id(3), RunState::kFinishing, true, true}});
    EXPECT_EQ(m.shared(), taken);
    EXPECT_EQ(m.on_own_pause(), !taken);
    EXPECT_EQ(m.phase(), taken ? FinishPhase::kComplete : FinishPhase::kConverging);
    EXPECT_EQ(m.final().has_value(), taken);
    EXPECT_EQ(m.on_final(at(4), id(2), final_by(2, 9)), !taken) << "what the others have agreed on";
    EXPECT_EQ(m.on_final(at(5), id(1), final_by(1, 4)), !taken) << "what they have of us after all";
  }
}

TEST(Finish, WhoFetchesFollowsWhatItsDeclarerDeclaresAfterItTookTheFirstBack) {
  FinishMachine m = machine(3);
  m.begin(at(0));
  m.update(at(1), {{id(2), RunState::kFinishing, true, true}});
  ASSERT_TRUE(m.on_final(at(2), id(2), final_by(2, 7)));
  EXPECT_FALSE(m.on_final(at(3), id(4), final_by(2, 8))) << "whoever tells it may be behind";
  EXPECT_TRUE(m.on_final(at(4), id(2), final_by(2, 8)));
  EXPECT_EQ(m.phase(), FinishPhase::kFetching);
  EXPECT_EQ(m.final()->root.bytes[0], 8);
  m.completed(at(5));
  EXPECT_FALSE(m.on_final(at(6), id(2), final_by(2, 9))) << "what we have stays";
}

TEST(Finish, WhatItsDeclarerTookBackIsNotWaitedForUnlessAnotherMemberHasIt) {
  for (const bool held : {false, true}) {
    FinishMachine m = machine(3);
    m.begin(at(0));
    ASSERT_TRUE(m.on_final(at(1), id(2), final_by(2, 7)));
    m.update(at(2), {{id(2), RunState::kComplete, true, true},
                     {id(4), held ? RunState::kComplete : RunState::kFinishing, true, true}});
    m.on_withdrawn(id(4));
    EXPECT_EQ(m.phase(), FinishPhase::kFetching) << "it never declared anything";
    m.on_withdrawn(id(2));
    EXPECT_EQ(m.phase(), held ? FinishPhase::kFetching : FinishPhase::kConverging);
    EXPECT_EQ(m.take_reverted(), !held);
  }
}

// They are complete with another state, so what a dead one's last record says counts for nothing.
TEST(Finish, WhoIsLeftAloneAfterAStandstillSharesItsStateWithNobody) {
  FinishMachine m = machine(1);
  m.begin(at(0));
  m.update(at(1), {{id(2), RunState::kFinishing, true, true}});
  EXPECT_FALSE(m.on_own_pause());
  m.update(at(2), {{id(2), RunState::kComplete, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kConverging);
  m.update(at(3), {{id(2), RunState::kComplete, true, false}});
  ASSERT_EQ(m.phase(), FinishPhase::kDeclaring);
  m.declared(at(4), final_by(1, 4));
  m.written();
  m.update(at(5), {{id(2), RunState::kComplete, true, false}});
  EXPECT_EQ(m.phase(), FinishPhase::kOver);
  EXPECT_FALSE(m.shared());
}

TEST(Finish, AStandstillOfANodeThatIsAloneChangesNothing) {
  FinishMachine m = machine(1);
  m.begin(at(0));
  m.update(at(1), {{id(2), RunState::kFinishing, true, false}});
  ASSERT_EQ(m.phase(), FinishPhase::kDeclaring);
  EXPECT_FALSE(m.on_own_pause());
  EXPECT_EQ(m.phase(), FinishPhase::kDeclaring);
}

TEST(Finish, IsNotOverBeforeTheFileIsWritten) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  m.update(at(1), {});
  m.declared(at(2), final_by(2, 4));
  m.update(at(900000), {});
  EXPECT_EQ(m.phase(), FinishPhase::kComplete);
  m.written();
  m.update(at(900001), {});
  EXPECT_EQ(m.phase(), FinishPhase::kOver);
}

TEST(Finish, LingersNoLongerThanTheBoundAfterTheLastSignOfAFetcher) {
  FinishMachine m = machine(2);
  m.begin(at(0));
  m.update(at(1), {});
  m.declared(at(2), final_by(2, 4));
  m.written();
  m.served(at(15000));
  m.update(at(30000), {{id(3), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kComplete);
  m.update(at(35001), {{id(3), RunState::kFinishing, true, true}});
  EXPECT_EQ(m.phase(), FinishPhase::kOver);
}

}  // namespace
}  // namespace kith::gossip
