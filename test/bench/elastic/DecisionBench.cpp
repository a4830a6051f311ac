//===- DecisionBench.cpp - What it takes to decide on a move --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides with price, within memory, whether layers move. Layers are pruned to other
// shares each time, so that loads are uneven. One line for each size: processor seconds,
// the median and the largest of 101 decisions, and how many of them moved. Some lines have
// one size: with few steps left many cuts are compared, as bytes matter. `clock` says what
// weighs cuts: the formula, or a simulation of 1F1B with micro-batches of other lengths.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/elastic/decide/MoveDecider.h"

#include <algorithm>
#include <cstdio>
#include <optional>

using namespace dyna;

namespace {

struct Case {
  int layers, ranks;
  int64_t stepsLeft;
  bool isSimulated;
};

MoveProblem makeProblem(const Case &size, uint64_t &counter,
                        LayerBytes &memory) {
  MoveProblem problem;
  auto draw = [&counter](uint64_t below) {
    return dyna_mix64(++counter) % below;
  };
  int64_t held = 0;
  for (int l = 0; l < size.layers; ++l) {
    // Pruned layers take between a tenth and all of a dense one.
    const double share = 0.1 + static_cast<double>(draw(901)) / 1000;
    problem.seconds.push_back(0.010 * share);
    problem.stateBytes.push_back(static_cast<int64_t>(100e6 * share));
    memory.own.push_back(problem.stateBytes.back());
    memory.kept.push_back(2'000'000);
    held += problem.stateBytes.back();
  }
  for (int s = 0; s < size.ranks; ++s) {
    memory.inFlight.push_back(std::min(size.ranks - s, 8));
    memory.limits.push_back(held * 2 / size.ranks + 200'000'000);
    problem.waits.push_back(0.0001);
    const int even = size.layers / size.ranks;
    problem.cut.push_back(even + (s < size.layers % size.ranks));
  }
  problem.microBatches = 4 * size.ranks;
  problem.stepsLeft = size.stepsLeft;
  problem.price = {0.05, 0.1, 0.1, 1e-9};
  problem.memory = &memory;
  return problem;
}

/// Micro-batches take between 0.8 and 1.2 of their mean.
StepWork workOf(const MoveProblem &problem, uint64_t &counter) {
  std::vector<double> lengths;
  for (int64_t m = 0; m < problem.microBatches; ++m)
    lengths.push_back(0.8 +
                      static_cast<double>(dyna_mix64(++counter) % 401) / 1000);
  StepWork work;
  for (double seconds : problem.seconds) {
    auto &forward = work.layers.forward.emplace_back();
    auto &backward = work.layers.backward.emplace_back();
    for (double length : lengths) {
      forward.push_back(seconds * length / 3);
      backward.push_back(seconds * length * 2 / 3);
    }
  }
  return work;
}

void measure(const Case &size) {
  constexpr int repeats = 101;
  uint64_t counter = 1;
  int moves = 0;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    LayerBytes memory;
    MoveProblem problem = makeProblem(size, counter, memory);
    const StepWork work = workOf(problem, counter);
    MoveDecider decider(MoveOptions{0, 0});
    const double begin = coreSeconds();
    std::optional<StepClock> clock;
    if (size.isSimulated) {
      clock.emplace(work, problem.waits);
      problem.clock = &*clock;
    }
    const MoveDecision decision = decider.decide(problem);
    seconds.push_back(coreSeconds() - begin);
    moves += decision.answer == MoveAnswer::Move;
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"bench\": \"decision\", \"layers\": %d, \"ranks\": %d, "
              "\"steps_left\": %d, \"clock\": \"%s\", \"seconds\": %.6f, "
              "\"largest_s\": %.6f, "
              "\"moves\": %d, \"of\": %d, \"required_s\": 0.010}\n",
              size.layers, size.ranks, static_cast<int>(size.stepsLeft),
              size.isSimulated ? "simulation" : "formula", seconds[repeats / 2],
              seconds.back(), moves, repeats);
}

} // namespace

int main() {
  for (bool isSimulated : {false, true})
    for (const Case &size :
         {Case{24, 8, 1000, isSimulated}, Case{96, 48, 1000, isSimulated},
          Case{96, 48, 10, isSimulated}, Case{96, 48, 1, isSimulated}})
      measure(size);
}
