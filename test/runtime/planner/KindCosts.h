//===- KindCosts.h - Measured costs by a formula ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_KINDCOSTS_H
#define DYNA_TEST_RUNTIME_PLANNER_KINDCOSTS_H

#include "runtime/base/text/Text.h"
#include "runtime/cost/CostModel.h"

#include <string>
#include <utility>

namespace dyna {

/// Returns costs of the tiny model's kinds, "measured" at 16, 256 and `most` tokens. A call
/// takes 10 us, a token 0.1 us and a pair 0.2 ns, divided among the shards. A token of the
/// head takes `head` times as long, as with a large vocabulary. `cluster` is text of a
/// file of costs.
inline CostModel kindCosts(const Model &model, const std::string &cluster,
                           int64_t most, double head = 1) {
  std::string text = cluster;
  for (const std::string kind : {"embedding", "block", "head"})
    for (int tp : {1, 2, 4})
      for (auto [direction, factor] :
           {std::pair("FORWARD", 1.0), {"BACKWARD", 2.0}, {"UPDATE", 0.1}}) {
        text += formatText("entries { kind: \"%s\" tp: %d direction: %s\n",
                           kind, tp, direction);
        const double perToken = 1e-7 * (kind == "head" ? head : 1);
        for (int64_t tokens : {INT64_C(16), INT64_C(256), most})
          for (int64_t length : {INT64_C(16), INT64_C(256), most})
            if (length <= tokens) {
              const int64_t pairs = tokens / length * length * (length + 1) / 2;
              const double work =
                  perToken * static_cast<double>(tokens) +
                  (kind == "block" ? 2e-10 : 0) * static_cast<double>(pairs);
              text +=
                  formatText("points { tokens: %d pairs: %d seconds: %g }\n",
                             tokens, pairs, factor * (1e-5 + work / tp));
            }
        text += "}\n";
      }
  return *CostModel::create(model, *CostTable::parse(text, "costs"));
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_KINDCOSTS_H
