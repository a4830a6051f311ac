//===- PlanAheadTest.cpp - Order, limits and ends of planning ahead -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanAhead.h"

#include "runtime/base/file/Files.h"
#include "runtime/plan/program/PlanFile.h"
#include "test/Patience.h"
#include "test/runtime/base/TemporaryFiles.h"
#include "test/runtime/executor/TinyRun.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>

using namespace dyna;

namespace {

constexpr int64_t threadCounts[] = {1, 2, 4};

/// Reads numbers, at most one at a time.
class Numbers {
public:
  StatusOr<PlannedStep> operator()() {
    EXPECT_FALSE(isReading_.exchange(true)) << "two threads read";
    PlannedStep step;
    step.batch.samples.resize(1);
    step.step = step.cursor.samples = count_++;
    isReading_ = false;
    return step;
  }
  int64_t count() const { return count_; }

private:
  std::atomic<bool> isReading_{false};
  std::atomic<int64_t> count_{0};
};

Status nothing(PlannedStep &) { return Status::ok(); }

TEST(PlanAheadTest, StepsComeInOrderAndNoneTooMany) {
  for (int64_t threads : threadCounts)
    for (int64_t ahead : {0, 1, 3, 64}) {
      std::atomic<int64_t> made{0}, taken{0};
      std::atomic<bool> tooFar{false};
      Numbers numbers;
      {
        PlanAhead plans(
            [&] {
              // Those that wait or are made, and the one that was taken last.
              if (numbers.count() + 1 - taken > ahead + 1)
                tooFar = true;
              return numbers();
            },
            [&](PlannedStep &step) {
              // Later ones are ready before earlier ones.
              if (step.step % 3 == 0)
                std::this_thread::yield();
              step.planSeconds = 1;
              ++made;
              return Status::ok();
            },
            {ahead, threads, 100});
        for (int64_t i = 0; i < 100; ++i) {
          StatusOr<PlannedStep> step = plans.next();
          ++taken;
          ASSERT_TRUE(step.isOk());
          EXPECT_EQ(step->cursor.samples, i);
        }
      }
      EXPECT_EQ(made, 100);
      EXPECT_EQ(numbers.count(), 100);
      EXPECT_FALSE(tooFar) << ahead;
    }
}

/// Waits until `condition` holds; false if it never does.
template <typename Condition> bool comesTrue(Condition condition) {
  const auto deadline = patienceEnds();
  while (!condition())
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    else
      std::this_thread::yield();
  return true;
}

// As many steps are planned at once as there are threads: each waits for the
// others.
TEST(PlanAheadTest, ThreadsPlanSideBySide) {
  for (int64_t threads : threadCounts) {
    Numbers numbers;
    std::atomic<int64_t> inside{0};
    PlanAhead plans([&] { return numbers(); },
                    [&](PlannedStep &) {
                      ++inside;
                      EXPECT_TRUE(comesTrue([&] { return inside >= threads; }));
                      return Status::ok();
                    },
                    {4, threads, 4});
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(plans.next()->step, i);
  }
}

// A plan takes half as long as a step: while one step runs, two are made, up to
// four ahead. Time is counted in permits to plan, so that no clock decides. Only
// the first step finds nothing ready.
TEST(PlanAheadTest, SlowPlansThatKeepUpAreNotWaitedFor) {
  for (int64_t threads : threadCounts) {
    constexpr int64_t steps = 50, ahead = 4;
    Numbers numbers;
    std::atomic<int64_t> permits{0}, made{0};
    PlanAhead plans([&] { return numbers(); },
                    [&](PlannedStep &step) {
                      EXPECT_TRUE(
                          comesTrue([&] { return permits > step.step; }));
                      ++made;
                      return Status::ok();
                    },
                    {ahead, threads, steps});
    permits = 1;
    for (int64_t step = 0; step < steps; ++step) {
      ASSERT_TRUE(plans.next().isOk());
      // The step runs: two plans' time goes by.
      permits = std::min(permits + 2, step + 1 + ahead);
      int64_t due = std::min<int64_t>(permits, steps);
      ASSERT_TRUE(comesTrue([&] { return made >= due; }));
      // What was made last is handed over after its maker returned.
      ASSERT_TRUE(
          comesTrue([&] { return step + 1 == steps || plans.isReady(); }));
    }
    EXPECT_LE(plans.waits(), 1);
  }
}

// Whoever has patience gets a plan that comes within it; one that does not come is
// not waited for any longer, and one that nobody makes not at all.
TEST(PlanAheadTest, PatienceIsForPlansThatAreBeingMade) {
  using std::chrono::milliseconds;
  constexpr milliseconds forever = kPatience;
  std::atomic<bool> isAllowed{false};
  Numbers numbers;
  auto read = [&] { return numbers(); };
  auto make = [&](PlannedStep &) {
    EXPECT_TRUE(comesTrue([&] { return isAllowed.load(); }));
    return Status::ok();
  };
  PlanAhead plans(read, make, {1, 1, 2});
  EXPECT_FALSE(plans.isReady());
  EXPECT_FALSE(plans.isReady(milliseconds(2)));
  isAllowed = true;
  EXPECT_TRUE(plans.isReady(forever));
  EXPECT_TRUE(plans.next().isOk());

  PlanAhead whenAsked(read, make, {0, 1, 2});
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(whenAsked.isReady(forever));
  // limit-is-tested: it does not wait at all.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, forever);
}

// Plans are functions of their mini-batches, whoever makes them.
TEST(PlanAheadTest, PlansHaveTheSameBytesWithAnyNumberOfThreads) {
  TinyProgram program;
  Model model = *openProgram(program.program());
  Planner planner(
      *ExecutableGraph::create(model, *parseStrategy("dp=2,pp=2,layers=2+3")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 24;
  options.schedule = Schedule::Adaptive;
  auto bytesOf = [&](int64_t ahead, int64_t threads) {
    Numbers numbers;
    PlanAhead plans(
        [&] {
          StatusOr<PlannedStep> step = numbers();
          std::vector<int64_t> lengths;
          for (uint64_t i = 0; i < 12; ++i)
            lengths.push_back(1 + dyna_mix64(100 * step->step + i) % 24);
          step->batch = tinyBatch(lengths, step->step + 1);
          return step;
        },
        [&](PlannedStep &step) -> Status {
          DYNA_ASSIGN_OR_RETURN(auto plan,
                                planner.training(step.batch.lengths(),
                                                 step.batch.targets, options));
          DYNA_ASSIGN_OR_RETURN(step.plan,
                                proveAlone(planner.graph(), plan, step.batch));
          return Status::ok();
        },
        {ahead, threads, 20});
    std::set<std::string> different;
    std::vector<std::string> bytes;
    for (int i = 0; i < 20; ++i) {
      StatusOr<PlannedStep> step = plans.next();
      EXPECT_TRUE(step.isOk()) << step.status().message();
      bytes.push_back(writePlan(step->plan->homePlan()));
      different.insert(bytes.back());
    }
    EXPECT_EQ(different.size(), 20u);
    return bytes;
  };
  std::vector<std::string> alone = bytesOf(0, 1);
  for (int64_t threads : threadCounts)
    EXPECT_EQ(bytesOf(4, threads), alone) << threads;
}

TEST(PlanAheadTest, AFailureComesAfterTheStepsBeforeIt) {
  for (int64_t threads : threadCounts)
    for (int64_t ahead : {0, 2, 10})
      for (bool reads : {false, true}) {
        Numbers numbers;
        std::atomic<bool> goesOn{false};
        PlanAhead plans(
            [&]() -> StatusOr<PlannedStep> {
              if (reads && numbers.count() == 5) {
                EXPECT_FALSE(goesOn.exchange(true)) << "read after the failure";
                return Status::invalidArgument("unreadable");
              }
              return numbers();
            },
            [&](PlannedStep &step) {
              return step.step == 5 ? Status::invalidArgument("unreadable")
                                    : Status::ok();
            },
            {ahead, threads, 100});
        for (int64_t i = 0; i < 5; ++i)
          ASSERT_TRUE(plans.next().isOk());
        EXPECT_EQ(plans.next().status().message(), "unreadable");
      }
}

TEST(PlanAheadTest, TheEndOfTheDataIsAStepWithoutAPlan) {
  for (int64_t threads : threadCounts) {
    Numbers numbers;
    std::atomic<int64_t> made{0};
    PlanAhead plans(
        [&]() -> StatusOr<PlannedStep> {
          return numbers.count() < 3 ? numbers() : PlannedStep();
        },
        [&](PlannedStep &) {
          ++made;
          return Status::ok();
        },
        {2, threads, 100});
    for (int64_t i = 0; i < 3; ++i)
      ASSERT_FALSE(plans.next()->batch.samples.empty());
    ASSERT_TRUE(plans.next()->batch.samples.empty());
    EXPECT_EQ(made, 3);
  }
}

TEST(PlanAheadTest, EndsWhileStepsWait) {
  for (int64_t threads : threadCounts) {
    Numbers numbers;
    {
      PlanAhead plans([&] { return numbers(); }, nothing,
                      {4, threads, 1000000});
      ASSERT_TRUE(plans.next().isOk());
    }
    EXPECT_LT(numbers.count(), 100);
  }
}

// What is thrown in a thread, or here without one, is the step's failure.
TEST(PlanAheadTest, ExceptionsAreFailures) {
  for (int64_t ahead : {0, 2})
    for (bool reads : {false, true}) {
      Numbers numbers;
      PlanAhead plans(
          [&]() -> StatusOr<PlannedStep> {
            if (reads)
              throw std::bad_alloc();
            return numbers();
          },
          [](PlannedStep &) -> Status { throw std::bad_alloc(); },
          {ahead, 2, 3});
      StatusOr<PlannedStep> step = plans.next();
      ASSERT_FALSE(step.isOk());
      EXPECT_EQ(step.status().code(), StatusCode::ResourceExhausted);
      EXPECT_EQ(step.status().message().rfind("out of memory", 0), 0u);
    }
}

// A thread that reads data meets a shortened file as any other thread does: with a
// failure that says so, not with the end of the process.
TEST(PlanAheadTest, AFileThatIsShortenedWhileItIsReadIsAFailure) {
  constexpr size_t bytes = 1 << 20; // many pages of any machine
  test::TemporaryDirectory dir;
  std::string path = dir.write("data", std::string(bytes, 'x'));
  StatusOr<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.isOk());
  std::filesystem::resize_file(path, 1);
  PlanAhead plans(
      [&]() -> StatusOr<PlannedStep> {
        EXPECT_EQ(file->bytes().back(), '\0');
        DYNA_RETURN_IF_ERROR(file->checkUnchanged());
        return PlannedStep();
      },
      nothing, {1, 1, 1});
  StatusOr<PlannedStep> step = plans.next();
  ASSERT_FALSE(step.isOk());
  EXPECT_NE(step.status().message().find("data has become shorter"),
            std::string::npos)
      << step.status().message();
}

} // namespace
