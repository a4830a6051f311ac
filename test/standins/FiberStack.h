//===- FiberStack.h - Stacks, and from one to another -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The switch of stacks is our own: swapcontext asks the system to change the mask
// of signals each time, which makes a shuffle a hundred times as long.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_FIBERSTACK_H
#define DYNA_TEST_STANDINS_FIBERSTACK_H

#include <cstddef>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define DYNA_FIBERS_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define DYNA_FIBERS_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

/// Keeps what a called function must keep on the stack, stores the stack pointer
/// in *from, goes on where `to` was stored.
extern "C" void dyna_fiber_switch(void **from, void *to);

namespace dyna::standins {

constexpr size_t kStackBytes = size_t(256) << 10;

/// Memory for one fiber, below it a page that may not be touched.
class FiberStack {
public:
  FiberStack();
  FiberStack(const FiberStack &) = delete;
  FiberStack &operator=(const FiberStack &) = delete;
  ~FiberStack();

  char *bottom() const;
  /// A stack pointer from which dyna_fiber_switch enters `function`.
  void *prepare(void (*function)());

private:
  void *base_;
};

/// Of this host thread, kept from one block to the next.
FiberStack &fiberStackOf(size_t thread);

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_FIBERSTACK_H
