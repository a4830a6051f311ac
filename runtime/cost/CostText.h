//===- CostText.h - Tables of costs as people read them -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text of a file that `--costs` reads, a line for each point.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTTEXT_H
#define DYNA_RUNTIME_COST_COSTTEXT_H

#include "runtime/cost/Costs.pb.h"

#include <string>
#include <vector>

namespace dyna {

/// Parses to the same table again, but for digits of seconds and rates behind
/// the sixth. `comments` come first, a line each.
std::string writeCosts(const cost::Table &table,
                       const std::vector<std::string> &comments);

/// The comments at the top of such a text.
std::vector<std::string> costComments(const std::string &text);

/// What stands in the file after a measurement: of `measured` all entries, and
/// compute type, layers, device and cluster where it has them; of `before`, which may
/// be empty, the entries of other functions and tensor degrees, and what is left.
cost::Table mergeCosts(const cost::Table &before, const cost::Table &measured);

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTTEXT_H
