//===- TinyRun.h - Running the tiny model in tests --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYRUN_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYRUN_H

#include "runtime/abi/Random.h"
#include "runtime/executor/open/OpenProgram.h"
#include "runtime/executor/run/Executor.h"
#include "runtime/executor/step/Staging.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/device/TestDevice.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/executor/WholeParts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dyna {

#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    Status status = (expression);                                              \
    EXPECT_TRUE(status.isOk()) << status.message();                            \
  } while (false)

/// A mini-batch with samples of these lengths; every fifth target is ignored.
inline MiniBatch tinyBatch(const std::vector<int64_t> &lengths,
                           uint64_t seed = 1) {
  MiniBatch batch;
  uint64_t counter = seed * 1000003;
  for (int64_t length : lengths) {
    Sample sample;
    sample.id = static_cast<int64_t>(seed * 100 + batch.samples.size());
    for (int64_t i = 0; i < length; ++i) {
      sample.tokens.push_back(dyna_mix64(++counter) % tinyVocabulary);
      bool ignored = dyna_mix64(++counter) % 5 == 0 && i > 0;
      sample.targets.push_back(
          ignored
              ? ignoreTarget
              : static_cast<int32_t>(dyna_mix64(++counter) % tinyVocabulary));
      batch.targets += !ignored;
    }
    batch.tokens += length;
    batch.samples.push_back(std::move(sample));
  }
  return batch;
}

inline std::vector<int64_t> lengthsOf(const MiniBatch &batch) {
  std::vector<int64_t> lengths;
  for (const Sample &sample : batch.samples)
    lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
  return lengths;
}

/// Verifies a plan of a run with one graph, whose ranks have `dynamicLimit` bytes each.
inline StatusOr<VerifiedStep> proveAlone(const ExecutableGraph &graph,
                                         const plan::Plan &plan,
                                         const MiniBatch &batch,
                                         int64_t dynamicLimit = maxBlockBytes) {
  return VerifiedStep::prove(SwitchTable::ofOne(graph), stepOf(plan),
                             batch.lengths(), countTargets(batch),
                             std::vector<int64_t>(graph.ranks(), dynamicLimit));
}

/// Verifies a plan and runs it: `runner` is an executor or a team, where others
/// learn of a plan that is refused.
template <typename Runner>
Status runPlan(Runner &runner, const ExecutableGraph &graph,
               const plan::Plan &plan, const MiniBatch &batch,
               const StepScalars &scalars, StepResult &result,
               int64_t dynamicLimit = maxBlockBytes) {
  auto proven = proveAlone(graph, plan, batch, dynamicLimit);
  return proven.isOk() ? runner.run(*proven, batch, scalars, result)
                       : proven.status();
}

/// Program, device and executor of one training run.
class TinyRun {
public:
  explicit TinyRun(const PlanOptions &options, const TinyOptions &tiny = {},
                   bool checkMemory = false)
      : tiny(tiny), options(options) {
    auto opened = openProgram(this->tiny.program());
    if (!opened.isOk()) {
      ADD_FAILURE() << opened.status().message();
      return;
    }
    model = std::make_unique<Model>(std::move(*opened));
    graph = std::make_unique<ExecutableGraph>(
        *ExecutableGraph::create(*model, Strategy()));
    auto variant = chooseVariant(this->tiny.program(), "", 0);
    auto bytes = Planner(*graph).largestDynamicBytes(options, true);
    if (!variant.isOk() || !bytes.isOk()) {
      ADD_FAILURE() << "no variant or size";
      return;
    }
    this->options.dynamicLimits = *bytes;
    ExecutorOptions executorOptions;
    executorOptions.seed = 7;
    executorOptions.dynamicBytes = bytes->front();
    executorOptions.checkMemory = checkMemory;
    executorOptions.trace = &trace;
    auto made =
        Executor::create({{graph.get()}}, **variant, *device, executorOptions);
    if (!made.isOk()) {
      ADD_FAILURE() << made.status().message();
      return;
    }
    executor = std::move(*made);
    initializeParameters();
  }

  void initializeParameters() {
    for (int p = 0; p < model->parameters(); ++p) {
      std::vector<double> values(model->elements(p));
      uint64_t key = dyna_parameter_key(3, model->parameter(p).name().c_str());
      for (size_t i = 0; i < values.size(); ++i) {
        double u, v;
        dyna_parameter_uniforms(key, i, &u, &v);
        values[i] = model->parameter(p).normal_std() * (2 * v - 1);
      }
      write(p, values);
    }
    MiniBatch none;
    StepResult result;
    EXPECT_OK(
        runPlan(*executor, *graph, *Planner(*graph).cast(), none, {}, result));
  }

  void write(int p, const std::vector<double> &values) {
    if (model->masterType() == plan::F64) {
      EXPECT_OK(
          writePart(executor->seat(), p, ParameterPart::Master, values.data()));
      return;
    }
    std::vector<float> narrow(values.begin(), values.end());
    EXPECT_OK(
        writePart(executor->seat(), p, ParameterPart::Master, narrow.data()));
  }

  std::vector<double> read(int p, ParameterPart part = ParameterPart::Master) {
    if (model->masterType() == plan::F64) {
      std::vector<double> values(model->elements(p));
      EXPECT_OK(readPart(executor->seat(), p, part, values.data()));
      return values;
    }
    std::vector<float> narrow(model->elements(p));
    EXPECT_OK(readPart(executor->seat(), p, part, narrow.data()));
    return std::vector<double>(narrow.begin(), narrow.end());
  }

  std::vector<double> readAll(ParameterPart part = ParameterPart::Master) {
    std::vector<double> all;
    for (int p = 0; p < model->parameters(); ++p) {
      std::vector<double> one = read(p, part);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  static StepScalars scalars(int64_t step, double clip = 0) {
    StepScalars s;
    s.step = step;
    s.clip = clip;
    s.optimizer.learning_rate = 0.01;
    s.optimizer.beta1 = 0.9;
    s.optimizer.beta2 = 0.95;
    s.optimizer.epsilon = 1e-8;
    s.optimizer.weight_decay = 0.1;
    s.optimizer.correction1 = 1 - std::pow(0.9, step + 1);
    s.optimizer.correction2 = 1 - std::pow(0.95, step + 1);
    return s;
  }

  Status step(int64_t index, const MiniBatch &batch, StepResult &result,
              double clip = 0) {
    auto plan =
        Planner(*graph).training(batch.lengths(), batch.targets, options);
    if (!plan.isOk())
      return plan.status();
    lastPlan = *plan;
    return run(*plan, batch, scalars(index, clip), result);
  }

  /// Proves a plan within this run's memory first.
  Status run(const plan::Plan &plan, const MiniBatch &batch,
             const StepScalars &scalars, StepResult &result) {
    return runPlan(*executor, *graph, plan, batch, scalars, result,
                   options.dynamicLimits.front());
  }

  /// Losses of `steps` steps on different mini-batches.
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    for (int s = 0; s < steps; ++s) {
      MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, s + 1);
      StepResult result;
      EXPECT_OK(step(s, batch, result, 1.0));
      losses.push_back(result.lossSum / batch.targets);
    }
    return losses;
  }

  TinyProgram tiny;
  PlanOptions options;
  std::unique_ptr<Model> model;
  std::unique_ptr<ExecutableGraph> graph;
  const std::unique_ptr<Device> device = makeTestDevice();
  TraceRecorder trace;
  std::unique_ptr<Executor> executor;
  plan::Plan lastPlan;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYRUN_H
