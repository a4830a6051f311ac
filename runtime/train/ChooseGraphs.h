//===- ChooseGraphs.h - Strategies of a run become graphs -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of opening a session: which strategies there are and how plans of each
// are made, what the parameters of all of them take, and how a step is dealt to
// them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
#define DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H

#include "runtime/train/Session.h"

namespace dyna {

/// The graph of --strategy, or those of --ranges, of which the one that needs the
/// least memory is home.
Status chooseGraphs(Session &session, bool training);

/// The one whose samples are the longest.
RunGraph &graphOfLongest(Session &session);
/// Once the data are known: no graph keeps room for longer samples than its range
/// has. Fails where no range has them.
Status setLongestSample(Session &session, int64_t longest);

/// What a graph has of the parameters.
Persistent persistentOf(const Session &session, const RunGraph &graph,
                        bool training);
/// Bytes that a rank has of home's parameters and their state, all the time.
int64_t homeBytes(const Session &session, int rank, bool training);
/// What it has of all parameters at one time, at most, where phases take turns
/// (PlacePhases.h).
int64_t heldBytes(Session &session, int rank, bool training);
/// What some rank then has, at most, beside the parameters and micro-batches of
/// `graph`.
int64_t heldBeside(Session &session, const RunGraph &graph, bool training);

/// Once all options are known: what plans steps of several graphs, in regions of so
/// many bytes on each rank.
void joinGraphs(Session &session, std::vector<int64_t> regionBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
