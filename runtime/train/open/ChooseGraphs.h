//===- ChooseGraphs.h - Makes graphs of the strategies of a run -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of opening a session. They choose the strategies, how plans of each are
// made, and how the samples of a step are assigned to strategies.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
#define DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H

#include "runtime/train/session/Session.h"

namespace dyna {

/// Sets the graphs of the session: the one of --strategy, or those of --ranges, of which
/// the one that needs the least memory is home.
Status chooseGraphs(Session &session, bool training);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
