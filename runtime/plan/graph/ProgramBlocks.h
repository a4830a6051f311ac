//===- ProgramBlocks.h - The blocks of a program and their lives -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's program has a table of blocks: what each is, how large, where it lies
// and from which instruction to which it is there, and for each instruction the
// numbers in it of the blocks that it uses. Plans do not hold it: it follows from
// the program, the model and Instructions.def. It is made once and is what
// placement, proof, memory check and reports go by.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H
#define DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H

#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/program/InstructionTable.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace dyna {

enum class BlockKind {
#define DYNA_BLOCK_KIND(name, ...) name,
#include "runtime/plan/program/BlockKinds.def"
};
const char *blockKindName(BlockKind kind);

/// What a block is of; -1 for what its kind has not.
struct BlockName {
  BlockKind kind = BlockKind::Kept;
  int microBatch = -1;
  int layer = -1;

  bool operator==(const BlockName &o) const {
    return kind == o.kind && microBatch == o.microBatch && layer == o.layer;
  }
};
/// "kept block of layer 3 micro-batch 1".
std::string describeBlock(const BlockName &name);

struct Block {
  BlockName name;
  int64_t bytes = 0; ///< more than 0
  int64_t place = plan::noPlace;
  int first = 0; ///< the instruction that takes it
  int last = 0;  ///< the last one that uses it
};

/// What one instruction does with one block.
struct BlockUse {
  BlockName name;
  Operand operand;
  int64_t bytes = 0;
  /// In the table; -1 for what is not there when it is used: then the program is
  /// wrong, as it is where a block is taken that is still there.
  int block = -1;
  bool takes = false, gives = false, writes = false;
  bool isThereAlready = false;
};

/// Returns the micro-batches of each replica, in order. Each micro-batch must name one
/// of `replicas`.
std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas);

class ProgramBlocks {
public:
  /// Layers and micro-batches of all instructions must be in range. `view` must
  /// outlive this object. With `largest`, every micro-batch has that load instead of
  /// its own. Linear in the number of instructions.
  ProgramBlocks(const RankView &view, const plan::Plan &plan,
                const plan::RankProgram &program,
                const Load *largest = nullptr);

  const std::vector<Block> &blocks() const { return blocks_; }

  struct Uses {
    const BlockUse *first, *last;
    const BlockUse *begin() const { return first; }
    const BlockUse *end() const { return last; }
  };
  Uses uses(int instruction) const {
    return {uses_.data() + begins_[instruction],
            uses_.data() + begins_[instruction + 1]};
  }
  /// Where the operand of an instruction lies; `noPlace` if it is not there.
  int64_t place(int instruction, Operand operand) const;
  /// Bytes that lie in blocks, all or those of a kind, while each instruction
  /// runs.
  std::vector<int64_t>
  liveBytes(std::optional<BlockKind> kind = std::nullopt) const;

  /// Returns the load of a micro-batch that the program names.
  const Load &load(int microBatch) const {
    return microBatches_.at(microBatch).load;
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
    bool evaluated = false;
  };
  struct MicroBatch {
    Load load;
    int lastInstruction = -1; ///< that is no message
    std::vector<Facts> layers;
    /// The numbers of the blocks that are there, -1 for those that are not;
    /// while the table is made.
    std::vector<int> present;
  };
  /// The instruction whose uses are being worked out.
  struct Current {
    int index;
    const plan::Instruction &i;
    MicroBatch &microBatch; ///< its own, or that of all parameters
  };
  const Facts &facts(int microBatch, int layer) const {
    return microBatches_.at(microBatch).layers[layer];
  }
  void collectFacts(const plan::Plan &plan, const plan::RankProgram &program,
                    const Load *largest);
  BlockName nameOf(const plan::Instruction &i, Operand operand) const;
  int64_t bytesOf(const Current &current, const BlockName &name) const;
  int64_t keptBytes(const Current &current, int layer) const;
  int64_t lateBytes(const Current &current, int layer) const;
  void add(const Current &current, const BlockRule &rule);
  void giveRest(const Current &current);
  size_t presentCount() const;
  int &present(MicroBatch &microBatch, const BlockName &name) const;

  const RankView &view_;
  /// Those that the program names: a plan has the micro-batches of all replicas.
  std::unordered_map<int, MicroBatch> microBatches_;
  std::vector<Block> blocks_;
  std::vector<BlockUse> uses_;
  std::vector<int> begins_; ///< of each instruction's uses
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H
