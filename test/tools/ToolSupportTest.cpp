//===- ToolSupportTest.cpp - How the tools end ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/ToolSupport.h"
#include "llvm/Support/Signals.h"
#include "gtest/gtest.h"
#include <csignal>

using testing::KilledBySignal;

namespace {

/// As `llvm::InitLLVM` does. What it has printed in a crash hangs here, as it
/// does where the crash was inside an allocation.
void startTool(bool hangs) {
  // AddressSanitizer's handler, to which LLVM's returns, exits.
  std::signal(SIGSEGV, SIG_DFL);
  llvm::sys::PrintStackTraceOnErrorSignal("tool");
  if (hangs)
    llvm::sys::AddSignalHandler(
        [](void *) {
          for (;;)
            pause();
        },
        nullptr);
  mlir::dyna::endCrashes();
}

[[noreturn]] void crash(int signal) {
  std::raise(signal);
  std::_Exit(1);
}

class CrashTest : public testing::TestWithParam<int> {};

TEST_P(CrashTest, EndsByItsSignal) {
  EXPECT_EXIT((startTool(/*hangs=*/false), crash(GetParam())),
              KilledBySignal(GetParam()), "");
}

TEST_P(CrashTest, EndsThoughTheStackCannotBePrinted) {
  EXPECT_EXIT((startTool(/*hangs=*/true), crash(GetParam())),
              KilledBySignal(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Signals, CrashTest, testing::Values(SIGSEGV, SIGABRT));

} // namespace
