//===- JoinPhasesTest.cpp - Every pair of graphs can be joined ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What joinPhases makes is proven, whatever the two graphs, the buckets, and the
// micro-batches are: the starts of switches lie where all their ranks can be at
// one time, also beside instructions that start several things at once.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"

#include <random>

using namespace dyna;

namespace {

const std::vector<std::vector<std::string>> strategies = {
    {"dp=4", "dp=2,tp=2,sp=1", "dp=2,tp=2,sp=1,zero=1",
     "tp=2,pp=2,sp=1,layers=2+3", "tp=2,pp=2,sp=1,layers=4+1",
     "tp=2,pp=2,sp=1,zero=1,layers=2+3,order=tp+pp+dp", "pp=4,layers=1+1+2+1",
     "tp=4,sp=1", "dp=2,pp=2,layers=3+2,zero=1"},
    {"dp=2,tp=2,pp=2,sp=1,layers=2+3", "tp=4,pp=2,sp=1,layers=2+3",
     "dp=2,tp=4,sp=1", "tp=2,pp=4,sp=1,layers=1+1+2+1", "dp=8,zero=1",
     "dp=2,tp=2,pp=2,layers=3+2"},
    {"dp=2,tp=2,pp=4,sp=1,layers=1+1+2+1",
     "dp=2,tp=2,pp=4,sp=1,zero=1,layers=1+1+2+1,order=tp+pp+dp",
     "dp=4,tp=2,pp=2,sp=1,zero=1,layers=2+3",
     "dp=2,tp=4,pp=2,sp=1,layers=2+3,order=pp+tp+dp",
     "dp=2,tp=4,pp=2,sp=1,zero=1,layers=3+2", "dp=16,zero=1",
     "tp=4,pp=4,sp=1,layers=1+1+2+1",
     "dp=4,pp=4,layers=2+1+1+1,order=pp+dp+tp"},
    {"dp=3,tp=2,pp=2,sp=1,layers=2+3",
     "dp=3,tp=2,pp=2,sp=1,zero=1,layers=2+3,order=tp+pp+dp",
     "dp=2,tp=2,pp=3,sp=1,layers=2+1+2", "dp=3,pp=4,zero=1,layers=1+1+1+2",
     "dp=12,zero=1", "dp=2,tp=3,pp=2,layers=2+3"}};

/// Planners of some strategies, for which nothing is run.
struct Joined {
  explicit Joined(const std::vector<std::string> &all)
      : program(tinyOptions(plan::F64)),
        model(*openProgram(program.program())) {
    for (const std::string &text : all)
      planners.push_back(std::make_unique<Planner>(
          *ExecutableGraph::create(model, *parseStrategy(text))));
  }

  /// Of a step whose `samples` first samples go to one graph, and one to another.
  Status prove(const SwitchTable &table, int first, int home, int samples) {
    std::vector<int64_t> lengths;
    for (int s = 0; s <= samples; ++s)
      lengths.push_back(5 + s % 7);
    const MiniBatch batch = tinyBatch(lengths, 1);
    plan::StepPlan step;
    for (int k = 0; k < 2; ++k) {
      plan::Phase &phase = step.phases.emplace_back();
      for (int s = k ? samples : 0; s < samples + k; ++s)
        phase.samples.push_back(s);
      PlanOptions options;
      options.maxTokensPerMicroBatch = 24;
      options.switched = k == 0;
      std::vector<int64_t> own;
      for (int64_t s : phase.samples)
        own.push_back(lengths[static_cast<size_t>(s)]);
      DYNA_ASSIGN_OR_RETURN(phase.plan, planners[k ? home : first]->training(
                                            own, batch.targets, options));
    }
    DYNA_RETURN_IF_ERROR(joinPhases(table, true, step));
    DYNA_RETURN_IF_ERROR(placePhases(table, {}, step));
    return VerifiedStep::prove(table, std::move(step), lengths, batch.targets,
                               {})
        .status();
  }

  TinyProgram program;
  Model model;
  std::vector<std::unique_ptr<Planner>> planners;
};

/// What goes straight, dealt to buckets of a few transfers of any tensors.
SwitchTable::Make shuffled(int ranks, unsigned seed) {
  return [=](const std::vector<SwitchTensor> &tensors) -> StatusOr<SwitchPlan> {
    SwitchNetwork network;
    network.ranks = network.ranksPerNode = ranks;
    network.insideRate = network.betweenRate = 1e9;
    DYNA_ASSIGN_OR_RETURN(SwitchPlan direct, planSwitch(tensors, network));
    std::mt19937 random(seed);
    SwitchPlan made;
    std::vector<SwitchTransfer> all;
    for (const SwitchBucket &bucket : direct.buckets) {
      if (bucket.after >= 0)
        return Status::invalidArgument("a way with a detour");
      all.insert(all.end(), bucket.transfers.begin(), bucket.transfers.end());
    }
    std::shuffle(all.begin(), all.end(), random);
    for (const SwitchTransfer &t : all) {
      if (made.buckets.empty() || random() % 3 == 0)
        made.buckets.emplace_back();
      made.buckets.back().transfers.push_back(t);
    }
    return made;
  };
}

/// Joins every pair of graphs by switches of `make(ranks, variant)`, for steps of so
/// many samples; returns how many there were.
template <typename Variant>
int joinEveryPair(SwitchTable::Make (*make)(int, Variant),
                  std::initializer_list<Variant> variants,
                  std::initializer_list<int> samples) {
  int tried = 0;
  for (const auto &all : strategies) {
    Joined joined(all);
    const int count = static_cast<int>(all.size());
    for (int first = 0; first < count; ++first)
      for (int home = 0; home < count; ++home)
        for (Variant variant : variants) {
          if (first == home)
            continue;
          SCOPED_TRACE(all[first] + " -> " + all[home] + ", " +
                       std::to_string(variant));
          const int ranks = joined.planners[home]->graph().ranks();
          auto table = SwitchTable::create({&joined.planners[first]->graph(),
                                            &joined.planners[home]->graph()},
                                           1, make(ranks, variant));
          if (!table.isOk())
            continue; // the same, by two names, or ways with detours
          for (int some : samples) {
            EXPECT_OK(joined.prove(*table, first, home, some));
            ++tried;
          }
        }
  }
  return tried;
}

TEST(JoinPhasesTest, AnyBucketsAreJoined) {
  EXPECT_GT(joinEveryPair<unsigned>(shuffled, {0, 1}, {1, 5}), 300);
}

/// Each layer waits for what brings its own parameters, and for no more: the first
/// ones run while values of the others still come.
TEST(JoinPhasesTest, LayersWaitForTheirOwnValuesOnly) {
  Joined joined({"dp=2,tp=2", "dp=4,zero=1", "tp=4"});
  auto graph = [&](int g) { return &joined.planners[g]->graph(); };
  const MiniBatch batch = tinyBatch({5, 6, 7, 8, 9, 10}, 1);
  for (int first : {0, 2}) {
    auto table = SwitchTable::create({graph(first), graph(1)}, 1, planNaively);
    ASSERT_TRUE(table.isOk()) << table.status().message();
    plan::StepPlan step;
    step.phases.resize(2);
    for (int k = 0; k < 2; ++k) {
      PlanOptions options;
      options.maxTokensPerMicroBatch = 24;
      options.switched = k == 0;
      auto plan = joined.planners[k ? 1 : first]->training(
          {5, 6, 7}, batch.targets, options);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      step.phases[k].plan = std::move(*plan);
    }
    EXPECT_OK(joinPhases(*table, true, step));
    const GraphSwitch &values = table->values(-1, 0);
    for (int rank = 0; rank < 4; ++rank) {
      const RankView &view = graph(first)->replicaView(rank);
      const auto &arrivals = values.sides[rank].arrivals;
      int layers = 0, layersBeforeTheLastWait = 0;
      std::vector<bool> waited(values.buckets(), false);
      std::vector<int> sinceLayer; // buckets
      for (const auto &i : step.phases[0].plan.ranks[rank].instructions) {
        if (i.op == plan::Instruction::SWITCH_WAIT) {
          EXPECT_FALSE(waited[i.bucket]);
          waited[i.bucket] = true;
          sinceLayer.push_back(i.bucket);
          layersBeforeTheLastWait = layers;
        }
        if (!isPerMicroBatch(i.op) || roleOf(i) < 0)
          continue;
        ++layers;
        std::vector<int> own;
        for (int p : view.layer(i.layer).parameters())
          own.insert(own.end(), arrivals[p].begin(), arrivals[p].end());
        for (int bucket : own)
          EXPECT_TRUE(waited[bucket]) << "layer " << i.layer;
        for (int bucket : sinceLayer)
          EXPECT_NE(std::find(own.begin(), own.end(), bucket), own.end())
              << "layer " << i.layer << " waits for bucket " << bucket;
        sinceLayer.clear();
      }
      EXPECT_GT(layersBeforeTheLastWait, 2) << "rank " << rank;
    }
  }
}

TEST(JoinPhasesTest, EveryPairOfGraphsIsJoined) {
  EXPECT_GT(joinEveryPair<int64_t>(onNodes, {64, 1024, 1 << 20}, {1, 3, 12}),
            800);
}

} // namespace
