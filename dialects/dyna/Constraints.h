//===- Constraints.h - Checks that verifiers of dyna ops share -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each check emits one diagnostic with both values. `what` and `whose` are
// phrases such as "the width of 'x'". Private to the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_CONSTRAINTS_H
#define DYNA_DIALECTS_DYNA_CONSTRAINTS_H

#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/APFloat.h"

namespace mlir::dyna::check {

/// Returns the size of dimension `index` of a ranked tensor.
int64_t sizeOf(Value tensor, unsigned index);
Type elementOf(Value tensor);

LogicalResult expectSize(Operation *op, const Twine &what, int64_t size,
                         const Twine &whose, int64_t expected);
LogicalResult expectElement(Operation *op, const Twine &what, Value value,
                            const Twine &whose, Value other);
/// Expects f64 if `source` is f64, else f32.
LogicalResult expectAccumulator(Operation *op, const Twine &what, Value value,
                                const Twine &whose, Value source);
/// Expects the same, or bf16 if `source` is bf16: the sum of a parameter's
/// gradients.
LogicalResult expectGradientSum(Operation *op, const Twine &what, Value value,
                                const Twine &whose, Value source);
/// Expects a vector with the width of `x`.
LogicalResult expectWidthOf(Operation *op, const Twine &what, Value vector,
                            const Twine &whose, Value x);
LogicalResult expectPositive(Operation *op, StringRef name,
                             const APFloat &value);
/// Expects an i32: targets are i32 and could match no other ignore index.
LogicalResult expectTargetId(Operation *op, StringRef name, int64_t value);
/// Expects a rank's part of a table to be at most as large as the table. A null
/// `shard` is the whole table.
LogicalResult expectPart(Operation *op, const Twine &what, Value part,
                         ShardAttr shard);
/// Checks ATTN1 to ATTN5 and ATTN7, which attention and its gradient share.
LogicalResult verifyAttention(Operation *op, Value query, Value key,
                              Value value, int64_t heads, int64_t kvHeads,
                              const APFloat &scale, int64_t number);

} // namespace mlir::dyna::check

#endif // DYNA_DIALECTS_DYNA_CONSTRAINTS_H
