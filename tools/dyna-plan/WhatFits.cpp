//===- WhatFits.cpp - Finds a change with which a strategy fits -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/WhatFits.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/search/SizedSteps.h"

#include <limits>
#include <vector>

namespace dyna {
namespace {

/// Returns the request with each change, the smallest change first.
std::vector<PlanRequest> changesOf(const PlanRequest &request, int layers) {
  std::vector<PlanRequest> all;
  auto add = [&](Strategy strategy) {
    strategy.recompute.reset();
    PlanRequest changed = request;
    changed.strategy = std::move(strategy);
    changed.recompute = "full";
    all.push_back(std::move(changed));
  };
  add(request.strategy);
  Strategy sharded = request.strategy;
  sharded.zero = true;
  if (!request.strategy.zero && sharded.dp > 1) {
    all.push_back(request);
    all.back().strategy = sharded;
    add(sharded);
  }
  sharded.layers.clear();
  while (sharded.dp % 2 == 0 && 2 * sharded.pp <= layers) {
    sharded.dp /= 2;
    sharded.pp *= 2;
    sharded.zero = sharded.dp > 1;
    add(sharded);
  }
  return all;
}

/// Bytes that the fullest rank lacks; none if the request cannot be planned.
int64_t lackingBytes(const CostModel &costs, const PlanRequest &request,
                     int64_t memory, int64_t longest) {
  SizedSteps::Asked asked = SizedSteps::Asked::alone(request);
  asked.memoryBytes = memory;
  asked.longest = longest;
  std::vector<std::string> notes;
  auto sized = SizedSteps::create(costs, std::move(asked), notes);
  return sized.isOk() ? (*sized)->lackingBytes()
                      : std::numeric_limits<int64_t>::max();
}

std::string describe(const PlanRequest &request) {
  std::string text = "--strategy " + describeStrategy(request.strategy);
  if (!request.recompute.empty())
    text += " --recompute " + request.recompute;
  return text;
}

} // namespace

std::string describeWhatFits(const CostModel &costs, const PlanRequest &request,
                             int64_t memory, int64_t longest) {
  int64_t least = std::numeric_limits<int64_t>::max();
  std::string nearest;
  for (const PlanRequest &change : changesOf(request, costs.model().layers())) {
    const int64_t lacking = lackingBytes(costs, change, memory, longest);
    if (lacking <= 0)
      return "would fit: " + describe(change);
    if (lacking < least) {
      least = lacking;
      nearest = describe(change);
    }
  }
  if (nearest.empty())
    return "no strategy of this tensor degree can be planned";
  return formatText("nothing of this tensor degree fits these devices; %s "
                    "needs %s of a device: try a larger tp, more devices, or "
                    "--strategy search",
                    nearest, formatBytes(memory + least));
}

} // namespace dyna
