//===- CoreTime.h - What a thread has had of a core -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times on the wall are also those of whatever else a machine does. Both functions
// are about the calling thread, count from some moment before, and are 0 where the
// system does not say.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_CORETIME_H
#define DYNA_RUNTIME_BASE_CORETIME_H

namespace dyna {

/// Seconds in which it had a core; in an active wait, too. 0.3 microseconds.
double coreSeconds();

/// Seconds in which it could have run, but others had all cores: no sleep, no wait.
/// Some microseconds.
double coreWaitSeconds();

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_CORETIME_H
