//===- PlanFolder.h - Plans of steps as files -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is read may have been changed by hand: it is proven as every plan is.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANFOLDER_H
#define DYNA_RUNTIME_TRAIN_PLANFOLDER_H

#include "runtime/train/files/PlanFiles.h"
#include "runtime/train/plans/PlanSource.h"

namespace dyna {

/// Writes what another source gives, before it is used; makes the folder.
StatusOr<std::unique_ptr<PlanSource>>
dumpPlans(std::unique_ptr<PlanSource> source, const std::string &folder);

/// Gives the plans of a folder. A step without a file, a file that is no plan or
/// one of another model, strategy or mini-batch, and one that is refused fail by
/// one line with the file's name. `session` must outlive it.
std::unique_ptr<PlanSource> readPlans(const Session &session,
                                      const std::string &folder);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANFOLDER_H
