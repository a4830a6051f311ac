//===- SwitchPairsBench.cpp - Random switches beside their bounds ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans switches between random strategies: LLaMA with 32.5 G parameters on
// 4, 8 and 16 nodes of 8 ranks, GPT with 175 G on 48 nodes. One line each:
//
// - "pair" (--each): one switch. `algorithm1` has the same limit of bytes in
//   flight, `unlimited` has none; `plan_seconds` is CPU time, `plan_mib` the
//   peak memory of the process, tensors included;
// - "random": mean and worst of a cluster.
//
// Each pair is planned in a process of its own, which measures its memory.
//
// Usage: bench_switch_pairs [--pairs N] [--seed N] [--nodes 4|8|16|48]
//                           [--each] [--only N]
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "test/runtime/planner/switch/ModelSwitches.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace dyna;

namespace {

struct Flags {
  int pairs = 60, seed = 1, nodes = 0, only = -1;
  bool isEach = false;
};

/// The result that a process hands to its parent.
struct Measured {
  double seconds = 0, portSeconds = 0, bound = 0, algorithm1 = 0, unlimited = 0;
  double planSeconds = 0, planMib = 0;
  long long transfers = 0, buckets = 0;
  double passingMib = 0;
  bool isRefused = true;

  double ratio() const { return bound > 0 ? seconds / bound : 1; }
};

double cpuSeconds() { return static_cast<double>(clock()) / CLOCKS_PER_SEC; }

double peakMib() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

Measured measure(const SwitchModel &model, const ModelPair &pair,
                 const SwitchNetwork &network) {
  Measured result;
  const std::vector<SwitchTensor> tensors =
      tensorsOf(model, pair.from, pair.to, pair.zero);
  const double begin = cpuSeconds();
  auto plan = planSwitch(tensors, network);
  result.planSeconds = cpuSeconds() - begin;
  result.planMib = peakMib();
  auto bounds = boundsOf(tensors, network);
  if (!plan.isOk() || !bounds.isOk())
    return result;
  if (Status status = checkSwitch(tensors, network.ranks, *plan);
      !status.isOk()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return result;
  }
  const SwitchTimes times = timesOf(tensors, *plan, network);
  result.seconds = times.seconds;
  result.portSeconds = times.portSeconds;
  result.transfers = times.transfers;
  result.passingMib = static_cast<double>(times.passingBytes) / (1 << 20);
  result.buckets = static_cast<long long>(plan->buckets.size());
  result.bound = bounds->largest();
  *plan = SwitchPlan();
  if (auto simple = planAlgorithm1(tensors, network, SwitchOptions());
      simple.isOk())
    result.algorithm1 = timesOf(tensors, *simple, network).seconds;
  if (auto simple = switchBaselines().front().plan(tensors, network);
      simple.isOk())
    result.unlimited = timesOf(tensors, *simple, network).seconds;
  result.isRefused = false;
  return result;
}

/// Runs `measure` in a process of its own.
Measured measureApart(const SwitchModel &model, const ModelPair &pair,
                      const SwitchNetwork &network) {
  Measured result;
  int ends[2];
  if (pipe(ends) != 0)
    return result;
  const pid_t child = fork();
  if (child == 0) {
    result = measure(model, pair, network);
    const bool isWritten =
        write(ends[1], &result, sizeof result) == sizeof result;
    _exit(isWritten ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &result, sizeof result) != sizeof result)
    result = Measured();
  close(ends[0]);
  if (child > 0)
    waitpid(child, nullptr, 0);
  return result;
}

int measureCluster(const SwitchModel &model, int nodes, const Flags &flags) {
  const SwitchNetwork network = nodesOfEight(nodes);
  Draw draw(flags.seed);
  double sum = 0, worst = 0, slowest = 0, fullest = 0;
  int count = 0, behind = 0, refused = 0;
  for (int i = 0; i < flags.pairs; ++i) {
    const ModelPair pair = drawPair(draw, model, network.ranks);
    if (flags.only >= 0 && i != flags.only)
      continue;
    const Measured one = measureApart(model, pair, network);
    refused += one.isRefused;
    sum += one.ratio();
    worst = std::max(worst, one.ratio());
    slowest = std::max(slowest, one.planSeconds);
    fullest = std::max(fullest, one.planMib);
    behind += one.seconds > one.algorithm1 * (1 + 1e-9);
    ++count;
    if (!flags.isEach)
      continue;
    std::printf(
        "{\"bench\": \"switch_pairs\", \"what\": \"pair\", \"nodes\": %d, "
        "\"index\": %d, \"pair\": \"%s\", \"ratio\": %.3f, \"seconds\": %.4f, "
        "\"port_seconds\": %.4f, \"bound\": %.4f, \"algorithm1\": %.4f, "
        "\"unlimited\": %.4f, \"plan_seconds\": %.3f, \"plan_mib\": %.0f, "
        "\"transfers\": %lld, \"buckets\": %lld, \"passing_mib\": %.0f}\n",
        nodes, i, pair.text().c_str(), one.ratio(), one.seconds,
        one.portSeconds, one.bound, one.algorithm1, one.unlimited,
        one.planSeconds, one.planMib, one.transfers, one.buckets,
        one.passingMib);
    std::fflush(stdout);
  }
  std::printf("{\"bench\": \"switch_pairs\", \"what\": \"random\", \"model\": "
              "\"%s\", \"nodes\": %d, \"pairs\": %d, \"mean_ratio\": %.3f, "
              "\"worst_ratio\": %.3f, \"behind_algorithm1\": %d, "
              "\"refused\": %d, \"plan_seconds\": %.3f, \"plan_mib\": %.0f}\n",
              model.name, nodes, count, sum / count, worst, behind, refused,
              slowest, fullest);
  std::fflush(stdout);
  return refused;
}

Flags readFlags(int count, char **words) {
  Flags flags;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    auto number = [&] { return i + 1 < count ? std::atoi(words[++i]) : 0; };
    if (word == "--pairs")
      flags.pairs = std::max(1, number());
    else if (word == "--seed")
      flags.seed = number();
    else if (word == "--nodes")
      flags.nodes = number();
    else if (word == "--only")
      flags.only = number();
    else if (word == "--each")
      flags.isEach = true;
  }
  return flags;
}

} // namespace

int main(int count, char **words) {
  const Flags flags = readFlags(count, words);
  int refused = 0;
  for (int nodes : {4, 8, 16, 48})
    if (flags.nodes == 0 || flags.nodes == nodes)
      refused +=
          measureCluster(nodes == 48 ? gpt175b() : llama32b(), nodes, flags);
  return refused > 0;
}
