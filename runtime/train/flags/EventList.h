//===- EventList.h - Lists of changes before given steps --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values of --repack and --freeze are entries `WHAT@STEP` with ';' between them, in the
// order of their steps.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_EVENTLIST_H
#define DYNA_RUNTIME_TRAIN_EVENTLIST_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// Returns the entries of a list, with the spaces around them.
std::vector<std::string> splitEvents(const std::string &text);
/// Returns the refusal of an entry that does not come after the one before it.
Status eventOutOfOrder(const char *flag, const std::string &entry,
                       const std::string &before);
/// Returns the refusal of an entry whose step is below the `done` steps of the run.
Status eventInThePast(const char *flag, const std::string &entry, int64_t done);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_EVENTLIST_H
