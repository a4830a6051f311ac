//===- ProgramBlocks.h - Lists the blocks of a program and their lives ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A table of the blocks of a rank's program: name, bytes, place, and the first and
// last instruction that use each. Also lists the blocks that each instruction uses.
// Plans do not hold this table: it follows from the program, the model and the tables
// of kinds (BlockTables.h). Placement, verification, the executor's memory check and
// reports use it. None of them assumes that a block ends with a micro-batch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H
#define DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H

#include "runtime/plan/graph/BlockTables.h"
#include "runtime/plan/program/Bundles.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace dyna {

struct Block {
  BlockName name;
  int64_t bytes = 0; ///< more than 0
  int64_t place = plan::noPlace;
  int first = 0; ///< the instruction that takes it
  int last = 0;  ///< the last one that uses it
};

/// Use of a block by one instruction.
struct BlockUse {
  BlockName name;
  Operand operand;
  int64_t bytes = 0;
  /// Index in the table; -1 if the block is not alive. The program is wrong then, and
  /// also if it takes a block that is alive already.
  int block = -1;
  int placeIndex = -1; ///< index in `places` of a block that is taken
  bool takes = false, gives = false, writes = false;
  bool isThereAlready = false;
};

/// Returns the micro-batches of each replica, in order. Each micro-batch must name one
/// of `replicas`.
std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas);

class ProgramBlocks {
public:
  /// Layers and micro-batches of all instructions must be in range. `view` and
  /// `tables` must outlive this object. With `largest`, every micro-batch has that
  /// load instead of its own. Linear in the number of instructions, beside the number
  /// of possible keys.
  ProgramBlocks(const RankView &view, const plan::Plan &plan,
                const plan::RankProgram &program, const Load *largest = nullptr,
                const BlockTables &tables = BlockTables::standard());

  /// Tables that the blocks follow from.
  const BlockTables &tables() const { return *tables_; }
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
  /// Returns the place of an instruction's operand; `noPlace` if there is none.
  int64_t place(int instruction, Operand operand) const;
  /// Returns the bytes of live blocks, all or those of a kind, while each
  /// instruction runs.
  std::vector<int64_t>
  liveBytes(std::optional<BlockKind> kind = std::nullopt) const;

  /// Returns the load of a micro-batch that the program names.
  const Load &load(int microBatch) const {
    return microBatches_.at(microBatch).load;
  }
  /// Returns the mode that says what FORWARD of this layer keeps.
  plan::Recompute mode(int microBatch, int layer) const {
    return facts(microBatch, layer).mode;
  }
  /// Returns true if its backward is split into two instructions.
  bool split(int microBatch, int layer) const {
    return facts(microBatch, layer).split;
  }
  /// Bundles of the program's micro-batches.
  const Bundles &bundles() const { return bundles_; }

private:
  /// Values of an operand in the columns, and the cells of their keys.
  struct Key {
    KeyValues values = noKey;
    std::array<int, keyColumnCount> numbers = {}; ///< 0: no value
  };
  /// Cells of a kind: one for each possible key.
  struct Cells {
    int64_t first = 0;
    std::array<int64_t, keyColumnCount> strides = {}; ///< 0: not in its key
  };
  /// The instruction whose uses are computed.
  struct Current {
    int index;
    const BlockContext &at;
    Key own, consumer;
  };
  const MicroBatchFacts::LayerFacts &facts(int microBatch, int layer) const {
    return microBatches_.at(microBatch).layers[layer];
  }
  const MicroBatchFacts &microBatchOf(const plan::Instruction &i) const;
  void collectFacts(const plan::Plan &plan, const plan::RankProgram &program,
                    const Load *largest);
  void findBundles(const plan::Plan &plan);
  void numberKeys(const plan::Plan &plan, const plan::RankProgram &program);
  void findLastByKey(const plan::Plan &plan, const plan::RankProgram &program);
  Key keyOf(const BlockContext &at, bool ofConsumer) const;
  int64_t cellOf(BlockKind kind, const Key &key) const;
  BlockName nameOf(BlockKind kind, const Key &key) const;
  bool isLastOfKey(const Current &current, BlockKind kind,
                   const Key &key) const;
  void add(const Current &current, const BlockRule &rule, int placeIndex);
  void giveRest(const Current &current);

  const BlockTables *tables_;
  const RankView &view_;
  /// Micro-batches that the program names; a plan has those of all replicas.
  std::unordered_map<int, MicroBatchFacts> microBatches_;
  const MicroBatchFacts noMicroBatch_; ///< of instructions on parameters
  Bundles bundles_;
  /// Columns that may have values. Without slices the last one has none.
  int columns_ = keyColumnCount;
  std::vector<Block> blocks_;
  std::vector<BlockUse> uses_;
  std::vector<int> begins_; ///< of each instruction's uses

  // Used while the table is made.
  /// Numbers of values by column and value, from 1; 0: the program has no such value.
  std::array<std::vector<int>, keyColumnCount> numbers_;
  std::vector<Cells> cells_;       ///< by kind
  std::vector<int> present_;       ///< block that is alive, by cell; -1: none
  std::vector<BlockKind> byKey_;   ///< kinds that end by their keys
  std::vector<int> lastOfKey_;     ///< by cell, of kinds that end by their keys
  std::vector<int> operandOfKind_; ///< the first operand of each kind
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PROGRAMBLOCKS_H
