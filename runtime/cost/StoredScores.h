//===- StoredScores.h - Attention that keeps its scores ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention is compiled as one kernel that writes no scores to memory. Programs
// without such a kernel write those of every pair of a query and a key of a
// sample, visible or not, and keep them for backward. What that takes is
// described (cost::StoredScores), so that plans can be made and played for such
// a program: here what is kept, in CostModel what it takes of time.
//
// Kept scores are of the element-wise tier: with selective recomputation they
// are made again, as in Korthikanti et al. (2022), section 5.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_STOREDSCORES_H
#define DYNA_RUNTIME_COST_STOREDSCORES_H

#include "runtime/cost/Costs.pb.h"
#include "runtime/plan/model/Model.h"

namespace dyna {

/// Heads of a kind of layer that the ranks of a degree have, at most; `compiled`
/// is that kind at the degree, `whole` without one. 0 without attention.
int64_t headsOf(const plan::Manifest &manifest, const plan::LayerKind &whole,
                const plan::LayerKind &compiled);

/// The same model with all kinds that have attention keeping its scores. No
/// binary runs its plans: their hash is another. Fails where the model does not
/// say how many heads it has, or keeps scores already.
StatusOr<Model> keepScores(const Model &model,
                           const cost::StoredScores &scores);

/// Whether any kind keeps scores.
bool keepsScores(const Model &model);

} // namespace dyna

#endif // DYNA_RUNTIME_COST_STOREDSCORES_H
