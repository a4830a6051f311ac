//===- FreezeRule.h - How many layers freeze, by their gradients -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PipeTransformer (He et al., ICML 2021, "Freeze Algorithm") freezes a model from its first
// layer on. With L layers, f of which are frozen, and the norm |g_l| of each layer's gradient,
//
//     f' = min(f + alpha (L - f), argmin |g_l| over the layers that are left)
//
// So at most a share alpha of the layers that are left freezes at once, up to the layer whose
// gradient is smallest. Layers count from 1 in this formula.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_FREEZERULE_H
#define DYNA_RUNTIME_ELASTIC_FREEZERULE_H

#include <vector>

namespace dyna {

/// Returns how many layers are frozen next, from the first one on: `frozen` or more, rounded
/// down, and never all. `norms` has the norm of each layer's gradient, and counts from
/// `frozen` on. Of equal norms the first one is the smallest. `alpha` is in (0, 1). O(layers).
int frozenNext(const std::vector<double> &norms, int frozen, double alpha);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_FREEZERULE_H
