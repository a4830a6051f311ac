//===- Guard.h - Exceptions become values -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime throws nothing, but the standard library does where memory or
// threads run out. What leaves the function of a thread ends the process
// without a word; so threads are started here, and their work is guarded.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_GUARD_H
#define DYNA_RUNTIME_BASE_GUARD_H

#include "runtime/base/Status.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace dyna {

/// The exception that is being handled, as a value.
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

/// What `body` returns, or the exception that left it.
template <typename Body> Status guarded(Body &&body) {
  try {
    return body();
  } catch (...) {
    return currentFailure();
  }
}

/// A thread that runs `body`, which throws nothing.
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

#endif // DYNA_RUNTIME_BASE_GUARD_H
