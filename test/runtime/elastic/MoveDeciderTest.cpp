//===- MoveDeciderTest.cpp - Moves beside all cuts, and what follows ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/decide/MoveDecider.h"

#include "test/runtime/elastic/AllCuts.h"

#include <gmock/gmock.h>
#include <optional>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Whole numbers, so that sums are exact.
MoveProblem drawProblem(Draw &draw) {
  MoveProblem problem;
  const int stages = 1 + draw.below(5);
  const int layers = stages + draw.below(13 - stages);
  for (int l = 0; l < layers; ++l) {
    problem.seconds.push_back(draw.below(20));
    problem.stateBytes.push_back(draw.below(3) ? draw.below(50) : 7);
  }
  if (draw.below(2))
    for (int s = 0; s < stages; ++s)
      problem.waits.push_back(draw.below(8));
  const auto cuts = allCuts(layers, stages);
  problem.cut = cuts[draw.below(static_cast<int>(cuts.size()))];
  problem.microBatches = 1 + draw.below(9);
  problem.stepsLeft = draw.below(40);
  problem.price.fixedSeconds = draw.below(200);
  problem.price.lostOverlapSeconds = draw.below(20);
  problem.price.planSeconds = draw.below(20);
  problem.price.secondsPerByte = draw.below(4) * 8;
  problem.test = {draw.below(3) * 0.5, draw.below(3) * 0.0625};
  return problem;
}

/// Returns what a move is better by than the test asks for.
double excess(const MoveProblem &problem, const WeighedMove &move) {
  return move.gainSeconds - (1 + problem.test.margin) * move.priceSeconds;
}

double squaresOf(const MoveProblem &problem, const std::vector<int> &cut) {
  double squares = 0;
  for (double load : stageLoads(problem.seconds, cut, problem.waits))
    squares += load * load;
  return squares;
}

/// Tries all cuts; none if no one pays.
std::optional<double> bestByTryingAll(const MoveProblem &problem) {
  std::optional<double> best;
  for (const auto &cut : allCuts(static_cast<int>(problem.seconds.size()),
                                 static_cast<int>(problem.cut.size()))) {
    if (problem.memory && !hasRoom(*problem.memory, cut))
      continue;
    const WeighedMove move = weighMove(problem, cut);
    if (move.pays)
      best = std::max(best.value_or(0), excess(problem, move));
  }
  return best;
}

/// Expects that no cut with the same speed and the same bytes is more even than `best`.
void expectMostEven(const MoveProblem &problem, const WeighedMove &best) {
  const double squares = squaresOf(problem, best.cut);
  for (const auto &cut : allCuts(static_cast<int>(problem.seconds.size()),
                                 static_cast<int>(problem.cut.size()))) {
    if (problem.memory && !hasRoom(*problem.memory, cut))
      continue;
    const WeighedMove other = weighMove(problem, cut);
    if (other.stepSecondsThen > best.stepSecondsThen ||
        other.bytes.port > best.bytes.port)
      continue;
    EXPECT_GE(squaresOf(problem, cut), squares);
    if (squaresOf(problem, cut) == squares) {
      EXPECT_LE(cut, best.cut);
    }
  }
}

TEST(BestMoveTest, IsThatOfAllCuts) {
  Draw draw(39);
  int moved = 0, notTheFastest = 0, limited = 0;
  for (int round = 0; round < 1500; ++round) {
    MoveProblem problem = drawProblem(draw);
    const auto layers = static_cast<int>(problem.seconds.size());
    const auto stages = static_cast<int>(problem.cut.size());
    const LayerBytes memory = drawBytes(layers, stages, draw);
    const std::vector<int> free = bestMove(problem).cut;
    if (round % 2)
      problem.memory = &memory;
    const std::optional<double> best = bestByTryingAll(problem);
    const WeighedMove found = bestMove(problem);
    ASSERT_EQ(found.pays, best.has_value()) << round;
    if (!best) {
      EXPECT_EQ(found.cut, problem.cut);
      continue;
    }
    ++moved;
    limited += found.cut != free;
    EXPECT_NEAR(excess(problem, found), *best, 1e-9 * (1 + *best)) << round;
    if (problem.memory) {
      EXPECT_TRUE(hasRoom(memory, found.cut));
    }
    expectMostEven(problem, found);
    MoveProblem without = problem;
    without.price = {};
    notTheFastest += bestMove(without).stepSecondsThen < found.stepSecondsThen;
  }
  // Cases of each kind are among the problems.
  EXPECT_GT(moved, 300);
  EXPECT_GT(notTheFastest, 30);
  EXPECT_GT(limited, 30);
}

TEST(BestMoveTest, BytesOfMoves) {
  const MovedBytes moved = movedBytes({1, 2, 4, 8, 16}, {1, 2, 2}, {2, 2, 1});
  // Stage 0 gets 2; stage 1 sends 2 and gets 8; stage 2 sends 8.
  EXPECT_EQ(moved.all, 10);
  EXPECT_EQ(moved.port, 8);
  // A stage that shares nothing with its place before.
  EXPECT_EQ(movedBytes({1, 2, 4, 8}, {1, 1, 2}, {2, 1, 1}).all, 6);
  EXPECT_EQ(movedBytes({1, 2, 4, 8}, {1, 1, 2}, {1, 1, 2}).all, 0);
}

MoveProblem smallProblem() {
  MoveProblem problem;
  problem.seconds = {1, 1, 1, 1, 1, 1};
  problem.stateBytes = {100, 100, 100, 100, 100, 100};
  problem.cut = {4, 2};
  problem.microBatches = 5;
  problem.stepsLeft = 100;
  problem.price = {1, 2, 3, 0.01};
  return problem;
}

TEST(BestMoveTest, NumbersOfAMove) {
  const WeighedMove move = bestMove(smallProblem());
  EXPECT_THAT(move.cut, ElementsAre(3, 3));
  EXPECT_DOUBLE_EQ(move.stepSecondsNow, 6 + 4 * 4);
  EXPECT_DOUBLE_EQ(move.stepSecondsThen, 6 + 4 * 3);
  EXPECT_DOUBLE_EQ(move.gainSeconds, 400);
  EXPECT_DOUBLE_EQ(move.priceSeconds, 1 + 2 + 3 + 0.01 * 100);
  EXPECT_EQ(move.stepsToEarn, 2);
  EXPECT_TRUE(move.pays);
}

TEST(BestMoveTest, HysteresisHasTwoTests) {
  MoveProblem problem = smallProblem();
  // 4 seconds a step; the price is 7, and the gain has to be 10.5.
  problem.stepsLeft = 3;
  EXPECT_TRUE(bestMove(problem).pays);
  problem.stepsLeft = 2;
  EXPECT_FALSE(bestMove(problem).pays);
  problem.test.margin = 0.1;
  EXPECT_TRUE(bestMove(problem).pays);
  // 4 of 22 seconds.
  problem.test.leastShare = 0.19;
  EXPECT_FALSE(bestMove(problem).pays);
  problem.test.leastShare = 0.18;
  EXPECT_TRUE(bestMove(problem).pays);
}

TEST(BestMoveTest, ASlowLinkShiftsWork) {
  MoveProblem problem = smallProblem();
  problem.waits = {3, 0};
  const WeighedMove move = bestMove(problem);
  EXPECT_EQ(stageLoads(problem.seconds, move.cut, problem.waits),
            std::vector<double>({5, 4}));
  problem.waits = {0, 3};
  EXPECT_FALSE(bestMove(problem).pays);
}

TEST(BestMoveTest, StaysIfNothingCanBeGained) {
  MoveProblem problem = smallProblem();
  problem.microBatches = 1; // one after another, however they are cut
  EXPECT_FALSE(bestMove(problem).pays);
  problem = smallProblem();
  problem.stepsLeft = 0;
  problem.price = {};
  EXPECT_FALSE(bestMove(problem).pays);
  problem = smallProblem();
  problem.cut = {3, 3};
  problem.price = {};
  problem.test = {0, 0};
  EXPECT_EQ(bestMove(problem).cut, problem.cut);
}

/// A decider that has measured five steps of one second for a unit of work.
MoveDecider measured() {
  MoveDecider decider;
  for (int i = 0; i < 5; ++i)
    decider.stepEnded(10.0 * (1 + i), 10.0 * (1 + i));
  return decider;
}

/// Ends the step that is left out, and five others.
void runSteps(MoveDecider &decider, double secondsPerWork) {
  decider.stepEnded(1000, 1);
  for (int i = 0; i < 5; ++i)
    decider.stepEnded(20 * secondsPerWork, 20);
}

TEST(MoveDeciderTest, MeasuresBeforeItMoves) {
  MoveDecider decider;
  for (int i = 0; i < 4; ++i) {
    decider.stepEnded(1);
    EXPECT_EQ(decider.decide(smallProblem()).answer, MoveAnswer::Stay);
  }
  EXPECT_EQ(decider.state(), MoveState::Measuring);
  decider.stepEnded(1);
  EXPECT_EQ(decider.decide(smallProblem()).answer, MoveAnswer::Move);
  // Steps of another model say nothing of this one.
  decider.modelChanged();
  EXPECT_EQ(decider.decide(smallProblem()).answer, MoveAnswer::Stay);
}

TEST(MoveDeciderTest, WhatIsFasterStays) {
  MoveDecider decider = measured();
  MoveProblem problem = smallProblem();
  const MoveDecision decision = decider.decide(problem);
  ASSERT_EQ(decision.answer, MoveAnswer::Move);
  EXPECT_THAT(decision.describe(),
              HasSubstr("move: 4+2 -> 3+3, step 22 -> 18 s, gain 400 s, price "
                        "7 s, earned back in 2 steps, 100 B moved"));
  decider.moved(decision);
  problem.cut = decision.move.cut;
  EXPECT_EQ(decider.decide(problem).state, MoveState::Watching);
  runSteps(decider, 0.8);
  const MoveDecision next = decider.decide(problem);
  EXPECT_EQ(next.answer, MoveAnswer::Stay);
  EXPECT_EQ(next.state, MoveState::Settled);
  EXPECT_DOUBLE_EQ(next.before, 1);
  EXPECT_DOUBLE_EQ(next.after, 0.8);
}

TEST(MoveDeciderTest, WhatIsSlowerIsTakenBack) {
  MoveDecider decider = measured();
  MoveProblem problem = smallProblem();
  const MoveDecision decision = decider.decide(problem);
  decider.moved(decision);
  problem.cut = decision.move.cut;
  runSteps(decider, 1.1);
  const MoveDecision back = decider.decide(problem);
  ASSERT_EQ(back.answer, MoveAnswer::GoBack);
  EXPECT_THAT(back.move.cut, ElementsAre(4, 2));
  // 0.1 seconds for each of 20 units, in 100 steps.
  EXPECT_NEAR(back.move.gainSeconds, 200, 1e-9);
  EXPECT_THAT(back.describe(),
              HasSubstr("go back: steps became 10.0 % slower"));
  decider.moved(back);
  problem.cut = back.move.cut;
  // The load promises the same move again; nothing moves until the model changes.
  runSteps(decider, 1);
  EXPECT_EQ(decider.decide(problem).answer, MoveAnswer::Stay);
  EXPECT_EQ(decider.state(), MoveState::Barred);
  decider.modelChanged();
  for (int i = 0; i < 5; ++i)
    decider.stepEnded(1);
  EXPECT_EQ(decider.decide(problem).answer, MoveAnswer::Move);
}

TEST(MoveDeciderTest, GoingBackHasAPriceToo) {
  MoveDecider decider = measured();
  MoveProblem problem = smallProblem();
  const MoveDecision decision = decider.decide(problem);
  decider.moved(decision);
  problem.cut = decision.move.cut;
  runSteps(decider, 1.1);
  problem.stepsLeft = 5; // 10 seconds, but the price is 7
  EXPECT_EQ(decider.decide(problem).answer, MoveAnswer::Stay);
  EXPECT_EQ(decider.state(), MoveState::Barred);
}

TEST(MoveDeciderTest, ALittleSlowerIsNoise) {
  MoveDecider decider = measured();
  MoveProblem problem = smallProblem();
  const MoveDecision decision = decider.decide(problem);
  decider.moved(decision);
  problem.cut = decision.move.cut;
  runSteps(decider, 1.019);
  EXPECT_EQ(decider.decide(problem).answer, MoveAnswer::Stay);
  EXPECT_EQ(decider.state(), MoveState::Settled);
}

TEST(MoveDeciderTest, WhatWasRefusedIsNotAskedForAgain) {
  MoveDecider decider = measured();
  ASSERT_EQ(decider.decide(smallProblem()).answer, MoveAnswer::Move);
  decider.refused();
  EXPECT_EQ(decider.decide(smallProblem()).answer, MoveAnswer::Stay);
  EXPECT_EQ(decider.decide(smallProblem()).describe(), "stay: barred");
}

TEST(MoveDeciderTest, AnswersForACutThatIsGiven) {
  MoveDecider decider = measured();
  EXPECT_EQ(decider.decide(smallProblem(), {3, 3}).answer, MoveAnswer::Move);
  const MoveDecision stay = decider.decide(smallProblem(), {5, 1});
  EXPECT_EQ(stay.answer, MoveAnswer::Stay);
  EXPECT_THAT(stay.describe(), HasSubstr("stay: no cut is faster; 4+2 -> 5+1"));
  MoveProblem late = smallProblem();
  late.stepsLeft = 1;
  EXPECT_THAT(decider.decide(late).describe(),
              HasSubstr("stay: the gain is too small; 4+2 -> 3+3, step 22 -> "
                        "18 s, gain 4 s, price 7 s"));
}

TEST(MoveDeciderTest, WithoutMeasuringNothingIsTakenBack) {
  MoveDecider decider(MoveOptions{0, 0});
  const MoveDecision decision = decider.decide(smallProblem());
  ASSERT_EQ(decision.answer, MoveAnswer::Move);
  decider.moved(decision);
  EXPECT_EQ(decider.state(), MoveState::Settled);
}

} // namespace
