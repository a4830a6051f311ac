//===- StoredTensors.h - Verifies the tensors of parameters in files ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FACTS_STOREDTENSORS_H
#define DYNA_DIALECTS_DYNA_FACTS_STOREDTENSORS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Returns where checkpoints have a parameter, be it said or not.
StoredAttr storedOf(ParameterOp parameter);

/// Returns the parameters that the calls of a model take, in order of first use. The
/// calls must be verified.
SmallVector<ParameterOp> parametersOf(ModelOp model,
                                      SymbolTableCollection &symbols);

/// Fails at the first parameter that is stored where another one is. Also fails if a tensor
/// lacks a part, or has parts that do not fit each other. Takes O(n log n) steps for n
/// parameters.
LogicalResult checkStored(ModelOp model, SymbolTableCollection &symbols);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FACTS_STOREDTENSORS_H
