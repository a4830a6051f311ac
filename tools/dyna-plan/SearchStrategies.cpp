//===- SearchStrategies.cpp - The best degrees of a cluster -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SearchStrategies.h"

#include "runtime/base/SayEvery.h"
#include "runtime/base/Text.h"
#include "runtime/planner/ChooseStrategies.h"
#include "tools/dyna-plan/PlanModel.h"
#include "tools/dyna-plan/PlayedSteps.h"
#include "tools/dyna-plan/SimulationFlag.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace dyna {
namespace {

/// Degrees in powers of two that use all devices; tensor parallelism stays on a
/// node and divides the heads.
std::vector<Strategy> candidates(const Model &model, int tp, int64_t devices) {
  std::vector<Strategy> all;
  for (int pp = 1; pp <= model.layers() && devices % (tp * pp) == 0; pp *= 2)
    for (bool zero : {false, true}) {
      Strategy strategy;
      strategy.dp = static_cast<int>(devices / (tp * pp));
      strategy.tp = tp;
      strategy.pp = pp;
      strategy.zero = zero;
      if (!zero || strategy.dp > 1)
        all.push_back(strategy);
    }
  return all;
}

/// Adds what can be planned, and says from time to time what is next; why the last
/// of the others cannot, if any.
std::string tryStrategies(const CostModel &costs,
                          const std::vector<Strategy> &strategies,
                          const std::vector<NamedRequest> &requests,
                          const PlanFlags &flags, const StepLengths &steps,
                          const SimulationOptions &conditions, SayEvery &pause,
                          Reports &reports) {
  std::string refused;
  for (const Strategy &strategy : strategies)
    for (auto [name, request] : requests) {
      request.strategy = strategy;
      std::vector<std::string> notes;
      StepOutputs outputs;
      outputs.hasPlanTimes = flags.planTimes;
      outputs.endsWithoutRoom = true;
      if (pause.isDue())
        llvm::errs() << formatText("search: %d tried, next is %s %s\n",
                                   reports.size(), describeStrategy(strategy),
                                   name);
      auto report = planSteps(costs, std::move(request), steps, conditions,
                              name, outputs, notes);
      if (report.isOk())
        reports.emplace_back(describeStrategy(strategy) + " " + name,
                             std::move(*report));
      else
        refused = report.status().message();
    }
  return refused;
}

/// The best first, as many as are looked at.
void printBest(Reports reports, int64_t devices, int64_t memory,
               const PlanFlags &flags) {
  reports = sortReports(std::move(reports), memory);
  int64_t fitting =
      std::count_if(reports.begin(), reports.end(), [&](const auto &entry) {
        return fits(entry.second, memory);
      });
  llvm::errs() << formatText(
      "note: %d plans of %d devices tried, %d fit; the best first\n",
      reports.size(), devices, fitting);
  constexpr size_t mostShown = 10;
  if (!flags.json && reports.size() > mostShown) {
    llvm::errs() << formatText("note: %d of them are shown; --json has all\n",
                               mostShown);
    reports.resize(mostShown);
  }
  print(reports, memory, flags);
}

} // namespace

int search(const PlanFlags &flags, const std::vector<int64_t> &lengths) {
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  auto conditions = parseSimulation(flags.simulate);
  if (!conditions.isOk())
    return fail(conditions.status());
  const int64_t devices = table->cluster().devices();
  const int perNode = table->cluster().description().devices_per_node();
  if (devices == 0)
    return fail(Status::invalidArgument(
        flags.costs.empty()
            ? "--strategy search needs to know the devices: --cluster such as "
              "a100-40g:4x8"
            : "--strategy search needs to know the devices: in " +
                  flags.costs.getValue() +
                  " nodes and devices_per_node are missing, such as cluster { "
                  "nodes: 1 devices_per_node: 8 ... }"));
  SayEvery pause;
  Reports reports;
  StepLengths steps;
  std::vector<NamedRequest> requests;
  std::string refused;
  DividedSizes sizes;
  for (int tp = 1; tp <= perNode && devices % tp == 0; tp *= 2) {
    if (!divides(tp, sizes)) {
      llvm::errs() << formatText("note: tp=%d does not divide the model's "
                                 "sizes: it is not tried\n",
                                 tp);
      continue;
    }
    Strategy degree;
    degree.tp = tp;
    auto model = compileModel(flags, degree, *table, /*isAgain=*/tp > 1);
    if (mlir::failed(model))
      return 2;
    if (tp == 1) {
      const auto &facts = model->manifest().facts();
      sizes = {facts.heads(), facts.kv_heads(), facts.feed_forward()};
      steps = dealSteps(lengths, facts.positions(), flags);
      steps.shortens = false; // all strategies have the same samples
      auto asked = requestsOf(flags);
      if (!asked.isOk())
        return fail(asked.status());
      requests = std::move(*asked);
    }
    auto costs =
        tp == 1 ? openCosts(*model, *table) : CostModel::create(*model, *table);
    if (!costs.isOk())
      return fail(costs.status());
    noteLacking(*costs, {degree});
    refused = tryStrategies(*costs, candidates(*model, tp, devices), requests,
                            flags, steps, *conditions, pause, reports);
  }
  if (reports.empty())
    return fail(
        Status::invalidArgument("no strategy can be planned: " + refused));
  printBest(std::move(reports), devices, table->device().memory_bytes(), flags);
  return 0;
}

} // namespace dyna
