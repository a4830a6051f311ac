//===- TinyExchanges.h - What the tiny model's ranks exchange ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYEXCHANGES_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYEXCHANGES_H

#include "runtime/abi/Collectives.h"
#include "test/runtime/executor/TinyParameters.h"

namespace dyna {

/// Of activations in compute type C among tensor-parallel ranks; with SP each has
/// some of the tokens between layers.
template <typename C, bool SP> struct TinyExchanges {
  static dyna_collective exchangeOf(const void *in, void *out, int64_t rows,
                                    int64_t elements, int32_t element,
                                    int32_t reduction = DYNA_REDUCE_SUM) {
    return {in, out, 1, rows, elements, DYNA_GROUP_TP, element, reduction, 0};
  }
  static dyna_collective exchangeOf(const void *in, void *out,
                                    const dyna_segments *segments) {
    return exchangeOf(in, out, segments->tq, tinyWidth,
                      sizeof(C) == 8 ? DYNA_ELEMENT_F64 : DYNA_ELEMENT_BF16);
  }

  /// Rows of an activation between layers.
  static int64_t rowsHere(const dyna_context *context,
                          const dyna_segments *segments) {
    return SP ? TinyPart(context, segments->tq).size : segments->tq;
  }

  /// All rows of an activation, collected in `scratch` if this rank has some.
  static dyna_status gather(dyna_context *context,
                            const dyna_segments *segments, C *&activation,
                            C *scratch) {
    if (!SP)
      return DYNA_OK;
    dyna_collective all = exchangeOf(activation, scratch, segments);
    activation = scratch;
    return dyna_all_gather(context, &all);
  }

  /// This rank's rows of a sum over ranks. `summand` is `sum` without SP.
  static dyna_status reduce(dyna_context *context,
                            const dyna_segments *segments, C *summand, C *sum) {
    dyna_collective all = exchangeOf(summand, sum, segments);
    return SP ? dyna_reduce_scatter(context, &all)
              : dyna_all_reduce(context, &all);
  }
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYEXCHANGES_H
