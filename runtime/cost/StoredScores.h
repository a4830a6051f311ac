//===- StoredScores.h - Describes attention that stores its scores --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention is compiled as one kernel that writes no scores to memory. Programs
// without such a kernel store the score of every pair of a query and a key of a
// sample, visible or not. They keep the scores for backward. cost::StoredScores
// describes these costs, so that plans can be made and simulated for such a
// program. This file adds the stored bytes; CostModel adds the time.
//
// Stored scores belong to the element-wise tier: selective recomputation
// computes them again, as in Korthikanti et al. (2022), section 5.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_STOREDSCORES_H
#define DYNA_RUNTIME_COST_STOREDSCORES_H

#include "runtime/cost/Costs.pb.h"
#include "runtime/plan/model/Model.h"

namespace dyna {

/// Returns the largest number of heads of a layer kind on a rank of a degree; 0
/// without attention. `compiled` is the kind at the degree, `whole` the kind
/// without one.
int64_t headsOf(const plan::Manifest &manifest, const plan::LayerKind &whole,
                const plan::LayerKind &compiled);

/// Returns the model with scores stored by all kinds that have attention. No
/// binary runs its plans, because their hash differs. Fails if the model does
/// not give the number of heads, has no attention, or stores scores already.
StatusOr<Model> keepScores(const Model &model,
                           const cost::StoredScores &scores);

/// Returns true if any kind stores scores.
bool keepsScores(const Model &model);

} // namespace dyna

#endif // DYNA_RUNTIME_COST_STOREDSCORES_H
