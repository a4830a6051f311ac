//===- Initialize.cpp - Sets the initial values of parameters -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/Initialize.h"

#include "runtime/abi/Random.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/train/session/MasterRows.h"

#include <algorithm>
#include <cmath>

namespace dyna {

double initialValue(const plan::Parameter &parameter, uint64_t key,
                    uint64_t index) {
  if (parameter.normal_std() == 0)
    return parameter.constant();
  double u, v;
  dyna_parameter_uniforms(key, index, &u, &v);
  double normal =
      std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
  return parameter.constant() + parameter.normal_std() * normal;
}

template <typename Element>
static Status initializeOne(RankTeam &ranks, int p, uint64_t seed, Team &team) {
  constexpr int64_t chunk = 16384;
  const plan::Parameter &parameter = ranks.model().parameter(p);
  uint64_t key = dyna_parameter_key(seed, parameter.name().c_str());
  std::vector<Element> values;
  for (RowRange rows : ranks.rowChunks(p, ParameterPart::Master)) {
    int64_t first = rows.begin * ranks.model().rowElements(p);
    int64_t count = rows.count() * ranks.model().rowElements(p);
    values.resize(count);
    team.parallelFor((count + chunk - 1) / chunk, [&](int64_t task, int) {
      int64_t end = std::min(count, (task + 1) * chunk);
      for (int64_t i = task * chunk; i < end; ++i)
        values[i] =
            static_cast<Element>(initialValue(parameter, key, first + i));
    });
    DYNA_RETURN_IF_ERROR(writeMasterRows(ranks, p, rows, values.data()));
  }
  return Status::ok();
}

static Status initialize(RankTeam &ranks, int p, uint64_t seed, Team &team) {
  return ranks.model().masterType() == plan::F64
             ? initializeOne<double>(ranks, p, seed, team)
             : initializeOne<float>(ranks, p, seed, team);
}

Status initializeParameters(RankTeam &ranks, uint64_t seed, Team &team) {
  for (int p = 0; p < ranks.model().parameters(); ++p)
    DYNA_RETURN_IF_ERROR(initialize(ranks, p, seed, team));
  return Status::ok();
}

Status initializeAddedParts(RankTeam &ranks, uint64_t seed, Team &team) {
  for (int p = 0; p < ranks.model().parameters(); ++p)
    if (ranks.model().parameter(p).added())
      DYNA_RETURN_IF_ERROR(initialize(ranks, p, seed, team));
  return Status::ok();
}

Status castParameters(RankTeam &ranks) {
  DYNA_ASSIGN_OR_RETURN(auto made, Planner(ranks.graph()).cast());
  DYNA_ASSIGN_OR_RETURN(
      VerifiedStep step,
      VerifiedStep::prove(SwitchTable::ofOne(ranks.graph()),
                          stepOf(std::move(made)), /*lengths=*/{},
                          /*targets=*/0, /*regionLimits=*/{}));
  StepResult result;
  return ranks.run(step, MiniBatch(), StepScalars(), result);
}

} // namespace dyna
