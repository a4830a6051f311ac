//===- MemoryChecker.h - Verifies live blocks (P6, P7) ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a part of the plan verifier; see PlanVerifier.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MEMORYCHECKER_H
#define DYNA_RUNTIME_PLAN_MEMORYCHECKER_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/graph/ProgramBlocks.h"

#include <map>

namespace dyna {

/// Follows the live blocks of one rank, by offset.
class MemoryChecker {
public:
  MemoryChecker(const ProgramBlocks &blocks, int64_t bytes)
      : blocks_(blocks), bytes_(bytes) {}

  Status step(int index, const plan::Instruction &i);
  Status finish() const;

private:
  Status checkPlaces(int index, const plan::Instruction &i) const;
  Status take(const BlockUse &use);
  Status overlap(const BlockUse &use, int64_t place, int other) const;

  const ProgramBlocks &blocks_;
  const int64_t bytes_;
  std::map<int64_t, int> alive_; ///< numbers of blocks, by their places
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MEMORYCHECKER_H
