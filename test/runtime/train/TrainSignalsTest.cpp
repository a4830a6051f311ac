//===- TrainSignalsTest.cpp - Signals that save and end a run -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFolder.h"
#include "test/runtime/train/TrainProgram.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainSignalsTest : public TrainProgram {
protected:
  /// A run that saves only when it is asked to.
  std::vector<std::string> saving(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments =
        training({"--steps=2000", "--schedule=constant", "--warmup=100",
                  "--save-every=0", "--save=" + path("m"),
                  "--metrics=" + path("m.jsonl")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  size_t lines() const {
    return fileExists(path("m.jsonl")) ? numbers("m.jsonl", "loss").size() : 0;
  }
  void awaitSteps(pid_t child, size_t steps) {
    waitFor(child, [&] { return lines() >= steps; });
  }
  void awaitDelivery(pid_t child, int signal) {
    while (isPending(child, signal))
      usleep(500);
  }
  /// The checkpoint is that of a run of so many steps, which no signal saw.
  void expectCheckpointOf(size_t steps) {
    std::string step = "step-" + std::to_string(steps);
    ASSERT_TRUE(fileExists(path("m/" + step)));
    fs::remove_all(folder_ / "whole");
    ASSERT_EQ(run(training({"--steps=" + std::to_string(steps), "--warmup=100",
                            "--schedule=constant", "--save=" + path("whole")}))
                  .code,
              0);
    expectSame("m/" + step, "whole/" + step);
  }
  void clear() {
    fs::remove_all(folder_ / "m");
    fs::remove(folder_ / "m.jsonl");
  }
};

TEST_F(TrainSignalsTest, EachKindSavesAndEnds) {
  for (int signal : {SIGHUP, SIGUSR2, SIGXCPU, SIGALRM}) {
    SCOPED_TRACE(signal);
    clear();
    pid_t child = start(saving(), {"TINY_SLEEP=2"});
    awaitSteps(child, 3);
    kill(child, signal);
    Result result = finish(child);
    EXPECT_EQ(result.code, 128 + signal) << result.err;
    EXPECT_THAT(result.out, HasSubstr("stopped by a signal after step "));
    expectCheckpointOf(lines());
  }
}

// Schedulers send it ahead of the end.
TEST_F(TrainSignalsTest, OneSavesAndGoesOn) {
  pid_t child = start(saving(), {"TINY_SLEEP=2"});
  awaitSteps(child, 3);
  kill(child, SIGUSR1);
  auto saved = [&]() -> int64_t {
    if (fileExists(path("m")))
      for (const auto &entry : fs::directory_iterator(path("m")))
        if (int64_t step = stepOfName(entry.path().filename().string());
            step >= 0)
          return step;
    return -1;
  };
  waitFor(child, [&] { return saved() >= 0; });
  const int64_t step = saved();
  awaitSteps(child, static_cast<size_t>(step) + 3);
  EXPECT_EQ(saved(), step); // once for each wish
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: SIGUSR1: saved after step " +
                                    std::to_string(step) + ", and goes on"));
  expectCheckpointOf(static_cast<size_t>(step));
  expectCheckpointOf(lines());
}

// It must not end what has nothing to save.
TEST_F(TrainSignalsTest, OneEndsNoRunThatDoesNotSave) {
  pid_t child =
      start(training({"--steps=2000", "--metrics=" + path("m.jsonl")}),
            {"TINY_SLEEP=2"});
  awaitSteps(child, 3);
  kill(child, SIGUSR1);
  awaitDelivery(child, SIGUSR1);
  awaitSteps(child, lines() + 3);
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: SIGUSR1 saves nothing, as --save "
                                    "was not given"));
}

TEST_F(TrainSignalsTest, WhatIsIgnoredFromTheStartIsIgnored) {
  std::signal(SIGHUP, SIG_IGN); // as `nohup` does
  pid_t child = start(saving(), {"TINY_SLEEP=2"});
  std::signal(SIGHUP, SIG_DFL);
  awaitSteps(child, 3);
  kill(child, SIGHUP);
  awaitSteps(child, lines() + 3);
  kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 128 + SIGTERM);
}

// Warnings come again, and are followed by the signal of the limit itself.
TEST_F(TrainSignalsTest, WarningsAreNoSecondSignal) {
  pid_t child = start(saving(), {"TINY_SLEEP=800"});
  awaitSteps(child, 1);
  usleep(50000); // into the next update, of several layers
  for (int signal : {SIGXCPU, SIGXCPU, SIGTERM}) {
    kill(child, signal);
    awaitDelivery(child, signal);
    if (signal != SIGTERM)
      usleep(1100000);
  }
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGXCPU) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stopped by a signal after step "));
  expectCheckpointOf(lines());
}

// Each step waits in each of its micro-batches, so that a signal comes in one.
TEST_F(TrainSignalsTest, ALongStepIsDropped) {
  for (const char *strategy : {"dp=1", "dp=2", "dp=2,pp=2,zero=1"}) {
    SCOPED_TRACE(strategy);
    clear();
    pid_t child = start(saving({std::string("--strategy=") + strategy}),
                        {"TINY_SLEEP_FORWARD=300"});
    awaitSteps(child, 2);
    usleep(50000); // into the next step
    kill(child, SIGTERM);
    Result result = finish(child);
    EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
    const size_t steps = lines();
    EXPECT_THAT(result.out,
                HasSubstr("stopped by a signal after step " +
                          std::to_string(steps) +
                          "; the step under way was dropped; continue with"));
    // Resuming gives the run that no signal saw.
    const std::string end = "--steps=" + std::to_string(steps + 2);
    ASSERT_EQ(run({"--resume=" + path("m"), end, "--no-progress"}).code, 0);
    fs::remove_all(folder_ / "whole");
    ASSERT_EQ(run(training({end, "--warmup=100", "--schedule=constant",
                            std::string("--strategy=") + strategy,
                            "--save=" + path("whole")}))
                  .code,
              0);
    const std::string last = "/step-" + std::to_string(steps + 2);
    expectSame("m" + last, "whole" + last);
  }
}

} // namespace
