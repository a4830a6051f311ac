//===- FreezeRule.cpp - How many layers freeze, by their gradients --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/freeze/FreezeRule.h"

#include <algorithm>
#include <cmath>

namespace dyna {

int frozenNext(const std::vector<double> &norms, int frozen, double alpha) {
  const int layers = static_cast<int>(norms.size());
  if (frozen >= layers)
    return frozen;
  // A share such as 0.2 of 5 layers is one layer, whatever its last bit is.
  constexpr double rounding = 1e-9;
  const int most =
      frozen +
      static_cast<int>(std::floor(alpha * (layers - frozen) + rounding));
  const auto smallest = std::min_element(norms.begin() + frozen, norms.end());
  const int upTo = static_cast<int>(smallest - norms.begin()) + 1;
  return std::min({most, upTo, layers - 1});
}

} // namespace dyna
