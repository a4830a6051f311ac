//===- Epilogues.h - What a product's library does behind it ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Libraries of products take along a few things that they are told by a
// description (dyna_epilogue of runtime/abi/Kernels.h), so that the product
// itself is never in memory. Here is what of the graph such a description can
// say, and when saying it is worth the while.
//
//   h = bias m, b              BIAS         C = h
//   a = gelu (bias m, b)       BIAS_GELU    C = a, aux = h if that is needed
//   d = gelu_grad h, m         GELU_GRAD    C = d, aux = h
//
// It is, if the two move fewer bytes per row than a product and a sweep that
// does it with the rest of its ops: a bias in front of a sweep that reads the
// sum once costs as much either way, and stays there.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_EPILOGUES_H
#define DYNA_PASSES_MEMORY_EPILOGUES_H

#include "dialects/dyna/Dyna.h"
#include "passes/memory/RowGroups.h"

namespace mlir::dyna {

/// A matrix product whose result's rows can be handed to a sweep as they are
/// made. False for null.
bool isRowProduct(Operation *op);

/// One product with what is done behind it.
struct DescribedEpilogue {
  int32_t kind = 0; ///< DYNA_EPILOGUE_*
  Operation *product = nullptr;
  Value bias; ///< null under GELU_GRAD
  /// What the description calls aux; null where nobody needs it.
  Value aux;
  Value result; ///< C
};

/// The epilogues of the products directly in front of the sweep that it
/// consists of, in the order of the products; none if there is anything else in
/// it. Several are those of products that have been joined (ProductRuns.h). Of
/// `aux` and `result`, what the sweep makes is one of its results.
SmallVector<DescribedEpilogue> describedEpilogues(RowsOp rows);

/// Cuts the epilogues that are worth it out of the sweeps, and puts each behind
/// its product, as a unit with a leader. `ops` are the nodes of the units, none
/// of which has a leader beside rows before.
void takeDescribedEpilogues(ArrayRef<Operation *> ops,
                            std::vector<FusionUnit> &units);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_EPILOGUES_H
