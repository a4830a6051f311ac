//===- BlockTables.h - Holds the tables of kinds and keys of blocks -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tables list the kinds of blocks. For each kind they say which columns
// name a block, who gives it back, and how many bytes it has. BlockKinds.def
// and Instructions.def are the tables of the product. ProgramBlocks gets tables
// as data, so that tests can supply other kinds.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_BLOCKTABLES_H
#define DYNA_RUNTIME_PLAN_BLOCKTABLES_H

#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/program/InstructionTable.h"

#include <array>
#include <string>
#include <vector>

namespace dyna {

enum class BlockKind {
#define DYNA_BLOCK_KIND(name, ...) name,
#include "runtime/plan/program/BlockKinds.def"
};

/// Columns of keys, in the order in which messages list them.
enum class KeyColumn {
#define DYNA_KEY_COLUMN(name, ...) name,
#include "runtime/plan/program/BlockKinds.def"
};
constexpr int keyColumnCount = 0
#define DYNA_KEY_COLUMN(...) +1
#include "runtime/plan/program/BlockKinds.def"
    ;

/// Values of all columns; -1 in columns without a value.
using KeyValues = std::array<int, keyColumnCount>;
constexpr KeyValues noKey = {
#define DYNA_KEY_COLUMN(...) -1,
#include "runtime/plan/program/BlockKinds.def"
};

/// Kind and key of a block. Columns that its kind does not have are -1.
struct BlockName {
  BlockKind kind = BlockKind::Kept;
  KeyValues key = noKey;

  int at(KeyColumn column) const { return key[static_cast<int>(column)]; }
  bool operator==(const BlockName &o) const {
    return kind == o.kind && key == o.key;
  }
};

/// Facts of one micro-batch that its instructions state.
struct MicroBatchFacts {
  struct LayerFacts {
    plan::Recompute mode = plan::RECOMPUTE_NONE; ///< of values kept by FORWARD
    bool split = false; ///< backward in two instructions
    bool evaluated = false;
  };
  Load load;
  int bundle = -1;       ///< bundle of its slices; -1: none is a slice
  int64_t storeRows = 0; ///< rows of the bundle's store
  std::vector<LayerFacts> layers;
};

/// An instruction in its program, from which keys and bytes of blocks are computed.
struct BlockContext {
  const RankView &view;
  const plan::Plan &plan;
  const plan::Instruction &i;
  /// Facts of the instruction's micro-batch; without layers and load if it has
  /// none.
  const MicroBatchFacts &microBatch;
};

/// Says which instruction gives a block back.
enum class BlockLife {
  ByRow, ///< the instruction whose row says so
  ByKey  ///< the last instruction with the block's key that is no message
};

struct BlockTables {
  struct Column {
    const char *text;
    /// Returns the value of an operand, -1 if it has none.
    int (*value)(const BlockContext &at, bool ofConsumer);
  };
  struct Kind {
    const char *text;
    unsigned key; ///< bits of KeyColumn
    BlockLife life;
    /// Returns the bytes of a block; 0 if there is no such block.
    int64_t (*bytes)(const BlockContext &at, const BlockName &name);

    bool has(int column) const { return key >> column & 1; }
  };
  struct OperandRow {
    BlockKind kind;
    bool ofConsumer;
  };
  std::array<Column, keyColumnCount> columns;
  std::vector<Kind> kinds;                       ///< by BlockKind
  std::array<OperandRow, operandCount> operands; ///< by Operand
  /// Returns what an instruction does with blocks.
  BlockRules (*rules)(plan::Instruction::Op op);

  const Kind &kind(BlockKind kind) const {
    return kinds[static_cast<size_t>(kind)];
  }
  const OperandRow &operand(Operand operand) const {
    return operands[static_cast<size_t>(operand)];
  }
  /// Returns a text such as "kept block of layer 3 micro-batch 1".
  std::string describe(const BlockName &name) const;

  /// Returns the tables of BlockKinds.def and Instructions.def.
  static const BlockTables &standard();
};

const char *blockKindName(BlockKind kind);
/// Describes a block of the standard tables.
std::string describeBlock(const BlockName &name);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_BLOCKTABLES_H
