//===- InstructionBlocks.h - What instructions do with memory -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of an instruction for the dynamic region: which blocks it takes,
// reads, writes and gives back. The planner derives lifetimes from it, the
// verifier proves that blocks alive at one time do not overlap, and the
// executor's memory check compares it with the bytes that compiled code really
// touches.
//
//     block      taken by                           given back by
//     batch      LOAD                               the micro-batch's last
//                                                   instruction
//     kept       the producer of the input (LOAD,   FREE; under EVALUATE the
//                FORWARD or EVALUATE of the layer   consumer; SEND_ACT_WAIT
//                before, RECV_ACT_START)            where it leaves the rank
//     late       RECOMPUTE (or BACKWARD_INPUT);     BACKWARD, or
//                in FORWARD it is scratch           BACKWARD_WEIGHT
//     gradient   BACKWARD[_INPUT] of a layer, for   BACKWARD[_INPUT] of the
//                the gradient of its input, or      layer before, or
//                RECV_GRAD_START                    SEND_GRAD_WAIT
//     workspace  each instruction for itself
//     norm       GRAD_NORM, for its sum
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_INSTRUCTIONBLOCKS_H
#define DYNA_RUNTIME_PLAN_INSTRUCTIONBLOCKS_H

#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/ManifestView.h"

#include <unordered_map>
#include <vector>

namespace dyna {

enum class BlockKind { Batch, Kept, Late, Gradient, Workspace, Norm };
const char *blockKindName(BlockKind kind);

/// One block as one instruction sees it. A block is named by kind, micro-batch
/// and layer; a gradient by the layer whose input it is the gradient of.
struct BlockUse {
  BlockKind kind;
  int microBatch = -1;
  int layer = -1;
  Field field;
  int64_t bytes = 0; ///< more than 0
  bool acquires = false;
  bool releases = false;
  bool writes = false;
};

/// Query tokens, key/value tokens and segments of a micro-batch.
Extent extentOf(const plan::MicroBatch &microBatch);

/// The micro-batches of each replica, in order; all must be of one.
std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas);

/// "FORWARD layer 3 micro-batch 1": for messages and traces.
std::string describeInstruction(const plan::Instruction &instruction);

class InstructionBlocks {
public:
  /// Layers and micro-batches of all instructions must be in range. All three
  /// must outlive this object. With `largest`, every micro-batch is counted
  /// with that extent instead of its own.
  InstructionBlocks(const ManifestView &view, const plan::Plan &plan,
                    const plan::RankProgram &program,
                    const Extent *largest = nullptr);

  std::vector<BlockUse> uses(int instruction) const;

  /// Of a micro-batch that the program names.
  const Extent &extent(int microBatch) const {
    return microBatches_.at(microBatch).extent;
  }
  /// What FORWARD of this layer keeps.
  plan::Recompute mode(int microBatch, int layer) const {
    return facts(microBatch, layer).mode;
  }
  /// Whether its backward comes in two instructions.
  bool split(int microBatch, int layer) const {
    return facts(microBatch, layer).split;
  }

private:
  struct Facts {
    plan::Recompute mode = plan::RECOMPUTE_NONE;
    bool split = false;
    bool recomputed = false;
    bool evaluated = false;
  };
  struct MicroBatch {
    Extent extent;
    int lastInstruction = -1;
    std::vector<Facts> layers;
  };
  const Facts &facts(int microBatch, int layer) const {
    return microBatches_.at(microBatch).layers[layer];
  }
  int64_t keptBytes(int microBatch, int layer) const;
  int64_t lateBytes(int microBatch, int layer, bool deferred) const;
  void addLayerUses(int index, std::vector<BlockUse> &uses) const;
  void addForward(const plan::Instruction &i,
                  std::vector<BlockUse> &uses) const;
  void addBackward(const plan::Instruction &i,
                   std::vector<BlockUse> &uses) const;
  void addMessage(const plan::Instruction &i,
                  std::vector<BlockUse> &uses) const;
  /// The block that takes a layer's input: all that is kept if the layer is
  /// this rank's, else the input alone, until it is sent.
  int64_t inputBlockBytes(int microBatch, int layer) const;

  const ManifestView &view_;
  const plan::RankProgram &program_;
  /// Those that the program names: a plan has the micro-batches of all replicas.
  std::unordered_map<int, MicroBatch> microBatches_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_INSTRUCTIONBLOCKS_H
