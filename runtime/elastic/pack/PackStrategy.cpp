//===- PackStrategy.cpp - Changes a strategy's number of ranks ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/pack/PackStrategy.h"

#include "runtime/base/text/Text.h"

#include <numeric>

namespace dyna {

StatusOr<Strategy> packStrategy(const Strategy &now, int ranks, int layers) {
  if (ranks % now.tp != 0)
    return Status::invalidArgument(formatText(
        "%d ranks are no multiple of the tensor degree of '%s': give a "
        "multiple of %d, or a strategy with another tp",
        ranks, describeStrategy(now), now.tp));
  Strategy packed = now;
  packed.name.clear();
  packed.layers.clear();
  // Two mirrored replicas share devices, and count as one.
  const int perDevice = now.mirror ? 2 : 1;
  packed.dp = std::gcd(now.dp / perDevice, ranks / now.tp);
  packed.pp = ranks / now.tp / packed.dp;
  packed.dp *= perDevice;
  if (packed.pp > layers)
    return Status::invalidArgument(formatText(
        "%d ranks have %d stages (strategy '%s'), but the model has %d layers: "
        "give fewer ranks, or a strategy with more replicas",
        ranks, packed.pp, describeStrategy(packed), layers));
  return packed;
}

} // namespace dyna
