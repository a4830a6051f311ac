//===- StrategyRun.h - The tiny model under a strategy, in tests -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trains it on one rank, and on ranks that are threads.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_STRATEGYRUN_H
#define DYNA_TEST_RUNTIME_EXECUTOR_STRATEGYRUN_H

#include "runtime/base/text/JsonReader.h"
#include "runtime/data/Padding.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/Patience.h"
#include "test/runtime/base/TraceNesting.h"
#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/executor/WholeParts.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <random>

namespace dyna::test {

struct StrategyCase {
  std::string strategy;
  Schedule schedule = Schedule::OneForwardOneBackward;
  plan::Recompute recompute = plan::RECOMPUTE_NONE;
  bool splitBackward = false;
  plan::ElementType compute = plan::F64;
  std::vector<int64_t> lengths = {5, 1, 17, 9, 3, 12, 1, 8};
  bool nestedTie = false;
  /// Not 0: instructions are moved about at random, as far as the verifier
  /// allows.
  uint64_t shuffle = 0;
  plan::ElementType gradients = plan::ELEMENT_UNKNOWN;
  Batching batching = allBatchings().front();
  int steps = 3;
  bool (*stops)() = nullptr; ///< ExecutorOptions'
  /// TinyOptions'; with them every hidden size is the width.
  std::vector<std::array<int, 3>> shares = {};
  std::string slices = "none"; ///< text for `parseSlices`
};

inline void PrintTo(const StrategyCase &test, std::ostream *out) {
  *out << test.strategy << " " << ruleOf(test.schedule).name << " recompute "
       << test.recompute << (test.splitBackward ? " split" : "")
       << (test.compute == plan::BF16 ? " bf16" : "");
  if (test.gradients == plan::BF16)
    *out << " bf16 gradients";
  if (test.batching != allBatchings().front())
    *out << " " << ruleOf(test.batching).name;
  if (test.shuffle)
    *out << " shuffle " << test.shuffle;
  if (test.slices != "none")
    *out << " slices " << test.slices;
  for (const auto &[w1, b1, w2] : test.shares)
    *out << " (" << w1 << " " << b1 << " " << w2 << ")";
}

/// What a training run leaves: losses, gradient norms, every parameter.
struct Outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> parameters;
};

inline PlanOptions planOptions(const StrategyCase &test) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 17;
  options.inFlight = 2;
  options.schedule = test.schedule;
  options.batching = test.batching;
  options.recompute = {test.recompute};
  options.splitBackward = test.splitBackward;
  options.slices = *parseSlices(test.slices);
  return options;
}

inline TinyOptions tinyOptions(const StrategyCase &test) {
  TinyOptions tiny;
  tiny.compute = test.compute;
  tiny.nestedTie = test.nestedTie;
  tiny.gradients = test.gradients;
  tiny.shares = test.shares;
  if (!tiny.shares.empty())
    tiny.hidden = tinyWidth;
  return tiny;
}

/// Rows as `packed` promises them, made here once more: samples in their order, each
/// behind those of the first row that has room.
inline MiniBatch packedByHand(const MiniBatch &batch, size_t most) {
  MiniBatch rows = batch;
  rows.samples.clear();
  for (const Sample &sample : batch.samples) {
    auto row = std::find_if(
        rows.samples.begin(), rows.samples.end(), [&](const Sample &other) {
          return other.tokens.size() + sample.tokens.size() <= most;
        });
    if (row == rows.samples.end()) {
      rows.samples.push_back(sample);
      continue;
    }
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      row->tokens.push_back(sample.tokens[i]);
      row->targets.push_back(sample.targets[i]);
    }
  }
  return rows;
}

inline Outcome runOneRank(const StrategyCase &test) {
  PlanOptions options = planOptions(test);
  options.schedule = Schedule::GPipe;
  options.batching = Batching::Tokens;
  options.slices = {};
  TinyRun run(options, tinyOptions(test));
  Outcome outcome;
  for (int s = 0; s < test.steps; ++s) {
    MiniBatch batch = tinyBatch(test.lengths, s + 1);
    if (test.batching == Batching::Packed)
      batch = packedByHand(batch, options.maxTokensPerMicroBatch);
    StepResult result;
    EXPECT_OK(run.step(s, batch, result, 1.0));
    outcome.losses.push_back(result.lossSum);
    outcome.norms.push_back(result.gradientNorm);
  }
  for (int p = 0; p < run.model->parameters(); ++p)
    outcome.parameters.push_back(run.read(p));
  return outcome;
}

/// The initial values of TinyRun, by parameter.
inline std::vector<std::vector<double>> initialValues(const Model &model) {
  std::vector<std::vector<double>> values;
  for (int p = 0; p < model.parameters(); ++p) {
    std::vector<double> one(model.elements(p));
    uint64_t key = dyna_parameter_key(3, model.parameter(p).name().c_str());
    for (size_t i = 0; i < one.size(); ++i) {
      double u, v;
      dyna_parameter_uniforms(key, i, &u, &v);
      one[i] = model.parameter(p).normal_std() * (2 * v - 1);
    }
    values.push_back(one);
  }
  return values;
}

/// Tries `moves` moves of single instructions and keeps those that the verifier
/// accepts; returns how many.
inline int shufflePlan(const ExecutableGraph &graph, plan::Plan &plan,
                       const std::vector<int64_t> &lengths, uint64_t seed,
                       int moves) {
  std::mt19937_64 random(seed);
  int accepted = 0;
  for (int move = 0; move < moves; ++move) {
    plan::RankProgram &program = plan.ranks[random() % plan.ranks.size()];
    int count = program.count();
    int from = static_cast<int>(random() % count);
    int to =
        std::clamp(from + static_cast<int>(random() % 17) - 8, 0, count - 1);
    plan::RankProgram before = program;
    auto &list = program.instructions;
    for (int at = from; at != to; at += from < to ? 1 : -1)
      std::swap(list[at], list[at + (from < to ? 1 : -1)]);
    if (from != to && verifyPlan(graph, plan, lengths, {}).isOk())
      ++accepted;
    else
      program = std::move(before);
  }
  return accepted;
}

/// One rank of a strategy.
class StrategyRank {
public:
  StrategyRank(const StrategyCase &test, const TinyProgram &program,
               const Planner &planner, Transport &transport)
      : test_(test), planner_(planner), graph_(planner.graph()),
        transport_(transport), program_(program) {}

  Status create(int64_t dynamicBytes) {
    auto variant = chooseVariant(program_.program(), "", 0);
    if (!variant.isOk())
      return variant.status();
    ExecutorOptions options;
    options.seed = 7;
    options.dynamicBytes = dynamicBytes;
    options.checkMemory = true;
    options.trace = &trace;
    options.transport = &transport_;
    options.host = &host_;
    options.stops = test_.stops;
    options.turns = turns;
    options.clock = clock;
    options.sharesLayerTimes = clock != nullptr;
    auto made = Executor::create({{&graph_}}, **variant, *device_, options);
    if (!made.isOk())
      return made.status();
    executor_ = std::move(*made);
    return Status::ok();
  }

  Status initialize() {
    auto values = initialValues(graph_.model());
    for (int p = 0; p < view().parameters(); ++p)
      if (view().holds(p))
        DYNA_RETURN_IF_ERROR(write(p, values[p]));
    auto cast = planner_.cast();
    MiniBatch none;
    StepResult result;
    return runPlan(*executor_, graph_, *cast, none, {}, result);
  }

  Status train(Outcome &outcome) {
    for (int s = 0; s < test_.steps; ++s) {
      MiniBatch batch = tinyBatch(test_.lengths, s + 1);
      PlanOptions options = planOptions(test_);
      options.dynamicLimits = limits;
      joinSamples(batch,
                  joinedSamples(graph_.model(), batch.lengths(), options));
      auto plan = planner_.training(batch.lengths(), batch.targets, options);
      if (!plan.isOk())
        return plan.status();
      if (test_.shuffle)
        EXPECT_GT(
            shufflePlan(graph_, *plan, batch.lengths(), test_.shuffle + s, 300),
            5);
      StepResult result;
      DYNA_RETURN_IF_ERROR(runPlan(*executor_, graph_, *plan, batch,
                                   TinyRun::scalars(s, 1.0), result));
      if (result.isDropped)
        break;
      outcome.losses.push_back(result.lossSum);
      outcome.norms.push_back(result.gradientNorm);
      expectUses(*plan, result.uses);
    }
    return Status::ok();
  }

  /// All ranks know what the plan took of each.
  void expectUses(const plan::Plan &plan, const std::vector<RankUse> &uses) {
    ASSERT_EQ(uses.size(), plan.ranks.size());
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      EXPECT_EQ(uses[rank].peakBytes,
                persistentLayout(graph_.rankView(rank)).bytes +
                    plan.ranks[rank].dynamicBytes);
      EXPECT_GT(uses[rank].busySeconds, 0);
    }
  }

  /// This rank's rows of the masters.
  Status readInto(std::vector<std::vector<double>> &parameters,
                  std::vector<std::vector<int>> &times) {
    for (int p = 0; p < view().parameters(); ++p) {
      if (!view().holds(p))
        continue;
      // Without a copy the master has all rows, with ZeRO fresh ones only here.
      int64_t width = view().rowElements(p);
      RowRange rows = seat().partRows(p, ParameterPart::Master);
      std::vector<double> values;
      DYNA_RETURN_IF_ERROR(read(p, values));
      const RankPart::Parameter &own = view().place(p);
      for (int64_t i = own.updateBegin * width; i < own.updateEnd * width;
           ++i) {
        double value = values[i - rows.begin * width];
        if (times[p][i]++ > 0)
          EXPECT_EQ(parameters[p][i], value) << p << " " << i;
        parameters[p][i] = value;
      }
    }
    return Status::ok();
  }

  TraceRecorder trace;
  std::vector<int64_t> limits; ///< of plans, by rank
  double (*clock)() = nullptr; ///< of layer functions, whose times are shared
  std::deque<DeviceTurns> *turns = nullptr; ///< ExecutorOptions'
  GraphSeat &seat() { return executor_->seat(); }
  const RankView &view() { return seat().view(); }
  Executor &executor() { return *executor_; }

private:
  template <typename T> Status writeAs(int p, const std::vector<double> &all) {
    int64_t width = view().rowElements(p);
    RowRange rows = seat().partRows(p, ParameterPart::Master);
    std::vector<T> own(all.begin() + rows.begin * width,
                       all.begin() + rows.end * width);
    return writePart(seat(), p, ParameterPart::Master, own.data());
  }
  Status write(int p, const std::vector<double> &all) {
    return view().masterType() == plan::F64 ? writeAs<double>(p, all)
                                            : writeAs<float>(p, all);
  }
  template <typename T> Status readAs(int p, std::vector<double> &values) {
    std::vector<T> own(seat().partBytes(p, ParameterPart::Master) / sizeof(T));
    DYNA_RETURN_IF_ERROR(
        readPart(seat(), p, ParameterPart::Master, own.data()));
    values.assign(own.begin(), own.end());
    return Status::ok();
  }
  Status read(int p, std::vector<double> &values) {
    return view().masterType() == plan::F64 ? readAs<double>(p, values)
                                            : readAs<float>(p, values);
  }

  const StrategyCase &test_;
  const Planner &planner_;
  const ExecutableGraph &graph_;
  Transport &transport_;
  HostExchange host_{transport_};
  const TinyProgram &program_;
  const std::unique_ptr<Device> device_ = makeTestDevice();
  std::unique_ptr<Executor> executor_;
};

inline StatusOr<Planner> makePlanner(const Model &model,
                                     const std::string &strategy) {
  auto parsed = parseStrategy(strategy);
  if (!parsed.isOk())
    return parsed.status();
  auto graph = ExecutableGraph::create(model, *parsed);
  if (!graph.isOk())
    return graph.status();
  return Planner(std::move(*graph));
}

/// An instruction is of a layer in the trace if it is of one in the plan.
inline void expectLayersOfInstructions(const TraceRecorder &trace) {
  auto json = parseJson(trace.toJson());
  ASSERT_TRUE(json.isOk());
  std::map<std::string, bool> hasLayer;
  for (int number = 1; number <= plan::Instruction::Op_MAX; ++number) {
    auto op = static_cast<plan::Instruction::Op>(number);
    hasLayer[instructionName(op)] = namesLayer(op);
  }
  for (const JsonValue &event : json->find("traceEvents")->items) {
    auto known = hasLayer.find(event.find("name")->text);
    if (known == hasLayer.end())
      continue; // an exchange within one
    EXPECT_EQ(event.find("args")->find("layer") != nullptr, known->second)
        << known->first;
    EXPECT_EQ(event.find("cat")->text == "step", !known->second)
        << known->first;
  }
}

/// Ends of arrows, "s" and "f", by their ids: of all ranks together.
using Arrows = std::map<int64_t, std::vector<std::string>>;
inline void addArrows(const TraceRecorder &trace, Arrows &arrows) {
  auto json = parseJson(trace.toJson());
  ASSERT_TRUE(json.isOk());
  for (const JsonValue &event : json->find("traceEvents")->items)
    if (event.find("name")->text == "message")
      arrows[*event.find("id")->integer].push_back(event.find("ph")->text);
}

inline Outcome runStrategy(const StrategyCase &test) {
  Outcome outcome;
  Arrows arrows;
  TinyProgram program(tinyOptions(test));
  Model model = *openProgram(program.program());
  auto planner = makePlanner(model, test.strategy);
  if (!planner.isOk()) {
    ADD_FAILURE() << planner.status().message();
    return outcome;
  }
  auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  EXPECT_TRUE(bytes.isOk());
  std::vector<std::vector<int>> times;
  for (int p = 0; p < model.parameters(); ++p) {
    outcome.parameters.emplace_back(model.elements(p));
    times.emplace_back(model.elements(p));
  }
  std::mutex mutex;
  std::deque<DeviceTurns> turns;
  for (int rank = 0; rank < planner->graph().ranks(); ++rank)
    turns.emplace_back();
  Status ran = runRanks(planner->graph().ranks(), [&](Transport &transport) {
    transport.setTimeout(kPatience);
    StrategyRank rank(test, program, *planner, transport);
    rank.limits = *bytes;
    rank.turns = &turns;
    DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
    DYNA_RETURN_IF_ERROR(rank.initialize());
    Outcome own;
    DYNA_RETURN_IF_ERROR(rank.train(own));
    std::lock_guard<std::mutex> lock(mutex);
    expectLayersOfInstructions(rank.trace);
    addArrows(rank.trace, arrows);
    EXPECT_EQ(droppedSlices(rank.trace.toJson()), "");
    if (outcome.losses.empty()) {
      outcome.losses = own.losses;
      outcome.norms = own.norms;
    }
    // Every rank sees the same losses and norms.
    EXPECT_EQ(outcome.losses, own.losses);
    EXPECT_EQ(outcome.norms, own.norms);
    return rank.readInto(outcome.parameters, times);
  });
  EXPECT_OK(ran);
  // Every message starts on one rank and is received on another.
  if (!outcome.losses.empty()) // a step that is dropped may have none
    EXPECT_EQ(arrows.empty(), planner->graph().stages() == 1);
  for (const auto &arrow : arrows)
    EXPECT_THAT(arrow.second, testing::UnorderedElementsAre("s", "f"));
  for (const std::vector<int> &counts : times)
    EXPECT_THAT(counts, testing::Each(testing::Ge(1)));
  return outcome;
}

/// max|a-b| <= relative * max(max|a|, 0.01).
inline void expectNear(const std::vector<double> &a,
                       const std::vector<double> &b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0.01, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  EXPECT_LE(difference, relative * largest);
}

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_EXECUTOR_STRATEGYRUN_H
