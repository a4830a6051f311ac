//===- Reduction.h - Computes sums and maxima over ranks --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All host transports use one function and so give the same bits: element by
// element, in the order of the sources. Sums of bf16 are computed in f32 and
// rounded once, to nearest even. A maximum is not-a-number if one of its
// elements is.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_WIRE_REDUCTION_H
#define DYNA_RUNTIME_BASE_WIRE_REDUCTION_H

#include "runtime/abi/Collectives.h"

namespace dyna {

/// Returns the bytes of a DYNA_ELEMENT_*; 0 for an unknown one.
int64_t elementBytes(int32_t element);

/// Reduces `count` elements (DYNA_ELEMENT_*, DYNA_REDUCE_*) of every source and
/// writes the result to every target. A target may be one of the sources; no
/// other overlap is allowed.
void reduceElements(int32_t element, int32_t reduction,
                    const void *const *sources, int sourceCount,
                    void *const *targets, int targetCount, int64_t count);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_WIRE_REDUCTION_H
