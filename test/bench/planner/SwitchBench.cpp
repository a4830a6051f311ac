//===- SwitchBench.cpp - Switches beside their bounds -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans switches of a LLaMA of 32.5 G parameters in bf16 (HotSPa, section 6.3)
// on 4 nodes of 8 ranks, 200 GB/s inside and 25 GB/s per rank between, and of a
// GPT of 175 G on 48 nodes. One line each:
//
// - "pair": an ordered pair of strategies; `seconds` as SwitchTimes.h plays it,
//   `port_seconds` of the busiest port, `bound` (SwitchBounds), and the
//   baselines' seconds;
// - "pairs": their means and the worst, by numbering of the ranks;
// - "cycle": a cycle of HotSPa's Table 3, home and back;
// - "gradients": a strategy's gradients on their way home, whole or in the rows
//   of replicas;
// - "planning": the median of five;
// - "state": masters, moments and copies between graphs that replace each other
//   (StateBench.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "test/bench/planner/StateBench.h"
#include "test/runtime/planner/switch/ModelSwitches.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

using namespace dyna;

namespace {

double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string text(const Degrees &one) {
  return "(" + std::to_string(one.dp) + "," + std::to_string(one.tp) + "," +
         std::to_string(one.pp) + ")";
}

struct Measured {
  double seconds = 0, bound = 0, algorithm1 = 0;

  /// 1 where nothing has to move, and nothing does.
  double ratio() const { return seconds > 0 ? seconds / bound : 1; }
};

int failures = 0;

void fail(const Status &status) {
  std::printf("{\"bench\": \"switch\", \"error\": \"%s\"}\n",
              status.message().c_str());
  ++failures;
}

Measured measure(const SwitchModel &model, const Numbering &from,
                 const Numbering &to, const SwitchNetwork &network,
                 bool isPrinted) {
  std::vector<SwitchTensor> tensors = tensorsOf(model, from, to);
  auto plan = planSwitch(tensors, network);
  auto bounds = boundsOf(tensors, network);
  if (!plan.isOk() || !bounds.isOk()) {
    fail(plan.isOk() ? bounds.status() : plan.status());
    return {};
  }
  if (Status status = checkSwitch(tensors, network.ranks, *plan);
      !status.isOk())
    fail(status);
  SwitchTimes times = timesOf(tensors, *plan, network);
  Measured measured = {times.seconds, bounds->largest(), 0};
  std::string others;
  for (const SwitchBaseline &baseline : switchBaselines()) {
    auto other = baseline.plan(tensors, network);
    if (!other.isOk()) {
      fail(other.status());
      continue;
    }
    double time = timesOf(tensors, *other, network, baseline.fusing).seconds;
    if (!std::strcmp(baseline.name, "algorithm1"))
      measured.algorithm1 = time;
    char piece[64];
    std::snprintf(piece, sizeof piece, ", \"%s\": %.4f", baseline.name, time);
    others += piece;
  }
  if (isPrinted)
    std::printf(
        "{\"bench\": \"switch\", \"what\": \"pair\", \"model\": \"%s\", "
        "\"order\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"seconds\": "
        "%.4f, \"port_seconds\": %.4f, \"bound\": %.4f, \"ratio\": %.3f, "
        "\"receive\": %.4f, \"send\": %.4f, \"node_in\": %.4f, \"node_out\": "
        "%.4f, \"inside\": %.4f, \"buckets\": %zu, \"transfers\": %lld, "
        "\"passing_mib\": %.1f, "
        "\"inside_gb\": %.2f, \"between_gb\": %.2f%s}\n",
        model.name, from.order.c_str(), text(from.degrees).c_str(),
        text(to.degrees).c_str(), times.seconds, times.portSeconds,
        bounds->largest(), measured.ratio(), bounds->receive, bounds->send,
        bounds->nodeIn, bounds->nodeOut, bounds->inside, plan->buckets.size(),
        static_cast<long long>(times.transfers),
        static_cast<double>(times.passingBytes) / (1 << 20),
        static_cast<double>(times.insideBytes) / 1e9,
        static_cast<double>(times.betweenBytes) / 1e9, others.c_str());
  return measured;
}

const Degrees strategies[] = {
    {1, 16, 2}, {2, 8, 2}, {4, 4, 2}, {4, 2, 4}, {8, 4, 1}};

void measurePairs(const std::string &order) {
  const SwitchNetwork network = nodesOfEight(4);
  double sum = 0, worst = 0, ours = 0, theirs = 0;
  int count = 0;
  for (const Degrees &from : strategies)
    for (const Degrees &to : strategies) {
      if (&from == &to)
        continue;
      Measured one =
          measure(llama32b(), {from, order}, {to, order}, network, true);
      sum += one.ratio();
      worst = std::max(worst, one.ratio());
      ours += one.seconds;
      theirs += one.algorithm1;
      ++count;
    }
  std::printf("{\"bench\": \"switch\", \"what\": \"pairs\", \"order\": \"%s\", "
              "\"pairs\": %d, \"mean_ratio\": %.3f, \"worst_ratio\": %.3f, "
              "\"seconds\": %.4f, \"algorithm1\": %.4f}\n",
              order.c_str(), count, sum / count, worst, ours, theirs);
}

/// Reduced gradients of each strategy on their way home, where each element is
/// added once.
void measureGradients(const std::string &order) {
  const SwitchNetwork network = nodesOfEight(4);
  const Numbering home = {strategies[0], order};
  for (const Degrees &from : strategies) {
    if (&from == &strategies[0])
      continue;
    for (bool zero : {false, true}) {
      std::vector<SwitchTensor> tensors =
          tensorsOf(llama32b(), {from, order}, home, zero);
      for (SwitchTensor &tensor : tensors)
        tensor.delivery = Delivery::Once;
      double begin = seconds();
      auto plan = planSwitch(tensors, network);
      double planning = seconds() - begin;
      auto bounds = boundsOf(tensors, network);
      if (!plan.isOk() || !bounds.isOk())
        return fail(plan.isOk() ? bounds.status() : plan.status());
      if (Status status = checkSwitch(tensors, network.ranks, *plan);
          !status.isOk())
        fail(status);
      SwitchTimes times = timesOf(tensors, *plan, network);
      std::printf("{\"bench\": \"switch\", \"what\": \"gradients\", "
                  "\"order\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", "
                  "\"zero\": %d, \"seconds\": %.4f, \"port_seconds\": %.4f, "
                  "\"bound\": %.4f, \"transfers\": %lld, \"plan_ms\": %.1f}\n",
                  order.c_str(), text(from).c_str(), text(home.degrees).c_str(),
                  zero, times.seconds, times.portSeconds, bounds->largest(),
                  static_cast<long long>(times.transfers), planning * 1e3);
    }
  }
}

/// Of HotSPa's Table 3: home, which updates, is the one for the longest.
void measureCycles(const std::string &order) {
  const std::pair<const char *, std::vector<int>> cycles[] = {
      {"C1", {0, 3, 1, 0}},
      {"C2", {0, 3, 2, 1, 0}},
      {"C3", {0, 4, 3, 2, 1, 0}}};
  for (const auto &[name, path] : cycles) {
    Measured sum;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      Measured one =
          measure(llama32b(), {strategies[path[i]], order},
                  {strategies[path[i + 1]], order}, nodesOfEight(4), false);
      sum.seconds += one.seconds;
      sum.bound += one.bound;
      sum.algorithm1 += one.algorithm1;
    }
    std::printf(
        "{\"bench\": \"switch\", \"what\": \"cycle\", \"cycle\": "
        "\"%s\", \"order\": \"%s\", \"seconds\": %.4f, \"bound\": %.4f, "
        "\"algorithm1\": %.4f}\n",
        name, order.c_str(), sum.seconds, sum.bound, sum.algorithm1);
  }
}

void measurePlanning(const SwitchModel &model, const Numbering &from,
                     const Numbering &to, bool zero) {
  const SwitchNetwork network =
      nodesOfEight(from.degrees.dp * from.degrees.tp * from.degrees.pp / 8);
  std::vector<SwitchTensor> tensors = tensorsOf(model, from, to, zero);
  std::vector<double> times;
  SwitchPlan plan;
  for (int i = 0; i < 5; ++i) {
    double begin = seconds();
    auto made = planSwitch(tensors, network);
    times.push_back(seconds() - begin);
    if (!made.isOk())
      return fail(made.status());
    plan = std::move(*made);
  }
  double begin = seconds();
  if (Status status = checkSwitch(tensors, network.ranks, plan); !status.isOk())
    fail(status);
  double checking = seconds() - begin;
  auto bounds = boundsOf(tensors, network);
  SwitchTimes played = timesOf(tensors, plan, network);
  std::sort(times.begin(), times.end());
  std::printf("{\"bench\": \"switch\", \"what\": \"planning\", \"model\": "
              "\"%s\", \"from\": \"%s\", \"to\": \"%s\", \"zero\": %d, "
              "\"ranks\": %d, \"tensors\": %zu, \"transfers\": %lld, "
              "\"median_ms\": %.1f, \"best_ms\": %.1f, \"check_ms\": %.1f, "
              "\"buckets\": %zu, \"seconds\": %.4f, \"port_seconds\": %.4f, "
              "\"bound\": %.4f}\n",
              model.name, text(from.degrees).c_str(), text(to.degrees).c_str(),
              zero, network.ranks, tensors.size(),
              static_cast<long long>(played.transfers), times[2] * 1e3,
              times[0] * 1e3, checking * 1e3, plan.buckets.size(),
              played.seconds, played.portSeconds,
              bounds.isOk() ? bounds->largest() : 0);
}

} // namespace

int main() {
  for (const char *order : {"dpt", "pdt"}) {
    measurePairs(order);
    measureCycles(order);
    measureGradients(order);
  }
  for (bool zero : {false, true}) {
    measurePlanning(llama32b(), {{1, 16, 2}, "dpt"}, {{8, 4, 1}, "dpt"}, zero);
    measurePlanning(llama32b(), {{8, 4, 1}, "dpt"}, {{4, 2, 4}, "dpt"}, zero);
    measurePlanning(gpt175b(), {{4, 8, 12}, "dpt"}, {{8, 4, 12}, "dpt"}, zero);
    measurePlanning(gpt175b(), {{12, 8, 4}, "dpt"}, {{4, 8, 12}, "dpt"}, zero);
    measurePlanning(gpt175b(), {{6, 8, 8}, "pdt"}, {{48, 8, 1}, "dpt"}, zero);
  }
  failures += bench::measureStates();
  return failures > 0;
}
