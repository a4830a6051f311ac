//===- StateBench.cpp - Switches of state beside their floor --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Masters, moments and copies (bf16) of models as wide and deep as GPTs, with three
// tensors a block instead of twelve: 12 width^2 elements, which tensor degrees split.
//
//===----------------------------------------------------------------------===//

#include "test/bench/planner/StateBench.h"

#include "runtime/plan/graph/StateTensors.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "test/bench/WideModel.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

using namespace dyna;

namespace bench {
namespace {

struct Size {
  const char *name;
  int blocks;
  int64_t width;
};

double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Model modelOf(const Size &size) {
  TinyOptions tiny;
  tiny.blocks = size.blocks;
  tiny.vocabulary = 50304;
  tiny.hidden = 6 * size.width;
  tiny.compute = plan::BF16;
  tiny.degrees = {{2, false}, {4, false}, {8, false}};
  plan::Manifest manifest = tinyManifest(tiny);
  widen(manifest, size.width);
  return *Model::create(std::move(manifest));
}

/// `layers` layers on four stages; `moved` more on the first and fewer on the second.
std::string cut(int layers, int moved) {
  const int each = layers / 4, first = layers - 3 * each;
  return "pp=4,layers=" + std::to_string(first + moved) + "+" +
         std::to_string(each - moved) + "+" + std::to_string(each) + "+" +
         std::to_string(each);
}

/// Bytes that stay on their ranks, and are copied from place to place there.
int64_t bytesThatStay(const GraphSwitch &state) {
  int64_t bytes = 0;
  for (const SwitchBucket &bucket : state.plan.buckets)
    for (const SwitchTransfer &one : bucket.transfers)
      if (one.from == one.to)
        bytes += one.box.volume() * state.tensors[one.tensor].elementBytes;
  return bytes;
}

Status measure(const Size &size, const Model &model, const std::string &from,
               const std::string &to, int nodes) {
  auto graphOf = [&](const std::string &text) -> StatusOr<ExecutableGraph> {
    DYNA_ASSIGN_OR_RETURN(Strategy strategy, parseStrategy(text));
    return ExecutableGraph::create(model, strategy);
  };
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph a, graphOf(from));
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph b, graphOf(to));
  SwitchNetwork network;
  network.ranks = std::max(a.ranks(), b.ranks());
  network.ranksPerNode = std::max(network.ranks / nodes, 1);
  network.insideRate = 200e9;
  network.betweenRate = 25e9;
  std::vector<double> planned, made;
  const std::vector<SwitchTensor> tensors = stateTensors(a, b);
  std::optional<GraphSwitch> state;
  for (int repeat = 0; repeat < 5; ++repeat) {
    double begin = seconds();
    DYNA_ASSIGN_OR_RETURN(SwitchPlan plan,
                          planSwitch(stateTensors(a, b), network));
    planned.push_back(seconds() - begin);
    begin = seconds();
    DYNA_ASSIGN_OR_RETURN(state, GraphSwitch::create(tensors, std::move(plan),
                                                     network.ranks,
                                                     model.parameters()));
    made.push_back(seconds() - begin);
  }
  std::sort(planned.begin(), planned.end());
  std::sort(made.begin(), made.end());
  const SwitchTimes times = timesOf(tensors, state->plan, network);
  DYNA_ASSIGN_OR_RETURN(const SwitchBounds bounds, boundsOf(tensors, network));
  const double mib = 1 << 20;
  std::printf("{\"bench\": \"switch\", \"what\": \"state\", \"model\": \"%s\", "
              "\"parameters_m\": %.0f, \"from\": \"%s\", \"to\": \"%s\", "
              "\"ranks\": %d, \"nodes\": %d, \"sent_mib\": %.1f, "
              "\"floor_mib\": %.1f, \"stays_mib\": %.1f, \"transfers\": %lld, "
              "\"buckets\": %d, \"plan_ms\": %.2f, \"check_ms\": %.2f, "
              "\"seconds\": %.4f, \"bound\": %.4f}\n",
              size.name, static_cast<double>(model.totalElements()) / 1e6,
              from.c_str(), to.c_str(), network.ranks, nodes,
              static_cast<double>(state->sentBytes()) / mib,
              static_cast<double>(missingBytes(tensors)) / mib,
              static_cast<double>(bytesThatStay(*state)) / mib,
              static_cast<long long>(times.transfers), state->buckets(),
              planned[2] * 1e3, made[2] * 1e3, times.seconds, bounds.largest());
  return Status::ok();
}

} // namespace

int measureStates() {
  int failures = 0;
  for (const Size &size :
       {Size{"gpt-124m", 12, 768}, Size{"gpt-1.3b", 24, 2048},
        Size{"gpt-6.7b", 32, 4096}}) {
    const Model model = modelOf(size);
    const int layers = size.blocks + 2;
    const struct {
      std::string from, to;
      int nodes;
    } pairs[] = {{cut(layers, 0), cut(layers, 1), 1},
                 {cut(layers, 0), "dp=4,zero=1", 1},
                 {"dp=4,zero=1", "tp=4", 1},
                 {"dp=4", "dp=4,zero=1", 1},
                 {"dp=4,zero=1", "dp=2,zero=1", 1},
                 {"dp=4,tp=8,zero=1", "tp=8," + cut(layers, 0), 4}};
    for (const auto &[from, to, nodes] : pairs)
      if (Status status = measure(size, model, from, to, nodes);
          !status.isOk()) {
        std::printf("{\"bench\": \"switch\", \"error\": \"%s\"}\n",
                    status.message().c_str());
        ++failures;
      }
  }
  return failures;
}

} // namespace bench
