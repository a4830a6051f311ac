//===- Descriptions.h - Lists the devices that are known by name ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_DESCRIPTIONS_H
#define DYNA_RUNTIME_COST_DESCRIPTIONS_H

#include <vector>

namespace dyna {

/// A file of runtime/cost/descriptions: the text of a `cost::Table` with a device
/// and a cluster.
struct Description {
  const char *name, *text;
};

/// Returns the built-in descriptions, in the order of their names.
const std::vector<Description> &descriptions();

/// Returns the text of descriptions/stored-scores.textproto, which has scores
/// and nothing else.
const char *storedScores();

} // namespace dyna

#endif // DYNA_RUNTIME_COST_DESCRIPTIONS_H
