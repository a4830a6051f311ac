//===- ProductLowering.cpp - Lowers products, attention and the head ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ops that become calls of kernels (runtime/abi/Kernels.h). Their operands go
// into a struct on the stack, field by field at the offsets of the C header.
//
//===----------------------------------------------------------------------===//

#include "codegen/layers/FunctionLowering.h"

#include "passes/memory/value/Target.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::layers;

static int64_t widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(1);
}

namespace {
/// A product in the terms of dyna_matmul.
struct KernelProduct : MatrixProduct {
  Value m = {}, n = {}, k = {};
  int64_t lda = 0, ldb = 0, ldc = 0;
  const DescribedEpilogue *epilogue = nullptr;
  /// Address of the form of the weight, which is null at run time if the weight
  /// is dense. Without a value the weight is always dense.
  Value form = {};
};
} // namespace

/// Describes the product of the op.
static KernelProduct describe(FunctionLowering &function, Operation *op) {
  CodeBuilder &code = function.getCode();
  KernelProduct product = {cast<MatrixProductOpInterface>(op).getProduct()};
  if (product.isPerRow()) {
    product.m = function.getTokens(product.a);
    product.n = code.i64(widthOf(product.c));
    product.k = code.i64(widthOf(product.a));
  } else {
    product.m = code.i64(widthOf(product.a));
    product.n = code.i64(widthOf(product.b));
    product.k = function.getTokens(product.a);
  }
  product.form =
      function.sparseFormOf(product.isPerRow() ? product.b : product.c);
  // The result without the epilogue is never in memory.
  if (const DescribedEpilogue *epilogue = function.describedBehind(op)) {
    product.epilogue = epilogue;
    product.c = epilogue->result;
  }
  auto strideOf = [&](Value matrix) {
    auto type = cast<RankedTensorType>(matrix.getType());
    return type.isDynamicDim(0) ? function.strideOf(matrix) : widthOf(matrix);
  };
  product.lda = strideOf(product.a);
  product.ldb = strideOf(product.b);
  product.ldc = strideOf(product.c);
  return product;
}

/// Describes the products of a run as one product. Parts and matrices are
/// adjacent, so the addresses of the first one are those of the whole.
static KernelProduct describeRun(FunctionLowering &function,
                                 const ProductRun &run, Operation *first) {
  CodeBuilder &code = function.getCode();
  KernelProduct product = describe(function, run.ops.front());
  int64_t width = 0;
  for (Value part : run.parts())
    width += widthOf(part);
  if (product.part() == product.c)
    product.n = code.i64(width);
  else if (product.isPerRow())
    product.k = code.i64(width);
  else
    product.m = code.i64(width);
  // Products are only joined if all of them are dense.
  product.form = {};
  // A chain adds to the accumulator of its first op, in the order of the ops.
  product.accumulator =
      cast<MatrixProductOpInterface>(first).getProduct().accumulator;
  return product;
}

/// Fills a dyna_epilogue. A run's is that of its first product: the vectors of
/// the others follow.
static Value emitEpilogueStruct(FunctionLowering &function,
                                const DescribedEpilogue &epilogue) {
  CodeBuilder &code = function.getCode();
  auto addressOf = [&](Value value) {
    return value ? function.address(value) : code.null();
  };
  StructBuilder fields(code, sizeof(dyna_epilogue));
  fields.setI32(offsetof(dyna_epilogue, kind), epilogue.kind);
  fields.setI32(offsetof(dyna_epilogue, reserved), 0);
  fields.set(offsetof(dyna_epilogue, bias), addressOf(epilogue.bias));
  fields.set(offsetof(dyna_epilogue, aux), addressOf(epilogue.aux));
  fields.setI64(offsetof(dyna_epilogue, aux_stride),
                epilogue.aux ? function.strideOf(epilogue.aux) : 0);
  return fields.get();
}

/// Fills a dyna_matmul, or a dyna_sparse_matmul if the weight has a form.
static Value emitMatmulStruct(FunctionLowering &function,
                              const KernelProduct &product,
                              const Launch *epilogue) {
  CodeBuilder &code = function.getCode();
  static_assert(offsetof(dyna_sparse_matmul, product) == 0);
  StructBuilder fields(code, product.form ? sizeof(dyna_sparse_matmul)
                                          : sizeof(dyna_matmul));
  if (product.form)
    fields.set(offsetof(dyna_sparse_matmul, form), product.form);
  fields.set(offsetof(dyna_matmul, m), product.m);
  fields.set(offsetof(dyna_matmul, n), product.n);
  fields.set(offsetof(dyna_matmul, k), product.k);
  fields.set(offsetof(dyna_matmul, a), function.address(product.a));
  fields.setI64(offsetof(dyna_matmul, lda), product.lda);
  fields.set(offsetof(dyna_matmul, b), function.address(product.b));
  fields.setI64(offsetof(dyna_matmul, ldb), product.ldb);
  fields.set(offsetof(dyna_matmul, c), function.address(product.c));
  fields.setI64(offsetof(dyna_matmul, ldc), product.ldc);
  fields.setI32(offsetof(dyna_matmul, transpose_a), product.transposeA);
  fields.setI32(offsetof(dyna_matmul, transpose_b), product.transposeB);
  fields.setI32(offsetof(dyna_matmul, accumulate), bool(product.accumulator));
  fields.setI32(offsetof(dyna_matmul, described), bool(product.epilogue));
  Value body = code.null(), slots = code.null();
  if (epilogue) {
    body = LLVM::AddressOfOp::create(code, epilogue->body);
    slots = epilogue->slots;
  } else if (product.epilogue) {
    slots = emitEpilogueStruct(function, *product.epilogue);
  }
  fields.set(offsetof(dyna_matmul, epilogue), body);
  fields.set(offsetof(dyna_matmul, epilogue_args), slots);
  fields.setI64(offsetof(dyna_matmul, epilogue_args_bytes),
                epilogue ? epilogue->slotsBytes
                         : (product.epilogue
                                ? static_cast<int64_t>(sizeof(dyna_epilogue))
                                : 0));
  fields.setI64(offsetof(dyna_matmul, epilogue_min_rows),
                epilogue ? epilogue->minRows : 0);
  return fields.get();
}

/// Calls the kernel for a product that is its own, or several.
static void callProduct(FunctionLowering &function,
                        const KernelProduct &product,
                        const PreparedRows *epilogue) {
  Value fields = emitMatmulStruct(function, product,
                                  epilogue ? &epilogue->launch : nullptr);
  ModuleLowering &module = function.getModule();
  const Type input = elementOf(product.a), output = elementOf(product.c);
  auto callKernel = [&](LLVM::LLVMFuncOp kernel) {
    function.call(kernel, {function.getContext(), fields});
  };
  if (!product.form)
    return callKernel(module.getMatmul(input, output));
  function.choose(
      function.getCode().isNull(product.form),
      [&] { callKernel(module.getMatmul(input, output)); },
      [&] { callKernel(module.getSparseMatmul(input, output)); });
}

/// Returns true if each matrix begins where the one before ends. They are
/// parameters or gradients of the layer.
static Value areNeighbours(FunctionLowering &function,
                           ArrayRef<Value> matrices) {
  CodeBuilder &code = function.getCode();
  Value all;
  for (size_t i = 1; i < matrices.size(); ++i) {
    auto type = cast<RankedTensorType>(matrices[i - 1].getType());
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    Value end = code.offsetBytes(function.address(matrices[i - 1]), bytes);
    Value isNext = code.samePointer(end, function.address(matrices[i]));
    all = all ? code.bitAnd(all, isNext) : isNext;
  }
  return all;
}

/// Calls the products of a run: as one if their matrices are adjacent, and
/// dense.
static void callRun(FunctionLowering &function, const ProductRun &run,
                    const PreparedRows *epilogue) {
  SmallVector<Operation *> ops = run.ops;
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  CodeBuilder &code = function.getCode();
  // Compute addresses and sizes before the branch.
  KernelProduct joined = describeRun(function, run, ops.front());
  SmallVector<KernelProduct> apart;
  SmallVector<Value> biases;
  for (Operation *op : ops) {
    apart.push_back(describe(function, op));
    for (Value matrix : {apart.back().a, apart.back().b, apart.back().c})
      function.address(matrix);
  }
  Value isOne = areNeighbours(function, run.matrices());
  for (const KernelProduct &product : apart)
    if (product.form)
      isOne = code.bitAnd(isOne, code.isNull(product.form));
  if (joined.epilogue) {
    for (Operation *op : run.ops)
      biases.push_back(function.describedBehind(op)->bias);
    isOne = code.bitAnd(isOne, areNeighbours(function, biases));
  }
  function.choose(
      isOne, [&] { callProduct(function, joined, epilogue); },
      [&] {
        for (const KernelProduct &product : apart)
          callProduct(function, product,
                      &product == &apart.back() ? epilogue : nullptr);
      });
}

LogicalResult mlir::dyna::layers::lowerProduct(FunctionLowering &function,
                                               Operation *op, RowsOp epilogue) {
  auto linear = dyn_cast<LinearOp>(op);
  if (linear && linear.getBias())
    return op->emitOpError("still has a bias; run --dyna-fuse-rows before code "
                           "generation");
  KernelProduct product = describe(function, op);
  if (product.accumulator &&
      function.placeOf(product.accumulator) != function.placeOf(product.c))
    return op->emitOpError(
               "expects its accumulator in the place of its result, ")
           << function.placeOf(product.c) << ", but it lies in "
           << function.placeOf(product.accumulator);
  const ProductRun *run = function.runOf(op);
  if (run && run->last() != op)
    return success(); // the last product of the run does all

  FailureOr<PreparedRows> rows = failure();
  if (epilogue) {
    rows = function.getModule().prepareEpilogue(function, epilogue);
    if (failed(rows))
      return failure();
  }
  if (run)
    callRun(function, *run, epilogue ? &*rows : nullptr);
  else
    callProduct(function, product, epilogue ? &*rows : nullptr);
  if (epilogue)
    rows->finish();
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Returns the typed kernel: `dyna_attention_f32` for the prefix
/// `dyna_attention`, and so on.
static LLVM::LLVMFuncOp typedKernel(FunctionLowering &function,
                                    StringRef prefix, Type element) {
  StringRef suffix = element.isF64()    ? "_f64"
                     : element.isBF16() ? "_bf16"
                                        : "_f32";
  Type pointer = function.getCode().pointerType();
  return function.getModule().declareKernel((prefix + suffix).str(),
                                            {pointer, pointer});
}

/// Fills the store of a dyna_attention. Its addresses come with the call; they are null
/// where no sample is sliced.
static void setStore(FunctionLowering &function, StructBuilder &fields,
                     const KeyStore &rows, int64_t number, bool isBackward) {
  const KeyStore::Columns columns = rows.columnsOf(number);
  constexpr size_t store = offsetof(dyna_attention, store);
  fields.set(store + offsetof(dyna_key_store, data),
             function.savedField(offsetof(dyna_saved, keys)));
  fields.setI64(store + offsetof(dyna_key_store, stride), rows.getStride());
  fields.setI64(store + offsetof(dyna_key_store, k_column), columns.keys);
  fields.setI64(store + offsetof(dyna_key_store, v_column), columns.values);
  fields.set(store + offsetof(dyna_key_store, gradients),
             isBackward
                 ? function.savedField(offsetof(dyna_saved, key_gradients))
                 : function.getCode().null());
  fields.setI64(store + offsetof(dyna_key_store, gradient_stride),
                rows.getGradientStride());
  fields.setI64(store + offsetof(dyna_key_store, dk_column),
                columns.keyGradients);
  fields.setI64(store + offsetof(dyna_key_store, dv_column),
                columns.valueGradients);
}

/// Fills a dyna_attention at the start of `fields`, from the operands that
/// forward and backward share.
template <typename Op>
static void setAttention(FunctionLowering &function, StructBuilder &fields,
                         Op op, Value result, Value lse,
                         const KeyStore &store) {
  constexpr bool isBackward = std::is_same_v<Op, AttentionGradOp>;
  CodeBuilder &code = function.getCode();
  fields.set(offsetof(dyna_attention, segments), function.getSegments());
  fields.setI64(offsetof(dyna_attention, heads), op.getHeads());
  fields.setI64(offsetof(dyna_attention, kv_heads), op.getKvHeads());
  fields.setI64(offsetof(dyna_attention, head_dim), op.getHeadDim());
  fields.set(offsetof(dyna_attention, scale),
             code.constant(code.f64Type(), op.getScale().convertToDouble()));
  fields.setI32(offsetof(dyna_attention, causal), op.getCausal());
  fields.setI32(offsetof(dyna_attention, reserved), 0);
  auto setTensor = [&](size_t data, size_t stride, Value value) {
    fields.set(data, function.address(value));
    fields.setI64(stride, function.strideOf(value));
  };
  setTensor(offsetof(dyna_attention, q), offsetof(dyna_attention, q_stride),
            op.getQuery());
  setTensor(offsetof(dyna_attention, k), offsetof(dyna_attention, k_stride),
            op.getKey());
  setTensor(offsetof(dyna_attention, v), offsetof(dyna_attention, v_stride),
            op.getValue());
  setTensor(offsetof(dyna_attention, out), offsetof(dyna_attention, out_stride),
            result);
  fields.set(offsetof(dyna_attention, lse), function.address(lse));
  setStore(function, fields, store, op.getNumber(), isBackward);
}

LogicalResult mlir::dyna::layers::lowerAttention(FunctionLowering &function,
                                                 AttentionOp op) {
  const FailureOr<KeyStore> &store = function.getKeyStore();
  if (failed(store))
    return failure();
  StructBuilder fields(function.getCode(), sizeof(dyna_attention));
  setAttention(function, fields, op, op.getResult(), op.getLse(), *store);
  function.call(
      typedKernel(function, "dyna_attention", elementOf(op.getQuery())),
      {function.getContext(), fields.get()});
  return success();
}

LogicalResult mlir::dyna::layers::lowerAttentionGrad(FunctionLowering &function,
                                                     AttentionGradOp op) {
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  const FailureOr<KeyStore> &store = function.getKeyStore();
  if (failed(scratch) || failed(store))
    return failure();
  static_assert(offsetof(dyna_attention_grad, forward) == 0);
  StructBuilder fields(function.getCode(), sizeof(dyna_attention_grad));
  setAttention(function, fields, op, op.getResult(), op.getLse(), *store);
  fields.set(offsetof(dyna_attention_grad, dout),
             function.address(op.getDResult()));
  fields.set(offsetof(dyna_attention_grad, dq),
             function.address(op.getDQuery()));
  fields.set(offsetof(dyna_attention_grad, dk), function.address(op.getDKey()));
  fields.set(offsetof(dyna_attention_grad, dv),
             function.address(op.getDValue()));
  fields.setI64(offsetof(dyna_attention_grad, dq_stride),
                function.strideOf(op.getDQuery()));
  fields.setI64(offsetof(dyna_attention_grad, dk_stride),
                function.strideOf(op.getDKey()));
  fields.setI64(offsetof(dyna_attention_grad, dv_stride),
                function.strideOf(op.getDValue()));
  fields.set(offsetof(dyna_attention_grad, workspace),
             function.address(*scratch));
  function.call(
      typedKernel(function, "dyna_attention_grad", elementOf(op.getQuery())),
      {function.getContext(), fields.get()});
  return success();
}

//===----------------------------------------------------------------------===//
// Head
//===----------------------------------------------------------------------===//

/// Fills a dyna_head and calls the kernel. `dx` and `dw` are null in
/// evaluation, `dw` alone if the weight is frozen.
static LogicalResult emitHead(FunctionLowering &function, Operation *op,
                              Value x, Value weight, Value targets, Value loss,
                              int64_t ignoreIndex, ShardAttr shard, Value dx,
                              Value dw) {
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  Type element = elementOf(x);
  Type accumulator = getAccumulatorType(element);
  auto matmul = [&](Type output) -> Value {
    return LLVM::AddressOfOp::create(code, module.getMatmul(element, output));
  };
  StructBuilder fields(code, sizeof(dyna_head));
  fields.set(offsetof(dyna_head, rows), function.getTokens(x));
  fields.setI64(offsetof(dyna_head, width), widthOf(x));
  fields.setI64(offsetof(dyna_head, vocab),
                cast<RankedTensorType>(weight.getType()).getDimSize(0));
  fields.set(offsetof(dyna_head, x), function.address(x));
  fields.set(offsetof(dyna_head, w), function.address(weight));
  fields.set(offsetof(dyna_head, targets), function.address(targets));
  fields.setI32(offsetof(dyna_head, ignore_index), ignoreIndex);
  fields.setI32(offsetof(dyna_head, narrow_dw),
                dw && elementOf(dw) != accumulator);
  fields.set(offsetof(dyna_head, loss_sum), function.address(loss));
  fields.set(offsetof(dyna_head, gradient_scale),
             code.loadField(function.getContext(),
                            offsetof(dyna_context, inverse_targets),
                            code.f64Type()));
  fields.set(offsetof(dyna_head, dx), dx ? function.address(dx) : code.null());
  fields.set(offsetof(dyna_head, dw), dw ? function.address(dw) : code.null());
  fields.set(offsetof(dyna_head, workspace), function.address(*scratch));
  bool narrowLogits = targetOf(op).hasNarrowLogits(element, shard);
  fields.setI32(offsetof(dyna_head, narrow_logits), narrowLogits);
  fields.set(offsetof(dyna_head, matmul),
             matmul(narrowLogits ? element : accumulator));
  fields.set(offsetof(dyna_head, matmul_input), matmul(element));
  fields.set(offsetof(dyna_head, matmul_weight), matmul(accumulator));
  fields.setI64(offsetof(dyna_head, whole_vocab), shard ? shard.getRows() : 0);
  fields.setI32(offsetof(dyna_head, group), shard ? shard.getGroup() : 0);
  int64_t chunk = targetOf(op).headChunkRows;
  fields.setI32(offsetof(dyna_head, chunk_rows),
                chunk == DYNA_HEAD_CHUNK_ROWS ? 0 : chunk);
  fields.set(offsetof(dyna_head, target_rows), function.getTargets(x));
  fields.set(offsetof(dyna_head, used_rows), function.getTargetRows(x));
  function.call(typedKernel(function, "dyna_head", element),
                {function.getContext(), fields.get()});
  return success();
}

LogicalResult mlir::dyna::layers::lowerHead(FunctionLowering &function,
                                            LinearCrossEntropyOp op) {
  return emitHead(function, op, op.getX(), op.getWeight(), op.getTargets(),
                  op.getLoss(), op.getIgnoreIndex(), op.getShardAttr(), Value(),
                  Value());
}

LogicalResult mlir::dyna::layers::lowerHead(FunctionLowering &function,
                                            LinearCrossEntropyTrainOp op) {
  if (function.placeOf(op.getAccumulator()) != function.placeOf(op.getResult()))
    return op.emitOpError("expects its accumulator in the place of its result");
  return emitHead(function, op, op.getX(), op.getWeight(), op.getTargets(),
                  op.getLoss(), op.getIgnoreIndex(), op.getShardAttr(),
                  op.getDX(), op.getResult());
}

LogicalResult mlir::dyna::layers::lowerHead(FunctionLowering &function,
                                            LinearCrossEntropyInputOp op) {
  return emitHead(function, op, op.getX(), op.getWeight(), op.getTargets(),
                  op.getLoss(), op.getIgnoreIndex(), op.getShardAttr(),
                  op.getDX(), Value());
}
