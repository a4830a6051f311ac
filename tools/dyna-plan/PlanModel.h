//===- PlanModel.h - Loads the model that plans are made for ----*- C++ -*-===//
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

/// Prints the error as one line. Returns the exit code for errors that the user
/// can fix.
int fail(const Status &status);

/// Returns true if this file is no text but a program, which describes its
/// model.
bool isTrainingBinary(const std::string &path);

/// Opens the table that --costs, --cluster and --attention describe.
StatusOr<CostTable> openTable(const PlanFlags &flags);

/// Returns the table's costs of the model, whose layers have the states of --sparsity
/// and --exit-shares. Notes these states, which rates forecasts assume, and whether costs were measured in
/// another compute type.
StatusOr<CostModel> openCosts(const Model &model, CostTable table,
                              const PlanFlags &flags);

/// Notes what a file of costs lacks for strategies that a search tried or
/// found.
void noteLacking(const CostModel &costs,
                 const std::vector<Strategy> &strategies);

/// Compiles a graph or a config.json up to the memory phase, at the strategy's
/// tensor degree. No code is generated. The compute type is that of
/// --compute-type, or else that of the costs, or bf16. A training binary is run
/// instead, and describes its model. The model stores scores if the table
/// describes some. Diagnostics were printed if this fails. `isAgain`: prints no
/// warnings a second time.
mlir::FailureOr<Model> compileModel(const PlanFlags &flags,
                                    const Strategy &strategy,
                                    const CostTable &table,
                                    bool isAgain = false);

/// Returns the strategies that split layers, as text for the distribute phase,
/// with names of their own. Empty if there are none.
std::string splittingStrategies(const std::vector<Strategy> &strategies);

/// Returns the strategies that a training binary was compiled with; empty if
/// there are none.
StatusOr<std::vector<Strategy>> compiledStrategies(const Model &model);

/// Parses a strategy, or finds one of `known` by its name. Error messages
/// contain `flag`, the option with the text, and `more`, alternatives to a
/// written strategy.
StatusOr<Strategy> readStrategy(const std::string &flag,
                                const std::string &text,
                                const std::vector<Strategy> &known,
                                const std::string &more = "");

/// Compiles the model as above, at the tensor degrees of several strategies as
/// text; empty: at 1 alone. Prints no warnings.
mlir::FailureOr<Model> compileDegrees(const PlanFlags &flags,
                                      const std::string &strategies,
                                      const CostTable &table);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLANMODEL_H
