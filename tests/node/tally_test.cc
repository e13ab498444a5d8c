#include "node/daemon/tally.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace kith::node {
namespace {

using gossip::Progress;
using Word = Progress::Word;
using schema::Tally;
using schema::TallyEntry;

NodeId id(std::uint64_t n) {
  NodeId node;
  for (std::size_t i = 0; i < 8; ++i) node.bytes[i] = static_cast<std::uint8_t>(n >> (56 - 8 * i));
  return node;
}
TallyEntry did(std::uint64_t n, Step steps) { return {id(n), 32 * steps, steps}; }
TallyEntry with_data(TallyEntry entry, std::uint8_t file) {
  entry.data_fingerprint.bytes[0] = file;
  entry.data_samples = 1000;
  return entry;
}

TEST(Vouched, IsWhatTwoSayOfOneMember) {
  const struct {
    const char* what;
    Tallies a, b, both;
  } rows[] = {
      {"nothing", {}, {}, {}},
      {"one alone", {did(1, 5)}, {}, {}},
      {"the same", {did(1, 5), did(2, 6)}, {did(1, 5), did(2, 6)}, {did(1, 5), did(2, 6)}},
      {"of different ones", {did(1, 5), did(3, 6)}, {did(2, 5), did(4, 6)}, {}},
      {"the lower count", {did(1, 5), did(2, 1u << 30)}, {did(2, 7), did(3, 1)}, {did(2, 7)}},
      {"data that both name",
       {with_data(did(1, 5), 3)},
       {with_data(did(1, 4), 3)},
       {with_data(did(1, 4), 3)}},
      {"not data that one names",
       {with_data(did(1, 5), 3)},
       {with_data(did(1, 5), 4)},
       {did(1, 5)}}};
  for (const auto& row : rows) {
    EXPECT_EQ(vouched(row.a, row.b), row.both) << row.what;
    EXPECT_EQ(vouched(row.b, row.a), row.both) << row.what;
  }
}

TEST(Tallies, AreOfThoseWhoseRecordOthersMayLackOrWhoseRecordSaysLess) {
  Progress progress({});
  std::map<NodeId, schema::MemberRecord> living;
  for (const std::uint64_t n : {1, 2, 3, 4}) {
    progress.note(id(n), 320 * n, 10 * n);
    if (n > 2) continue;
    living[id(n)].samples = 320;
    living[id(n)].step = 10;
  }
  const Tallies tallies = tallies_of(progress, [&](const NodeId& node) {
    const auto it = living.find(node);
    return it == living.end() ? nullptr : &it->second;
  });
  EXPECT_EQ(tallies, (Tallies{did(2, 20), did(3, 30), did(4, 40)}));
}

TEST(Tallies, AreToldOnlyToWhoCouldTellSomethingElseAndInParts) {
  Tallies tallies;
  for (std::uint64_t n = 1; n <= schema::kTallyEntriesMax + 7; ++n) tallies.push_back(did(n, n));
  EXPECT_FALSE(answer_to({digest_of(tallies), true, {}, {}}, tallies));
  Tallies fewer(tallies.begin(), tallies.end() - 1);
  const auto first = answer_to({digest_of(fewer), true, {}, {}}, tallies);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->asks);
  EXPECT_EQ(first->entries, Tallies(tallies.begin(), tallies.begin() + schema::kTallyEntriesMax));
  const auto rest = answer_to({0, true, id(schema::kTallyEntriesMax), {}}, tallies);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->entries, Tallies(tallies.end() - 8, tallies.end()));
  EXPECT_TRUE(answer_to({0, true, id(1U << 30), {}}, tallies)->entries.empty());
}

Tallies told_by(const Progress& progress, Word least = Word::kVouched) {
  return tallies_of(
      progress, [](const NodeId&) { return nullptr; }, least);
}

// Nodes that hold what they learned, and ask each other as ControlLoop lets them.
class Learners {
 public:
  Learners(std::size_t nodes, std::size_t knowing, std::size_t gone) : nodes_(nodes) {
    for (std::size_t i = 0; i < knowing; ++i)
      for (std::uint64_t n = 0; n < gone; ++n)
        nodes_[i].progress.note_gone(with_data(did(1000 + n, 1 + n % 50), 9), Word::kVouched);
  }
  Progress& progress(std::size_t i) { return nodes_[i].progress; }
  Tallies tallies(std::size_t i) const { return told_by(nodes_[i].progress); }
  // Bytes are counted as questions and entries.
  void beat() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) beat(i);
  }
  void beat(std::size_t i) {
    Node& node = nodes_[i];
    std::vector<NodeId> peers;
    for (std::size_t j = 0; j < nodes_.size(); ++j)
      if (j != i) peers.push_back(id(j));
    const auto question = node.asker.beat(peers, random_, [&] {
      return digest_of(told_by(node.progress, nodes_.size() <= 2 ? Word::kOne : Word::kVouched));
    });
    if (!question) return;
    bool news = false;
    for (const NodeId& to : question->to) {
      ++questions;
      const auto answer = answer_to(question->message, tallies(to.bytes[7]));
      if (!answer) continue;
      entries += answer->entries.size();
      const auto learned = node.asker.on_answer(to, *answer, nodes_.size() - 1);
      for (const TallyEntry& entry : learned.entries)
        news = node.progress.note_gone(entry, learned.word) || news;
    }
    if (news) node.asker.hurry();
  }
  std::size_t questions = 0, entries = 0;

 private:
  struct Node {
    Progress progress{{}};
    TallyAsker asker;
  };
  std::vector<Node> nodes_;
  Random random_{5};
};

TEST(TallyAsker, AJoinerCountsWhatTheGoneDidWithinABeatOfAFewAndARoundForEachMessageOfMany) {
  const struct {
    std::size_t nodes, gone, beats;
  } rows[] = {{2, 3, 1},
              {3, 3, 1},
              {20, 3, 1},
              {3, 399, 1},
              {2, 1000, 3},
              {3, 1000, 3},
              {10, Progress::kGoneMax, 11}};
  for (const auto& row : rows) {
    Learners learners(row.nodes, row.nodes - 1, row.gone);
    const std::size_t joiner = row.nodes - 1;
    for (std::size_t beat = 0; beat < row.beats; ++beat) learners.beat(joiner);
    EXPECT_EQ(learners.progress(joiner).samples(), learners.progress(0).samples())
        << row.nodes << " " << row.gone;
    EXPECT_EQ(learners.progress(joiner).steps(), learners.progress(0).steps());
    EXPECT_EQ(learners.progress(joiner).data_samples(), 1000U);
    EXPECT_EQ(learners.tallies(joiner), row.nodes > 2 ? learners.tallies(0) : Tallies{});
  }
}

TEST(TallyAsker, WhatTwoKnowReachesAllAndThenHardlyAnythingIsSaid) {
  Learners learners(10, 2, 30);
  for (int beat = 0; beat < 300; ++beat) learners.beat();
  for (std::size_t i = 2; i < 10; ++i) EXPECT_EQ(learners.tallies(i), learners.tallies(0)) << i;
  learners.questions = learners.entries = 0;
  for (int beat = 0; beat < 640; ++beat) learners.beat();
  EXPECT_LE(learners.questions, 10U * 2 * 11);
  EXPECT_EQ(learners.entries, 0U);
}

TEST(TallyAsker, OneAloneAmongSeveralConvincesNobodyOfTwoTheOtherIsBelieved) {
  Learners several(5, 1, 30), two(2, 1, 30);
  for (int beat = 0; beat < 200; ++beat) {
    several.beat();
    two.beat();
  }
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(several.progress(i).samples(), 0U) << i;
  EXPECT_EQ(two.progress(1).samples(), two.progress(0).samples());
  two.entries = 0;
  for (int beat = 0; beat < 200; ++beat) two.beat();
  EXPECT_EQ(two.entries, 0U) << "what the other counts already is not told again";
}

// J is alone with L and believes it; H asks both.
TEST(Tallies, OfOneMembersWordAreCountedButNoSecondVoice) {
  const Tallies invented = {with_data(did(7, 5), 3), did(8, 1U << 30)};
  const auto hear = [&](Progress& p, Word word) {
    for (const TallyEntry& entry : invented) EXPECT_TRUE(p.note_gone(entry, word));
  };
  Progress j({});
  j.note(id(8), 64, 2);  // its record, before
  j.forget(id(8));
  TallyAsker alone;
  Random random(1);
  ASSERT_TRUE(alone.beat({id(1)}, random, [] { return 0; }));
  const auto learned = alone.on_answer(id(1), {1, false, {}, invented}, 1);
  EXPECT_EQ(learned.entries, invented);
  ASSERT_EQ(learned.word, Word::kOne);
  hear(j, learned.word);
  EXPECT_EQ(j.steps(), 5U + (1U << 30));
  EXPECT_EQ(j.data_samples(), 1000U);
  EXPECT_EQ(told_by(j), (Tallies{did(8, 2)})) << "only what it knew itself";
  EXPECT_EQ(told_by(j, Word::kOne), invented);

  TallyAsker h;
  const auto question = h.beat({id(1), id(2)}, random, [] { return 0; });
  ASSERT_TRUE(question);
  const auto of_j = answer_to(question->message, told_by(j));
  ASSERT_TRUE(of_j);
  EXPECT_TRUE(h.on_answer(id(1), {1, false, {}, invented}, 2).entries.empty());
  EXPECT_EQ(h.on_answer(id(2), *of_j, 2).entries, (Tallies{did(8, 2)}));

  // Two say so: that it counted already is no reason to keep it to itself.
  hear(j, Word::kVouched);
  EXPECT_EQ(told_by(j), invented);
}

TEST(Tallies, OfOneMembersWordAreToldOnceARecordSaysTheSame) {
  Progress p({});
  EXPECT_TRUE(p.note_gone(did(7, 5), Word::kOne));
  EXPECT_TRUE(told_by(p).empty());
  p.note(id(7), 96, 3);
  EXPECT_EQ(told_by(p), (Tallies{did(7, 3)}));
  EXPECT_EQ(p.steps(), 5U);
}

TEST(TallyAsker, TakesOneAnswerOfEachThatItAskedAndOnlyInOrder) {
  const Tallies told = {did(7, 5), did(8, 5)};
  const struct {
    const char* what;
    NodeId from;
    Tally answer;
    bool counts;
  } rows[] = {{"as asked", id(1), {1, false, {}, told}, true},
              {"from another", id(2), {1, false, {}, told}, false},
              {"for another part", id(1), {1, false, id(3), told}, false},
              {"out of order", id(1), {1, false, {}, {did(8, 5), did(7, 5)}}, false},
              {"one twice", id(1), {1, false, {}, {did(8, 5), did(8, 5)}}, false}};
  for (const auto& row : rows) {
    TallyAsker asker;
    Random random(1);
    ASSERT_TRUE(asker.beat({id(1)}, random, [] { return 0; }));
    EXPECT_EQ(!asker.on_answer(row.from, row.answer, 1).entries.empty(), row.counts) << row.what;
    if (row.counts) {
      EXPECT_TRUE(asker.on_answer(row.from, row.answer, 1).entries.empty()) << "answered already";
    }
  }
}

TEST(TallyAsker, NeverVouchesTwiceForItself) {
  TallyAsker asker;
  Random random(1);
  for (int round = 0; round < 5; ++round) {
    asker.hurry();
    ASSERT_TRUE(asker.beat({id(1), id(2)}, random, [] { return 0; }));
    EXPECT_TRUE(asker.on_answer(id(1), {1, false, {}, {did(7, 5)}}, 2).entries.empty());
    EXPECT_TRUE(asker.on_answer(id(1), {1, false, {}, {did(7, 5)}}, 2).entries.empty());
  }
}

TEST(TallyAsker, AsksNobodyWhenNobodyIsThereAndAtOnceWhenSomebodyIs) {
  TallyAsker asker;
  Random random(1);
  for (int beat = 0; beat < 100; ++beat) EXPECT_FALSE(asker.beat({}, random, [] { return 0; }));
  EXPECT_TRUE(asker.beat({id(1)}, random, [] { return 0; }));
}

}  // namespace
}  // namespace kith::node
