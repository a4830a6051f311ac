//===- ProgramBlocks.cpp - Lists the blocks of a program and their lives --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ProgramBlocks.h"

#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

std::vector<std::vector<int>> microBatchesOfReplicas(const plan::Plan &plan,
                                                     int replicas) {
  std::vector<std::vector<int>> own(replicas);
  for (int m = 0; m < plan.microBatchCount(); ++m)
    own[plan.microBatches[m].replica].push_back(m);
  return own;
}

ProgramBlocks::ProgramBlocks(const RankView &view, const plan::Plan &plan,
                             const plan::RankProgram &program,
                             const Load *largest, const BlockTables &tables)
    : tables_(&tables), view_(view) {
  collectFacts(plan, program, largest);
  findBundles(plan);
  numberKeys(plan, program);
  findLastByKey(plan, program);
  begins_.reserve(program.instructions.size() + 1);
  uses_.reserve(4 * program.instructions.size());
  begins_.push_back(0);
  for (int index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    const BlockContext at = {view_, plan, i, microBatchOf(i)};
    const Current current = {index, at, keyOf(at, false), keyOf(at, true)};
    int taken = 0;
    for (const BlockRule &rule : tables.rules(i.op))
      add(current, rule, rule.is(BlockRule::Take) ? taken++ : -1);
    giveRest(current);
    begins_.push_back(static_cast<int>(uses_.size()));
  }
}

const MicroBatchFacts &ProgramBlocks::microBatchOf(const Instruction &i) const {
  return isPerMicroBatch(i.op) ? microBatches_.at(i.microBatch) : noMicroBatch_;
}

void ProgramBlocks::collectFacts(const plan::Plan &plan,
                                 const plan::RankProgram &program,
                                 const Load *largest) {
  for (const Instruction &i : program.instructions) {
    if (!isPerMicroBatch(i.op))
      continue;
    MicroBatchFacts &microBatch = microBatches_[i.microBatch];
    if (microBatch.layers.empty()) {
      microBatch.layers.resize(view_.layers());
      microBatch.load =
          largest ? *largest : loadOf(plan.microBatches[i.microBatch]);
    }
    if (exchangeOf(i.op).isMessage())
      continue;
    MicroBatchFacts::LayerFacts &facts = microBatch.layers[i.layer];
    if (i.op == Instruction::FORWARD)
      facts.mode = i.recompute;
    facts.split |= i.op == Instruction::BACKWARD_INPUT;
    facts.evaluated |= i.op == Instruction::EVALUATE;
  }
}

void ProgramBlocks::findBundles(const plan::Plan &plan) {
  std::vector<int> numbers;
  for (const auto &[m, facts] : microBatches_)
    numbers.push_back(m);
  std::sort(numbers.begin(), numbers.end());
  bundles_ = dyna::findBundles(plan, numbers);
  if (bundles_.empty()) {
    static_assert(static_cast<int>(KeyColumn::Bundle) == keyColumnCount - 1);
    columns_ -= tables_ == &BlockTables::standard();
    return;
  }
  for (auto &[m, facts] : microBatches_) {
    const BundlePart &part = bundles_.of(m);
    facts.bundle = part.bundle;
    facts.storeRows = part.rows;
  }
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Numbers the values that the program has in each column, and lays out the cells of
/// all keys that follow.
void ProgramBlocks::numberKeys(const plan::Plan &plan,
                               const plan::RankProgram &program) {
  std::array<int, keyColumnCount> counts;
  counts.fill(1); // number 0 means no value
  for (const Instruction &i : program.instructions) {
    const BlockContext at = {view_, plan, i, microBatchOf(i)};
    for (int column = 0; column < columns_; ++column)
      for (bool ofConsumer : {false, true}) {
        const int value = tables_->columns[column].value(at, ofConsumer);
        std::vector<int> &numbers = numbers_[column];
        if (value >= static_cast<int>(numbers.size()))
          numbers.resize(value + 1, 0);
        if (value >= 0 && numbers[value] == 0)
          numbers[value] = counts[column]++;
      }
  }
  int64_t end = 0;
  for (size_t number = 0; number < tables_->kinds.size(); ++number) {
    const BlockTables::Kind &kind = tables_->kinds[number];
    Cells &cells = cells_.emplace_back();
    cells.first = end;
    int64_t size = 1;
    for (int column = 0; column < keyColumnCount; ++column)
      if (kind.has(column)) {
        cells.strides[column] = size;
        size *= counts[column];
      }
    end += size;
    if (kind.life == BlockLife::ByKey)
      byKey_.push_back(static_cast<BlockKind>(number));
  }
  present_.assign(end, -1);
  operandOfKind_.assign(tables_->kinds.size(), -1);
  for (int operand = operandCount - 1; operand >= 0; --operand)
    operandOfKind_[static_cast<size_t>(tables_->operands[operand].kind)] =
        operand;
}

ProgramBlocks::Key ProgramBlocks::keyOf(const BlockContext &at,
                                        bool ofConsumer) const {
  Key key;
  for (int column = 0; column < columns_; ++column) {
    const int value = tables_->columns[column].value(at, ofConsumer);
    key.values[column] = value;
    key.numbers[column] = value < 0 ? 0 : numbers_[column][value];
  }
  return key;
}

int64_t ProgramBlocks::cellOf(BlockKind kind, const Key &key) const {
  const Cells &cells = cells_[static_cast<size_t>(kind)];
  int64_t cell = cells.first;
  for (int column = 0; column < keyColumnCount; ++column)
    cell += cells.strides[column] * key.numbers[column];
  return cell;
}

BlockName ProgramBlocks::nameOf(BlockKind kind, const Key &key) const {
  BlockName name = {kind};
  for (int column = 0; column < keyColumnCount; ++column)
    if (tables_->kind(kind).has(column))
      name.key[column] = key.values[column];
  return name;
}

void ProgramBlocks::findLastByKey(const plan::Plan &plan,
                                  const plan::RankProgram &program) {
  if (byKey_.empty())
    return;
  lastOfKey_.assign(present_.size(), -1);
  for (int index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    if (exchangeOf(i.op).isMessage())
      continue;
    const Key key = keyOf({view_, plan, i, microBatchOf(i)}, false);
    for (BlockKind kind : byKey_)
      lastOfKey_[cellOf(kind, key)] = index;
  }
}

bool ProgramBlocks::isLastOfKey(const Current &current, BlockKind kind,
                                const Key &key) const {
  return tables_->kind(kind).life == BlockLife::ByKey &&
         lastOfKey_[cellOf(kind, key)] == current.index;
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void ProgramBlocks::add(const Current &current, const BlockRule &rule,
                        int placeIndex) {
  const BlockTables::OperandRow &row = tables_->operand(rule.operand);
  const Key &key = row.ofConsumer ? current.consumer : current.own;
  BlockUse use;
  use.name = nameOf(row.kind, key);
  use.operand = rule.operand;
  use.bytes = tables_->kind(row.kind).bytes(current.at, use.name);
  if (use.bytes <= 0)
    return;
  int &present = present_[cellOf(row.kind, key)];
  use.takes = rule.is(BlockRule::Take) &&
              !(rule.is(BlockRule::IfAbsent) && present >= 0);
  use.gives = rule.is(BlockRule::Give) || isLastOfKey(current, row.kind, key);
  use.writes = rule.is(BlockRule::Write);
  use.isThereAlready = use.takes && present >= 0;
  if (use.takes) {
    use.placeIndex = placeIndex;
    present = static_cast<int>(blocks_.size());
    blocks_.push_back({use.name, use.bytes, current.at.i.places[placeIndex],
                       current.index, current.index});
  }
  use.block = present;
  if (present >= 0) {
    // Another micro-batch may have allocated the block that all of them share.
    use.bytes = blocks_[present].bytes;
    blocks_[present].last = current.index;
  }
  if (use.gives)
    present = -1;
  uses_.push_back(use);
}

/// Gives back what ends with the instruction's key and its row does not name.
void ProgramBlocks::giveRest(const Current &current) {
  for (BlockKind kind : byKey_) {
    int &present = present_[cellOf(kind, current.own)];
    if (present < 0 || !isLastOfKey(current, kind, current.own))
      continue;
    BlockUse use;
    use.name = blocks_[present].name;
    use.operand =
        static_cast<Operand>(operandOfKind_[static_cast<size_t>(kind)]);
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
