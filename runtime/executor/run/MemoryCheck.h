//===- MemoryCheck.h - Compares accesses with plans -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the bytes that compiled code writes with those that its instructions
// may write (plan/ProgramBlocks). Free memory of the dynamic region is filled
// with 0xFF bytes, which read as NaN and as index -1. After each instruction the
// arena is compared with its image from before. A byte that changed outside the
// blocks and parameters of the instruction is an error that names it. Memory of
// an exchange in flight is left out until the exchange is waited for, because
// other ranks write there meanwhile. When a block is given back, it is measured
// up to its last byte that is not 0xFF, and poisoned again.
//
// In a step of several graphs, switches may write home's parameters. They may also
// write blocks of phases in the region (StepMemory.h) while the phases have them.
// All other memory there is free when a phase's own memory begins.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_MEMORYCHECK_H
#define DYNA_RUNTIME_EXECUTOR_RUN_MEMORYCHECK_H

#include "runtime/executor/step/SwitchCarrier.h"
#include "runtime/plan/graph/ProgramBlocks.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace dyna {

struct Run;

/// A block of a finished run.
struct BlockReport {
  BlockName name;
  plan::Instruction::Op releasedBy;
  int64_t assigned = 0;
  int64_t touchedEnd = 0; ///< 1 + the last byte touched
};

struct MemoryReport {
  std::vector<BlockReport> blocks;
  /// 1 + the last byte touched in the region: never more than the plan's
  /// dynamic_bytes, or a step's stepBytes.
  int64_t touchedEnd = 0;
};

class MemoryCheck {
public:
  static constexpr uint8_t poison = 0xFF;

  explicit MemoryCheck(RankMachine &machine)
      : machine_(machine), dynamicStart_(machine.dynamicStart()),
        dynamicEnd_(machine.dynamicStart() + machine.dynamicBytes()),
        arenaBytes_(machine.arena().bytes()) {}

  /// Poisons the free part of the region and takes the first image. The run's
  /// program follows.
  Status begin(const Run &run);
  /// Does the same when a phase's own memory begins.
  Status openBody(const Run &run);
  /// Compares the arena after the run's instruction, before its blocks are
  /// given back.
  Status after(const Run &run, const plan::Instruction &instruction);

  const MemoryReport &report() const { return report_; }

private:
  struct Range {
    int64_t begin, end;
  };
  struct AliveBlock {
    BlockName name;
    Range range; ///< in the arena
  };

  std::vector<Range> writableRanges(const Run &run,
                                    const ProgramBlocks::Uses &uses,
                                    const plan::Instruction &instruction) const;
  void addParameterRanges(const plan::Instruction &instruction,
                          std::vector<Range> &ranges) const;
  /// Returns the memory of phases outside of their dynamic regions, while the
  /// run's instruction runs.
  std::vector<Range> heldRanges(const Run &run) const;
  Status poisonFree(const Run &run);
  /// Measures how far the memory of phases that ends here was touched.
  void measureHeld(const Run &run);
  std::vector<Range> flyingRanges() const;
  Status takeImage();
  Status compare(std::vector<Range> writable,
                 const plan::Instruction &instruction);
  std::string describeByte(int64_t at) const;
  Status release(const BlockUse &use, const plan::Instruction &instruction);

  RankMachine &machine_;
  const int64_t dynamicStart_, dynamicEnd_, arenaBytes_;
  const GraphSeat *seat_ = nullptr; ///< seat of the running program
  const SwitchCarrier *switches_ = nullptr;
  std::vector<uint8_t> image_; ///< before the instruction
  std::vector<uint8_t>
      present_; ///< after it, without memory of exchanges in flight
  std::map<int, AliveBlock> alive_; ///< by number
  /// Memory that started exchanges may write until they are waited for, by
  /// (kind, layer, micro-batch).
  std::map<std::tuple<ExchangeKind, int, int>, std::vector<Range>> inFlight_;
  MemoryReport report_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_MEMORYCHECK_H
