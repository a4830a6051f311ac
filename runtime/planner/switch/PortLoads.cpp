//===- PortLoads.cpp - Sums up the loads of ports ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PortLoads.h"

#include <algorithm>

namespace dyna {

PortLoads::PortLoads(const SwitchNetwork &network)
    : network_(&network), insideSeconds_(network.secondsPerByte(true)),
      betweenSeconds_(network.secondsPerByte(false)) {
  for (std::vector<double> &port : seconds_)
    port.assign(network.ranks, 0);
}

void PortLoads::add(int from, int to, double bytes) {
  if (from == to)
    return;
  const bool isInside = network_->nodeOf(from) == network_->nodeOf(to);
  const double seconds = bytes * (isInside ? insideSeconds_ : betweenSeconds_);
  at(isInside ? Port::InsideOut : Port::NetworkOut, from) += seconds;
  at(isInside ? Port::InsideIn : Port::NetworkIn, to) += seconds;
}

double PortLoads::largest() const {
  double largest = 0;
  for (const std::vector<double> &port : seconds_)
    for (double seconds : port)
      largest = std::max(largest, seconds);
  return largest;
}

} // namespace dyna
