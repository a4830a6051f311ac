//===- PipelineMemory.h - Checks that micro-batches fit a stage -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEMEMORY_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEMEMORY_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

/// Tables that do not fit each other are a fault of the caller. Fails where a
/// micro-batch does not even fit alone, or all that follow each other do not fit
/// together, with stage, bytes and limit.
Status checkMemory(const PipelineProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEMEMORY_H
