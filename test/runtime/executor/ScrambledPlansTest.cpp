//===- ScrambledPlansTest.cpp - What the verifier accepts, runs right -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The verifier's word is enough. Plans of 2 to 8 ranks are scrambled, the
// program of each rank by itself: instructions move, are left out or doubled,
// parts come from another legal plan of the same mini-batch, micro-batches of
// equal length change places, are evaluated, are recomputed otherwise. What the
// verifier still accepts must run to the end on a transport on which every start
// blocks, and compute what one rank computes.
//
// DYNA_SCRAMBLES says how many plans are scrambled, DYNA_SCRAMBLE_SEED names the
// first. Each ends as what the last accepted change made of it, which runs; with
// DYNA_SCRAMBLE_ALL=1 what every accepted change makes of it runs too.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/Scrambler.h"
#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/transport/RendezvousTransport.h"

#include "runtime/executor/run/RankTeam.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/Patience.h"
#include "test/runtime/executor/WholeParts.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace dyna {
/// Runs what the verifier refuses.
struct UnprovenStep {
  static VerifiedStep of(const ExecutableGraph &graph, const plan::Plan &plan,
                         const MiniBatch &batch) {
    const SwitchTable table = SwitchTable::ofOne(graph);
    const plan::StepPlan step = stepOf(plan);
    VerifiedStep made;
    made.lengths_ = batch.lengths();
    for (int rank = 0; rank < graph.ranks(); ++rank)
      made.blocks_.push_back(stepBlocks(table, {{}}, step, trains(step), rank));
    made.phases_.push_back({plan, step.phases[0].samples, made.lengths_, {}});
    return made;
  }
};
} // namespace dyna

namespace {

constexpr int64_t enough = INT64_C(1) << 22;
constexpr int steps = 2;

const char *const strategies[] = {
    "tp=2",
    "tp=2,sp=1",
    "tp=3",
    "tp=4,sp=1",
    "dp=2,tp=2,zero=1",
    "dp=2,tp=2,sp=1,zero=1",
    "dp=2,tp=3",
    "tp=2,pp=2,layers=2+3",
    "tp=2,sp=1,pp=2,layers=3+2,zero=1",
    "tp=2,pp=3,layers=2+1+2",
    "tp=4,pp=2,layers=2+3,sp=1",
    "dp=2,tp=2,pp=2,layers=2+3,zero=1",
    "dp=2,tp=2,pp=2,layers=3+2,zero=1,order=pp+tp+dp",
    "pp=2,layers=3+2,zero=1",
    "dp=2,pp=3,layers=1+2+2,zero=1",
    "dp=3",
};

int64_t numberFrom(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> parameters;
};

/// Ranks that are threads, with the initial values of every test.
class Ranks {
public:
  Ranks(const TinyProgram &program, const ExecutableGraph &graph,
        bool isRendezvous, bool checkMemory,
        Transport::Clock::duration patience)
      : graph_(graph) {
    auto variant = chooseVariant(program.program(), "", 0);
    std::vector<std::unique_ptr<Transport>> transports =
        makeThreadTransports(graph.ranks());
    std::vector<RankResources> ranks(graph.ranks());
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      ranks[rank].rank = rank;
      ranks[rank].device = makeTestDevice();
      ranks[rank].dynamicBytes = enough;
      if (graph.ranks() == 1)
        continue;
      ranks[rank].transport = std::move(transports[rank]);
      if (isRendezvous)
        ranks[rank].transport = std::make_unique<RendezvousTransport>(
            std::move(ranks[rank].transport));
      ranks[rank].transport->setTimeout(patience);
    }
    ExecutorOptions options;
    options.seed = 7;
    options.checkMemory = checkMemory;
    auto team =
        RankTeam::create({{&graph}}, **variant, std::move(ranks), options);
    team_ = std::move(*team);
    const Model &model = graph.model();
    for (int p = 0; p < model.parameters(); ++p) {
      std::vector<double> values(model.elements(p));
      uint64_t key = dyna_parameter_key(3, model.parameter(p).name().c_str());
      for (size_t i = 0; i < values.size(); ++i) {
        double u, v;
        dyna_parameter_uniforms(key, i, &u, &v);
        values[i] = model.parameter(p).normal_std() * (2 * v - 1);
      }
      EXPECT_OK(writePart(*team_, p, ParameterPart::Master, values.data()));
    }
  }

  /// The same plan for mini-batches of equal lengths.
  Status run(plan::Plan plan, const std::vector<MiniBatch> &batches,
             Outcome &outcome) {
    for (int s = 0; s < steps; ++s) {
      StepResult result;
      plan.targetTokens = batches[s].targets;
      DYNA_RETURN_IF_ERROR(runPlan(*team_, graph_, plan, batches[s],
                                   TinyRun::scalars(s, 1.0), result));
      outcome.losses.push_back(result.lossSum);
      outcome.norms.push_back(result.gradientNorm);
    }
    const Model &model = graph_.model();
    for (int p = 0; p < model.parameters(); ++p) {
      outcome.parameters.emplace_back(model.elements(p));
      DYNA_RETURN_IF_ERROR(readPart(*team_, p, ParameterPart::Master,
                                    outcome.parameters.back().data()));
    }
    return Status::ok();
  }

  /// A plan that the verifier refuses.
  Status runUnverified(const plan::Plan &plan, const MiniBatch &batch) {
    std::vector<Status> results(graph_.ranks());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      threads.emplace_back([&, rank] {
        StepResult result;
        results[rank] =
            team_->executor(rank).run(UnprovenStep::of(graph_, plan, batch),
                                      batch, TinyRun::scalars(0, 1.0), result);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const Status &result : results)
      if (!result.isOk() && result.code() != StatusCode::PeerFailed)
        return result;
    return Status::ok();
  }

private:
  const ExecutableGraph &graph_;
  std::unique_ptr<RankTeam> team_;
};

/// max|a-b| <= 1e-10 max(max|a|, 0.01).
bool isNear(const std::vector<double> &a, const std::vector<double> &b) {
  double largest = 0.01, difference = 0;
  for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return a.size() == b.size() && difference <= 1e-10 * largest;
}

bool isNear(const Outcome &a, const Outcome &b) {
  bool near = isNear(a.losses, b.losses) && isNear(a.norms, b.norms);
  for (size_t p = 0; p < a.parameters.size(); ++p)
    near = near && isNear(a.parameters[p], b.parameters[p]);
  return near;
}

PlanOptions randomOptions(Scrambler &random) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 12;
  const std::vector<Schedule> &schedules = allSchedules();
  options.schedule = schedules[random.below(schedules.size())];
  options.inFlight = 1 + random.below(4);
  options.recompute = {static_cast<plan::Recompute>(random.below(3))};
  options.splitBackward = random.below(2);
  return options;
}

//===----------------------------------------------------------------------===//
// The test
//===----------------------------------------------------------------------===//

struct Counts {
  int64_t tried = 0, accepted = 0, run = 0, untouched = 0, hanging = 0;
  int64_t differing = 0; ///< run, with programs of one stage that differ
};

class ScrambledPlansTest : public testing::Test {
protected:
  static TinyOptions tinyOptions(bool nestedTie) {
    TinyOptions options;
    options.hidden = 12;
    options.nestedTie = nestedTie;
    options.degrees = {{2, false}, {2, true}, {3, false}, {4, true}};
    return options;
  }

  void scramble(uint64_t seed) {
    const Case &one = cases[seed % 2];
    ExecutableGraph graph = *ExecutableGraph::create(
        *one.model,
        *parseStrategy(strategies[seed / 2 % std::size(strategies)]));
    Planner planner(graph);
    const plan::Plan none;
    Scrambler chooser(graph, none, seed);
    bool trains = chooser.below(8) > 0;
    auto planOf = [&](const PlanOptions &options) {
      return trains ? *planner.training(lengths, batches[0].targets, options)
                    : *planner.evaluation(lengths, batches[0].targets, options);
    };
    PlanOptions first = randomOptions(chooser), second = randomOptions(chooser);
    // Both have the same micro-batches: whole samples, or the same slices.
    first.slices.count = second.slices.count =
        seed % 3 == 1 ? 2 + static_cast<int64_t>(seed / 3 % 3) : 0;
    plan::Plan plan = planOf(first);
    plan::Plan other = planOf(second);
    VerifyOptions limits;
    limits.limits.assign(graph.ranks(), enough);
    limits.targets = batches[0].targets;
    for (plan::Plan *legal : {&plan, &other}) {
      Status status = verifyPlan(graph, *legal, lengths, limits);
      ASSERT_TRUE(status.isOk()) << status.message();
      ++counts.untouched;
    }
    Scrambler scrambler(graph, other, seed);
    bool apart = chooser.below(4) > 0;
    int hanging = 0;
    for (int change = 0; change < 40; ++change) {
      plan::Plan candidate = plan;
      for (int times = 1 + scrambler.below(2); times > 0; --times)
        scrambler.change(candidate);
      for (int rank = 0; apart && rank < graph.ranks(); ++rank)
        placeApart(graph, candidate, rank);
      ++counts.tried;
      Status status = verifyPlan(graph, candidate, lengths, limits);
      if (status.isOk()) {
        ++counts.accepted;
        plan = candidate;
        if (runsAll && !HasFailure())
          run(one, graph, plan, trains, seed + change);
      } else if (hanging == 0 && counts.hanging < 20 &&
                 status.message().find("wait for each other") !=
                     std::string::npos) {
        ++hanging;
        expectHang(one, graph, candidate);
      }
    }
    if (!runsAll)
      run(one, graph, plan, trains, seed);
  }

  struct Case {
    std::unique_ptr<TinyProgram> program;
    std::unique_ptr<Model> model;
    Outcome trained, evaluated;
  };

  void SetUp() override {
    for (int s = 0; s < steps; ++s)
      batches.push_back(tinyBatch(lengths, s + 1));
    for (Case &one : cases) {
      one.program =
          std::make_unique<TinyProgram>(tinyOptions(&one == &cases[1]));
      one.model = std::make_unique<Model>(*openProgram(one.program->program()));
      ExecutableGraph alone = *ExecutableGraph::create(*one.model, Strategy());
      Planner planner(alone);
      PlanOptions options;
      options.maxTokensPerMicroBatch = 12;
      for (bool trains : {false, true}) {
        auto plan =
            trains ? planner.training(lengths, batches[0].targets, options)
                   : planner.evaluation(lengths, batches[0].targets, options);
        EXPECT_OK(
            Ranks(*one.program, alone, false, true, patience)
                .run(*plan, batches, trains ? one.trained : one.evaluated));
      }
    }
  }

  void run(const Case &one, const ExecutableGraph &graph,
           const plan::Plan &plan, bool trains, uint64_t seed) {
    Outcome got;
    Status status =
        Ranks(*one.program, graph, seed % 3 != 0, seed % 5 == 0, patience)
            .run(plan, batches, got);
    EXPECT_TRUE(status.isOk()) << status.message();
    if (status.isOk())
      EXPECT_TRUE(isNear(trains ? one.trained : one.evaluated, got));
    ++counts.run;
    bool differs = false;
    for (int rank = 1; rank < graph.ranks(); ++rank)
      if (graph.placeOf(rank).shard > 0)
        differs |= !haveOneOrder(plan.ranks[rank - 1], plan.ranks[rank]);
    counts.differing += differs;
  }

  static bool haveOneOrder(const plan::RankProgram &a,
                           const plan::RankProgram &b) {
    bool same = a.count() == b.count();
    for (int i = 0; same && i < a.count(); ++i)
      same = a.instructions[i].op == b.instructions[i].op &&
             a.instructions[i].layer == b.instructions[i].layer &&
             a.instructions[i].microBatch == b.instructions[i].microBatch;
    return same;
  }

  /// P11 refuses no more than it must: the plan does not end.
  void expectHang(const Case &one, const ExecutableGraph &graph,
                  const plan::Plan &plan) {
    Status status =
        Ranks(*one.program, graph, true, false, std::chrono::milliseconds(500))
            .runUnverified(plan, batches[0]);
    EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded) << status.message();
    ++counts.hanging;
  }

  const std::vector<int64_t> lengths = std::vector<int64_t>(8, 6);
  static constexpr auto patience = kPatience;
  std::vector<MiniBatch> batches;
  Case cases[2];
  const bool runsAll = numberFrom("DYNA_SCRAMBLE_ALL", 0) != 0;
  Counts counts;
};

TEST_F(ScrambledPlansTest, RunAndComputeWhatOneRankComputes) {
  int64_t plans = numberFrom("DYNA_SCRAMBLES", 90);
  int64_t first = numberFrom("DYNA_SCRAMBLE_SEED", 0);
  for (int64_t seed = first; seed < first + plans && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    scramble(static_cast<uint64_t>(seed));
  }
  std::printf("%lld legal plans, %lld changes tried, %lld accepted, %lld plans "
              "run (%lld with ranks of one group in different orders), %lld "
              "refused ones seen to hang\n",
              static_cast<long long>(counts.untouched),
              static_cast<long long>(counts.tried),
              static_cast<long long>(counts.accepted),
              static_cast<long long>(counts.run),
              static_cast<long long>(counts.differing),
              static_cast<long long>(counts.hanging));
  if (plans < 90)
    return;
  EXPECT_EQ(counts.run, runsAll ? counts.accepted : plans);
  // A change in ten is harmless; most are not.
  EXPECT_GT(counts.accepted, counts.tried / 50);
  EXPECT_LT(counts.accepted, counts.tried / 2);
  EXPECT_GT(counts.differing, counts.run / 8);
  EXPECT_GT(counts.hanging, 0);
}

/// What the verifier counts on is what the functions do.
TEST_F(ScrambledPlansTest, AManifestThatSaysOtherwiseIsNoticed) {
  const std::function<void(plan::LayerKind::Role &)> lies[] = {
      [](auto &role) { role.mutable_exchanges()->RemoveLast(); },
      [](auto &role) { *role.add_exchanges() = role.exchanges(0); },
      [](auto &role) {
        role.mutable_exchanges(0)->mutable_tensors(0)->set_kind(
            plan::LayerExchange::ALL_REDUCE);
      },
      [](auto &role) {
        auto *bytes =
            role.mutable_exchanges(0)->mutable_tensors(0)->mutable_bytes();
        bytes->set_tq(bytes->tq() - 1);
      },
      [](auto &role) {
        role.mutable_exchanges(0)->mutable_tensors(0)->set_dealt_group(1);
      },
      [](auto &role) {
        *role.mutable_exchanges(0)->add_tensors() =
            role.exchanges(0).tensors(0);
      },
  };
  for (const auto &lie : lies) {
    plan::Manifest manifest = cases[0].model->manifest();
    lie(*manifest.mutable_degrees(1)->mutable_kinds(1)->mutable_roles(
        DYNA_ROLE_BACKWARD));
    Model model = *Model::create(manifest);
    ExecutableGraph graph =
        *ExecutableGraph::create(model, *parseStrategy("tp=2,sp=1"));
    PlanOptions options;
    options.maxTokensPerMicroBatch = 12;
    auto plan = Planner(graph).training(lengths, batches[0].targets, options);
    Outcome outcome;
    Status status = Ranks(*cases[0].program, graph, false, false, patience)
                        .run(*plan, batches, outcome);
    EXPECT_THAT(status.message(),
                testing::AllOf(HasSubstr("(BACKWARD layer 3"),
                               HasSubstr("by the manifest it is")));
  }
}

} // namespace
