//===- PackStrategy.h - Changes a strategy's number of ranks ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PACKSTRATEGY_H
#define DYNA_RUNTIME_ELASTIC_PACKSTRATEGY_H

#include "runtime/plan/model/Strategy.h"

namespace dyna {

/// Returns a strategy of `ranks` ranks with the tensor degree of `now`. It has as many
/// of the replicas as divide the ranks, and as many stages as the rest allows. The cut of
/// the layers is open. Fails if the ranks are no multiple of the tensor degree, or if
/// there are more stages than `layers`. With `mirror` the ranks are devices.
StatusOr<Strategy> packStrategy(const Strategy &now, int ranks, int layers);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PACKSTRATEGY_H
