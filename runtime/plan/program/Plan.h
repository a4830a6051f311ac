//===- Plan.h - What every rank does in one step ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The instructions of one mini-batch, per rank. A planner writes a plan, the
// verifier proves it, the executor interprets it; `exec` is its readable twin,
// Plan.proto its form in files.
//
// A plan says nothing that follows from the model and the strategy: the peers
// of messages and their bytes, which blocks an instruction uses and how large
// they are. What is free is which instructions there are, their order, and where
// blocks lie.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLAN_H
#define DYNA_RUNTIME_PLAN_PLAN_H

#include "runtime/abi/Abi.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dyna::plan {

/// What backward computes again.
enum Recompute : int32_t {
  RECOMPUTE_NONE = 0,
  RECOMPUTE_SELECTIVE = 1,
  RECOMPUTE_FULL = 2
};
constexpr int Recompute_MAX = RECOMPUTE_FULL;

struct Segment {
  int64_t sample = 0; ///< index into the mini-batch
  int64_t begin = 0;  ///< first token of the sample
  int64_t length = 0;
};

struct MicroBatch {
  std::vector<Segment> segments;
  int replica = 0; ///< the data-parallel coordinate of the ranks that run it
};

/// Micro-batches of a plan, at most: each has tags of its own in a transport.
constexpr int maxMicroBatches = 1 << 20;

/// Places are multiples of it.
constexpr int64_t placeAlignment = DYNA_BLOCK_ALIGNMENT;
/// A block that lies nowhere: there is none.
constexpr int64_t noPlace = -1;

/// What an instruction is, has and does says Instructions.def.
struct Instruction {
  enum Op : uint8_t {
    OP_UNKNOWN,
#define DYNA_INSTRUCTION(name, ...) name,
#include "runtime/plan/program/Instructions.def"
    Op_END
  };
  static constexpr int Op_MAX = Op_END - 1;
  /// Blocks that one instruction takes, at most.
  static constexpr int maxTaken = 3;

  Op op = OP_UNKNOWN;
  /// Of FORWARD and of RECOMPUTE.
  Recompute recompute = RECOMPUTE_NONE;
  /// For messages the first layer of the later stage, whose input, or the
  /// gradient of whose input, crosses.
  int layer = 0;
  int microBatch = 0;
  /// Of a switch (StepPlan.h): the phase whose graph it leads to or from, and
  /// which of its buckets.
  int phase = 0;
  int bucket = 0;
  /// The k-th parameter of the layer, counted from 1, is exchanged alone; 0: all
  /// that the layer shares.
  int parameter = 0;
  /// Bytes from the start of the dynamic region (everything in the arena behind
  /// the persistent part) at which the blocks lie that the instruction takes, in
  /// the order of its row; `noPlace` for those that are not there.
  std::array<int64_t, maxTaken> places = {noPlace, noPlace, noPlace};
};

/// Whether they are one byte for byte.
bool operator==(const Instruction &a, const Instruction &b);

/// Where what a phase of a step has on a rank lies (StepPlan.h): bytes from the
/// start of the rank's region. A plan that stands alone has its dynamic region
/// there, and nothing else.
struct PhasePlaces {
  int64_t dynamic = 0; ///< the dynamic region of the program
  /// What layers read, and their gradients: of a graph other than home.
  int64_t values = noPlace;
  int64_t gradients = noPlace;
  /// What waits to be passed on, or added, in the switch that brings the values,
  /// and in that which takes the gradients home.
  int64_t valueTransit = noPlace;
  int64_t gradientTransit = noPlace;
};
bool operator==(const PhasePlaces &a, const PhasePlaces &b);

struct RankProgram {
  std::vector<Instruction> instructions;
  int64_t dynamicBytes = 0; ///< size of the dynamic region that it needs
  PhasePlaces places;

  /// Of instructions.
  int count() const { return static_cast<int>(instructions.size()); }
};

struct Plan {
  uint64_t manifestHash = 0;
  /// The graph that it was made for (ExecutableGraph::name). One graph a plan;
  /// a step of several will have phases, each with its own.
  std::string graph;
  std::vector<MicroBatch> microBatches;
  std::vector<RankProgram> ranks;
  int64_t targetTokens = 0; ///< of the whole mini-batch, all replicas
  // What exec IR says beside: nothing that runs or proves a plan reads them.
  std::string name;
  std::vector<int64_t> lengths; ///< tokens of each sample
  /// The schedule that it has instead of the one asked for, which does not fit
  /// the memory there is or, where that searches, takes longer; empty: as asked.
  std::string fallback;

  int rankCount() const { return static_cast<int>(ranks.size()); }
  int microBatchCount() const { return static_cast<int>(microBatches.size()); }
};

} // namespace dyna::plan

#endif // DYNA_RUNTIME_PLAN_PLAN_H
