//===- Epilogues.h - Finds epilogues that a product's library can compute -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Libraries of matrix products can compute a few ops after the product, if a
// description asks for them (dyna_epilogue of runtime/abi/Kernels.h). The
// product itself is then never in memory. This file finds the ops that such a
// description covers, and decides if the description pays:
//
//     h = bias m, b              BIAS         C = h
//     a = gelu (bias m, b)       BIAS_GELU    C = a, aux = h if that is needed
//     d = gelu_grad h, m         GELU_GRAD    C = d, aux = h
//
// It pays if product and remaining sweep move fewer bytes per row than a plain
// product and one sweep with all ops. A bias in front of a sweep that reads the
// sum once costs the same either way, so it stays in the sweep.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SWEEP_EPILOGUES_H
#define DYNA_PASSES_MEMORY_SWEEP_EPILOGUES_H

#include "dialects/dyna/Dyna.h"
#include "passes/memory/sweep/RowGroups.h"

namespace mlir::dyna {

/// Returns true for a matrix product whose rows can be handed to a sweep when
/// they are made. False for null.
bool isRowProduct(Operation *op);

/// One product with its described epilogue.
struct DescribedEpilogue {
  int32_t kind = 0; ///< DYNA_EPILOGUE_*
  Operation *product = nullptr;
  Value bias; ///< null under GELU_GRAD
  /// The `aux` of the description; null if nothing needs it.
  Value aux;
  Value result; ///< C
};

/// Returns the epilogues of the products directly in front of a sweep that
/// consists of nothing else; otherwise returns none. They stand in the order of
/// the products. There are several if products were joined (ProductRuns.h).
/// `aux` and `result` are results of the sweep if the sweep makes them.
SmallVector<DescribedEpilogue> describedEpilogues(RowsOp rows);

/// Cuts the epilogues that pay out of the sweeps. Each follows its product, as
/// a unit with a leader. `ops` are the nodes of the units; none of them has a
/// leader beside rows before.
void takeDescribedEpilogues(ArrayRef<Operation *> ops,
                            std::vector<FusionUnit> &units);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SWEEP_EPILOGUES_H
