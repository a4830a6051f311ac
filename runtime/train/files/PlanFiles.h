//===- PlanFiles.h - The files of a folder of plans -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder has a file for each step: `step-7.plan` is that of the step that the
// metrics call 7, in the form of PlanFile.h, which `dyna-translate` brings into
// text and back.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANFILES_H
#define DYNA_RUNTIME_TRAIN_PLANFILES_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>

namespace dyna {

/// `step` counts from 0, as in a run.
std::string planPath(const std::string &folder, int64_t step);

/// Whether nothing in a folder is called like the plan of a step behind `steps`, the
/// last of those that are about to be written there.
Status checkPlansBehind(const std::string &folder, int64_t steps);

/// A line that tells two folders apart if one of their plans differs.
StatusOr<std::string> describePlans(const std::string &folder);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANFILES_H
