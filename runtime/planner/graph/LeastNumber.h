//===- LeastNumber.h - Bisects over all numbers of a range ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_LEASTNUMBER_H
#define DYNA_RUNTIME_PLANNER_LEASTNUMBER_H

#include <cstdint>
#include <cstring>

namespace dyna {

/// Returns the least number from `low` to `high` for which `holds` is true. It must hold
/// for `high`, and for all numbers above one for which it holds. Both bounds are finite
/// and not negative. The result is exact: bits of such numbers have the order of the
/// numbers, so at most 64 calls tell all of them apart.
template <typename Holds>
double leastNumber(double low, double high, Holds holds) {
  auto bitsOf = [](double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  };
  auto numberOf = [](uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  uint64_t least = bitsOf(low), most = bitsOf(high);
  while (least < most) {
    const uint64_t middle = least + (most - least) / 2;
    if (holds(numberOf(middle)))
      most = middle;
    else
      least = middle + 1;
  }
  return numberOf(most);
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_LEASTNUMBER_H
