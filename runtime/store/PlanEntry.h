//===- PlanEntry.h - Encodes a rank's part of a plan ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An entry in a store has these bytes:
//
//     0..7    "DYNAPLAN"
//     8..11   format (storeFormat), little-endian
//     12..15  rank
//     16..23  step
//     24..31  checksum of the rest
//     32..39  predicted seconds of the step, as the bits of a double;
//             0: no prediction
//     40..    the step with that rank's programs alone (PlanFile.h)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_STORE_PLANENTRY_H
#define DYNA_RUNTIME_STORE_PLANENTRY_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/program/StepPlan.h"

#include <string>
#include <string_view>

namespace dyna {

struct PlanEntry {
  plan::StepPlan step;         ///< has one phase if the run has one strategy
  double predictedSeconds = 0; ///< of all ranks, which its reader does not know
};

/// Writes the part of a step that `rank` runs. Programs of other ranks are empty.
/// `step` is the number of the step in the run.
std::string writePlanEntry(const plan::StepPlan &plans, int64_t step, int rank,
                           double predictedSeconds);

/// Reads an entry. Returns InvalidArgument, with the numbers, if it is no
/// entry, is damaged, or has another format, step or rank. The caller adds the
/// names of step and store. A successful read does not mean that the plan may
/// run.
StatusOr<PlanEntry> readPlanEntry(std::string_view bytes, int64_t step,
                                  int rank);

} // namespace dyna

#endif // DYNA_RUNTIME_STORE_PLANENTRY_H
