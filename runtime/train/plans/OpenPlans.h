//===- OpenPlans.h - Opens the source of plans that flags ask for ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_OPENPLANS_H
#define DYNA_RUNTIME_TRAIN_OPENPLANS_H

#include "runtime/train/plans/PlanSource.h"

namespace dyna {

/// Opens the source of plans for the flags of the session, which must outlive
/// it.
StatusOr<std::unique_ptr<PlanSource>> openPlanSource(const Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_OPENPLANS_H
