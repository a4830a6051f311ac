//===- PortLoads.h - Sums up the loads of ports -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PORTLOADS_H
#define DYNA_RUNTIME_PLANNER_PORTLOADS_H

#include "runtime/sim/SwitchNetwork.h"

#include <array>
#include <vector>

namespace dyna {

/// Seconds that each port is busy with all that goes over it, without latencies.
class PortLoads {
public:
  explicit PortLoads(const SwitchNetwork &network);

  double &at(Port port, int rank) {
    return seconds_[static_cast<int>(port)][rank];
  }
  double at(Port port, int rank) const {
    return seconds_[static_cast<int>(port)][rank];
  }
  /// Adds a message between two ranks. A message of a rank to itself adds nothing.
  /// Negative bytes remove a message.
  void add(int from, int to, double bytes);
  double largest() const;

private:
  const SwitchNetwork *network_;
  double insideSeconds_, betweenSeconds_; ///< seconds per byte
  std::array<std::vector<double>, kPorts> seconds_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PORTLOADS_H
