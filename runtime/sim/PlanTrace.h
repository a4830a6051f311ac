//===- PlanTrace.h - Writes a simulated plan as a trace ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANTRACE_H
#define DYNA_RUNTIME_SIM_PLANTRACE_H

#include "runtime/base/text/TraceWriter.h"
#include "runtime/sim/PlanTimes.h"

#include <string>

namespace dyna {

/// Position of a simulated step in a trace.
struct TracedStep {
  int64_t step = 0;
  double begin = 0;     ///< seconds from the start of the trace
  int firstProcess = 0; ///< number of the process that shows rank 0
  std::string name;     ///< prefix of the ranks' names; may be empty
  int phase = -1;       ///< phase of a step with several graphs; -1: no phases
};

/// Writes a simulated plan in the form that the executor uses for a plan that ran.
/// Every instruction is a slice. A counter shows live bytes. Arrows lead from the
/// start of a message to the wait that received it. Devices also have a track for
/// each line of transfers that starts there, with bytes; with `ofHosts` there are
/// no such tracks. `work` and `times` belong to the plan.
void tracePlan(TraceWriter &writer, const TracedStep &step,
               const ExecutableGraph &graph, const plan::Plan &plan,
               const PlanWork &work, const PlanTimes &times, bool ofHosts);

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANTRACE_H
