//===- Plan.h - Represents the instructions of one mini-batch ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan lists the instructions of every rank. A planner writes it, the verifier
// checks it, and the executor interprets it. The `exec` dialect is its readable
// form, and Plan.proto its form in files.
//
// A plan contains only free choices: the instructions, their order and the places of
// blocks. Everything else follows from the model and the strategy: the peers and
// bytes of messages, and the blocks of an instruction and their sizes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLAN_H
#define DYNA_RUNTIME_PLAN_PLAN_H

#include "runtime/abi/Abi.h"
#include "runtime/base/load/Load.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dyna::plan {

/// Values that backward computes again.
enum Recompute : int32_t {
  RECOMPUTE_NONE = 0,
  RECOMPUTE_SELECTIVE = 1,
  RECOMPUTE_FULL = 2
};
constexpr int Recompute_MAX = RECOMPUTE_FULL;

/// Tokens of one sample that pass the layers together, and the keys that they look at.
/// Today one stream is legal (P2 in PlanVerifier.h).
struct Segment {
  /// `keyEnd` of keys that end with the segment's own last token.
  static constexpr int64_t ownEnd = -1;

  int64_t sample = 0; ///< index in the mini-batch
  int64_t begin = 0;  ///< first token of the sample
  int64_t length = 0;
  /// Stream that the tokens belong to. Streams are numbered; a decoder has stream 0.
  int32_t stream = 0;
  /// Stream, first token and end of the keys. By default they are the tokens of the
  /// segment and all earlier ones of its sample.
  int32_t keyStream = 0;
  int64_t keyBegin = 0;
  int64_t keyEnd = ownEnd;

  TokenRange queries() const { return {begin, length}; }
  TokenRange keys() const {
    return {keyBegin, (keyEnd == ownEnd ? begin + length : keyEnd) - keyBegin};
  }
};

/// Returns true if both name the same tokens and the same keys.
bool operator==(const Segment &a, const Segment &b);

struct MicroBatch {
  std::vector<Segment> segments;
  int replica = 0; ///< data-parallel coordinate of the ranks that run it
};
bool operator==(const MicroBatch &a, const MicroBatch &b);

/// Largest number of micro-batches in a plan. Each has tags of its own in a transport.
constexpr int maxMicroBatches = 1 << 20;

/// Alignment of places, in bytes.
constexpr int64_t placeAlignment = DYNA_BLOCK_ALIGNMENT;
/// Place of a block that does not exist.
constexpr int64_t noPlace = -1;

/// One instruction of a rank. Instructions.def says what each kind has and does.
struct Instruction {
  enum Op : uint8_t {
    OP_UNKNOWN,
#define DYNA_INSTRUCTION(name, ...) name,
#include "runtime/plan/program/Instructions.def"
    Op_END
  };
  static constexpr int Op_MAX = Op_END - 1;
  /// Largest number of blocks that one instruction takes.
  static constexpr int maxTaken = 3;

  Op op = OP_UNKNOWN;
  /// Mode of FORWARD and RECOMPUTE.
  Recompute recompute = RECOMPUTE_NONE;
  /// The layer. For a message, the edge whose activation or gradient is sent
  /// (`edgeOf` in InstructionTable.h).
  int layer = 0;
  int microBatch = 0;
  /// Phase and bucket of a switch (StepPlan.h). The switch leads to or from the graph
  /// of this phase.
  int phase = 0;
  int bucket = 0;
  /// Number of the layer's parameter that is exchanged alone, counted from 1; 0: all
  /// parameters that the layer shares.
  int parameter = 0;
  /// Places of the blocks that the instruction takes, in the order of its row. A place
  /// is an offset in bytes in the dynamic region, which follows the persistent part
  /// of the arena; `noPlace`: no such block.
  std::array<int64_t, maxTaken> places = {noPlace, noPlace, noPlace};
};

/// Returns true if all fields are equal.
bool operator==(const Instruction &a, const Instruction &b);

/// Places of a phase's memory on a rank (StepPlan.h), as offsets in bytes in the rank's
/// region. A plan that is no phase of a step has only its dynamic region.
struct PhasePlaces {
  int64_t dynamic = 0; ///< dynamic region of the program
  /// Parameters that layers read, and their gradients, in graphs other than home.
  int64_t values = noPlace;
  int64_t gradients = noPlace;
  /// Transit buffers of the switch that brings values, and of the one that takes
  /// gradients home. They hold data that is passed on or added later.
  int64_t valueTransit = noPlace;
  int64_t gradientTransit = noPlace;
};
bool operator==(const PhasePlaces &a, const PhasePlaces &b);

struct RankProgram {
  std::vector<Instruction> instructions;
  int64_t dynamicBytes = 0; ///< size of its dynamic region
  PhasePlaces places;

  /// Returns the number of instructions.
  int count() const { return static_cast<int>(instructions.size()); }
};

struct Plan {
  uint64_t manifestHash = 0;
  /// Name of its graph (ExecutableGraph::name). A plan has one graph; a step of several
  /// graphs has several plans.
  std::string graph;
  std::vector<MicroBatch> microBatches;
  std::vector<RankProgram> ranks;
  int64_t targetTokens = 0; ///< targets of the whole mini-batch, all replicas
  // Further facts for exec IR, which the verifier and the executor do not read.
  std::string name;
  std::vector<int64_t> lengths; ///< tokens of each sample
  /// Schedule that replaced the requested one; empty: none did. A schedule is replaced
  /// if it does not fit memory. A schedule that searches is also replaced by a faster
  /// simple one.
  std::string fallback;

  int rankCount() const { return static_cast<int>(ranks.size()); }
  int microBatchCount() const { return static_cast<int>(microBatches.size()); }
};

} // namespace dyna::plan

#endif // DYNA_RUNTIME_PLAN_PLAN_H
