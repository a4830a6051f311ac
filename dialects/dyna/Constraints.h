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

/// The size of dimension `index` of a ranked tensor.
int64_t sizeOf(Value tensor, unsigned index);
Type elementOf(Value tensor);

LogicalResult expectSize(Operation *op, const Twine &what, int64_t size,
                         const Twine &whose, int64_t expected);
LogicalResult expectElement(Operation *op, const Twine &what, Value value,
                            const Twine &whose, Value other);
/// f64 if `source` is of f64, else f32.
LogicalResult expectAccumulator(Operation *op, const Twine &what, Value value,
                                const Twine &whose, Value source);
/// As above, or bf16 if `source` is: the sum of a parameter's gradients.
LogicalResult expectGradientSum(Operation *op, const Twine &what, Value value,
                                const Twine &whose, Value source);
/// A vector with the width of `x`.
LogicalResult expectWidthOf(Operation *op, const Twine &what, Value vector,
                            const Twine &whose, Value x);
LogicalResult expectPositive(Operation *op, StringRef name,
                             const APFloat &value);
/// An ignore index can only be met by targets if it is an i32.
LogicalResult expectTargetId(Operation *op, StringRef name, int64_t value);
/// A rank's part of a table is not larger than the table; null is the whole.
LogicalResult expectPart(Operation *op, const Twine &what, Value part,
                         ShardAttr shard);
/// ATTN1 to ATTN5 and ATTN7, which attention and its gradient share.
LogicalResult verifyAttention(Operation *op, Value query, Value key,
                              Value value, int64_t heads, int64_t kvHeads,
                              const APFloat &scale, int64_t number);

} // namespace mlir::dyna::check

#endif // DYNA_DIALECTS_DYNA_CONSTRAINTS_H
