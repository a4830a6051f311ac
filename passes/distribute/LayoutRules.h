//===- LayoutRules.h - The factor rules of dyna ops -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_LAYOUTRULES_H
#define DYNA_PASSES_DISTRIBUTE_LAYOUTRULES_H

#include "dialects/dist/Dist.h"

namespace mlir::dyna {

/// Gives every compute op of dyna its dist::LayoutRuleOpInterface.
void registerLayoutRules(DialectRegistry &registry);

/// The rule of an op, or a diagnostic that it has none.
FailureOr<dist::FactorRule> getLayoutRule(Operation *op);

/// "[t, k] [n, k] -> [t, n] linear in {0}", for reading. A factor that is never
/// split carries a `!`.
std::string describeRule(const dist::FactorRule &rule);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_LAYOUTRULES_H
