//===- BlockTables.cpp - Holds the tables of kinds and keys of blocks -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/BlockTables.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"

namespace dyna {

using plan::Instruction;

namespace {

//===----------------------------------------------------------------------===//
// Words of BlockKinds.def
//===----------------------------------------------------------------------===//

/// Returns the layer of a block. The block of an output belongs to the layer
/// that reads it.
int layerOf(const BlockContext &at, bool ofConsumer) {
  const int layer = at.view.layerOf(at.i);
  if (!ofConsumer)
    return layer;
  const Model &model = at.view.model();
  const std::vector<int> &outputs = model.outputsOf(layer);
  return outputs.empty() ? -1 : model.edge(outputs.front()).consumer;
}

int64_t keptBytes(const BlockContext &at, int layer) {
  const MicroBatchFacts &m = at.microBatch;
  if (layer < 0)
    return 0; // the machine holds losses
  // The output for the next stage. Inputs have a block on the first stage only.
  if (!at.view.hasLayer(layer))
    return at.i.op == Instruction::LOAD ? 0 : at.view.inputBytes(layer, m.load);
  if (m.layers[layer].evaluated)
    return at.view.inputBytes(layer, m.load);
  return at.view.keptBytes(layer, m.layers[layer].mode, m.load);
}

int64_t lateBytes(const BlockContext &at, int layer) {
  const auto &facts = at.microBatch.layers[layer];
  return at.view.lateBytes(layer, facts.mode,
                           facts.split && at.i.op != Instruction::FORWARD,
                           at.microBatch.load);
}

int64_t keyBytes(const BlockContext &at, int layer) {
  const MicroBatchFacts &m = at.microBatch;
  return m.bundle < 0 || layer < 0 ? 0 : at.view.keyBytes(layer, m.storeRows);
}

int64_t keyGradientBytes(const BlockContext &at, int layer) {
  const MicroBatchFacts &m = at.microBatch;
  return m.bundle < 0 || layer < 0 || m.layers[layer].evaluated ||
                 !at.view.hasBackward(layer)
             ? 0
             : at.view.keyGradientBytes(layer, m.storeRows);
}

enum KeyBits : unsigned {
#define DYNA_KEY_COLUMN(name, ...)                                             \
  name = 1u << static_cast<int>(KeyColumn::name),
#include "runtime/plan/program/BlockKinds.def"
};

constexpr bool own = false, consumer = true;

BlockTables makeStandard() {
  return {{{
#define DYNA_KEY_COLUMN(name, text, value)                                     \
  {text, [](const BlockContext &at, [[maybe_unused]] bool ofConsumer) -> int { \
     return value;                                                             \
   }},
#include "runtime/plan/program/BlockKinds.def"
          }},
          {
#define DYNA_BLOCK_KIND(name, text, key, life, bytes)                          \
  {text, key, BlockLife::life,                                                 \
   [](const BlockContext &at, const BlockName &block) -> int64_t {             \
     [[maybe_unused]] const int layer = block.at(KeyColumn::Layer);            \
     [[maybe_unused]] const Load &load = at.microBatch.load;                   \
     return bytes;                                                             \
   }},
#include "runtime/plan/program/BlockKinds.def"
          },
          {{
#define DYNA_OPERAND(name, text, kind, layer) {BlockKind::kind, layer},
#include "runtime/plan/program/BlockKinds.def"
          }},
          blockRules};
}

} // namespace

const BlockTables &BlockTables::standard() {
  static const BlockTables tables = makeStandard();
  return tables;
}

std::string BlockTables::describe(const BlockName &name) const {
  std::string text = formatText("%s block", kind(name.kind).text);
  const char *before = " of";
  for (int column = 0; column < keyColumnCount; ++column) {
    if (name.key[column] < 0)
      continue;
    text +=
        formatText("%s %s %d", before, columns[column].text, name.key[column]);
    before = "";
  }
  return text;
}

const char *blockKindName(BlockKind kind) {
  return BlockTables::standard().kind(kind).text;
}

std::string describeBlock(const BlockName &name) {
  return BlockTables::standard().describe(name);
}

} // namespace dyna
