//===- FunctionLowering.cpp - Lowers layer functions to host code ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/layers/FunctionLowering.h"

#include "passes/memory/value/Values.h"
#include "runtime/abi/Abi.h"
#include "runtime/abi/Kernels.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::layers;

//===----------------------------------------------------------------------===//
// ModuleLowering
//===----------------------------------------------------------------------===//

ModuleLowering::ModuleLowering(ModuleOp module) : module(module) {
  for (FunctionOp function : module.getOps<FunctionOp>())
    if (!keyStores.contains(function.getLayer()))
      keyStores.try_emplace(function.getLayer(),
                            KeyStore::create(module, function.getLayer()));
}

LLVM::LLVMFuncOp ModuleLowering::declareKernel(StringRef name,
                                               ArrayRef<Type> arguments) {
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  Type status = builder.getI32Type();
  return LLVM::LLVMFuncOp::create(
      builder, module.getLoc(), name,
      LLVM::LLVMFunctionType::get(status, arguments));
}

LLVM::LLVMFuncOp ModuleLowering::getSparseMatmul(Type input, Type output) {
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  StringRef name = input.isF64()    ? "dyna_sparse_matmul_f64"
                   : input.isF32()  ? "dyna_sparse_matmul_f32"
                   : output.isF32() ? "dyna_sparse_matmul_bf16_f32"
                                    : "dyna_sparse_matmul_bf16";
  return declareKernel(name, {pointer, pointer});
}

LLVM::LLVMFuncOp ModuleLowering::createFunction(StringRef name,
                                                Location location, Type result,
                                                ArrayRef<Type> arguments,
                                                bool isPublic) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(
      builder, location, name, LLVM::LLVMFunctionType::get(result, arguments),
      isPublic ? LLVM::Linkage::External : LLVM::Linkage::Internal);
  function.setPassthroughAttr(builder.getArrayAttr(passthrough(builder)));
  function.addEntryBlock(builder);
  return function;
}

FailureOr<PreparedRows> ModuleLowering::prepareEpilogue(FunctionLowering &,
                                                        RowsOp) {
  llvm_unreachable("this target takes no epilogues");
}

SmallVector<Attribute> ModuleLowering::passthrough(OpBuilder &builder) {
  return {builder.getStringAttr("nounwind")};
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

unsigned Slots::add(Value value) {
  auto *found = llvm::find(values, value);
  unsigned index = found - values.begin();
  if (found == values.end())
    values.push_back(value);
  return index;
}

Value Slots::store(CodeBuilder &code) const {
  Value slots = code.stack(std::max<int64_t>(bytes(), 8));
  for (auto [index, value] : llvm::enumerate(values))
    code.storeField(value, slots, 8 * index);
  return slots;
}

Value Slots::load(CodeBuilder &code, Value slots, unsigned index) const {
  return code.loadField(slots, 8 * index, values[index].getType());
}

//===----------------------------------------------------------------------===//
// FunctionLowering
//===----------------------------------------------------------------------===//

FunctionLowering::FunctionLowering(ModuleLowering &module, FunctionOp source)
    : module(module), source(source),
      code(source.getLoc(), source.getContext()), parts(source) {
  SmallVector<Type> arguments(8, code.pointerType());
  std::string name = source.getSymName().str();
  // The layer function gets the name of the source.
  source.setSymName(name + ".source");
  target = module.createFunction(name, source.getLoc(), code.i32Type(),
                                 arguments, /*isPublic=*/true);
  Block *entry = &target.getBody().front();
  failure = new Block();
  target.getBody().push_back(failure);
  failure->addArgument(code.i32Type(), source.getLoc());
  code.setInsertionPointToStart(failure);
  LLVM::ReturnOp::create(code, failure->getArgument(0));
  // Addresses are computed in a block after the one that allocates the stack.
  Block *start = &target.getBody().emplaceBlock();
  start->moveBefore(failure);
  code.setInsertionPointToStart(entry);
  LLVM::BrOp::create(code, ValueRange(), start);
  code.setInsertionPointToStart(start);
}

/// Lowers one op by its own rule.
static LogicalResult lower(FunctionLowering &function, Operation *op) {
  ModuleLowering &module = function.getModule();
  bool fuses = module.takesEpilogues();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](RowsOp op) {
        // The product before the sweep may have done it already.
        if ((fuses && getEpilogueProduct(op)) || function.isDescribed(op))
          return success();
        return module.lowerRows(function, op);
      })
      .Case([&](EmbeddingOp op) { return module.lowerEmbedding(function, op); })
      .Case([&](EmbeddingGradOp op) {
        return module.lowerTableGradient(function, op, op.getDy(),
                                         op.getAccumulator(), op.getIds(),
                                         op.getShardAttr());
      })
      .Case([&](PositionsGradOp op) {
        return module.lowerTableGradient(function, op, op.getDy(),
                                         op.getAccumulator(), Value(),
                                         ShardAttr());
      })
      .Case([&](MatrixProductOpInterface op) {
        return lowerProduct(function, op, fuses ? getEpilogue(op) : RowsOp());
      })
      .Case([&](AttentionOp op) { return lowerAttention(function, op); })
      .Case(
          [&](AttentionGradOp op) { return lowerAttentionGrad(function, op); })
      .Case<LinearCrossEntropyOp, LinearCrossEntropyTrainOp,
            LinearCrossEntropyInputOp>(
          [&](auto op) { return lowerHead(function, op); })
      .Case<dist::CollectiveOpInterface, dist::ExchangeOp>(
          [&](Operation *op) { return lowerCollective(function, op); })
      .Case([&](AdamwOp op) { return module.lowerAdamw(function, op); })
      .Case(
          [&](SumSquaresOp op) { return module.lowerSumSquares(function, op); })
      .Case([&](CastOp op) { return module.lowerCast(function, op); })
      .Default([&](Operation *op) {
        return op->emitOpError("stands outside of 'dyna.rows'; run "
                               "--dyna-fuse-rows before code generation");
      });
}

/// Sweeps that one product, or the products of a run together, can be told to
/// do. A run writes where its parts lie.
void FunctionLowering::findDescribed() {
  if (module.takesEpilogues())
    return;
  for (RowsOp rows : source.getBody().front().getOps<RowsOp>()) {
    SmallVector<DescribedEpilogue> epilogues = describedEpilogues(rows);
    if (epilogues.empty())
      continue;
    const ProductRun *run = runOf(epilogues.front().product);
    bool fits =
        run ? run->ops.size() == epilogues.size() : epilogues.size() == 1;
    for (const DescribedEpilogue &epilogue : epilogues) {
      Value result = epilogue.product->getResult(0);
      fits &= !run || (llvm::is_contained(run->ops, epilogue.product) &&
                       epilogue.kind == DYNA_EPILOGUE_BIAS &&
                       placeOf(epilogue.result) == placeOf(result));
    }
    if (!fits)
      continue;
    for (const DescribedEpilogue &epilogue : epilogues)
      described[epilogue.product] = epilogue;
    describedRows.insert(rows);
  }
}

LogicalResult FunctionLowering::run() {
  if (mlir::failed(checkPlaces()))
    return mlir::failure();
  for (const ProductRun &run : findJoinedRuns(source))
    for (Operation *op : run.ops)
      runs[op] = run;
  findDescribed();
  for (Operation &op : source.getBody().front().without_terminator()) {
    code.setLoc(op.getLoc());
    if (mlir::failed(lower(*this, &op)))
      return mlir::failure();
  }
  return lowerReturn(cast<ReturnOp>(source.getBody().front().getTerminator()));
}

/// Checks that every result has a place, so that no rule below needs to.
LogicalResult FunctionLowering::checkPlaces() {
  for (Operation &op : source.getBody().front().without_terminator()) {
    ArrayAttr places = placesOf(&op);
    if (!places || places.size() < op.getNumResults())
      return op.emitOpError("expects ")
             << op.getNumResults() << " places, but has "
             << (places ? places.size() : 0)
             << "; run --dyna-plan-memory before code generation";
  }
  return success();
}

FailureOr<PlaceAttr> FunctionLowering::scratchOf(Operation *op) {
  if (PlaceAttr place =
          cast<PlacedOpInterface>(op).getPlace(op->getNumResults()))
    return place;
  return op->emitOpError("expects one more place than results, its scratch "
                         "memory, but has ")
         << placesOf(op).size() << " places for " << op->getNumResults()
         << " results";
}

/// Returns the array of tensors that `memory` indexes, as an argument number.
static std::optional<unsigned> arrayArgument(Memory memory) {
  switch (memory) {
  case Memory::Parameter:
    return 1;
  case Memory::Gradient:
    return 2;
  case Memory::Input:
    return 6;
  case Memory::Output:
    return 7;
  default:
    return std::nullopt;
  }
}

/// Returns the field of dyna_saved that holds the tier `memory`.
static int64_t tierField(Memory memory) {
  switch (memory) {
  case Memory::SavedInput:
    return offsetof(dyna_saved, input);
  case Memory::Products:
    return offsetof(dyna_saved, products);
  case Memory::Elementwise:
    return offsetof(dyna_saved, elementwise);
  case Memory::Deferred:
    return offsetof(dyna_saved, deferred);
  default:
    llvm_unreachable("not a tier");
  }
}

Value FunctionLowering::savedField(int64_t offset) {
  return code.loadField(argument(3), offset, code.pointerType());
}

Value FunctionLowering::address(PlaceAttr place) {
  Value &address = addresses[place];
  if (address)
    return address;
  Memory memory = place.getMemory();
  if (memory == Memory::Segments)
    return address = getSegments();
  if (std::optional<unsigned> array = arrayArgument(memory))
    return address = code.loadField(argument(*array),
                                    place.getIndex() * sizeof(dyna_tensor) +
                                        offsetof(dyna_tensor, data),
                                    code.pointerType());
  Value base =
      memory == Memory::Workspace ? argument(4) : savedField(tierField(memory));
  Value bytes = code.i64(place.getConstant() + place.getColumn());
  auto addTerm = [&](int64_t coefficient, int64_t field) {
    if (coefficient == 0)
      return;
    Value size = code.roundUp(segmentsField(field), DYNA_ROW_ALIGNMENT);
    bytes = code.add(bytes, code.mul(size, code.i64(coefficient)));
  };
  addTerm(place.getTq(), offsetof(dyna_segments, tq));
  addTerm(place.getTkv(), offsetof(dyna_segments, tkv));
  addTerm(place.getS(), offsetof(dyna_segments, count));
  return address = code.offset(base, bytes, code.getIntegerType(8));
}

Value FunctionLowering::sparseFormOf(Value matrix) {
  PlaceAttr place = placeOf(matrix);
  const bool isOfParameter = place.getMemory() == Memory::Parameter ||
                             place.getMemory() == Memory::Gradient;
  if (!isOfParameter ||
      !llvm::is_contained(source.getSparseParameters(), place.getIndex()))
    return {};
  // The forms of all parameters follow their tensors.
  auto layer = SymbolTable::lookupNearestSymbolFrom<LayerOp>(
      source, source.getLayerAttr());
  const int64_t entry = layer.getNumParameters() + place.getIndex();
  return code.loadField(
      argument(1), entry * sizeof(dyna_tensor) + offsetof(dyna_tensor, data),
      code.pointerType());
}

int64_t FunctionLowering::strideOf(Value activation) {
  auto type = cast<RankedTensorType>(activation.getType());
  int64_t bytes = placeOf(activation).getStride();
  return bytes == 0 ? type.getDimSize(1)
                    : bytes * 8 / type.getElementTypeBitWidth();
}

Value FunctionLowering::rowsOf(PlaceAttr place) {
  return code.loadField(argument(*arrayArgument(place.getMemory())),
                        place.getIndex() * sizeof(dyna_tensor) +
                            offsetof(dyna_tensor, rows),
                        code.i64Type());
}

Value FunctionLowering::segmentsField(int64_t offset) {
  Value &size = sizes[offset];
  if (!size)
    size = code.loadField(getSegments(), offset, code.i64Type());
  return size;
}

Value FunctionLowering::getTokens() {
  return segmentsField(offsetof(dyna_segments, tq));
}

Value FunctionLowering::getTargets(Value value) {
  return parts.of(value) ? code.i64(-1)
                         : segmentsField(offsetof(dyna_segments, targets));
}

Value FunctionLowering::getTargetRows(Value value) {
  return parts.of(value) ? code.null()
                         : code.loadField(getSegments(),
                                          offsetof(dyna_segments, target_rows),
                                          code.pointerType());
}

RowRuns FunctionLowering::getRuns(size_t field) {
  auto load = [&](size_t offset, Type type) {
    return code.loadField(getSegments(), static_cast<int64_t>(field + offset),
                          type);
  };
  RowRuns runs = {load(offsetof(dyna_row_runs, rows), code.pointerType()),
                  load(offsetof(dyna_row_runs, starts), code.pointerType()),
                  load(offsetof(dyna_row_runs, count), code.i64Type())};
  check(code.select(code.isNull(runs.starts), code.i32(DYNA_INVALID_ARGUMENT),
                    code.i32(DYNA_OK)));
  return runs;
}

//===----------------------------------------------------------------------===//
// Groups of ranks
//===----------------------------------------------------------------------===//

std::pair<Value, Value> FunctionLowering::groupOf(int64_t group) {
  Value count = code.loadField(
      getContext(), offsetof(dyna_context, group_count), code.i32Type());
  check(code.select(code.less(code.i32(group), count), code.i32(DYNA_OK),
                    code.i32(DYNA_INVALID_ARGUMENT)));
  Value groups = code.loadField(getContext(), offsetof(dyna_context, groups),
                                code.pointerType());
  auto field = [&](size_t offset) {
    Value value = code.loadField(
        groups, group * sizeof(dyna_group) + static_cast<int64_t>(offset),
        code.i32Type());
    return code.zeroExtend(value, code.i64Type());
  };
  return {field(offsetof(dyna_group, size)),
          field(offsetof(dyna_group, index))};
}

/// Emits dyna_part_begin and dyna_part_size.
RankRows FunctionLowering::partOf(int64_t group, Value rows) {
  auto [ranks, index] = groupOf(group);
  Value each = code.ceilDiv(rows, ranks);
  auto beginOf = [&](Value index) {
    return code.min(code.mul(index, each), rows);
  };
  Value begin = beginOf(index);
  Value end = beginOf(code.add(index, code.i64(1)));
  return {begin, code.sub(end, begin)};
}

RankRows FunctionLowering::partOf(ShardAttr shard, int64_t room) {
  RankRows part = partOf(shard.getGroup(), code.i64(shard.getRows()));
  check(code.select(code.less(code.i64(room), part.size),
                    code.i32(DYNA_INVALID_ARGUMENT), code.i32(DYNA_OK)));
  return part;
}

Value FunctionLowering::firstFeature(dist::GroupAttr group, int64_t features) {
  return code.mul(groupOf(group.getIndex()).second, code.i64(features));
}

RankRows FunctionLowering::tokensOf(dist::GroupAttr group) {
  if (!group)
    return {code.i64(0), getTokens()};
  auto [entry, isNew] = tokens.insert({group, RankRows()});
  if (isNew) {
    RankRows part = partOf(group.getIndex(), getTokens());
    tokens[group] = part;
    return part;
  }
  return entry->second;
}

std::string FunctionLowering::bodyName(StringRef what) {
  return (target.getName() + "." + what + std::to_string(bodies++)).str();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void FunctionLowering::check(Value status) {
  Value succeeded = code.equal(status, code.i32(DYNA_OK));
  Block *next = &target.getBody().emplaceBlock();
  next->moveBefore(failure);
  LLVM::CondBrOp::create(code, succeeded, next, ValueRange(), failure,
                         ValueRange(status));
  code.setInsertionPointToStart(next);
}

void FunctionLowering::choose(Value condition, function_ref<void()> then,
                              function_ref<void()> otherwise) {
  auto addBlock = [&] {
    Block *block = &target.getBody().emplaceBlock();
    block->moveBefore(failure);
    return block;
  };
  Block *yes = addBlock(), *no = addBlock();
  LLVM::CondBrOp::create(code, condition, yes, ValueRange(), no, ValueRange());
  // Add `after` last, because calls in both arms add blocks, which come first.
  Block *after = nullptr;
  SmallVector<std::pair<Block *, function_ref<void()>>> arms = {
      {yes, then}, {no, otherwise}};
  SmallVector<OpBuilder::InsertPoint> ends;
  for (auto &[block, emit] : arms) {
    code.setInsertionPointToStart(block);
    emit();
    ends.push_back(code.saveInsertionPoint());
  }
  after = addBlock();
  for (const OpBuilder::InsertPoint &end : ends) {
    code.restoreInsertionPoint(end);
    LLVM::BrOp::create(code, ValueRange(), after);
  }
  code.setInsertionPointToStart(after);
}

void FunctionLowering::call(LLVM::LLVMFuncOp callee, ValueRange arguments) {
  check(LLVM::CallOp::create(code, callee, arguments).getResult());
}

Value FunctionLowering::getPositions(Operation *op) {
  Value positions = code.loadField(
      getSegments(), offsetof(dyna_segments, row_position), code.pointerType());
  return code.offset(positions, getFirstToken(op), code.i64Type());
}

void FunctionLowering::checkIds(Value ids, Value count, int64_t rows) {
  call(module.declareKernel("dyna_check_ids",
                            {code.pointerType(), code.pointerType(),
                             code.i64Type(), code.i64Type()}),
       {getContext(), ids, count, code.i64(rows)});
}

void FunctionLowering::checkPositions(Operation *op, Value count,
                                      int64_t rows) {
  call(module.declareKernel("dyna_check_positions",
                            {code.pointerType(), code.pointerType(),
                             code.i64Type(), code.i64Type()}),
       {getContext(), getPositions(op), count, code.i64(rows)});
}

//===----------------------------------------------------------------------===//
// Return
//===----------------------------------------------------------------------===//

/// Copies an activation that has to be handed out where it does not lie.
void FunctionLowering::copyRows(Value value, PlaceAttr place) {
  auto type = cast<RankedTensorType>(value.getType());
  Value from = address(value), to = address(place);
  int64_t fromStride = strideOf(value),
          toStride = place.getStride() == 0 ? type.getDimSize(1)
                                            : place.getStride() * 8 /
                                                  type.getElementTypeBitWidth();
  module.copyRows(*this, {value, from, to, fromStride, toStride,
                          type.getDimSize(1), type.getElementType()});
}

LogicalResult FunctionLowering::lowerReturn(ReturnOp op) {
  code.setLoc(op.getLoc());
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    PlaceAttr from = placeOf(value), to = source.getResultPlace(index);
    if (from == to)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != 2 || !type.isDynamicDim(0))
      return op.emitOpError("expects result ")
             << index << " to be computed in its place " << to
             << ", but it lies in " << from;
    copyRows(value, to);
  }
  LLVM::ReturnOp::create(code, code.i32(DYNA_OK));
  return success();
}
