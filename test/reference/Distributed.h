//===- Distributed.h - Runs local functions on all ranks at once ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The ranks of a tensor degree run the same function, op after op, in lockstep:
// each op on every rank, collectives across them. A rank's part of a table that
// is smaller than its static type ends in rows that are not a number, so that
// whoever reads them is seen.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_DISTRIBUTED_H
#define DYNA_TEST_REFERENCE_DISTRIBUTED_H

#include "dialects/dist/Dist.h"
#include "test/reference/LayerRun.h"

namespace mlir::dyna::reference {

/// What the rank at `position` holds of a tensor whose whole is `whole`, in a
/// buffer of the local type. Of a partial tensor the first rank of each sum has
/// all, the others zero.
Tensor scatter(const Tensor &whole, dist::LayoutAttr layout, int64_t position,
               RankedTensorType localType);

/// The whole again. Infinite values stand where replicas differ.
Tensor gather(const std::vector<Tensor> &parts, dist::LayoutAttr layout,
              const std::vector<int64_t> &shape);

/// Runs a function of a local layer on all ranks of its mesh.
LogicalResult runLocal(FunctionOp function, const ::dyna::Mesh &mesh,
                       std::vector<LayerRun> &ranks, const Context &context);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_DISTRIBUTED_H
