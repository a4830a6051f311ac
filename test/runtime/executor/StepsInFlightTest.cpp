//===- StepsInFlightTest.cpp - Steps launched before others are read ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the driver's stand-in, for several orders of its streams. Without one of the
// waits, or with one of the things that are there for each step in flight only
// once, some seed gives other numbers, or work has been waited for.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/LateTiny.h"
#include "test/runtime/executor/TinyRun.h"

#include "runtime/device/cuda/driver/Library.h"
#include "runtime/executor/step/Staging.h"
#include "test/Patience.h"
#include "test/runtime/base/TraceNesting.h"
#include "test/runtime/executor/WholeParts.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>

#include <dlfcn.h>

using namespace dyna;
using testing::AllOf;
using testing::HasSubstr;

namespace {

template <typename F> F *standin(const char *function) {
  void *library = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);
  EXPECT_NE(library, nullptr);
  return reinterpret_cast<F *>(dlsym(library, function));
}
int64_t workGiven() { return standin<int64_t()>("dyna_standin_given")(); }
int64_t workWaiting() { return standin<int64_t()>("dyna_standin_waiting")(); }
int64_t pageable() { return standin<int64_t()>("dyna_standin_pageable")(); }
int64_t live() { return standin<int64_t()>("dyna_standin_live")(); }

using Numbers = std::vector<double>;

/// What steps leave.
struct Outcome {
  std::vector<Numbers> losses;
  Numbers norms;
  Numbers masters, firstMoments, secondMoments, gradients;

  void add(const StepResult &result) {
    losses.push_back(result.microBatchLosses);
    norms.push_back(result.gradientNorm);
  }
};

void expectSame(const Numbers &given, const Numbers &wanted, const char *what) {
  ASSERT_EQ(given.size(), wanted.size()) << what;
  for (size_t i = 0; i < given.size(); ++i)
    ASSERT_TRUE(given[i] == wanted[i] ||
                (std::isnan(given[i]) && std::isnan(wanted[i])))
        << what << ", number " << i << ": " << given[i] << " instead of "
        << wanted[i];
}

void expectSame(const Outcome &given, const Outcome &wanted) {
  ASSERT_EQ(given.losses.size(), wanted.losses.size());
  for (size_t step = 0; step < given.losses.size(); ++step)
    expectSame(given.losses[step], wanted.losses[step], "losses");
  expectSame(given.norms, wanted.norms, "norms");
  expectSame(given.masters, wanted.masters, "masters");
  expectSame(given.firstMoments, wanted.firstMoments, "first moments");
  expectSame(given.secondMoments, wanted.secondMoments, "second moments");
  expectSame(given.gradients, wanted.gradients, "gradients");
}

PlanOptions options() {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 20;
  options.inFlight = 2;
  return options;
}

bool isStopping = false;

/// The tiny model, with the parameters that it begins with, on a late device.
class LateRun {
public:
  explicit LateRun(bool traces = false,
                   std::chrono::seconds patience = kPatience)
      : host_(options()) {
    CudaOptions cuda;
    cuda.threads = 1;
    device = std::move(*CudaDevice::create(cuda));
    late_ = std::make_unique<LateTiny>(host_.tiny, *device);
    EXPECT_OK(late_->status());
    ExecutorOptions made;
    made.seed = 7;
    made.dynamicBytes = host_.options.dynamicLimits.front();
    made.patience = patience;
    made.trace = traces ? &trace : nullptr;
    made.stops = [] { return isStopping; };
    executor = std::move(*Executor::create({{host_.graph.get()}},
                                           late_->variant(), *device, made));
    for (int p = 0; p < host_.model->parameters(); ++p)
      EXPECT_OK(writePart(executor->seat(), p, ParameterPart::Master,
                          host_.read(p).data()));
  }

  /// Of another length each, which needs more memory for copies and results; steps
  /// 2 and 4 are the same one.
  static MiniBatch batch(int step) {
    if (step == 2 || step == 4)
      return tinyBatch({7}, 30);
    std::vector<int64_t> lengths = {5, 1, 17, 9};
    for (int i = 0; i < step; ++i)
      lengths.push_back(3 + 2 * i);
    return tinyBatch(lengths, step + 1);
  }
  /// That of lost losses, of which no other micro-batch has as many.
  static int64_t lostTargets() { return countTargets(batch(2)); }

  Status launch(int step, int64_t skipsLeft = INT64_MAX) {
    return launch(step, batch(step), skipsLeft);
  }
  Status launch(int step, MiniBatch given, int64_t skipsLeft = INT64_MAX) {
    const MiniBatch &batch = batches_.emplace_back(std::move(given));
    plan::Plan plan =
        *Planner(*host_.graph)
             .training(batch.lengths(), batch.targets, host_.options);
    auto proven = proveAlone(*host_.graph, plan, batch,
                             host_.options.dynamicLimits.front());
    if (!proven.isOk())
      return proven.status();
    plans_.push_back(std::move(*proven));
    StepScalars scalars = TinyRun::scalars(step, /*clip=*/1.0);
    scalars.skipsLeft = skipsLeft;
    return executor->launch(plans_.back(), batch, scalars);
  }

  /// What micro-batches of a step bring, each copy by itself.
  int64_t uploadedBytes(const MiniBatch &batch) {
    plan::Plan plan =
        *Planner(*host_.graph)
             .training(batch.lengths(), batch.targets, host_.options);
    int64_t bytes = 0;
    for (const plan::MicroBatch &microBatch : plan.microBatches) {
      Staging staging =
          std::move(*stage(*host_.model, microBatch, BundlePart(),
                           stepOf(plan).phases[0].samples, batch));
      bytes +=
          dyna_align_block(static_cast<int64_t>(4 * staging.tokens.size()));
      bytes += dyna_align_block(static_cast<int64_t>(staging.batch.size()));
    }
    return bytes;
  }

  Status finish(Outcome &outcome) {
    StepResult result;
    DYNA_RETURN_IF_ERROR(executor->finish(result));
    outcome.add(result);
    return Status::ok();
  }

  Outcome oneByOne(int steps, int64_t skipsLeft = INT64_MAX) {
    Outcome outcome;
    for (int step = 0; step < steps; ++step) {
      EXPECT_OK(launch(step, skipsLeft));
      EXPECT_OK(finish(outcome));
      if (!std::isfinite(outcome.norms.back()))
        --skipsLeft;
    }
    read(outcome);
    return outcome;
  }

  /// One is launched before the one before is read; ends with the first failure,
  /// told as a loop tells it: what was launched before comes first.
  Status inFlight(int steps, Outcome &outcome, int64_t skipsLeft = INT64_MAX) {
    for (int step = 0; step < steps; ++step) {
      Status launched = launch(step, skipsLeft);
      if (step > 0)
        DYNA_RETURN_IF_ERROR(finish(outcome));
      DYNA_RETURN_IF_ERROR(launched);
    }
    DYNA_RETURN_IF_ERROR(finish(outcome));
    read(outcome);
    return Status::ok();
  }

  void read(Outcome &outcome) {
    for (auto [part, all] :
         {std::pair(ParameterPart::Master, &outcome.masters),
          {ParameterPart::FirstMoment, &outcome.firstMoments},
          {ParameterPart::SecondMoment, &outcome.secondMoments},
          {ParameterPart::Gradient, &outcome.gradients}})
      for (int p = 0; p < host_.model->parameters(); ++p) {
        Numbers values(host_.model->elements(p));
        EXPECT_OK(readPart(executor->seat(), p, part, values.data()));
        all->insert(all->end(), values.begin(), values.end());
      }
  }

private:
  TinyRun host_;

public:
  TraceRecorder trace;
  std::unique_ptr<CudaDevice> device;

private:
  std::unique_ptr<LateTiny> late_;

public:
  std::unique_ptr<Executor> executor;

private:
  std::deque<MiniBatch> batches_;
  std::deque<VerifiedStep> plans_;
};

constexpr int kSteps = 6;

class StepsInFlight : public testing::Test {
protected:
  StepsInFlight() {
    settings.set(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda");
  }
  void TearDown() override {
    tinyFault = TinyFault();
    isStopping = false;
    standin<void()>("dyna_standin_reset")();
  }
  void loseLosses() {
    tinyFault = {TinyFault::Kind::LoseLoss, -1, -1, LateRun::lostTargets()};
  }

  standins::Settings settings;
};

/// One order of streams each.
class StepsInFlightOrder : public StepsInFlight,
                           public testing::WithParamInterface<int> {
protected:
  StepsInFlightOrder() { settings.set("DYNA_STANDIN_SEED", GetParam()); }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Seeds, StepsInFlightOrder, testing::Range(0, 12));

TEST_P(StepsInFlightOrder, AreAsOneByOne) {
  const Outcome wanted = LateRun().oneByOne(kSteps);
  EXPECT_GT(wanted.losses.back().size(), wanted.losses.front().size());
  Outcome given;
  LateRun run;
  EXPECT_OK(run.inFlight(kSteps, given));
  expectSame(given, wanted);
}

TEST_P(StepsInFlightOrder, AStepThatIsDroppedChangesNothing) {
  const Outcome wanted = LateRun().oneByOne(2);
  LateRun run;
  Outcome given;
  EXPECT_OK(run.launch(0));
  EXPECT_OK(run.launch(1));
  EXPECT_OK(run.finish(given));
  isStopping = true;
  EXPECT_OK(run.launch(2));
  EXPECT_OK(run.finish(given));
  StepResult result;
  EXPECT_OK(run.executor->finish(result));
  EXPECT_TRUE(result.isDropped);
  run.read(given);
  expectSame(given, wanted);
}

// The host's numbers, so that this is about something.
TEST_F(StepsInFlight, AreTheHosts) {
  const Outcome given = LateRun().oneByOne(kSteps);
  TinyRun host(options());
  Outcome wanted;
  for (int step = 0; step < kSteps; ++step) {
    StepResult result;
    EXPECT_OK(host.step(step, LateRun::batch(step), result, 1.0));
    wanted.add(result);
  }
  wanted.masters = host.readAll();
  expectSame(given.losses.back(), wanted.losses.back(), "losses");
  expectSame(given.norms, wanted.norms, "norms");
  expectSame(given.masters, wanted.masters, "masters");
}

// The device has the next step when one is read, and nobody waits for that one:
// neither who launches it nor who reads the one before.
TEST_F(StepsInFlight, TheDeviceIsNeverWithoutWork) {
  LateRun run;
  Outcome outcome;
  // Until there is memory for all of a step.
  EXPECT_OK(run.inFlight(kSteps, outcome));
  EXPECT_EQ(workWaiting(), 0);
  EXPECT_OK(run.launch(1));
  // But that the host says how many steps may be passed over.
  const int64_t step = workWaiting() - 1;
  EXPECT_GT(step, 0);
  for (int again = 0; again < 3; ++again) {
    EXPECT_OK(run.launch(1));
    EXPECT_EQ(workWaiting(), 2 * step + (again == 0)) << "launching has waited";
    EXPECT_OK(run.finish(outcome));
    EXPECT_EQ(workWaiting(), step) << "the next step was waited for";
  }
  EXPECT_OK(run.finish(outcome));
  EXPECT_EQ(workWaiting(), 0);
}

// The first step that needs more than those before comes while one is in flight:
// what they have is kept for them, and freed when there is no work to wait for.
TEST_F(StepsInFlight, MemoryThatIsOutgrownIsNotWaitedFor) {
  auto batch = [](int step) {
    return tinyBatch(std::vector<int64_t>(size_t(1) << (2 * step), 7), step);
  };
  Outcome wanted, given;
  {
    LateRun run;
    for (int step = 0; step < 4; ++step) {
      EXPECT_OK(run.launch(step, batch(step)));
      EXPECT_OK(run.finish(wanted));
    }
    run.read(wanted);
  }
  LateRun run;
  for (int step = 0; step < 4; ++step) {
    const int64_t waiting = workWaiting(), before = workGiven();
    const int64_t waited = pageable();
    EXPECT_OK(run.launch(step, batch(step)));
    EXPECT_GE(workWaiting() - waiting, workGiven() - before) << step;
    if (step > 0)
      EXPECT_OK(run.finish(given));
    // Mini-batches come, and results go, by page-locked memory.
    EXPECT_EQ(pageable(), waited) << step;
  }
  const int64_t buffers = live();
  EXPECT_OK(run.finish(given));
  EXPECT_EQ(workWaiting(), 0);
  EXPECT_LT(live(), buffers);
  run.read(given);
  expectSame(given, wanted);
}

// With a step in flight all the time, memory is what the largest steps need, within
// the factor by which it grows, and no run of steps, however they vary, takes more.
TEST_F(StepsInFlight, MemoryForUploadsIsUsedAgain) {
  LateRun run;
  Outcome outcome;
  const int64_t free = run.device->freeBytes();
  int64_t largest = 0, before = 0, after = 0;
  int step = 0;
  auto train = [&](size_t samples) {
    const MiniBatch batch = tinyBatch(std::vector<int64_t>(samples, 7), step);
    largest = std::max(largest, run.uploadedBytes(batch));
    EXPECT_OK(run.launch(step, batch));
    if (step++ > 0)
      EXPECT_OK(run.finish(outcome));
  };
  for (size_t samples : {1, 2, 5, 11, 13, 29, 30, 61, 62, 63})
    train(samples);
  before = run.device->freeBytes();
  EXPECT_GT(largest, 40 * 62 * 7);
  EXPECT_LE(free - before, kStepsInFlight * 2 * largest);
  for (int again = 0; again < 3; ++again)
    for (size_t samples : {63, 3, 50, 1, 62})
      train(samples);
  after = run.device->freeBytes();
  EXPECT_EQ(before, after);
  EXPECT_OK(run.finish(outcome));
}

TEST_F(StepsInFlight, NoMoreThanTwo) {
  LateRun run;
  Outcome outcome;
  EXPECT_EQ(run.finish(outcome).code(), StatusCode::Internal);
  EXPECT_OK(run.launch(0));
  EXPECT_OK(run.launch(1));
  EXPECT_EQ(run.launch(2).message(), "2 steps are in flight: read one first");
  EXPECT_OK(run.finish(outcome));
  EXPECT_OK(run.launch(2));
  EXPECT_OK(run.finish(outcome));
  EXPECT_OK(run.finish(outcome));
  EXPECT_EQ(run.finish(outcome).code(), StatusCode::Internal);
}

//===----------------------------------------------------------------------===//
// Steps that are not finite
//===----------------------------------------------------------------------===//

// Steps 2 and 4 lose a loss. What may be passed over is passed over, and behind one
// too many, of which the host learns late, nothing changes.
TEST_P(StepsInFlightOrder, NothingChangesBehindOneLossTooMany) {
  loseLosses();
  for (auto [skips, last] : {std::pair(0, 2), {1, 4}, {2, kSteps}}) {
    SCOPED_TRACE(skips);
    const Outcome wanted = LateRun().oneByOne(last);
    Outcome given;
    LateRun run;
    EXPECT_OK(run.inFlight(kSteps, given, skips));
    expectSame(given.masters, wanted.masters, "masters");
    expectSame(given.firstMoments, wanted.firstMoments, "first moments");
    expectSame(given.secondMoments, wanted.secondMoments, "second moments");
    expectSame(given.gradients, Numbers(given.gradients.size()), "gradients");
    EXPECT_TRUE(std::isnan(given.norms[2]));
    EXPECT_TRUE(std::isfinite(given.norms[3]));
    EXPECT_TRUE(std::isnan(given.norms[4]));
  }
}

// With nothing in flight the host says how many, whatever the device has counted.
TEST_F(StepsInFlight, TheHostSaysHowManyAreLeft) {
  loseLosses();
  LateRun run;
  Outcome outcome, before, behind;
  EXPECT_OK(run.launch(2, 0));
  EXPECT_OK(run.finish(outcome));
  run.read(before);
  EXPECT_OK(run.launch(3, 0));
  EXPECT_OK(run.finish(outcome));
  run.read(behind);
  EXPECT_NE(before.masters, behind.masters);
  EXPECT_OK(run.launch(2, 0));
  EXPECT_OK(run.finish(outcome));
  EXPECT_OK(run.launch(3, -1));
  EXPECT_OK(run.finish(outcome));
  before = {};
  run.read(before);
  EXPECT_EQ(before.masters, behind.masters);
}

//===----------------------------------------------------------------------===//
// Failures and times
//===----------------------------------------------------------------------===//

// Whatever work of whatever step fails, and whenever that is seen: steps before it
// are read, and the failure names the step. Uploads alone may run before the step
// before is done, which is named then.
TEST_P(StepsInFlightOrder, AFaultNamesItsStep) {
  std::vector<int64_t> ends;
  Outcome wanted;
  {
    LateRun run;
    ends.push_back(workGiven());
    for (int step = 0; step < 3; ++step) {
      EXPECT_OK(run.launch(step));
      ends.push_back(workGiven());
      if (step > 0)
        EXPECT_OK(run.finish(wanted));
    }
    EXPECT_OK(run.finish(wanted));
  }
  const int64_t stride = 1 + (ends[3] - ends[0]) / 40;
  int exact = 0, early = 0;
  for (int64_t number = ends[0] + 1; number <= ends[3]; number += stride) {
    SCOPED_TRACE(number);
    settings.set("DYNA_STANDIN_FAULT", number);
    size_t step = 0;
    while (number > ends[step + 1])
      ++step;
    Outcome given;
    Status failed = LateRun().inFlight(3, given);
    ASSERT_FALSE(failed.isOk());
    const size_t read = given.losses.size();
    ASSERT_TRUE(read == step || read + 1 == step) << read << " of " << step;
    (read == step ? exact : early) += 1;
    EXPECT_THAT(failed.message(),
                HasSubstr("step " + std::to_string(read + 1)));
    EXPECT_THAT(failed.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    for (size_t i = 0; i < read; ++i)
      expectSame(given.losses[i], wanted.losses[i], "losses");
    standin<void()>("dyna_standin_reset")();
  }
  EXPECT_GT(exact, 9 * early);
  if (GetParam() == 0)
    EXPECT_EQ(early, 0);
}

// A copy that fails may have come in parts, of which one that is missing is enough.
TEST_F(StepsInFlight, ResultsThatCameInPartsAreNone) {
  int64_t end = 0;
  {
    LateRun run;
    EXPECT_OK(run.launch(0));
    end = workGiven();
    Outcome outcome;
    EXPECT_OK(run.finish(outcome));
  }
  settings.set("DYNA_STANDIN_FAULT", end);
  LateRun run;
  Outcome outcome;
  EXPECT_OK(run.launch(0));
  EXPECT_OK(run.launch(1));
  EXPECT_THAT(run.finish(outcome).message(),
              AllOf(HasSubstr("step 1: "), HasSubstr("ILLEGAL_ADDRESS")));
}

// No step follows that would tell of it.
TEST_F(StepsInFlight, AFaultBehindTheLastStepIsTold) {
  int64_t given = 0;
  for (bool faults : {false, true}) {
    if (faults)
      settings.set("DYNA_STANDIN_FAULT", given);
    LateRun run;
    Outcome outcome;
    EXPECT_OK(run.launch(0));
    run.read(outcome); // thus all of the step is done
    EXPECT_EQ(workWaiting(), 0);
    const auto soon = patienceEnds();
    Stream &stream = run.device->stream(CudaStreamRole::Compute);
    auto buffer = std::move(*run.device->allocate(8));
    EXPECT_OK(run.device->fill(stream, *buffer, 0, 8, 0));
    given = workGiven();
    EXPECT_EQ(run.device->synchronize(stream, soon).isOk(), !faults);
    const Status finished = run.finish(outcome);
    EXPECT_EQ(finished.isOk(), !faults);
    if (faults)
      EXPECT_THAT(finished.message(),
                  AllOf(HasSubstr("step 1: "), HasSubstr("ILLEGAL_ADDRESS")));
    buffer.reset();
    standin<void()>("dyna_standin_reset")();
  }
}

TEST_F(StepsInFlight, AHangNamesItsStep) {
  int64_t end = 0;
  const auto begin = std::chrono::steady_clock::now();
  {
    LateRun run;
    EXPECT_OK(run.launch(0));
    end = workGiven();
    Outcome outcome;
    EXPECT_OK(run.finish(outcome));
  }
  settings.set("DYNA_STANDIN_HANG", end + 20);
  // Far longer than the first step takes.
  const auto patience = std::chrono::ceil<std::chrono::seconds>(
      20 * (std::chrono::steady_clock::now() - begin));
  LateRun run(/*traces=*/false, patience);
  Outcome outcome;
  EXPECT_OK(run.launch(0));
  EXPECT_OK(run.launch(1));
  EXPECT_OK(run.finish(outcome));
  EXPECT_THAT(run.finish(outcome).message(),
              AllOf(HasSubstr("step 2: "), HasSubstr("by its deadline")));
}

// A trace shows steps as they ran, one behind the other.
TEST_P(StepsInFlightOrder, TracesShowWhenStepsRan) {
  LateRun run(/*traces=*/true);
  Outcome outcome;
  EXPECT_OK(run.inFlight(kSteps, outcome));
  double end = 0;
  int64_t step = -1, pauses = 0;
  ASSERT_FALSE(run.trace.slices().empty());
  for (const TraceSlice &slice : run.trace.slices()) {
    // The stand-in's clock counts pieces of work as milliseconds.
    const double pieces = slice.seconds() * 1e3;
    EXPECT_NEAR(pieces, std::round(pieces), 1e-3);
    EXPECT_GE(pieces, 0.5);
    if (slice.step == step) {
      EXPECT_EQ(slice.beginSeconds, end) << slice.name;
    } else if (step >= 0) {
      // Between steps are the copies and marks around them, and uploads.
      EXPECT_GE(slice.beginSeconds, end);
      EXPECT_LE(slice.beginSeconds, end + 0.1);
      ++pauses;
    }
    step = slice.step;
    end = slice.endSeconds;
  }
  EXPECT_EQ(pauses, kSteps - 1);
  EXPECT_EQ(droppedSlices(run.trace.toJson()), "");
}
