//===- CoreTime.h - Measures the time that a thread had a core --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Wall-clock times include the time of other work on the machine. Both
// functions measure the calling thread, from an arbitrary start, and return 0
// if the system does not tell.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_THREAD_CORETIME_H
#define DYNA_RUNTIME_BASE_THREAD_CORETIME_H

namespace dyna {

/// Returns the seconds in which the thread had a core, active waits included.
/// The call takes 0.3 microseconds.
double coreSeconds();

/// Returns the seconds in which the thread could have run, but others had all
/// cores. Sleeps and waits do not count. The call takes some microseconds.
double coreWaitSeconds();

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_THREAD_CORETIME_H
