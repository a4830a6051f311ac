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
/// Bytes of the parameters of all graphs on one rank.
int64_t heldBytes(Session &session, int rank, bool training);
/// Those of all others than `graph`, on the rank where they are most.
int64_t heldBeside(Session &session, const RunGraph &graph, bool training);

/// Once all options are known: what plans steps of several graphs.
void joinGraphs(Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
