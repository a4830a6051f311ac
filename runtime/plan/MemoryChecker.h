//===- MemoryChecker.h - Blocks that are alive (P6, P7) -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of the plan verifier; see PlanVerifier.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MEMORYCHECKER_H
#define DYNA_RUNTIME_PLAN_MEMORYCHECKER_H

#include "runtime/plan/InstructionBlocks.h"

#include <map>
#include <tuple>

namespace dyna {

/// The blocks of one rank that are alive, by offset.
class MemoryChecker {
public:
  MemoryChecker(const InstructionBlocks &blocks, int64_t bytes)
      : blocks_(blocks), bytes_(bytes) {}

  Status step(int index, const plan::Instruction &i);
  Status finish() const;

private:
  using Key = std::tuple<BlockKind, int, int>;
  struct Alive {
    Key key;
    int64_t end;
  };

  static Key keyOf(const BlockUse &use) {
    return {use.kind, use.microBatch, use.layer};
  }
  static std::string name(const Key &key);
  Status find(const BlockUse &use, const plan::Instruction &i) const;
  Status acquire(const BlockUse &use, const plan::Instruction &i);
  static Status overlap(const BlockUse &use, int64_t begin, const Key &other,
                        int64_t otherBegin);
  void release(const BlockUse &use);

  const InstructionBlocks &blocks_;
  const int64_t bytes_;
  std::map<int64_t, Alive> alive_;
  std::map<Key, int64_t> places_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MEMORYCHECKER_H
