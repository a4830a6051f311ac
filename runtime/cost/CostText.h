//===- CostText.h - Writes tables of costs as text --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the text of a file that `--costs` reads, with a line for each point.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTTEXT_H
#define DYNA_RUNTIME_COST_COSTTEXT_H

#include "runtime/cost/Costs.pb.h"

#include <string>
#include <vector>

namespace dyna {

/// Returns the text of a table, after `comments`, one on each line. It parses
/// to the same table, with seconds and rates rounded to six digits.
std::string writeCosts(const cost::Table &table,
                       const std::vector<std::string> &comments);

/// Returns the comments at the top of such a text.
std::vector<std::string> costComments(const std::string &text);

/// Merges a new measurement into an existing table, which may be empty. The
/// result has all of `measured`. From `before` it keeps entries of other
/// functions and tensor degrees. It also keeps compute type, layers, device,
/// cluster and sparse products if `measured` has none.
cost::Table mergeCosts(const cost::Table &before, const cost::Table &measured);

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTTEXT_H
