//===- PlanModel.h - The model that plans are made for -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H
#define DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H

#include "mlir/Support/LLVM.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/model/Model.h"
#include "runtime/plan/model/Strategy.h"
#include "tools/dyna-plan/PlanFlags.h"

#include <string>
#include <vector>

namespace dyna {

/// One line for people; returns the exit code of what a user can put right.
int fail(const Status &status);

/// Whether the model of this name is no text, but a program that describes it.
bool isTrainingBinary(const std::string &path);

/// What --costs, --cluster and --attention say.
StatusOr<CostTable> openTable(const PlanFlags &flags);

/// Returns the table's costs of the model, whose layers have the states of --sparsity.
/// Notes these states, which rates forecasts assume, and whether costs were measured in
/// another compute type.
StatusOr<CostModel> openCosts(const Model &model, CostTable table,
                              const PlanFlags &flags);

/// Says what a file of costs lacks for strategies that a search tries or found.
void noteLacking(const CostModel &costs,
                 const std::vector<Strategy> &strategies);

/// A graph or a config.json, compiled up to the memory phase at the strategy's
/// tensor degree: there is no code. Its compute type is that of --compute-type, or
/// else that in which the costs were measured, or bf16. Or what a training binary
/// says of itself, which is run for it. Keeps scores where the table has some.
/// Diagnostics have been printed where it fails; where it is done again, warnings
/// stay away.
mlir::FailureOr<Model> compileModel(const PlanFlags &flags,
                                    const Strategy &strategy,
                                    const CostTable &table,
                                    bool isAgain = false);

/// Strategies as text that the distribute phase reads, under names of their own:
/// those that split layers; empty where none of them does.
std::string splittingStrategies(const std::vector<Strategy> &strategies);

/// Those that a training binary was compiled with; none: it was not.
StatusOr<std::vector<Strategy>> compiledStrategies(const Model &model);

/// A strategy that is written, or one of `known` by its name. `flag` is whose text
/// it is, and `more` what else than to write one would do.
StatusOr<Strategy> readStrategy(const std::string &flag,
                                const std::string &text,
                                const std::vector<Strategy> &known,
                                const std::string &more = "");

/// The same at the tensor degrees of several strategies as text; none: at 1 alone.
/// Warnings stay away.
mlir::FailureOr<Model> compileDegrees(const PlanFlags &flags,
                                      const std::string &strategies,
                                      const CostTable &table);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H
