//===- MemoryPlan.cpp - Plans lifetimes and places of values --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/MemoryPlan.h"
#include "passes/memory/place/Packing.h"
#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/Target.h"
#include "passes/memory/value/TokenParts.h"
#include "passes/memory/value/Values.h"
#include "llvm/ADT/SetVector.h"
#include <functional>
#include <map>

using namespace mlir;
using namespace mlir::dyna;

llvm::MapVector<StringAttr, SmallVector<FunctionOp>>
mlir::dyna::functionsByLayer(Operation *module) {
  llvm::MapVector<StringAttr, SmallVector<FunctionOp>> functions;
  for (Region &region : module->getRegions())
    for (FunctionOp function : region.getOps<FunctionOp>())
      functions[function.getLayerAttr().getAttr()].push_back(function);
  return functions;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

/// Moments, both included; empty if end < begin.
struct Span {
  int64_t begin;
  int64_t end;
  bool isEmpty() const { return end < begin; }
};

/// Values that share one place.
struct Group {
  SmallVector<unsigned> members; ///< numbers of values
  PlaceAttr place;               ///< fixed, or found by packing
  /// The members by when they begin: none lives while another does.
  std::map<int64_t, unsigned> byBegin;
};

/// Groups whose values lie side by side, in order.
using Joint = SmallVector<unsigned>;

/// Blocks of one kind of growth, and what is to know their offsets.
struct Pile {
  std::vector<PackItem> items;
  SmallVector<std::function<void(int64_t)>> place;
};

/// The workspace: blocks of constant size, then those that grow with tokens.
struct Piles {
  MLIRContext *context;
  Pile constants, rows;
  int64_t constantSize = 0; ///< known once the constants are packed
  /// Bytes of other kinds behind the rows of a block of scratch.
  LinearBytes behind;

  PlaceAttr inConstants(int64_t offset) const {
    return PlaceAttr::get(context, Memory::Workspace, 0,
                          LinearBytes{0, 0, 0, offset});
  }
  PlaceAttr inRows(int64_t offset, int64_t column = 0,
                   int64_t stride = 0) const {
    return PlaceAttr::get(context, Memory::Workspace, 0,
                          LinearBytes{offset, 0, 0, constantSize}, column,
                          stride);
  }
};

class FunctionPlanner {
public:
  FunctionPlanner(FunctionOp function, const TierPlan &tiers)
      : function(function), block(function.getBody().front()), tiers(tiers),
        parts(function) {}

  FailureOr<FunctionPlan> run() {
    if (failed(share()))
      return failure();
    findJoints();
    pack();
    record();
    return std::move(plan);
  }

  /// Returns the slots of tiers that products need side by side, as far as this
  /// function knows.
  FailureOr<SmallVector<SmallVector<TierPlan::Key>>> findTierJoints();
  /// Returns true if all ops of this function can use these slots at a stride.
  bool allowStride(ArrayRef<TierPlan::Key> keys);

private:
  /// Decides which values share a place.
  LogicalResult share() {
    plan.arguments = placesInTiers(function.getArgPlaces(), tiers);
    plan.results = placesInTiers(function.getResultPlaces(), tiers);
    numberTime();
    collectValues();
    fixPlaces();
    if (failed(endAccumulators()) || failed(shareAccumulators()))
      return failure();
    shareReplaced();
    return success();
  }
  void findJoints();
  /// Returns true if the values of a group have one row size, and all ops that
  /// use them accept a stride.
  bool maySitBeside(const Group &group) const;
  void numberTime();
  void collectValues();
  void fixPlaces();
  LogicalResult endAccumulators();
  LogicalResult shareAccumulators();
  void shareReplaced();
  void pack();
  void pileJoints(Piles &piles);
  void pileGroups(Piles &piles);
  Span scratchLife(Operation *op) const;
  void pileScratch(Piles &piles);
  void record();
  /// Returns first and last moment of the values of some groups.
  Span lifeOf(ArrayRef<unsigned> groupNumbers) const;

  /// Returns when the op writes its results.
  int64_t timeOf(Operation *op) const { return time.lookup(op); }
  /// Returns when the op, or the sweep around it, last reads its operands. A
  /// product with an epilogue still reads while that writes.
  int64_t readTimeOf(Operation *op) const {
    Operation *outer = block.findAncestorOpInBlock(*op);
    RowsOp epilogue = getEpilogue(outer);
    return timeOf(epilogue ? epilogue : outer);
  }
  Group &groupOf(Value value) { return groups[groupIndex[numberOf[value]]]; }
  Span &spanOf(Value value) { return spans[numberOf[value]]; }

  /// Puts the values of b's group to a's, unless two of them live at one time.
  bool unite(Value a, Value b);
  bool hasRoom(const Group &group, const Span &span) const;
  bool tryReplace(Operation *op, Value operand, OpResult result);

  FunctionOp function;
  Block &block;
  const TierPlan &tiers;
  const TokenParts parts;
  FunctionPlan plan;
  DenseMap<Operation *, int64_t> time;
  SmallVector<Value> values;
  DenseMap<Value, unsigned> numberOf;
  SmallVector<Span> spans;
  SmallVector<unsigned> groupIndex;
  SmallVector<Group> groups;
  SmallVector<Joint> joints; ///< of groups that packing finds a place for
  DenseMap<Operation *, PlaceAttr> scratchPlaces;
};

void FunctionPlanner::numberTime() {
  int64_t now = 0;
  for (Operation &op : block)
    time[&op] = ++now;
}

void FunctionPlanner::collectValues() {
  auto add = [&](Value value, int64_t begin) {
    Span span = {begin, begin};
    for (Operation *user : value.getUsers())
      span.end = std::max(span.end, readTimeOf(user));
    numberOf[value] = values.size();
    groupIndex.push_back(groups.size());
    auto number = static_cast<unsigned>(values.size());
    groups.push_back({{number}, PlaceAttr(), {{begin, number}}});
    values.push_back(value);
    spans.push_back(span);
  };
  for (Value argument : block.getArguments())
    add(argument, 0);
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults())
      add(result, time[&op]);
}

/// Arguments and returned values lie where the signature says.
void FunctionPlanner::fixPlaces() {
  int64_t last = timeOf(block.getTerminator());
  llvm::SmallDenseSet<PlaceAttr> replaced(plan.results.begin(),
                                          plan.results.end());
  for (auto [argument, place] :
       llvm::zip_equal(block.getArguments(), plan.arguments)) {
    groupOf(argument).place = place;
    // An argument must not be overwritten, unless a result replaces it.
    if (!replaced.contains(place))
      spanOf(argument).end = last;
  }
  for (auto [value, place] :
       llvm::zip_equal(block.getTerminator()->getOperands(), plan.results)) {
    // Otherwise it is an argument, or is also returned to another place, so
    // copy it.
    if (!groupOf(value).place)
      groupOf(value).place = place;
  }
}

/// Returns true if no member of the group lives within the span.
bool FunctionPlanner::hasRoom(const Group &group, const Span &span) const {
  if (span.isEmpty())
    return true;
  // Find the last span that begins no later than this one ends, and is not
  // empty.
  auto after = group.byBegin.upper_bound(span.end);
  while (after != group.byBegin.begin()) {
    const Span &before = spans[(--after)->second];
    if (!before.isEmpty())
      return before.end < span.begin;
  }
  return true;
}

bool FunctionPlanner::unite(Value a, Value b) {
  unsigned into = groupIndex[numberOf[a]], from = groupIndex[numberOf[b]];
  if (into == from)
    return true;
  for (unsigned member : groups[from].members)
    if (!hasRoom(groups[into], spans[member]))
      return false;
  if (!groups[into].place)
    groups[into].place = groups[from].place;
  for (unsigned member : groups[from].members)
    groupIndex[member] = into;
  groups[into].members.append(groups[from].members);
  // At one moment a span that is not empty replaces an empty one.
  for (auto [begin, member] : groups[from].byBegin)
    if (!spans[member].isEmpty())
      groups[into].byBegin[begin] = member;
  groups[from] = Group();
  return true;
}

/// Ends the life of each accumulator at its addition, where its contents become
/// the result.
LogicalResult FunctionPlanner::endAccumulators() {
  for (Operation &op : block.without_terminator()) {
    for (auto [accumulator, result] : accumulationsOf(&op)) {
      if (spanOf(accumulator).end > readTimeOf(&op))
        return op.emitOpError()
               << "adds in place to an accumulator that is needed afterwards";
      spanOf(accumulator).end = timeOf(&op) - 1;
    }
  }
  return success();
}

LogicalResult FunctionPlanner::shareAccumulators() {
  for (Operation &op : block.without_terminator()) {
    for (auto [accumulator, result] : accumulationsOf(&op)) {
      PlaceAttr from = groupOf(accumulator).place, to = groupOf(result).place;
      if (from && to && from != to)
        return op.emitOpError() << "expects an accumulator and its result to "
                                   "share a place, but they lie in "
                                << from << " and " << to;
      if (!unite(accumulator, result))
        return op.emitOpError()
               << "adds to an accumulator in place, but that place is taken";
    }
  }
  return success();
}

bool FunctionPlanner::tryReplace(Operation *op, Value operand,
                                 OpResult result) {
  int64_t now = timeOf(op);
  if (!operand.getDefiningOp() || !numberOf.contains(operand) ||
      spanOf(operand).end != now || !mayReplace(op, operand, result))
    return false;
  PlaceAttr from = groupOf(operand).place, to = groupOf(result).place;
  if (from && to && from != to)
    return false;
  // The product before the sweep reads its operands until its last row is done.
  auto rows = dyn_cast<RowsOp>(op);
  Operation *product = rows ? getEpilogueProduct(rows) : nullptr;
  for (Operation *user : operand.getUsers())
    if (user == product)
      return false;
  Span before = spanOf(operand);
  spanOf(operand).end = now - 1;
  if (unite(operand, result))
    return true;
  spanOf(operand) = before;
  return false;
}

/// Lets the results of sweeps lie on operands. The product in front first: then
/// its result is written where the sweep's result goes, while it is in cache.
/// Sums over ranks come before all: they are the larger part of what lives.
void FunctionPlanner::shareReplaced() {
  for (auto sum : block.getOps<dist::AllReduceOp>())
    tryReplace(sum, sum.getX(), sum->getResult(0));
  for (auto exchange : block.getOps<dist::ExchangeOp>())
    for (auto [index, op] : llvm::enumerate(exchange.getCollectives()))
      tryReplace(exchange, op->getOperand(0), exchange->getResult(index));
  for (RowsOp rows : block.getOps<RowsOp>()) {
    llvm::SetVector<Value> operands;
    if (Operation *product = getEpilogueProduct(rows))
      operands.insert(product->getResult(0));
    for (Operation &op : rows.getBody().front())
      for (Value operand : op.getOperands())
        if (operand.getParentBlock() == &block)
          operands.insert(operand);
    // Both operands live until now, so no result may overlap both.
    SmallVector<OpResult> results(rows->getResults());
    for (Value operand : operands)
      for (OpResult &result : results)
        if (groupIndex[numberOf[operand]] == groupIndex[numberOf[result]] ||
            tryReplace(rows, operand, result)) {
          results.erase(&result);
          break;
        }
  }
}

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

bool FunctionPlanner::maySitBeside(const Group &group) const {
  int64_t bytes = rowBytesOf(values[group.members.front()]);
  auto takes = [&](Operation *op) {
    return takesStrides(block.findAncestorOpInBlock(*op));
  };
  return llvm::all_of(group.members, [&](unsigned member) {
    Value value = values[member];
    Operation *maker = value.getDefiningOp();
    return rowBytesOf(value) == bytes && (!maker || takes(maker)) &&
           llvm::all_of(value.getUsers(), takes);
  });
}

static bool isTaken(ArrayRef<Joint> joints, const Joint &joint) {
  return llvm::any_of(joints, [&](const Joint &other) {
    return llvm::any_of(joint, [&](unsigned group) {
      return llvm::is_contained(other, group);
    });
  });
}

/// Finds parts of products without a place, which can be side by side.
void FunctionPlanner::findJoints() {
  for (const ProductRun &run : findAdjacentRuns(function)) {
    Joint joint;
    for (Value part : run.parts())
      if (unsigned group = groupIndex[numberOf[part]];
          !groups[group].place && maySitBeside(groups[group]) &&
          !llvm::is_contained(joint, group))
        joint.push_back(group);
    if (joint.size() == run.ops.size() && !isTaken(joints, joint))
      joints.push_back(joint);
  }
  // Operands of one product are read until the last one is done, and the
  // epilogue writes meanwhile. So the joint lives as long as all of its groups
  // together.
}

FailureOr<SmallVector<SmallVector<TierPlan::Key>>>
FunctionPlanner::findTierJoints() {
  if (failed(share()))
    return failure();
  SmallVector<SmallVector<TierPlan::Key>> found;
  for (const ProductRun &run : findAdjacentRuns(function)) {
    SmallVector<TierPlan::Key> keys;
    for (Value part : run.parts()) {
      PlaceAttr place = groupOf(part).place;
      if (!place || !isTier(place.getMemory()) ||
          place.getMemory() == Memory::SavedInput)
        break;
      for (auto &[key, slot] : tiers.slots)
        if (placeOf(place, slot) == place && key.first == place.getMemory() &&
            !llvm::is_contained(keys, key))
          keys.push_back(key);
    }
    bool isOneTier = llvm::all_of(keys, [&](const TierPlan::Key &key) {
      return key.first == keys.front().first;
    });
    if (keys.size() == run.ops.size() && isOneTier)
      found.push_back(std::move(keys));
  }
  return found;
}

bool FunctionPlanner::allowStride(ArrayRef<TierPlan::Key> keys) {
  return llvm::all_of(groups, [&](const Group &group) {
    if (group.members.empty() || !group.place)
      return true;
    for (const TierPlan::Key &key : keys)
      if (key.first == group.place.getMemory() &&
          placeOf(group.place, tiers.slots.at(key)) == group.place)
        return maySitBeside(group);
    return true;
  });
}

Span FunctionPlanner::lifeOf(ArrayRef<unsigned> groupNumbers) const {
  Span life = {INT64_MAX, 0};
  for (unsigned group : groupNumbers)
    for (unsigned member : groups[group].members) {
      life.begin = std::min(life.begin, spans[member].begin);
      life.end = std::max(life.end, spans[member].end);
    }
  return life;
}

/// Values that are to lie side by side.
void FunctionPlanner::pileJoints(Piles &piles) {
  for (const Joint &joint : joints) {
    int64_t stride = 0;
    for (unsigned group : joint)
      stride += rowBytesOf(values[groups[group].members.front()]);
    LinearBytes bytes;
    for (unsigned group : joint) {
      Value value = values[groups[group].members.front()];
      bytes = bytes.upperBound(
          stridedBytes(parts.bytesOf(value), rowBytesOf(value), stride));
    }
    Span life = lifeOf(joint);
    piles.rows.items.push_back({life.begin, life.end, bytes.tq, false});
    piles.rows.place.push_back([&, stride](int64_t offset) {
      int64_t column = 0;
      for (unsigned group : joint) {
        groups[group].place = piles.inRows(offset, column, stride);
        column += rowBytesOf(values[groups[group].members.front()]);
      }
    });
  }
}

/// Piles up all other values without a place.
void FunctionPlanner::pileGroups(Piles &piles) {
  for (auto [number, group] : llvm::enumerate(groups)) {
    bool isJoined = llvm::any_of(joints, [&, number = number](const Joint &j) {
      return llvm::is_contained(j, number);
    });
    if (group.members.empty() || group.place || isJoined)
      continue;
    Span life = lifeOf(static_cast<unsigned>(number));
    LinearBytes bytes = parts.bytesOf(values[group.members.front()]);
    bool isConstant = bytes.tq == 0;
    Pile &pile = isConstant ? piles.constants : piles.rows;
    pile.items.push_back(
        {life.begin, life.end, isConstant ? bytes.constant : bytes.tq, false});
    pile.place.push_back([&, &group = group, isConstant](int64_t offset) {
      group.place =
          isConstant ? piles.inConstants(offset) : piles.inRows(offset);
    });
  }
}

/// Returns when the scratch memory of an op is needed.
Span FunctionPlanner::scratchLife(Operation *op) const {
  Span life = {timeOf(op), timeOf(op)};
  if (isa<SumSquaresOp>(op) && targetOf(op).sumsAtOnce)
    for (SumSquaresOp other : block.getOps<SumSquaresOp>())
      life = {std::min(life.begin, timeOf(other)),
              std::max(life.end, timeOf(other))};
  return life;
}

void FunctionPlanner::pileScratch(Piles &piles) {
  for (Operation &op : block.without_terminator()) {
    std::optional<LinearBytes> scratch = scratchOf(&op);
    if (!scratch)
      continue;
    int64_t now = timeOf(&op);
    if (LinearBytes{0, 0, 0, scratch->constant} == *scratch) {
      Span life = scratchLife(&op);
      piles.constants.items.push_back(
          {life.begin, life.end, scratch->constant, false});
      piles.constants.place.push_back([&](int64_t offset) {
        scratchPlaces[&op] = piles.inConstants(offset);
      });
      continue;
    }
    LinearBytes rest = *scratch;
    rest.tq = 0;
    bool isMixed = !(rest == LinearBytes());
    piles.behind = piles.behind.upperBound(rest);
    piles.rows.items.push_back({now, now, scratch->tq, isMixed});
    piles.rows.place.push_back(
        [&](int64_t offset) { scratchPlaces[&op] = piles.inRows(offset); });
  }
}

void FunctionPlanner::pack() {
  Piles piles;
  piles.context = function.getContext();
  pileJoints(piles);
  pileGroups(piles);
  pileScratch(piles);
  Packing constants = packItems(piles.constants.items);
  piles.constantSize = constants.size;
  Packing rows = packItems(piles.rows.items);
  for (auto [place, offset] :
       llvm::zip_equal(piles.constants.place, constants.offsets))
    place(offset);
  for (auto [place, offset] : llvm::zip_equal(piles.rows.place, rows.offsets))
    place(offset);
  plan.workspace =
      LinearBytes{rows.size, 0, 0, piles.constantSize} + piles.behind;
  plan.lowerBound = LinearBytes{maxLive(piles.rows.items), 0, 0,
                                maxLive(piles.constants.items)} +
                    piles.behind;
}

void FunctionPlanner::record() {
  for (Operation &op : block.without_terminator()) {
    SmallVector<PlaceAttr> &places = plan.places[&op];
    for (Value result : op.getResults())
      places.push_back(groupOf(result).place);
    if (PlaceAttr scratch = scratchPlaces.lookup(&op))
      places.push_back(scratch);
  }
}

} // namespace

FailureOr<FunctionPlan> mlir::dyna::planFunction(FunctionOp function,
                                                 const TierPlan &tiers) {
  return FunctionPlanner(function, tiers).run();
}

//===----------------------------------------------------------------------===//
// Tiers of a layer
//===----------------------------------------------------------------------===//

/// Puts slots side by side that some function wants to have so, if all
/// functions can use them.
static LogicalResult joinSlots(ArrayRef<FunctionOp> functions, TierPlan &plan) {
  std::vector<FunctionPlanner> planners;
  planners.reserve(functions.size());
  SmallVector<SmallVector<TierPlan::Key>> wanted;
  for (FunctionOp function : functions) {
    planners.emplace_back(function, plan);
    auto found = planners.back().findTierJoints();
    if (failed(found))
      return failure();
    llvm::append_range(wanted, *found);
  }
  SmallVector<SmallVector<TierPlan::Key>> joints;
  for (const SmallVector<TierPlan::Key> &keys : wanted) {
    bool isFree = llvm::none_of(joints, [&](const auto &joint) {
      return llvm::any_of(keys, [&](const TierPlan::Key &key) {
        return llvm::is_contained(joint, key);
      });
    });
    bool isAllowed = llvm::all_of(planners, [&](FunctionPlanner &planner) {
      return planner.allowStride(keys);
    });
    if (isFree && isAllowed)
      joints.push_back(keys);
  }
  plan.joints = std::move(joints);
  return success();
}

FailureOr<TierPlan> mlir::dyna::planTiers(LayerOp layer,
                                          ArrayRef<FunctionOp> functions) {
  TierPlan plan;
  for (FunctionOp function : functions) {
    Block &body = function.getBody().front();
    TokenParts parts(function);
    if (failed(addSlots(function, function.getArgPlaces(), body.getArguments(),
                        parts, plan)) ||
        failed(addSlots(function, function.getResultPlaces(),
                        body.getTerminator()->getOperands(), parts, plan)))
      return failure();
  }
  // The producer of the layer's input wrote it there, whether it is used or
  // not.
  if (layer && !layer.getInputArguments().empty())
    plan.sizes[0] =
        TokenParts(layer).bytesOf(layer.getInputArguments().front());
  // Place each slot by itself first, so that every slot has a place with its
  // name.
  placeSlots(plan);
  if (failed(joinSlots(functions, plan)))
    return failure();
  if (!plan.joints.empty())
    placeSlots(plan);
  return plan;
}
