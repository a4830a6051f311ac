//===- FunctionLowering.h - Lowers layer functions to host code -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.function` becomes one function of the layer signature. It runs on the
// host, for every device:
//
// - It computes addresses and sizes.
// - It calls the kernels of runtime/abi for products, attention, the head and
//   exchanges.
// - It starts generated code for everything else. The target decides what that
//   code is and how it is started (`ModuleLowering`).
//
// The place of a value alone says where the value lies. No op looks at another,
// with one exception: a sweep directly after a product may run as the product's
// epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H
#define DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H

#include "codegen/rows/CodeBuilder.h"
#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/memory/place/KeyStore.h"
#include "passes/memory/sweep/Epilogues.h"
#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/TokenParts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::dyna::layers {

using namespace rows;

class FunctionLowering;
struct PreparedRows;

/// Rows to be copied, because an activation must be returned at another
/// address. Strides count elements.
struct RowsCopy {
  Value activation, from, to;
  int64_t fromStride, toStride, width;
  Type element;
};

/// Declares and names what a module's functions share. Lowers work that is no
/// call of a kernel.
class ModuleLowering {
public:
  explicit ModuleLowering(ModuleOp module);
  virtual ~ModuleLowering() = default;

  ModuleOp getModule() { return module; }
  /// Returns the store of a layer's attentions; a failure was reported.
  const FailureOr<KeyStore> &getKeyStore(StringRef layer) const {
    return keyStores.at(layer);
  }

  /// Returns the kernel for a weight in sparse form, of the same types as
  /// getMatmul.
  LLVM::LLVMFuncOp getSparseMatmul(Type input, Type output);
  /// Declares a function of the runtime that returns a status.
  LLVM::LLVMFuncOp declareKernel(StringRef name, ArrayRef<Type> arguments);
  /// Makes an internal function with an empty entry block.
  LLVM::LLVMFuncOp createFunction(StringRef name, Location location,
                                  Type result, ArrayRef<Type> arguments,
                                  bool isPublic);

  /// Returns the product for matrices of `input` into `output`: a library
  /// function, or generated code in this module.
  virtual LLVM::LLVMFuncOp getMatmul(Type input, Type output) = 0;
  /// Returns true if a product calls code for the rows of the sweep directly
  /// after it. If not, that is a sweep like any other, unless it can be
  /// described.
  virtual bool takesEpilogues() const = 0;
  /// Prepares such an epilogue; called only if the target takes epilogues.
  virtual FailureOr<PreparedRows> prepareEpilogue(FunctionLowering &function,
                                                  RowsOp op);

  virtual LogicalResult lowerRows(FunctionLowering &function, RowsOp op) = 0;
  virtual LogicalResult lowerEmbedding(FunctionLowering &function,
                                       EmbeddingOp op) = 0;
  /// Lowers the gradient of a table. Null `ids`: rows go by their positions;
  /// null `shard`: the whole table.
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
  /// Returns the LLVM attributes of all functions made here.
  virtual SmallVector<Attribute> passthrough(OpBuilder &builder);

private:
  ModuleOp module;
  /// By the name of the layer. They are made first, because lowering removes
  /// functions.
  llvm::StringMap<FailureOr<KeyStore>> keyStores;
};

/// The slots of a body, collected before it is emitted.
class Slots {
public:
  /// Returns the number of the slot for `value` (a pointer, i64 or f64).
  unsigned add(Value value);
  /// Adds a slot after all others, even if `value` already has one: for tables.
  unsigned append(Value value) {
    values.push_back(value);
    return values.size() - 1;
  }
  Value get(unsigned index) const { return values[index]; }
  /// Fills an array on the stack.
  Value store(CodeBuilder &code) const;
  int64_t bytes() const { return 8 * static_cast<int64_t>(values.size()); }
  /// Loads the value of slot `index`, inside the body.
  Value load(CodeBuilder &code, Value slots, unsigned index) const;

private:
  SmallVector<Value> values;
};

/// A body with the arguments of its launch.
struct Launch {
  LLVM::LLVMFuncOp body;
  Value slots;
  int64_t slotsBytes;
  int64_t minRows;
};

/// The rows of a whole that this rank holds, as values at run time.
struct RankRows {
  Value begin, size;
};

/// A dyna_row_runs, as values at run time.
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

  // Tokens of the micro-batch. Roles without segments never call this.
  Value getTokens(); ///< tq
  /// Returns the number of tokens that are the rows of a token-major value, or
  /// that an op sweeps over: all tokens, or this rank's.
  Value getTokens(Value value) { return tokensOf(parts.of(value)).size; }
  Value getTokens(Operation *op) { return tokensOf(parts.ofRows(op)).size; }
  /// Returns how many of these tokens are in the loss; -1 (unknown) if they are
  /// a part.
  Value getTargets(Value value);
  /// Returns the first of these tokens.
  Value getFirstToken(Operation *op) {
    return tokensOf(parts.ofRows(op)).begin;
  }
  /// Returns true if an op sweeps over this rank's tokens alone.
  bool hasPart(Operation *op) const { return bool(parts.ofRows(op)); }
  /// Returns the address of the position, i64, of the first of these tokens.
  Value getPositions(Operation *op);
  /// Returns the numbers, i32, of the micro-batch's rows with a target. Null if
  /// the rows of `value` are a part, or if the target has no such table.
  Value getTargetRows(Value value);
  /// Returns the runs of the micro-batch's rows at a field of its segments.
  /// Leaves the layer function if there are none.
  RowRuns getRuns(size_t field);

  PlaceAttr placeOf(Value value) { return source.getPlaceOf(value); }
  const FailureOr<KeyStore> &getKeyStore() {
    return module.getKeyStore(source.getLayer());
  }
  /// Returns the pointer in a field of dyna_saved.
  Value savedField(int64_t offset);
  /// Returns the op's scratch memory: the place after those of the results.
  FailureOr<PlaceAttr> scratchOf(Operation *op);
  Value address(PlaceAttr place);
  Value address(Value value) { return address(placeOf(value)); }

  /// Returns the form of a parameter, or of a gradient's parameter: a pointer
  /// that is null if the weight is dense. Null value if the function does not
  /// accept another form.
  Value sparseFormOf(Value matrix);

  /// Elements from one row of an activation to the next.
  int64_t strideOf(Value activation);

  /// Returns the rows of the tensor in an entry of an array of the signature.
  Value rowsOf(PlaceAttr place);

  /// Returns the size of a group of the context and this rank's index in it,
  /// i64.
  std::pair<Value, Value> groupOf(int64_t group);
  /// Returns this rank's part of `rows` rows that the ranks of a group share.
  RankRows partOf(int64_t group, Value rows);
  /// Returns the number of this rank's first feature, if each rank of a group
  /// has `features` of them.
  Value firstFeature(dist::GroupAttr group, int64_t features);
  /// Returns this rank's part of a shard. Leaves the layer function if the part
  /// has more than `room` rows.
  RankRows partOf(ShardAttr shard, int64_t room);

  /// Returns a name for the next body.
  std::string bodyName(StringRef what);

  /// Returns the products that run as one when this one of them is reached;
  /// null if it runs alone.
  const ProductRun *runOf(Operation *product) const {
    auto found = runs.find(product);
    return found == runs.end() ? nullptr : &found->second;
  }
  /// Returns the described epilogue of the product; null if it has none.
  const DescribedEpilogue *describedBehind(Operation *product) const {
    auto found = described.find(product);
    return found == described.end() ? nullptr : &found->second;
  }
  /// Returns true if the products before the sweep compute it.
  bool isDescribed(RowsOp rows) const { return describedRows.contains(rows); }
  /// Emits a branch on `condition` at run time. Take the addresses that both
  /// sides use before it.
  void choose(Value condition, function_ref<void()> then,
              function_ref<void()> otherwise);

  /// Calls a function that returns a status; leaves the layer function with any
  /// status but DYNA_OK.
  void call(LLVM::LLVMFuncOp callee, ValueRange arguments);
  void check(Value status);

  /// Leaves the layer function unless all `count` ids are rows of a table with
  /// `rows` rows. The second form checks positions, from the first row of `op`
  /// on.
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

/// A struct of the C interface on the stack. Write every field.
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
// Calls of kernels, which are the same for all targets.
//===----------------------------------------------------------------------===//

/// Lowers a product. If `epilogue` is not null, the sweep after it is its
/// epilogue. The last product of a run computes all of them.
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

/// A sweep over rows that is prepared but not run. `launch` goes into a
/// product. `finish` adds up the sums of the chunks, once all have run.
struct PreparedRows {
  Launch launch;
  std::function<void()> finish;
};

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_FUNCTIONLOWERING_H
