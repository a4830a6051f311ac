//===- SwitchedStepTest.cpp - Steps of several graphs ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Samples are dealt to the graphs of a run, which train in one step over one set
// of masters: the same function as one rank that takes all of them.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"

#include <gmock/gmock.h>

#include <random>

using namespace dyna;
using testing::HasSubstr;

namespace {

struct Outcome {
  std::vector<double> losses, norms, masters;
};

/// Five steps of ten samples; sample s of step n goes to a graph at random.
Outcome outcomeOf(const std::vector<std::string> &strategies,
                  plan::ElementType compute, unsigned seed,
                  const Carriage &carriage = {}, bool isTight = false) {
  Steps steps(strategies, compute, carriage);
  if (isTight)
    steps.useTightRegions();
  std::mt19937 random(seed);
  Outcome outcome;
  for (int64_t number = 0; number < 5; ++number) {
    MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12, 1, 8, 20, 2}, number + 1);
    std::vector<int> phaseOf;
    for (size_t s = 0; s < batch.samples.size(); ++s)
      phaseOf.push_back(static_cast<int>(random() % strategies.size()));
    // Once no sample is home's, once all are.
    for (int &phase : phaseOf)
      phase = number == 1 && phase == steps.home() ? 0
              : number == 2                        ? steps.home()
                                                   : phase;
    StepResult result = steps.run(batch, phaseOf, number);
    outcome.losses.push_back(result.lossSum);
    outcome.norms.push_back(result.gradientNorm);
  }
  outcome.masters = steps.masters();
  return outcome;
}

double distance(const std::vector<double> &a, const std::vector<double> &b) {
  double most = 0, scale = 0.01;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(a[i]));
  }
  return most / scale;
}

/// In f64.
void expectAlike(const Outcome &alone, const Outcome &several) {
  EXPECT_LT(distance(alone.losses, several.losses), 1e-10);
  EXPECT_LT(distance(alone.norms, several.norms), 1e-10);
  EXPECT_LT(distance(alone.masters, several.masters), 1e-10);
}

const std::vector<std::vector<std::string>> sequences = {
    {"dp=2", "tp=2"},
    {"tp=2", "dp=2,zero=1"},
    {"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
    {"dp=4", "dp=2,tp=2,zero=1", "tp=4,sp=1", "pp=4,layers=1+1+2+1"},
    {"tp=2,pp=2,layers=3+2,order=tp+pp+dp", "dp=4,zero=1", "tp=4",
     "dp=2,pp=2,layers=4+1,zero=1"},
    {"pp=4,layers=2+1+1+1", "dp=2,tp=2,order=tp+dp+pp", "dp=4,zero=1"},
    {"dp=2,tp=2", "dp=2,tp=2,order=tp+dp+pp"},
    {"dp=3,zero=1", "tp=3", "pp=3,layers=1+3+1"},
    {"pp=3,layers=1+3+1", "dp=3", "tp=3"},
};

TEST(SwitchedStepTest, SeveralGraphsTrainLikeOneRank) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::F64, 1);
  unsigned seed = 0;
  for (const auto &sequence : sequences) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    const Outcome several = outcomeOf(sequence, plan::F64, ++seed);
    expectAlike(alone, several);
  }
}

/// What one rank gets of others is passed on; a rank that starts one message
/// after another meets its peers.
TEST(SwitchedStepTest, AllCarriagesGiveTheNumbersOfOneRank) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::F64, 1);
  unsigned seed = 20;
  for (int64_t bucketBytes : {512, 4096})
    for (bool isRendezvous : {false, true})
      for (const auto &sequence : sequences) {
        const int ranks = parseStrategy(sequence[0])->ranks();
        if (ranks != 4)
          continue;
        SCOPED_TRACE(testing::PrintToString(sequence));
        const Outcome several =
            outcomeOf(sequence, plan::F64, ++seed,
                      {onNodes(ranks, bucketBytes), isRendezvous});
        expectAlike(alone, several);
      }
}

/// What comes while home computes is not added to what home adds to (and a rank
/// may be slow to add): late landings are a transport's right.
TEST(SwitchedStepTest, NothingIsAddedToWhileGradientsLand) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::F64, 1);
  unsigned seed = 40;
  for (const auto &sequence : sequences) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    Carriage carriage;
    carriage.landsLate = true;
    const Outcome several = outcomeOf(sequence, plan::F64, ++seed, carriage);
    expectAlike(alone, several);
  }
}

/// What hosts agree on never enters the wires of devices: losses, votes, masters that
/// are written and read.
TEST(SwitchedStepTest, DevicesExchangeNoMemoryOfTheHost) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::F64, 1);
  unsigned seed = 60;
  Carriage carriage;
  carriage.hasHostWires = true;
  for (const auto &sequence : sequences) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    expectAlike(alone, outcomeOf(sequence, plan::F64, ++seed, carriage));
  }
}

/// In regions that hold one phase at a time and two layouts side by side.
TEST(SwitchedStepTest, PhasesThatTakeTurnsGiveTheNumbersOfOneRank) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::F64, 1);
  unsigned seed = 40;
  for (const auto &sequence : sequences)
    for (bool onTwoNodes : {false, true}) {
      const int ranks = parseStrategy(sequence[0])->ranks();
      if (onTwoNodes && ranks != 4)
        continue;
      SCOPED_TRACE(testing::PrintToString(sequence));
      const Carriage carriage =
          onTwoNodes ? Carriage{onNodes(ranks, 512), true} : Carriage{};
      const Outcome several = outcomeOf(sequence, plan::F64, ++seed, carriage,
                                        /*isTight=*/true);
      EXPECT_LT(distance(alone.losses, several.losses), 1e-10);
      EXPECT_LT(distance(alone.norms, several.norms), 1e-10);
      EXPECT_LT(distance(alone.masters, several.masters), 1e-10);
    }
}

/// Elements of `box` that no box of the rank has.
int64_t lacking(const Box &box, int rank, const std::vector<RankBox> &from) {
  int64_t count = 0;
  for (int64_t r = 0; r < box.size[0]; ++r)
    for (int64_t c = 0; c < box.size[1]; ++c) {
      const Box element = {{box.begin[0] + r, box.begin[1] + c}, {1, 1}};
      bool has = false;
      for (const RankBox &own : from)
        has |= own.rank == rank && own.box.contains(element);
      count += !has;
    }
  return count;
}

/// What was sent from each rank to each is what the plans say, and no rank got a
/// value that it had.
TEST(SwitchedStepTest, BytesBetweenRanksAreThoseOfThePlans) {
  using Pairs = std::vector<std::vector<int64_t>>;
  bool passesOn = false;
  for (const auto &sequence : sequences) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    const int ranks = parseStrategy(sequence[0])->ranks();
    for (bool onTwoNodes : {false, true}) {
      Carriage carriage;
      if (onTwoNodes && ranks % 2 == 0)
        carriage.make = onNodes(ranks, 2048);
      Steps steps(sequence, plan::BF16, carriage);
      const int home = steps.home();
      MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12}, 1);
      std::vector<int> phaseOf;
      for (size_t s = 0; s < batch.samples.size(); ++s)
        phaseOf.push_back(static_cast<int>(s) % (home + 1));
      steps.run(batch, phaseOf, 0);
      Pairs values(ranks, std::vector<int64_t>(ranks)), gradients = values;
      std::vector<int64_t> lacked(ranks), got(ranks);
      bool valuesPassOn = false;
      auto count = [&](const GraphSwitch &way, Pairs &pairs) {
        for (const SwitchBucket &bucket : way.plan.buckets)
          for (const SwitchTransfer &t : bucket.transfers) {
            valuesPassOn |= t.target == SwitchPlace::Passing;
            if (t.from != t.to)
              pairs[t.from][t.to] +=
                  t.box.volume() * way.tensors[t.tensor].elementBytes;
          }
      };
      for (int g = 0; g < home; ++g) {
        const GraphSwitch &way = steps.table().values(g - 1, g);
        count(way, values);
        count(steps.table().gradients(g), gradients);
        for (const SwitchTensor &tensor : way.tensors)
          for (const RankBox &to : tensor.to)
            lacked[to.rank] +=
                lacking(to.box, to.rank, tensor.from) * tensor.elementBytes;
      }
      passesOn |= valuesPassOn;
      int64_t all = 0;
      for (int from = 0; from < ranks; ++from) {
        const StepResult &result =
            steps.team().lastResult(static_cast<size_t>(from));
        ASSERT_EQ(result.switches.size(), static_cast<size_t>(ranks));
        int64_t sent = 0;
        for (int to = 0; to < ranks; ++to) {
          EXPECT_EQ(result.switches[to].values, values[from][to]);
          EXPECT_EQ(result.switches[to].gradients, gradients[from][to]);
          got[to] += result.switches[to].values;
          sent += result.switches[to].values + result.switches[to].gradients;
        }
        // Stages send activations as well.
        if (sequence[0].find("pp=") == std::string::npos &&
            sequence.back().find("pp=") == std::string::npos &&
            sequence.size() == 2)
          EXPECT_EQ(result.traffic.messageBytes, sent);
        all += sent;
      }
      EXPECT_GT(all, 0);
      if (!valuesPassOn)
        EXPECT_EQ(got, lacked);
    }
  }
  EXPECT_TRUE(passesOn);
}

/// Gradients come home, losses do not; and yet home must not be updated by what
/// a phase before it found not finite, whatever the phases behind that one say.
TEST(SwitchedStepTest, LossesOfAllPhasesDecideOnTheUpdate) {
  const MiniBatch batch = tinyBatch({20, 9, 3}, 1);
  for (const std::vector<int> &phaseOf :
       {std::vector<int>{0, 2, 2}, {0, 1, 2}, {0, 1, 1}, {2, 1, 0}}) {
    SCOPED_TRACE(testing::PrintToString(phaseOf));
    Steps steps({"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"}, plan::F64);
    const std::vector<double> before = steps.masters();
    // Of the first sample alone: the others have fewer.
    MiniBatch first;
    first.samples = {batch.samples[0]};
    tinyFault = {TinyFault::Kind::LoseLoss, -1, -1, countTargets(first)};
    StepResult result = steps.run(batch, phaseOf, 0);
    tinyFault = TinyFault();
    EXPECT_TRUE(std::isnan(result.lossSum));
    EXPECT_TRUE(std::isnan(result.gradientNorm));
    EXPECT_EQ(steps.masters(), before);
    // Nothing of it is left.
    result = steps.run(batch, phaseOf, 1);
    EXPECT_TRUE(std::isfinite(result.gradientNorm));
    EXPECT_NE(steps.masters(), before);
  }
}

/// Behind all that comes before it, and hidden by what it does.
TEST(SwitchedStepTest, ValuesAreFetchedInTheLastBackward) {
  using plan::Instruction;
  Steps steps({"dp=2", "pp=2,layers=2+3", "tp=2"}, plan::F64);
  const MiniBatch batch = tinyBatch({20, 19, 18, 17, 16, 5}, 1);
  const RankView &view = steps.graph(0).replicaView(0);
  for (bool trains : {true, false}) {
    // Of several micro-batches.
    const plan::StepPlan step = *steps.plan(batch, {0, 0, 0, 0, 1, 1}, trains);
    int inside = 0;
    for (const plan::RankProgram &program : step.phases[0].plan.ranks) {
      const auto &all = program.instructions;
      size_t first = 0; // of the last pass
      for (size_t at = 0; at < all.size(); ++at)
        if (trains ? all[at].op == Instruction::BACKWARD &&
                         all[at].layer == view.endLayer() - 1
                   : all[at].op == Instruction::EVALUATE &&
                         all[at].layer == view.firstLayer())
          first = at;
      ASSERT_GT(first, 0u);
      for (size_t at = 0; at < all.size(); ++at)
        if (all[at].op == Instruction::SWITCH_START && all[at].phase == 1)
          for (size_t behind = at; behind < all.size(); ++behind)
            if (isPerMicroBatch(all[behind].op) && roleOf(all[behind]) >= 0) {
              EXPECT_EQ(all[behind].microBatch, all[first].microBatch);
              EXPECT_NE(all[behind].op, Instruction::FORWARD);
              ++inside;
            }
    }
    EXPECT_GT(inside, 0);
  }
}

/// Between steps that train: every graph has what the last update left, and
/// nothing of an evaluation is left to the next one.
TEST(SwitchedStepTest, SeveralGraphsEvaluateLikeOneRank) {
  const std::vector<int64_t> lengths = {5, 1, 17, 9, 3, 12, 1, 8};
  for (plan::ElementType compute : {plan::F64, plan::BF16}) {
    // bf16: sums of f32 in another order, amplified by the steps between.
    const double relative = compute == plan::F64 ? 1e-10 : 2e-2;
    Steps alone({"dp=1"}, compute);
    std::vector<double> expected;
    for (int64_t number = 0; number < 3; ++number) {
      const MiniBatch batch = tinyBatch(lengths, number + 1);
      const std::vector<int> all(lengths.size(), 0);
      expected.push_back(alone.run(batch, all, number, false).lossSum);
      alone.run(batch, all, number);
    }
    EXPECT_NE(expected[0], expected[1]);
    for (const auto &sequence : sequences) {
      SCOPED_TRACE(testing::PrintToString(sequence));
      Steps steps(sequence, compute);
      // That never trains, and has no room for it.
      Steps values(sequence, compute, {}, Persistent::Values);
      for (int64_t number = 0; number < 3; ++number) {
        const MiniBatch batch = tinyBatch(lengths, number + 1);
        std::vector<int> phaseOf;
        for (size_t s = 0; s < lengths.size(); ++s)
          phaseOf.push_back(static_cast<int>(s + number) % (steps.home() + 1));
        for (int round = 0; round < 2; ++round)
          EXPECT_NEAR(steps.run(batch, phaseOf, number, false).lossSum,
                      expected[number], relative * expected[number]);
        if (number == 0)
          EXPECT_NEAR(values.run(batch, phaseOf, number, false).lossSum,
                      expected[0], relative * expected[0]);
        steps.run(batch, phaseOf, number);
      }
    }
  }
}

/// In narrow types sums of another order differ, and Adam amplifies it.
TEST(SwitchedStepTest, NarrowTypesTrainAlikeToo) {
  const Outcome alone = outcomeOf({"dp=1"}, plan::BF16, 1);
  unsigned seed = 0;
  for (const auto &sequence : sequences) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    const Outcome several = outcomeOf(sequence, plan::BF16, ++seed);
    EXPECT_LT(distance(alone.losses, several.losses), 2e-2);
    EXPECT_LT(distance(alone.norms, several.norms), 5e-2);
  }
}

} // namespace
