//===- PlanFiles.h - Names the files of a folder of plans -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder has one file per step. `step-7.plan` is the plan of the step that
// metrics call 7. Its form is that of PlanFile.h, which `dyna-translate`
// converts to text and back.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANFILES_H
#define DYNA_RUNTIME_TRAIN_PLANFILES_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>

namespace dyna {

/// Returns the path of a step's plan. `step` counts from 0, as in a run.
std::string planPath(const std::string &folder, int64_t step);

/// Fails if the folder has a plan of a step after `steps`, the last step that
/// is about to be written. Such a file would stay there among the plans of this
/// run.
Status checkPlansBehind(const std::string &folder, int64_t steps);

/// Returns a line that identifies the folder: it differs if any plan differs.
StatusOr<std::string> describePlans(const std::string &folder);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANFILES_H
