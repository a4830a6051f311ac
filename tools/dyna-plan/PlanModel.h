//===- PlanModel.h - The model that plans are made for -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H
#define DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H

#include "mlir/Support/LLVM.h"
#include "runtime/plan/Model.h"
#include "runtime/plan/Strategy.h"
#include "tools/dyna-plan/PlanFlags.h"

namespace dyna {

/// One line for people; returns the exit code of what a user can put right.
int fail(const Status &status);

/// A graph or a config.json, compiled up to the memory phase at the strategy's
/// tensor degree: there is no code. Or what a training binary says of itself,
/// which is run for it. Diagnostics have been printed where it fails.
mlir::FailureOr<Model> compileModel(const PlanFlags &flags,
                                    const Strategy &strategy);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H
