//===- ChooseGraphs.h - Strategies of a run become graphs -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of opening a session: which strategies there are, how plans of each are
// made, and how a step is dealt to them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
#define DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H

#include "runtime/train/session/Session.h"

namespace dyna {

/// The graph of --strategy, or those of --ranges, of which the one that needs the
/// least memory is home.
Status chooseGraphs(Session &session, bool training);

/// The one whose samples are the longest.
PlannedGraph &graphOfLongest(Session &session);
/// Once the data are known: no graph keeps room for longer samples than its range
/// has. Fails where no range has them.
Status setLongestSample(Session &session, int64_t longest);

/// Once all options are known: what plans steps of several graphs, in regions of so
/// many bytes on each rank.
void joinGraphs(Session &session, std::vector<int64_t> regionBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
