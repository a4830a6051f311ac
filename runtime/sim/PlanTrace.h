//===- PlanTrace.h - What would run when ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANTRACE_H
#define DYNA_RUNTIME_SIM_PLANTRACE_H

#include "runtime/base/TraceWriter.h"
#include "runtime/sim/PlanTimes.h"

#include <string>

namespace dyna {

/// One step of several that a trace shows.
struct TracedStep {
  int64_t step = 0;
  double begin = 0;     ///< seconds, of the trace
  int firstProcess = 0; ///< that of rank 0
  std::string name;     ///< before the ranks' own; may be empty
  int phase = -1;       ///< of a step of several graphs
};

/// Writes a played plan as the executor writes one that ran: a slice for each
/// instruction, live bytes, arrows from where a message starts to be sent to the
/// wait that has received it. Devices have tracks beside: a stream for each line
/// of transfers that starts here, with bytes. `work` and `times` are the plan's,
/// `ofHosts` those of host ranks, which have no such streams.
void tracePlan(TraceWriter &writer, const TracedStep &step,
               const ExecutableGraph &graph, const plan::Plan &plan,
               const PlanWork &work, const PlanTimes &times, bool ofHosts);

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANTRACE_H
