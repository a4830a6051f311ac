//===- FiberStack.cpp - Stacks, and from one to another ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/FiberStack.h"

#include <cstdlib>
#include <memory>
#include <sys/mman.h>
#include <vector>

#ifndef __x86_64__
#error                                                                         \
    "fibers switch stacks in x86-64 code; CMake builds the stand-ins there alone"
#endif

asm(R"(
  .text
  .p2align 4
  .hidden dyna_fiber_switch
  .globl dyna_fiber_switch
  .type dyna_fiber_switch,@function
dyna_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size dyna_fiber_switch, .-dyna_fiber_switch
)");

namespace dyna::standins {
namespace {

constexpr size_t kPage = 4096;
/// Registers that dyna_fiber_switch keeps.
constexpr size_t kKept = 6;

} // namespace

FiberStack::FiberStack() {
  base_ = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base_ == MAP_FAILED || mprotect(base_, kPage, PROT_NONE) != 0)
    std::abort(); // a test on a machine without memory
}

FiberStack::~FiberStack() { munmap(base_, kStackBytes + kPage); }

char *FiberStack::bottom() const { return static_cast<char *>(base_) + kPage; }

void *FiberStack::prepare(void (*function)()) {
#ifdef DYNA_FIBERS_ASAN
  // A fiber that was left where it stood has poisoned parts.
  ASAN_UNPOISON_MEMORY_REGION(bottom(), kStackBytes);
#endif
  void **top = reinterpret_cast<void **>(bottom() + kStackBytes);
  *--top = nullptr; // where `function` would return to
  *--top = reinterpret_cast<void *>(function);
  for (size_t i = 0; i < kKept; ++i)
    *--top = nullptr;
  return top;
}

FiberStack &fiberStackOf(size_t thread) {
  static thread_local std::vector<std::unique_ptr<FiberStack>> stacks;
  while (stacks.size() <= thread)
    stacks.push_back(std::make_unique<FiberStack>());
  return *stacks[thread];
}

} // namespace dyna::standins
