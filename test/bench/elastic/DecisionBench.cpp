//===- DecisionBench.cpp - What it takes to decide on a move --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides with price, within memory, whether layers move. Layers are pruned to other
// shares each time, so that loads are uneven. One line for each size: processor seconds,
// the median and the largest of 101 decisions, and how many of them moved. Two lines have
// one size: with few steps left many cuts are compared, as bytes matter.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/elastic/decide/MoveDecider.h"

#include <algorithm>
#include <cstdio>

using namespace dyna;

namespace {

struct Case {
  int layers, ranks;
  int64_t stepsLeft;
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

void measure(const Case &size) {
  constexpr int repeats = 101;
  uint64_t counter = 1;
  int moves = 0;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    LayerBytes memory;
    const MoveProblem problem = makeProblem(size, counter, memory);
    MoveDecider decider(MoveOptions{0, 0});
    const double begin = coreSeconds();
    const MoveDecision decision = decider.decide(problem);
    seconds.push_back(coreSeconds() - begin);
    moves += decision.answer == MoveAnswer::Move;
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"bench\": \"decision\", \"layers\": %d, \"ranks\": %d, "
              "\"steps_left\": %d, \"seconds\": %.6f, \"largest_s\": %.6f, "
              "\"moves\": %d, \"of\": %d, \"required_s\": 0.010}\n",
              size.layers, size.ranks, static_cast<int>(size.stepsLeft),
              seconds[repeats / 2], seconds.back(), moves, repeats);
}

} // namespace

int main() {
  for (const Case &size : {Case{24, 8, 1000}, Case{96, 48, 1000},
                           Case{96, 48, 10}, Case{96, 48, 1}})
    measure(size);
}
