//===- MoveBench.cpp - What it takes to move layers -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Moves layers of a model between ranks that are threads of this process: 12 blocks with
// 124 M weights in all, and the state of bf16 training, 14 bytes each. One line for each
// number of ranks, for a cut that becomes even and back, the least of 5 moves:
//
// - `plan_seconds`: the switch is planned and verified;
// - `seconds`: all ranks have their state;
// - `sent_bytes`: those that change their rank;
// - `copied_bytes`: all state, as what stays goes to the other end of its arena;
// - `share`: the rate of all copied bytes over that of plain copies, by as many threads.
//
// Usage: bench_move [--weights N]
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/ReplacedGraphs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace dyna;
using namespace dyna::test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int repeats = 5;
constexpr int blocks = 12;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Other programs only make times longer.
double leastOf(const std::vector<double> &values) {
  return *std::min_element(values.begin(), values.end());
}

/// Seconds in which so many threads copy so many bytes together.
double secondsOfCopies(int threads, int64_t bytes) {
  std::vector<std::vector<char>> from(threads), to(threads);
  const auto own = static_cast<size_t>(bytes / threads);
  for (int t = 0; t < threads; ++t) {
    from[t].assign(own, 1);
    to[t].assign(own, 0);
  }
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto begin = Clock::now();
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back(
          [&, t] { std::memcpy(to[t].data(), from[t].data(), own); });
    for (std::thread &thread : team)
      thread.join();
    seconds.push_back(secondsSince(begin));
  }
  return leastOf(seconds);
}

std::string cutOf(int ranks, bool isEven) {
  const int layers = blocks + 2;
  std::string text = "pp=" + std::to_string(ranks) + ",layers=";
  int left = layers;
  for (int stage = 0; stage < ranks; ++stage) {
    const int rest = ranks - stage;
    // Pruned layers at the end leave two layers more for the last stage.
    int own = stage + 1 == ranks ? left : left / rest;
    if (!isEven && stage + 1 < ranks)
      own = std::max(1, own - 1);
    text += (stage ? "+" : "") + std::to_string(own);
    left -= own;
  }
  return text;
}

void measure(int ranks, int64_t weights) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  tiny.blocks = blocks;
  tiny.hidden = weights / (2 * tinyWidth * blocks);
  ReplacedGraphs::Options options;
  options.bucketBytes = int64_t{64} << 20;
  const Model model = *Model::create(tinyManifest(tiny));
  auto make = [&](const TinyProgram &program,
                  const std::vector<GraphUse> &uses) {
    auto transports = makeThreadTransports(ranks);
    std::vector<RankResources> resources(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      resources[rank].rank = rank;
      resources[rank].device = makeTestDevice();
      resources[rank].transport = std::move(transports[rank]);
      // Tensors of both cuts.
      resources[rank].dynamicBytes = 20 * weights / ranks + (int64_t{1} << 28);
    }
    return RankTeam::create(uses, **chooseVariant(program.program(), "", 0),
                            std::move(resources), {});
  };
  ReplacedGraphs run(cutOf(ranks, false), tiny, make, options);
  std::vector<double> all, carried;
  bool isEven = false;
  // The first two moves touch pages.
  for (int move = 0; move < repeats + 2; ++move) {
    isEven = !isEven;
    const auto begin = Clock::now();
    if (Status status = run.replace(cutOf(ranks, isEven)); !status.isOk()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::exit(1);
    }
    if (move > 1) {
      all.push_back(secondsSince(begin));
      carried.push_back(run.carrySeconds());
    }
  }
  const int64_t bytes = 14 * model.totalElements();
  const double copy = secondsOfCopies(ranks, bytes), seconds = leastOf(carried);
  std::printf("{\"bench\": \"move\", \"ranks\": %d, \"weights\": %lld, "
              "\"plan_seconds\": %.6f, \"seconds\": %.4f, \"sent_bytes\": "
              "%lld, \"copied_bytes\": %lld, \"copy_seconds\": %.4f, "
              "\"share\": %.2f, \"required_share\": 0.7}\n",
              ranks, static_cast<long long>(model.totalElements()),
              leastOf(all) - seconds, seconds,
              static_cast<long long>(run.sentBytes()),
              static_cast<long long>(bytes), copy, copy / seconds);
  std::fflush(stdout);
}

} // namespace

int main(int count, char **words) {
  int64_t weights = 124439808;
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(words[i], "--weights") == 0)
      weights = std::max<int64_t>(1000, std::atoll(words[i + 1]));
  for (int ranks : {2, 3, 4})
    measure(ranks, weights);
}
