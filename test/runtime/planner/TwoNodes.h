//===- TwoNodes.h - A small cluster for searches --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_TWONODES_H
#define DYNA_TEST_RUNTIME_PLANNER_TWONODES_H

#include "runtime/cost/CostModel.h"

namespace dyna {

/// Two nodes of two devices, on which compute takes long enough that degrees
/// matter.
inline CostModel twoNodes(const Model &model) {
  return *CostModel::create(
      model,
      *CostTable::parse(
          "device { name: \"d\" f64_flops: 1e8 f32_flops: 1e8 bf16_flops: "
          "1e8 bytes_per_second: 1e9 launch_seconds: 1e-5 }\n"
          "cluster { nodes: 2 devices_per_node: 2 inside { "
          "latency_seconds: 1e-6 bytes_per_second: 1e10 } between { "
          "latency_seconds: 5e-6 bytes_per_second: 1e9 } }\n",
          "costs"));
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_TWONODES_H
