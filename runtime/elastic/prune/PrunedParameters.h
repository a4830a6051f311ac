//===- PrunedParameters.h - Selects the pruned parameters -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// By default the linear weights of blocks are pruned. These are the matrices that no
// embedding and no head uses. A pattern chooses matrices by their names. `*` in it stands
// for any characters.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PRUNEDPARAMETERS_H
#define DYNA_RUNTIME_ELASTIC_PRUNEDPARAMETERS_H

#include "runtime/plan/model/Model.h"

#include <string>
#include <vector>

namespace dyna {

/// Returns true if the pattern stands for the whole name. O(pattern * name).
bool matchesPattern(const std::string &pattern, const std::string &name);

/// Returns true for each parameter of the model that is pruned. `patterns` are
/// separated by `+`; empty: the default. Fails with InvalidArgument if a
/// pattern matches no matrix, or if there is nothing to prune.
StatusOr<std::vector<bool>> prunedParameters(const Model &model,
                                             const std::string &patterns);

/// Returns groups of parameters with masks whose weights are compared with each other:
/// all of the model, or those of each layer. A parameter that several layers share is of
/// the first.
std::vector<std::vector<int>> prunedGroups(const Model &model, bool isPerLayer);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PRUNEDPARAMETERS_H
