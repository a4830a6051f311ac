//===- SwitchedStepTest.cpp - Steps of several graphs ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Samples are dealt to the graphs of a run, which train in one step over one set
// of masters: the same function as one rank that takes all of them.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankTeam.h"
#include "runtime/planner/JoinPhases.h"
#include "runtime/planner/PlanSwitch.h"
#include "runtime/planner/Planner.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/transport/RendezvousTransport.h"

#include <gmock/gmock.h>

#include <random>

using namespace dyna;
using testing::HasSubstr;

namespace {

constexpr int64_t enough = 1 << 20;

TinyOptions tinyOptions(plan::ElementType compute) {
  TinyOptions options;
  options.compute = compute;
  options.hidden = 12;
  options.nestedTie = true;
  options.degrees = {{2, false}, {2, true}, {3, false}, {4, true}, {4, false}};
  return options;
}

/// How switches are planned, and what carries them.
struct Carriage {
  SwitchTable::Make make = planNaively;
  bool isRendezvous = false;
};

/// As on nodes of two ranks, far apart, so that ranks pass on what they get.
SwitchTable::Make onNodes(int ranks, int64_t bucketBytes) {
  SwitchNetwork network;
  network.ranks = ranks;
  network.ranksPerNode = 2;
  network.insideRate = 200e9;
  network.betweenRate = 1e9;
  SwitchOptions options;
  options.bucketBytes = bucketBytes;
  options.smallestPiece = 64;
  return [network, options](const std::vector<SwitchTensor> &tensors) {
    return planSwitch(tensors, network, options);
  };
}

/// Graphs over one set of masters; the last strategy is home.
class Steps {
public:
  Steps(const std::vector<std::string> &strategies, plan::ElementType compute,
        const Carriage &carriage = {})
      : program_(tinyOptions(compute)),
        model_(*openProgram(program_.program())) {
    for (const std::string &text : strategies)
      planners_.push_back(std::make_unique<Planner>(
          *ExecutableGraph::create(model_, *parseStrategy(text))));
    home_ = static_cast<int>(planners_.size()) - 1;
    std::vector<GraphUse> uses = {{&graph(home_), Persistent::Training}};
    std::vector<const ExecutableGraph *> graphs;
    for (int g = 0; g <= home_; ++g) {
      graphs.push_back(&graph(g));
      if (g != home_)
        uses.push_back({&graph(g), Persistent::Gradients});
    }
    auto table = SwitchTable::create(graphs, home_, carriage.make);
    EXPECT_TRUE(table.isOk()) << table.status().message();
    table_.emplace(std::move(*table));
    const int ranks = graph(0).ranks();
    auto transports = makeThreadTransports(ranks);
    std::vector<RankResources> resources(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      resources[rank].rank = rank;
      resources[rank].device = std::move(*HostDevice::create(1));
      resources[rank].dynamicBytes = enough;
      if (ranks == 1)
        continue;
      resources[rank].transport = std::move(transports[rank]);
      if (carriage.isRendezvous)
        resources[rank].transport = std::make_unique<RendezvousTransport>(
            std::move(resources[rank].transport));
      resources[rank].transport->setTimeout(std::chrono::seconds(20));
    }
    ExecutorOptions options;
    options.seed = 7;
    options.checkMemory = true;
    auto team =
        RankTeam::create(uses, **chooseVariant(program_.program(), "", 0),
                         std::move(resources), options);
    EXPECT_TRUE(team.isOk()) << team.status().message();
    team_ = std::move(*team);
    writeMasters();
  }

  void writeMasters() {
    for (int p = 0; p < model_.parameters(); ++p) {
      std::vector<double> values(model_.elements(p));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 0.02 * std::sin(static_cast<double>(13 * p + i + 1));
      std::vector<float> narrow(values.begin(), values.end());
      EXPECT_OK(team_->writePart(p, ParameterPart::Master,
                                 model_.masterType() == plan::F64
                                     ? static_cast<void *>(values.data())
                                     : narrow.data()));
    }
    auto cast = VerifiedPlan::prove(graph(home_), *planners_[home_]->cast(), {},
                                    {maxBlockBytes});
    StepResult result;
    EXPECT_OK(team_->run(*cast, MiniBatch(), {}, result));
  }

  /// Sample s goes to the graph of phase `phaseOf[s]`; phases without samples
  /// are left out, but for home's.
  StatusOr<plan::StepPlan> plan(const MiniBatch &batch,
                                const std::vector<int> &phaseOf) {
    plan::StepPlan step;
    for (int g = 0; g <= home_; ++g) {
      plan::Phase phase;
      std::vector<int64_t> lengths;
      for (size_t s = 0; s < phaseOf.size(); ++s)
        if (phaseOf[s] == g) {
          phase.samples.push_back(static_cast<int64_t>(s));
          lengths.push_back(batch.lengths()[s]);
        }
      if (lengths.empty() && g != home_)
        continue;
      PlanOptions options;
      options.maxTokensPerMicroBatch = 24;
      options.switched = g != home_;
      DYNA_ASSIGN_OR_RETURN(
          phase.plan, planners_[g]->training(lengths, batch.targets, options));
      step.phases.push_back(std::move(phase));
    }
    DYNA_RETURN_IF_ERROR(joinPhases(*table_, true, step));
    return step;
  }

  StatusOr<VerifiedStep> prove(plan::StepPlan step, const MiniBatch &batch) {
    return VerifiedStep::prove(*table_, std::move(step), batch.lengths(),
                               batch.targets, {});
  }

  StepResult run(const MiniBatch &batch, const std::vector<int> &phaseOf,
                 int64_t number) {
    StepResult result;
    auto made = plan(batch, phaseOf);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    auto proven = prove(*made, batch);
    EXPECT_TRUE(proven.isOk()) << proven.status().message();
    if (!proven.isOk())
      return result;
    std::vector<MiniBatch> batches;
    for (const VerifiedStep::Phase &phase : proven->phases()) {
      MiniBatch &own = batches.emplace_back();
      for (int64_t s : phase.samples) {
        own.samples.push_back(batch.samples[s]);
        own.tokens += batch.lengths()[s];
      }
      own.targets = countTargets(own);
    }
    EXPECT_OK(
        team_->run(*proven, batches, TinyRun::scalars(number, 1.0), result));
    return result;
  }

  std::vector<double> masters() {
    std::vector<double> all;
    for (int p = 0; p < model_.parameters(); ++p) {
      std::vector<double> values(model_.elements(p));
      std::vector<float> narrow(model_.elements(p));
      const bool wide = model_.masterType() == plan::F64;
      EXPECT_OK(team_->readPart(p, ParameterPart::Master,
                                wide ? static_cast<void *>(values.data())
                                     : narrow.data()));
      if (!wide)
        values.assign(narrow.begin(), narrow.end());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const ExecutableGraph &graph(int index) { return planners_[index]->graph(); }
  int home() const { return home_; }
  const SwitchTable &table() const { return *table_; }
  RankTeam &team() { return *team_; }

private:
  TinyProgram program_;
  Model model_;
  std::vector<std::unique_ptr<Planner>> planners_;
  int home_ = 0;
  std::optional<SwitchTable> table_;
  std::unique_ptr<RankTeam> team_;
};

struct Outcome {
  std::vector<double> losses, norms, masters;
};

/// Five steps of ten samples; sample s of step n goes to a graph at random.
Outcome outcomeOf(const std::vector<std::string> &strategies,
                  plan::ElementType compute, unsigned seed,
                  const Carriage &carriage = {}) {
  Steps steps(strategies, compute, carriage);
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
    EXPECT_LT(distance(alone.losses, several.losses), 1e-10);
    EXPECT_LT(distance(alone.norms, several.norms), 1e-10);
    EXPECT_LT(distance(alone.masters, several.masters), 1e-10);
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

//===----------------------------------------------------------------------===//
// P12 to P14
//===----------------------------------------------------------------------===//

using plan::Instruction;

class StepRulesTest : public testing::Test {
protected:
  static Steps &steps() {
    static Steps steps({"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
                       plan::F64);
    return steps;
  }
  static const MiniBatch &batch() {
    static const MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12}, 1);
    return batch;
  }
  static plan::StepPlan good() {
    return *steps().plan(batch(), {0, 1, 2, 1, 0, 2});
  }
  static std::string refusal(plan::StepPlan step) {
    return steps().prove(std::move(step), batch()).status().message();
  }
  static std::vector<Instruction> &program(plan::StepPlan &step, int phase,
                                           int rank) {
    return step.phases[phase].plan.ranks[rank].instructions;
  }
  /// The place of the first instruction of a kind.
  static size_t find(const std::vector<Instruction> &program,
                     Instruction::Op op) {
    size_t at = 0;
    while (at < program.size() && program[at].op != op)
      ++at;
    EXPECT_LT(at, program.size());
    return at;
  }
  static void move(std::vector<Instruction> &program, size_t from, size_t to) {
    const Instruction i = program[from];
    program.erase(program.begin() + static_cast<long>(from));
    program.insert(program.begin() + static_cast<long>(to), i);
  }
};

TEST_F(StepRulesTest, WhatIsPlannedIsRight) { EXPECT_EQ(refusal(good()), ""); }

TEST_F(StepRulesTest, PhasesAreOfGraphsOfTheRun) {
  plan::StepPlan step = good();
  std::swap(step.phases[1], step.phases[2]);
  EXPECT_THAT(refusal(step), HasSubstr("the last phase is not for 'dp=2"));
  step = good();
  step.phases.pop_back();
  EXPECT_THAT(refusal(step), HasSubstr("(P12)"));
  step = good();
  step.phases[1].plan.graph = step.phases[0].plan.graph;
  EXPECT_THAT(refusal(step), HasSubstr("phase 1 is for strategy 'dp=1,tp=2"));
  step.phases[1].plan.graph = "dp=7";
  EXPECT_THAT(refusal(step), HasSubstr("which is none of this run's (P12)"));
}

TEST_F(StepRulesTest, EverySampleIsInOnePhase) {
  plan::StepPlan step = good();
  step.phases[0].samples[0] = 1;
  EXPECT_THAT(refusal(step),
              HasSubstr("sample 1 is in phase 0 and in phase 1 (P12)"));
  step.phases[0].samples[0] = 6;
  EXPECT_THAT(refusal(step), HasSubstr("names sample 6 of 6 (P12)"));
  step = good();
  step.phases[2].samples.pop_back();
  EXPECT_THAT(refusal(step), HasSubstr("sample 5 is in no phase (P12)"));
}

TEST_F(StepRulesTest, AllCountTheSameTargets) {
  plan::StepPlan step = good();
  step.phases[1].plan.targetTokens -= 1;
  EXPECT_THAT(refusal(step), HasSubstr("phase 1: plan: counts"));
}

TEST_F(StepRulesTest, OnlyHomeGathersAndUpdates) {
  plan::StepPlan step = good();
  std::vector<Instruction> &first = program(step, 0, 0);
  Instruction update;
  update.op = Instruction::UPDATE;
  first.insert(first.begin() + static_cast<long>(find(
                                   first, Instruction::SWITCH_GRADS_START)),
               update);
  EXPECT_THAT(refusal(step), HasSubstr("only home updates parameters (P12)"));
}

TEST_F(StepRulesTest, PlansThatAreNoPhasesHaveNoSwitches) {
  plan::StepPlan step = good();
  plan::Plan &plan = step.phases[0].plan;
  plan.targetTokens = 1;
  std::vector<int64_t> lengths;
  for (int64_t s : step.phases[0].samples)
    lengths.push_back(batch().lengths()[s]);
  EXPECT_THAT(
      verifyPlan(steps().graph(0), plan, lengths, {maxBlockBytes}).message(),
      HasSubstr("(P12)"));
}

/// None is there for nothing.
TEST_F(StepRulesTest, EverySwitchInstructionIsNeededOnce) {
  const plan::StepPlan right = good();
  int tried = 0;
  for (int k = 0; k < right.phaseCount(); ++k)
    for (int rank = 0; rank < 2; ++rank) {
      const auto &all = right.phases[k].plan.ranks[rank].instructions;
      for (size_t at = 0; at < all.size(); ++at) {
        if (!exchangeOf(all[at].op).isSwitch())
          continue;
        ++tried;
        plan::StepPlan step = right;
        auto &own = program(step, k, rank);
        own.erase(own.begin() + static_cast<long>(at));
        EXPECT_NE(refusal(step), "") << describeInstruction(all[at]);
        step = right;
        auto &twice = program(step, k, rank);
        twice.insert(twice.begin() + static_cast<long>(at), all[at]);
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"))
            << describeInstruction(all[at]);
        step = right;
        program(step, k, rank)[at].bucket += 1000;
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"));
        program(step, k, rank)[at] = all[at];
        program(step, k, rank)[at].phase += 1;
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"));
      }
    }
  EXPECT_GT(tried, 100);
}

TEST_F(StepRulesTest, StartsHaveOneOrderOutsideOfPhases) {
  plan::StepPlan step = good();
  auto &first = program(step, 0, 0);
  size_t at = find(first, Instruction::SWITCH_START);
  std::swap(first[at], first[at + 1]);
  EXPECT_THAT(refusal(step),
              HasSubstr("all ranks start them in one order (P13)"));
  step = good();
  auto &second = program(step, 0, 0);
  at = find(second, Instruction::SWITCH_GRADS_START);
  move(second, at, at - 1);
  EXPECT_THAT(refusal(step),
              testing::AnyOf(HasSubstr("(P13)"), HasSubstr("(P14)")));
  step = good();
  auto &third = program(step, 0, 0);
  move(third, 0, find(third, Instruction::LOAD));
  EXPECT_THAT(refusal(step),
              HasSubstr("what the first phase reads is fetched at its start"));
}

TEST_F(StepRulesTest, NothingOfAPhaseStandsBehindTheStartsAtItsEnd) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  // What the next phase reads, fetched before the last instruction of this one.
  size_t start = own.size();
  while (own[start - 1].op == Instruction::SWITCH_START)
    --start;
  ASSERT_LT(start, own.size());
  size_t body = start;
  while (exchangeOf(own[body - 1].op).isSwitch())
    --body;
  move(own, start, body - 1);
  EXPECT_THAT(refusal(step),
              HasSubstr("stands behind the first start of a switch"));
}

/// Or one rank waits for gradients that the other sends when it has got values,
/// and that one for these.
TEST_F(StepRulesTest, GradientsLeaveBeforeTheNextValuesCome) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  const size_t gradients = find(own, Instruction::SWITCH_GRADS_START);
  size_t values = gradients;
  while (own[values].op != Instruction::SWITCH_START)
    ++values;
  move(own, values, gradients);
  EXPECT_THAT(refusal(step),
              HasSubstr("gradients leave before what the next phase reads"));
}

TEST_F(StepRulesTest, ValuesGoOnOnceTheyHaveCome) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  // The last wait of this phase's own values, put behind all starts.
  size_t wait = own.size() - 1;
  while (own[wait].op != Instruction::SWITCH_WAIT)
    --wait;
  const Instruction late = own[wait];
  own.erase(own.begin() + static_cast<long>(wait));
  own.push_back(late);
  EXPECT_THAT(refusal(step), HasSubstr("not waited for"));
}

TEST_F(StepRulesTest, AllPhasesTrainOrAllEvaluate) {
  plan::StepPlan step = good();
  PlanOptions options;
  options.maxTokensPerMicroBatch = 24;
  std::vector<int64_t> lengths;
  for (int64_t s : step.phases[1].samples)
    lengths.push_back(batch().lengths()[s]);
  step.phases[1].plan =
      *Planner(steps().graph(1)).evaluation(lengths, batch().targets, options);
  EXPECT_THAT(refusal(step), HasSubstr("trains, but phase 1 evaluates (P12)"));
}

TEST_F(StepRulesTest, EveryPhaseFitsTheRegion) {
  auto proven = VerifiedStep::prove(steps().table(), good(), batch().lengths(),
                                    batch().targets, {64, 64});
  EXPECT_THAT(proven.status().message(), HasSubstr("but the limit is 64 (P8)"));
}

TEST_F(StepRulesTest, LayersRunWhenTheirParametersHaveCome) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  move(own, find(own, Instruction::SWITCH_WAIT),
       find(own, Instruction::FORWARD));
  EXPECT_THAT(refusal(step), HasSubstr("which is not waited for yet (P13)"));
}

TEST_F(StepRulesTest, GradientsLeaveReduced) {
  plan::StepPlan step = good();
  // Those of two tensor-parallel ranks with sp: parts of a sum.
  auto &own = program(step, 0, 0);
  size_t last = own.size();
  while (own[--last].op != Instruction::REDUCE_GRADS_WAIT)
    ;
  const size_t start = find(own, Instruction::SWITCH_GRADS_START);
  ASSERT_LT(last, start);
  move(own, last, start);
  EXPECT_THAT(refusal(step),
              testing::AnyOf(HasSubstr("(P13)"), HasSubstr("(P14)")));
}

TEST_F(StepRulesTest, GradientsAreBackBeforeHomeReadsThem) {
  plan::StepPlan step = good();
  auto &own = program(step, 2, 0);
  size_t wait = find(own, Instruction::SWITCH_GRADS_WAIT);
  size_t reduce = find(own, Instruction::REDUCE_GRADS_START);
  ASSERT_LT(wait, reduce);
  for (; wait < reduce && own[wait].op == Instruction::SWITCH_GRADS_WAIT;
       --reduce)
    move(own, wait, reduce);
  EXPECT_THAT(refusal(step), HasSubstr("which is not waited for yet (P14)"));
}

/// In narrow types sums of another order differ, and Adam amplifies it: the
/// tolerance is that of TwoGraphsTest.
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
