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

/// Sets the graphs of the session: the one of --strategy, or those of --ranges, of which
/// the one that needs the least memory is home.
Status chooseGraphs(Session &session, bool training);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_CHOOSEGRAPHS_H
