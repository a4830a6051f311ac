//===- Reshard.h - Plans collectives between two layouts --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans the collectives (runtime/abi/Collectives.h) that bring a tensor from
// one layout to another. There is a plan for every pair, except that a value
// cannot become partial. Each step works in all groups along its axis parts:
//
//     step             group [tp], before and after            bytes sent
//     all_reduce       [[]] partial [tp]  ->  [[]]             2(k-1)/k whole
//     reduce_scatter   [[]] partial [tp]  ->  [[tp]]           (k-1)/k whole
//     all_gather       [[tp]]             ->  [[]]             (k-1) part
//     slice            [[]]               ->  [[tp]]           0
//     all_to_all       [[tp], []]         ->  [[], [tp]]       (k-1)/k part
//
// Here k ranks form a group, and the bytes are those that one rank sends. A
// step adds or removes its parts at the *minor* end of a dimension's list,
// because only there are the parts of a group neighbours. Removing dp from
// [[dp, tp]] would leave each rank with two separate pieces, so tp must be
// removed first.
//
// Uneven rows. A collective deals the rows that the group holds together by the
// same rule as a layout deals the whole dimension. So a step on [[dp, tp]]
// along tp is right only under a condition. Cutting the dp parts again must
// give the parts of the combined split (splitRefines in Layout.h). If it does
// not, or if the size is unknown, the plan treats the whole list as one group.
// Five rows on dp=2,tp=2 go
//
//     [[dp, tp]]  --all_gather [dp, tp]-->  [[]]  --slice [dp]-->  [[dp]]
//
// Choice. Plans are compared by the bytes that ranks send, then by the number
// of steps. All plans for a pair move fractions of one tensor. So the fractions
// (of even parts) are compared, and neither the size nor the type of the tensor
// matters. Slices only move towards `to`: replicas do not take over work for
// others.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_RESHARD_H
#define DYNA_RUNTIME_LAYOUT_RESHARD_H

#include "runtime/layout/Layout.h"

namespace dyna {

enum class ReshardKind { AllReduce, AllGather, ReduceScatter, Slice, AllToAll };

struct ReshardStep {
  ReshardKind kind = ReshardKind::AllReduce;
  /// The ranks that differ only in these parts exchange with each other,
  /// ordered by Mesh::indexIn. Canonical, never empty.
  AxisParts group;
  /// The dimension gathered or cut; for an all_to_all the one split before. -1
  /// for an all_reduce.
  int dim = -1;
  int toDim = -1; ///< of an all_to_all the dimension split after, else -1
  Layout before, after;
};

/// Returns the steps from one layout of a tensor to another: none if they are
/// the same placement for every shape. `shape` is the shape of the global
/// tensor. Its sizes may be kDynamicSize: the plan is then right for every
/// size. The first step's `before` is `from` and the last one's `after` is
/// `to`, as given; layouts in between are canonical.
///
/// Fails if a layout does not fit the mesh or the shape, and if `to` is partial
/// but `from` is not.
///
/// Deterministic. Dijkstra's algorithm over the reachable layouts: with a axis
/// parts and d dimensions at most a! * (d+1)^a of them, in practice tens. After
/// `maxMoves` tried steps it returns the plan that gathers what must change and
/// cuts it anew.
StatusOr<std::vector<ReshardStep>>
planReshard(const Mesh &mesh, const Layout &from, const Layout &to,
            const Shape &shape, int64_t maxMoves = 100000);

/// Returns the name of the operation in the IR, such as "all_reduce".
const char *reshardKindName(ReshardKind kind);

/// Returns "all_gather [tp] dim 0: [[dp, tp]] -> [[dp]]".
std::string describeStep(const Mesh &mesh, const ReshardStep &step);

/// Returns the layout after a step: what its kind, group and dimensions make of
/// `before`, in canonical form. `after` is ignored. Fails, with the reason, if
/// the step is impossible. Parts may not be at the minor end, or not partial.
/// Ranks may be in use already, dimensions may be missing, or rows may not
/// nest.
StatusOr<Layout> layoutAfter(const Mesh &mesh, const ReshardStep &step,
                             const Shape &shape);

/// Fails unless the step leads from `before` to `after`, in any form.
Status checkStep(const Mesh &mesh, const ReshardStep &step, const Shape &shape);

/// Returns the bytes that the rank at `position` sends, each element once to
/// each rank that needs it. Exact, also for uneven parts. An all_reduce counts
/// as a reduce_scatter and an all_gather of its flattened elements.
int64_t bytesSent(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
                  int64_t elementBytes, int64_t position);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_RESHARD_H
