//===- SimulationFlag.h - Parses the conditions of a simulation -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SIMULATIONFLAG_H
#define DYNA_TOOLS_DYNA_PLAN_SIMULATIONFLAG_H

#include "runtime/sim/PlanTimes.h"

#include <string>

namespace dyna {

/// Parses words with commas between them; empty: devices, rendezvous, links
/// unshared.
///
///     host                ranks of this runtime, which move bytes themselves
///     one-stream          all exchanges of a device one after another
///     links=devices       transfers share the links of devices
///     links=nodes         and messages may use all ports of their node
///     eager=BYTES         messages of up to so many bytes are eager
///     noise=SHARE         deviation of functions' times
///     delay=SECONDS/N     one in N functions takes so much longer
///     seed=N              of noise and delays
///
/// Fails with the word and its legal values.
StatusOr<SimulationOptions> parseSimulation(const std::string &text);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SIMULATIONFLAG_H
