//===- ProgramBlocks.cpp - The blocks of a program and their lives --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ProgramBlocks.h"

#include "runtime/base/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

namespace {

enum Key { MicroBatch = 1, Layer = 2 };

struct KindRow {
  const char *text;
  int key;
};
constexpr KindRow kinds[] = {
#define DYNA_BLOCK_KIND(name, text, key, bytes) {text, key},
#include "runtime/plan/program/BlockKinds.def"
};
constexpr int kindCount = sizeof(kinds) / sizeof(*kinds);

/// And of no layer.
bool isOfMicroBatch(BlockKind kind) {
  return kinds[static_cast<int>(kind)].key == Key::MicroBatch;
}

struct OperandRow {
  BlockKind kind;
  bool ofConsumer;
};
constexpr bool own = false, consumer = true;
constexpr OperandRow operands[] = {
#define DYNA_OPERAND(name, text, kind, layer) {BlockKind::kind, layer},
#include "runtime/plan/program/BlockKinds.def"
};
static_assert(sizeof(operands) / sizeof(*operands) == operandCount);

} // namespace

const char *blockKindName(BlockKind kind) {
  return kinds[static_cast<int>(kind)].text;
}

std::string describeBlock(const BlockName &name) {
  std::string text = formatText("%s block", blockKindName(name.kind));
  if (name.layer >= 0)
    text += formatText(" of layer %d", name.layer);
  if (name.microBatch >= 0)
    text +=
        formatText(name.layer >= 0 ? " micro-batch %d" : " of micro-batch %d",
                   name.microBatch);
  return text;
}

std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas) {
  std::vector<std::vector<int>> own(replicas);
  for (int m = 0; m < plan.microBatchCount(); ++m)
    own[plan.microBatches[m].replica].push_back(m);
  return own;
}

ProgramBlocks::ProgramBlocks(const RankView &view, const plan::Plan &plan,
                             const plan::RankProgram &program,
                             const Load *largest)
    : view_(view) {
  collectFacts(plan, program, largest);
  begins_.reserve(program.instructions.size() + 1);
  uses_.reserve(4 * program.instructions.size());
  begins_.push_back(0);
  MicroBatch parameters;
  parameters.present.assign(presentCount(), -1);
  for (int index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    Current current = {index, i,
                       isPerMicroBatch(i.op) ? microBatches_.at(i.microBatch)
                                             : parameters};
    for (const BlockRule &rule : blockRules(i.op))
      add(current, rule);
    if (current.microBatch.lastInstruction == index)
      giveRest(current);
    begins_.push_back(static_cast<int>(uses_.size()));
  }
}

void ProgramBlocks::collectFacts(const plan::Plan &plan,
                                 const plan::RankProgram &program,
                                 const Load *largest) {
  for (int index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    if (!isPerMicroBatch(i.op))
      continue;
    MicroBatch &microBatch = microBatches_[i.microBatch];
    if (microBatch.layers.empty()) {
      microBatch.layers.resize(view_.layers());
      microBatch.present.assign(presentCount(), -1);
      microBatch.load =
          largest ? *largest : loadOf(plan.microBatches[i.microBatch]);
    }
    if (!exchangeOf(i.op).isMessage())
      microBatch.lastInstruction = index;
    Facts &facts = microBatch.layers[i.layer];
    if (i.op == Instruction::FORWARD)
      facts.mode = i.recompute;
    facts.split |= i.op == Instruction::BACKWARD_INPUT;
    facts.evaluated |= i.op == Instruction::EVALUATE;
  }
}

BlockName ProgramBlocks::nameOf(const Instruction &i, Operand operand) const {
  const OperandRow &row = operands[static_cast<int>(operand)];
  int key = kinds[static_cast<int>(row.kind)].key;
  BlockName name = {row.kind};
  if (key & Key::MicroBatch && isPerMicroBatch(i.op))
    name.microBatch = i.microBatch;
  if (key & Key::Layer)
    name.layer = row.ofConsumer ? view_.model().consumerOf(i.layer) : i.layer;
  return name;
}

int64_t ProgramBlocks::keptBytes(const Current &current, int layer) const {
  const MicroBatch &m = current.microBatch;
  if (layer < 0)
    return 0; // the loss is a result of the machine
  // What goes to the next stage; an input comes to the first one alone.
  if (!view_.hasLayer(layer))
    return current.i.op == Instruction::LOAD ? 0
                                             : view_.inputBytes(layer, m.load);
  if (m.layers[layer].evaluated)
    return view_.inputBytes(layer, m.load);
  return view_.keptBytes(layer, m.layers[layer].mode, m.load);
}

int64_t ProgramBlocks::lateBytes(const Current &current, int layer) const {
  const MicroBatch &m = current.microBatch;
  const Facts &facts = m.layers[layer];
  return view_.lateBytes(layer, facts.mode,
                         facts.split && current.i.op != Instruction::FORWARD,
                         m.load);
}

/// 0: there is no such block.
int64_t ProgramBlocks::bytesOf(const Current &current,
                               const BlockName &name) const {
  const Instruction &i = current.i;
  const Load &load = current.microBatch.load;
  int layer = name.layer;
  switch (name.kind) {
#define DYNA_BLOCK_KIND(name, text, key, bytes)                                \
  case BlockKind::name:                                                        \
    return bytes;
#include "runtime/plan/program/BlockKinds.def"
  }
  return 0;
}

/// A list has room for the kinds of every layer, and of none.
size_t ProgramBlocks::presentCount() const {
  return static_cast<size_t>(view_.layers() + 1) * kindCount;
}

int &ProgramBlocks::present(MicroBatch &microBatch,
                            const BlockName &name) const {
  return microBatch.present[static_cast<size_t>(name.layer + 1) * kindCount +
                            static_cast<size_t>(name.kind)];
}

void ProgramBlocks::add(const Current &current, const BlockRule &rule) {
  const Instruction &i = current.i;
  BlockUse use;
  use.name = nameOf(i, rule.operand);
  use.operand = rule.operand;
  use.bytes = bytesOf(current, use.name);
  if (use.bytes <= 0)
    return;
  int &present = this->present(current.microBatch, use.name);
  use.takes = rule.is(BlockRule::Take) &&
              !(rule.is(BlockRule::IfAbsent) && present >= 0);
  use.gives = rule.is(BlockRule::Give) ||
              (isOfMicroBatch(use.name.kind) &&
               current.microBatch.lastInstruction == current.index);
  use.writes = rule.is(BlockRule::Write);
  use.isThereAlready = use.takes && present >= 0;
  if (use.takes) {
    present = static_cast<int>(blocks_.size());
    int64_t place = i.places[placeIndex(i.op, rule.operand)];
    blocks_.push_back(
        {use.name, use.bytes, place, current.index, current.index});
  }
  use.block = present;
  if (present >= 0)
    blocks_[present].last = current.index;
  if (use.gives)
    present = -1;
  uses_.push_back(use);
}

/// Behind the last instruction of a micro-batch: what is of it alone and its row
/// does not name.
void ProgramBlocks::giveRest(const Current &current) {
  for (int operand = 0; operand < operandCount; ++operand) {
    BlockUse use;
    use.name = {operands[operand].kind, current.i.microBatch};
    if (!isOfMicroBatch(use.name.kind))
      continue;
    int &present = this->present(current.microBatch, use.name);
    if (present < 0)
      continue;
    use.operand = static_cast<Operand>(operand);
    use.bytes = blocks_[present].bytes;
    use.block = present;
    use.gives = true;
    blocks_[present].last = current.index;
    present = -1;
    uses_.push_back(use);
  }
}

int64_t ProgramBlocks::place(int instruction, Operand operand) const {
  for (const BlockUse &use : uses(instruction))
    if (use.operand == operand && use.block >= 0)
      return blocks_[use.block].place;
  return plan::noPlace;
}

std::vector<int64_t>
ProgramBlocks::liveBytes(std::optional<BlockKind> kind) const {
  std::vector<int64_t> live(begins_.size(), 0);
  for (const Block &block : blocks_) {
    if (kind && block.name.kind != *kind)
      continue;
    live[block.first] += block.bytes;
    live[block.last + 1] -= block.bytes;
  }
  for (size_t index = 1; index < live.size(); ++index)
    live[index] += live[index - 1];
  live.pop_back();
  return live;
}

} // namespace dyna
