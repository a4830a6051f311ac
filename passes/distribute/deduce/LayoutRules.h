//===- LayoutRules.h - Registers the factor rules of dyna ops ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYOUTRULES_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYOUTRULES_H

#include "dialects/dist/Dist.h"

namespace mlir::dyna {

/// Gives every compute op of dyna its dist::LayoutRuleOpInterface.
void registerLayoutRules(DialectRegistry &registry);

/// Returns the rule of an op; reports an op without one.
FailureOr<dist::FactorRule> getLayoutRule(Operation *op);

/// Returns "[t, k] [n, k] -> [t, n] linear in {0}", for people. A `!` marks a
/// factor that is never split.
std::string describeRule(const dist::FactorRule &rule);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYOUTRULES_H
