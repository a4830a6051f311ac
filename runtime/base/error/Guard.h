//===- Guard.h - Turns exceptions into values -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime throws nothing, but the standard library does if memory or
// threads run out. An exception that leaves a thread's function ends the
// process without a message. So this file starts threads and guards their work.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_ERROR_GUARD_H
#define DYNA_RUNTIME_BASE_ERROR_GUARD_H

#include "runtime/base/error/Status.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace dyna {

/// Returns the exception that is being handled, as a value.
inline Status currentFailure() {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return Status::resourceExhausted("out of memory: use smaller mini-batches "
                                     "or micro-batches, or raise the "
                                     "limit of this process (ulimit -v)");
  } catch (const std::length_error &) {
    return Status::resourceExhausted(
        "out of memory: a size is beyond all limits");
  } catch (const std::system_error &error) {
    return Status::resourceExhausted(std::string("the system refused: ") +
                                     error.what());
  } catch (const std::exception &error) {
    return Status::internal(std::string("unexpected failure: ") + error.what());
  } catch (...) {
    return Status::internal("unexpected failure");
  }
}

/// Returns the result of `body`, or the exception that left it.
template <typename Body> Status guarded(Body &&body) {
  try {
    return body();
  } catch (...) {
    return currentFailure();
  }
}

/// Starts a thread that runs `body`, which must not throw.
template <typename Body>
StatusOr<std::thread> startThread(const std::string &purpose, Body &&body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (...) {
    return Status::resourceExhausted(
        "no thread for " + purpose + " (" + currentFailure().message() +
        "): allow more of them (ulimit -u), or more memory "
        "(ulimit -v)");
  }
}

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_ERROR_GUARD_H
