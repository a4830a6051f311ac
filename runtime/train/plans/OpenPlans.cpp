//===- OpenPlans.cpp - Opens the source of plans that flags ask for -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/OpenPlans.h"

#include "runtime/train/plans/PlanFolder.h"
#include "runtime/train/plans/StoredPlans.h"

namespace dyna {

StatusOr<std::unique_ptr<PlanSource>> openPlanSource(const Session &session) {
  const TrainOptions &options = session.options;
  std::unique_ptr<PlanSource> source = options.plans.empty()
                                           ? planHere(session)
                                           : readPlans(session, options.plans);
  if (!options.store.empty()) {
    DYNA_ASSIGN_OR_RETURN(auto store,
                          openStore(options.store,
                                    std::chrono::seconds(options.timeout),
                                    std::chrono::seconds(options.storeRetry)));
    source = fetchPlans(session, std::move(store), std::move(source));
  }
  if (options.dumpPlans.empty() || !session.writesFiles())
    return source;
  return dumpPlans(std::move(source), options.dumpPlans);
}

} // namespace dyna
