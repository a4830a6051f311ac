//===- PlanFolder.h - Writes and reads the plans of steps as files --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan that is read may have been edited by hand, so it is verified like
// every other plan.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANFOLDER_H
#define DYNA_RUNTIME_TRAIN_PLANFOLDER_H

#include "runtime/train/files/PlanFiles.h"
#include "runtime/train/plans/PlanSource.h"

namespace dyna {

/// Returns a source that writes each plan of `source` to a file before it is
/// used. Makes the folder.
StatusOr<std::unique_ptr<PlanSource>>
dumpPlans(std::unique_ptr<PlanSource> source, const std::string &folder);

/// Returns a source of the plans in a folder, each verified. A failure is one
/// line with the file's name. It fails for missing files and for files without
/// a plan. It also fails for plans of another model, strategy or mini-batch,
/// and for refused plans. `session` must outlive it.
std::unique_ptr<PlanSource> readPlans(const Session &session,
                                      const std::string &folder);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANFOLDER_H
