//===- FunctionLowering.h - Layer functions as host code -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.function` becomes one function of the layer signature that runs on
// the host, whatever device does the work: it computes addresses and sizes,
// calls the kernels of runtime/abi for products, attention, the head and
// exchanges, and starts code of its own for everything else. What that code is
// and how it is started is the target's (`ModuleLowering`).
//
// Where a value lies is known from its place alone; no op looks at another,
// except that a sweep over rows directly behind a product may run as the
// product's epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H
#define DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H

#include "codegen/rows/CodeBuilder.h"
#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/memory/Epilogues.h"
#include "passes/memory/KeyStore.h"
#include "passes/memory/ProductRuns.h"
#include "passes/memory/TokenParts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::dyna::layers {

using namespace rows;

class FunctionLowering;
struct PreparedRows;

/// Rows to be copied: an activation that has to be handed out where it does not
/// lie, from one address to another. Strides count elements.
struct RowsCopy {
  Value activation, from, to;
  int64_t fromStride, toStride, width;
  Type element;
};

/// Declares and names what a module's functions share, and lowers what is not
/// a call of a kernel.
class ModuleLowering {
public:
  explicit ModuleLowering(ModuleOp module);
  virtual ~ModuleLowering() = default;

  ModuleOp getModule() { return module; }
  /// The store of a layer's attentions; a failure was reported.
  const FailureOr<KeyStore> &getKeyStore(StringRef layer) const {
    return keyStores.at(layer);
  }

  /// The kernel that takes a weight in sparse form, of the same types as getMatmul.
  LLVM::LLVMFuncOp getSparseMatmul(Type input, Type output);
  /// A function of the runtime that returns a status.
  LLVM::LLVMFuncOp declareKernel(StringRef name, ArrayRef<Type> arguments);
  /// An internal function with an empty entry block.
  LLVM::LLVMFuncOp createFunction(StringRef name, Location location,
                                  Type result, ArrayRef<Type> arguments,
                                  bool isPublic);

  /// The product for matrices of `input` into `output`: a library function, or
  /// generated code in this module.
  virtual LLVM::LLVMFuncOp getMatmul(Type input, Type output) = 0;
  /// Whether a product calls code for the rows of the sweep directly behind it.
  /// Otherwise that is a sweep like any other, unless it can be described.
  virtual bool takesEpilogues() const = 0;
  /// Only where the target takes such epilogues.
  virtual FailureOr<PreparedRows> prepareEpilogue(FunctionLowering &function,
                                                  RowsOp op);

  virtual LogicalResult lowerRows(FunctionLowering &function, RowsOp op) = 0;
  virtual LogicalResult lowerEmbedding(FunctionLowering &function,
                                       EmbeddingOp op) = 0;
  /// `ids` null: rows go by their positions; `shard` null: to the whole table.
  virtual LogicalResult lowerTableGradient(FunctionLowering &function,
                                           Operation *op, Value dy,
                                           Value accumulator, Value ids,
                                           ShardAttr shard) = 0;
  virtual LogicalResult lowerAdamw(FunctionLowering &function, AdamwOp op) = 0;
  virtual LogicalResult lowerSumSquares(FunctionLowering &function,
                                        SumSquaresOp op) = 0;
  virtual LogicalResult lowerCast(FunctionLowering &function, CastOp op) = 0;
  virtual void copyRows(FunctionLowering &function, const RowsCopy &copy) = 0;

protected:
  /// Attributes for LLVM of all functions made here.
  virtual SmallVector<Attribute> passthrough(OpBuilder &builder);

private:
  ModuleOp module;
  /// By the name of the layer. Made first, as lowering removes functions.
  llvm::StringMap<FailureOr<KeyStore>> keyStores;
};

/// The slots of a body, collected before it is emitted.
class Slots {
public:
  /// The number of the slot that will hold `value` (a pointer, i64 or f64).
  unsigned add(Value value);
  /// The same, but always a slot of its own behind all others: for tables.
  unsigned append(Value value) {
    values.push_back(value);
    return values.size() - 1;
  }
  Value get(unsigned index) const { return values[index]; }
  /// Fills an array on the stack.
  Value store(CodeBuilder &code) const;
  int64_t bytes() const { return 8 * static_cast<int64_t>(values.size()); }
  /// In the body: what slot `index` holds.
  Value load(CodeBuilder &code, Value slots, unsigned index) const;

private:
  SmallVector<Value> values;
};

/// A body with what it takes to run it.
struct Launch {
  LLVM::LLVMFuncOp body;
  Value slots;
  int64_t slotsBytes;
  int64_t minRows;
};

/// The rows of a whole that this rank holds, known when the code runs.
struct RankRows {
  Value begin, size;
};

/// A dyna_row_runs, known when the code runs.
struct RowRuns {
  Value rows, starts, count;
};

/// Lowers one `dyna.function`.
class FunctionLowering {
public:
  FunctionLowering(ModuleLowering &module, FunctionOp source);

  LogicalResult run();

  ModuleLowering &getModule() { return module; }
  CodeBuilder &getCode() { return code; }
  Value getContext() { return argument(0); }
  Value getSegments() { return argument(5); }

  // Tokens of the micro-batch; never asked for by roles without segments.
  Value getTokens(); ///< tq
  /// Those that are the rows of a token-major value, or that an op sweeps over:
  /// all, or this rank's.
  Value getTokens(Value value) { return tokensOf(parts.of(value)).size; }
  Value getTokens(Operation *op) { return tokensOf(parts.ofRows(op)).size; }
  /// Those of them that are in the loss; -1, not known, where they are a part.
  Value getTargets(Value value);
  /// The first of them.
  Value getFirstToken(Operation *op) {
    return tokensOf(parts.ofRows(op)).begin;
  }
  /// Whether an op sweeps over this rank's tokens alone.
  bool hasPart(Operation *op) const { return bool(parts.ofRows(op)); }
  /// The address of the position, i64, of the first of them.
  Value getPositions(Operation *op);
  /// The numbers, i32, of the micro-batch's rows with a target; null where the
  /// rows of `value` are a part, or nobody asked for them.
  Value getTargetRows(Value value);
  /// The runs of the micro-batch's rows at a field of its segments; leaves the
  /// layer function where there are none.
  RowRuns getRuns(size_t field);

  PlaceAttr placeOf(Value value) { return source.getPlaceOf(value); }
  const FailureOr<KeyStore> &getKeyStore() {
    return module.getKeyStore(source.getLayer());
  }
  /// The pointer in a field of dyna_saved.
  Value savedField(int64_t offset);
  /// The place behind those of the results: the op's scratch memory.
  FailureOr<PlaceAttr> scratchOf(Operation *op);
  Value address(PlaceAttr place);
  Value address(Value value) { return address(placeOf(value)); }

  /// The form of a parameter, or of a gradient's parameter: a pointer that is null if the
  /// weight is dense. No value if the function does not accept another form.
  Value sparseFormOf(Value matrix);

  /// Elements from one row of an activation to the next.
  int64_t strideOf(Value activation);

  /// The rows of the tensor in an entry of an array of the signature.
  Value rowsOf(PlaceAttr place);

  /// The size of a group of the context and this rank's place in it, i64.
  std::pair<Value, Value> groupOf(int64_t group);
  /// This rank's part of `rows` rows that are dealt to the ranks of a group.
  RankRows partOf(int64_t group, Value rows);
  /// The number of this rank's first feature, where each rank of a group has
  /// `features` of them.
  Value firstFeature(dist::GroupAttr group, int64_t features);
  /// The same for a shard; leaves the layer function where the part does not
  /// fit into `room` rows.
  RankRows partOf(ShardAttr shard, int64_t room);

  /// A name for the next body.
  std::string bodyName(StringRef what);

  /// The products that run as one when this, one of them, has been reached;
  /// null if it runs alone.
  const ProductRun *runOf(Operation *product) const {
    auto found = runs.find(product);
    return found == runs.end() ? nullptr : &found->second;
  }
  /// What the product is told to do behind it; null: nothing.
  const DescribedEpilogue *describedBehind(Operation *product) const {
    auto found = described.find(product);
    return found == described.end() ? nullptr : &found->second;
  }
  /// Whether the sweep is done by the products in front of it.
  bool isDescribed(RowsOp rows) const { return describedRows.contains(rows); }
  /// One or the other, decided when the code runs. What both use has to have
  /// its address taken before.
  void choose(Value condition, function_ref<void()> then,
              function_ref<void()> otherwise);

  /// Calls a function that returns a status; leaves the layer function with it
  /// if that is not DYNA_OK.
  void call(LLVM::LLVMFuncOp callee, ValueRange arguments);
  void check(Value status);

  /// Leaves the layer function unless all `count` token ids, or positions from
  /// those of the rows of `op` on, are among the `rows` rows of a table.
  void checkIds(Value ids, Value count, int64_t rows);
  void checkPositions(Operation *op, Value count, int64_t rows);

private:
  Value argument(unsigned index) { return target.getArgument(index); }
  Value segmentsField(int64_t offset);
  RankRows tokensOf(dist::GroupAttr group);
  LogicalResult checkPlaces();
  void findDescribed();
  LogicalResult lowerReturn(ReturnOp op);
  void copyRows(Value value, PlaceAttr to);

  ModuleLowering &module;
  FunctionOp source;
  LLVM::LLVMFuncOp target;
  CodeBuilder code;
  Block *failure;
  DenseMap<Attribute, Value> addresses;
  DenseMap<int64_t, Value> sizes;
  const TokenParts parts;
  DenseMap<Attribute, RankRows> tokens;
  DenseMap<Operation *, ProductRun> runs;
  DenseMap<Operation *, DescribedEpilogue> described;
  DenseSet<Operation *> describedRows;
  unsigned bodies = 0;
};

/// A struct of the C interface on the stack. Every field is written.
class StructBuilder {
public:
  StructBuilder(CodeBuilder &code, int64_t bytes)
      : code(code), pointer(code.stack(bytes)) {}

  void set(size_t offset, Value value) {
    code.storeField(value, pointer, static_cast<int64_t>(offset));
  }
  void setI64(size_t offset, int64_t value) { set(offset, code.i64(value)); }
  void setI32(size_t offset, int64_t value) { set(offset, code.i32(value)); }
  Value get() const { return pointer; }

private:
  CodeBuilder &code;
  Value pointer;
};

//===----------------------------------------------------------------------===//
// What all targets lower alike: calls of kernels
//===----------------------------------------------------------------------===//

/// A product, with the sweep behind it as epilogue if `epilogue` is not null;
/// of a run the last one does them all.
LogicalResult lowerProduct(FunctionLowering &function, Operation *op,
                           RowsOp epilogue);
LogicalResult lowerAttention(FunctionLowering &function, AttentionOp op);
LogicalResult lowerAttentionGrad(FunctionLowering &function,
                                 AttentionGradOp op);
LogicalResult lowerHead(FunctionLowering &function, LinearCrossEntropyOp op);
LogicalResult lowerHead(FunctionLowering &function,
                        LinearCrossEntropyTrainOp op);
LogicalResult lowerHead(FunctionLowering &function,
                        LinearCrossEntropyInputOp op);
LogicalResult lowerCollective(FunctionLowering &function, Operation *op);

/// A sweep over rows, prepared but not run: `launch` goes into a product;
/// `finish` adds up what the chunks left, once all have run.
struct PreparedRows {
  Launch launch;
  std::function<void()> finish;
};

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H
