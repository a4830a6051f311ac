//===- GeneratedMatmul.cpp - Multiplies matrices without a library --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generates the code of a dyna_matmul_function: the f64 product, and the f32
// one if no library is wanted. It uses packed panels (Goto and van de Geijn
// 2008):
//
//     for k in blocks of blockK
//       for i in blocks of blockI
//         pack op(A)[i block, k block] into panels of tileRows rows
//         for j in tiles of tileColumns
//           pack op(B)[k block, j tile] into one panel
//           for each panel of A: a register tile of C += panel * panel
//
// Packing handles transposes and pads with zeros, so the innermost loop has one
// form: tileRows x tileVectors accumulators that stay in registers. All buffers
// are on the stack of the body that runs a chunk, 250 KB.
//
// Work is split over rows of C, by the rule of dyna_launch, so that the
// epilogue of a chunk can follow its product. Without an epilogue, a wide C is
// split over columns instead.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

namespace {

/// Sizes of tiles and blocks, in elements.
struct Blocking {
  int64_t lanes, tileVectors, tileRows, blockK, blockI;
  int64_t tileColumns() const { return lanes * tileVectors; }
};

/// One operand as packing sees it: element (outer, k), where outer is a row of
/// op(A) or a column of op(B).
struct Operand {
  Value data, stride;
  /// True if consecutive k are consecutive in memory.
  Value contiguousInK;
};

class MatmulEmitter {
public:
  MatmulEmitter(CpuLowering &module, StringRef name, Type type);

  void emit(LLVM::LLVMFuncOp function);
  /// Adds 2 m n k to the context's count, as the library's products do.
  void emitCount(CodeBuilder &code, Value context, Value fields);

private:
  LLVM::LLVMFuncOp createCore();
  LLVM::LLVMFuncOp createRowBody(LLVM::LLVMFuncOp core);
  LLVM::LLVMFuncOp createColumnBody(LLVM::LLVMFuncOp core);

  void emitCore(CodeBuilder &code, LLVM::LLVMFuncOp core);
  void emitZeros(CodeBuilder &code, ValueRange ranges);
  void emitBlock(CodeBuilder &code, Value k, Value kCount, ValueRange ranges);
  void emitTile(CodeBuilder &code, Value panelA, Value kCount, Value row,
                Value rowCount, Value column, Value columnCount, Value adding);
  void storeTile(CodeBuilder &code, ArrayRef<Value> tile, Value pointer,
                 Value adding);
  void storePartialTile(CodeBuilder &code, ArrayRef<Value> tile, Value pointer,
                        Value rowCount, Value columnCount, Value adding);

  /// Packs `count` (<= panel) outer indices from `outer` on and `kCount` values
  /// of k from `k` on into `target`, as [kCount][panel].
  void emitPack(CodeBuilder &code, const Operand &operand, Value outer,
                Value count, Value k, Value kCount, int64_t panel,
                Value target);
  void packAlongOuter(CodeBuilder &code, Value source, Value stride,
                      Value kCount, int64_t panel, Value target);
  void packAlongK(CodeBuilder &code, Value source, Value stride, Value kCount,
                  int64_t panel, Value target);
  void packPartial(CodeBuilder &code, Value source, Value outerStride,
                   Value kStride, Value count, Value kCount, int64_t panel,
                   Value target);

  Value field(CodeBuilder &code, Value fields, size_t offset, Type type) {
    return code.loadField(fields, offset, type);
  }
  Value at(CodeBuilder &code, Value base, Value row, Value stride,
           Value column) {
    return code.offset(base, code.add(code.mul(row, stride), column), type);
  }

  CpuLowering &module;
  std::string name;
  Type type;
  Blocking sizes;

  // Values inside the core function.
  Operand a, b;
  Value c, ldc, accumulate, bufferA, bufferB, bufferC;
};

} // namespace

static Blocking blockingFor(CpuLowering &module, Type type) {
  // 8 x 3 vectors use 24 of the 32 registers of AVX-512, 4 x 3 fit 16.
  bool wide = module.getOptions().vectorBits == 512;
  Blocking sizes;
  sizes.lanes = module.vectorWidth(type);
  sizes.tileVectors = 3;
  sizes.tileRows = wide ? 8 : 4;
  sizes.blockK = 256;
  sizes.blockI = type.isF64() ? 96 : 192;
  return sizes;
}

MatmulEmitter::MatmulEmitter(CpuLowering &module, StringRef name, Type type)
    : module(module), name(name), type(type), sizes(blockingFor(module, type)) {
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

/// Splits the product into chunks and launches them.
void MatmulEmitter::emit(LLVM::LLVMFuncOp function) {
  LLVM::LLVMFuncOp core = createCore();
  LLVM::LLVMFuncOp rowBody = createRowBody(core);
  LLVM::LLVMFuncOp columnBody = createColumnBody(core);

  CodeBuilder code(function.getLoc(), function.getContext());
  code.setInsertionPointToStart(&function.getBody().front());
  Type i64 = code.i64Type(), pointer = code.pointerType();
  Value fields = function.getArgument(1);
  Value m = field(code, fields, offsetof(dyna_matmul, m), i64);
  Value n = field(code, fields, offsetof(dyna_matmul, n), i64);
  emitCount(code, function.getArgument(0), fields);
  Value epilogue =
      field(code, fields, offsetof(dyna_matmul, epilogue), pointer);
  Value epilogueRows =
      field(code, fields, offsetof(dyna_matmul, epilogue_min_rows), i64);
  Value noEpilogue = code.isNull(epilogue);
  Value byColumns =
      code.bitAnd(noEpilogue, code.less(code.mul(m, code.i64(2)), n));

  // Each chunk packs the whole operand that is not split, so chunks must be
  // large.
  constexpr int64_t chunk = 96;
  Value rowAddress = LLVM::AddressOfOp::create(code, rowBody);
  Value columnAddress = LLVM::AddressOfOp::create(code, columnBody);
  Value body = code.select(byColumns, columnAddress, rowAddress);
  Value tiles = code.ceilDiv(n, code.i64(sizes.tileColumns()));
  Value rows = code.select(byColumns, tiles, m);
  Value minRows = code.select(noEpilogue, code.i64(chunk), epilogueRows);
  int64_t minTiles =
      (2 * chunk + sizes.tileColumns() - 1) / sizes.tileColumns();
  minRows = code.select(byColumns, code.i64(minTiles), minRows);
  LLVM::LLVMFuncOp launch = module.declareKernel(
      "dyna_launch", {pointer, pointer, pointer, i64, i64, i64});
  Value status = LLVM::CallOp::create(
                     code, launch,
                     ValueRange{function.getArgument(0), body, fields,
                                code.i64(sizeof(dyna_matmul)), rows, minRows})
                     .getResult();
  LLVM::ReturnOp::create(code, status);
}

void MatmulEmitter::emitCount(CodeBuilder &code, Value context, Value fields) {
  Type i64 = code.i64Type();
  Value flops = code.i64(2);
  for (size_t size : {offsetof(dyna_matmul, m), offsetof(dyna_matmul, n),
                      offsetof(dyna_matmul, k)})
    flops = code.mul(flops, field(code, fields, size, i64));
  constexpr size_t counter = offsetof(dyna_context, matrix_flops);
  code.storeField(code.add(field(code, context, counter, i64), flops), context,
                  counter);
}

/// Creates core(fields, first row, end row, first column, end column).
LLVM::LLVMFuncOp MatmulEmitter::createCore() {
  Location location = module.getModule().getLoc();
  CodeBuilder code(location, module.getModule().getContext());
  Type i64 = code.i64Type();
  LLVM::LLVMFuncOp core = module.createFunction(
      name + ".core", location, LLVM::LLVMVoidType::get(code.getContext()),
      {code.pointerType(), i64, i64, i64, i64}, /*isPublic=*/false);
  code.setInsertionPointToStart(&core.getBody().front());
  emitCore(code, core);
  LLVM::ReturnOp::create(code, ValueRange());
  return core;
}

LLVM::LLVMFuncOp MatmulEmitter::createRowBody(LLVM::LLVMFuncOp core) {
  return module.createBody(
      name + ".rows", core.getLoc(),
      [&](CodeBuilder &code, Value fields, Value begin, Value end,
          Value chunk) {
        Type pointer = code.pointerType(), i64 = code.i64Type();
        Value n = field(code, fields, offsetof(dyna_matmul, n), i64);
        LLVM::CallOp::create(code, core,
                             ValueRange{fields, begin, end, code.i64(0), n});
        Value epilogue =
            field(code, fields, offsetof(dyna_matmul, epilogue), pointer);
        Value args =
            field(code, fields, offsetof(dyna_matmul, epilogue_args), pointer);
        auto branch = scf::IfOp::create(code, code.isNull(epilogue),
                                        /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(code);
        code.setInsertionPointToStart(branch.elseBlock());
        auto type = LLVM::LLVMFunctionType::get(
            LLVM::LLVMVoidType::get(code.getContext()),
            {pointer, i64, i64, i64});
        LLVM::CallOp::create(code, type,
                             ValueRange{epilogue, args, begin, end, chunk});
      });
}

LLVM::LLVMFuncOp MatmulEmitter::createColumnBody(LLVM::LLVMFuncOp core) {
  return module.createBody(
      name + ".columns", core.getLoc(),
      [&](CodeBuilder &code, Value fields, Value begin, Value end, Value) {
        Type i64 = code.i64Type();
        Value m = field(code, fields, offsetof(dyna_matmul, m), i64);
        Value n = field(code, fields, offsetof(dyna_matmul, n), i64);
        Value tile = code.i64(sizes.tileColumns());
        LLVM::CallOp::create(code, core,
                             ValueRange{fields, code.i64(0), m,
                                        code.mul(begin, tile),
                                        code.min(code.mul(end, tile), n)});
      });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void MatmulEmitter::emitCore(CodeBuilder &code, LLVM::LLVMFuncOp core) {
  Value fields = core.getArgument(0);
  ValueRange ranges = ValueRange(core.getArguments()).drop_front();
  Type i64 = code.i64Type(), i32 = code.i32Type(), pointer = code.pointerType();
  auto flag = [&](size_t offset) {
    Value zero = code.i32(0);
    Value isZero = code.equal(field(code, fields, offset, i32), zero);
    return code.bitXor(isZero, code.constant(code.getI1Type(), int64_t(1)));
  };
  a.data = field(code, fields, offsetof(dyna_matmul, a), pointer);
  a.stride = field(code, fields, offsetof(dyna_matmul, lda), i64);
  Value transposeA = flag(offsetof(dyna_matmul, transpose_a));
  a.contiguousInK =
      code.bitXor(transposeA, code.constant(code.getI1Type(), int64_t(1)));
  b.data = field(code, fields, offsetof(dyna_matmul, b), pointer);
  b.stride = field(code, fields, offsetof(dyna_matmul, ldb), i64);
  b.contiguousInK = flag(offsetof(dyna_matmul, transpose_b));
  c = field(code, fields, offsetof(dyna_matmul, c), pointer);
  ldc = field(code, fields, offsetof(dyna_matmul, ldc), i64);
  accumulate = flag(offsetof(dyna_matmul, accumulate));
  int64_t element = sizeOf(type);
  bufferA = code.stack(sizes.blockI * sizes.blockK * element);
  bufferB = code.stack(sizes.blockK * sizes.tileColumns() * element);
  bufferC = code.stack(sizes.tileRows * sizes.tileColumns() * element);

  Value k = field(code, fields, offsetof(dyna_matmul, k), i64);
  Value empty = code.equal(k, code.i64(0));
  Value overwrite =
      code.bitXor(accumulate, code.constant(code.getI1Type(), int64_t(1)));
  code.ifThen(code.bitAnd(empty, overwrite), [&] { emitZeros(code, ranges); });
  code.forLoop(code.i64(0), k, sizes.blockK, [&](Value first) {
    Value count = code.min(code.sub(k, first), code.i64(sizes.blockK));
    emitBlock(code, first, count, ranges);
  });
}

/// Emits C = 0, if there is nothing to add up.
void MatmulEmitter::emitZeros(CodeBuilder &code, ValueRange ranges) {
  code.forLoop(ranges[0], ranges[1], 1, [&](Value row) {
    code.forLoop(ranges[2], ranges[3], 1, [&](Value column) {
      code.store(code.constant(type, 0.0), at(code, c, row, ldc, column));
    });
  });
}

/// C += or = what `kCount` values of k contribute.
void MatmulEmitter::emitBlock(CodeBuilder &code, Value k, Value kCount,
                              ValueRange ranges) {
  Value later = code.less(code.i64(0), k);
  Value adding = code.bitOr(accumulate, later);
  int64_t tileRows = sizes.tileRows, tileColumns = sizes.tileColumns();
  auto panelOf = [&](Value row) {
    // Panels of tileRows rows and kCount columns are contiguous.
    return code.offset(bufferA, code.mul(row, kCount), type);
  };
  code.forLoop(ranges[0], ranges[1], sizes.blockI, [&](Value first) {
    Value rows = code.min(code.sub(ranges[1], first), code.i64(sizes.blockI));
    code.forLoop(code.i64(0), rows, tileRows, [&](Value row) {
      Value count = code.min(code.sub(rows, row), code.i64(tileRows));
      emitPack(code, a, code.add(first, row), count, k, kCount, tileRows,
               panelOf(row));
    });
    code.forLoop(ranges[2], ranges[3], tileColumns, [&](Value column) {
      Value columns =
          code.min(code.sub(ranges[3], column), code.i64(tileColumns));
      emitPack(code, b, column, columns, k, kCount, tileColumns, bufferB);
      code.forLoop(code.i64(0), rows, tileRows, [&](Value row) {
        Value count = code.min(code.sub(rows, row), code.i64(tileRows));
        emitTile(code, panelOf(row), kCount, code.add(first, row), count,
                 column, columns, adding);
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// The register tile
//===----------------------------------------------------------------------===//

void MatmulEmitter::emitTile(CodeBuilder &code, Value panelA, Value kCount,
                             Value row, Value rowCount, Value column,
                             Value columnCount, Value adding) {
  int64_t tileRows = sizes.tileRows, vectors = sizes.tileVectors;
  Type vector = VectorType::get(sizes.lanes, type);
  SmallVector<Value> zeros(tileRows * vectors, code.constant(vector, 0.0));
  auto step = [&](Value k, ValueRange tile) {
    Value rowA = code.offset(panelA, code.mul(k, code.i64(tileRows)), type);
    Value rowB =
        code.offset(bufferB, code.mul(k, code.i64(sizes.tileColumns())), type);
    SmallVector<Value> columns, next;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(
          code.load(code.offsetBytes(rowB, v * sizes.lanes * sizeOf(type)),
                    vector, sizes.lanes * sizeOf(type)));
    for (int64_t r = 0; r < tileRows; ++r) {
      Value scalar = code.load(code.offsetBytes(rowA, r * sizeOf(type)), type);
      Value factor = code.splat(scalar, sizes.lanes);
      for (int64_t v = 0; v < vectors; ++v)
        next.push_back(code.fma(factor, columns[v], tile[r * vectors + v]));
    }
    return next;
  };
  SmallVector<Value> tile = code.forLoop(code.i64(0), kCount, 1, zeros, step);

  Value pointer = at(code, c, row, ldc, column);
  Value whole =
      code.bitAnd(code.equal(rowCount, code.i64(tileRows)),
                  code.equal(columnCount, code.i64(sizes.tileColumns())));
  auto branch = scf::IfOp::create(code, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToStart(branch.thenBlock());
  storeTile(code, tile, pointer, adding);
  code.setInsertionPointToStart(branch.elseBlock());
  storePartialTile(code, tile, pointer, rowCount, columnCount, adding);
}

void MatmulEmitter::storeTile(CodeBuilder &code, ArrayRef<Value> tile,
                              Value pointer, Value adding) {
  int64_t vectors = sizes.tileVectors;
  auto store = [&](bool add) {
    for (auto [index, value] : llvm::enumerate(tile)) {
      Value start = at(code, pointer, code.i64(index / vectors), ldc,
                       code.i64(index % vectors * sizes.lanes));
      Value sum = value;
      if (add)
        sum = code.add(code.load(start, value.getType(), sizeOf(type)), value);
      code.store(sum, start, sizeOf(type));
    }
  };
  auto branch = scf::IfOp::create(code, adding, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToStart(branch.thenBlock());
  store(true);
  code.setInsertionPointToStart(branch.elseBlock());
  store(false);
}

/// Stores a tile at the edges of C through memory.
void MatmulEmitter::storePartialTile(CodeBuilder &code, ArrayRef<Value> tile,
                                     Value pointer, Value rowCount,
                                     Value columnCount, Value adding) {
  for (auto [index, value] : llvm::enumerate(tile))
    code.storeField(value, bufferC, index * sizes.lanes * sizeOf(type));
  Value stride = code.i64(sizes.tileColumns());
  code.forLoop(code.i64(0), rowCount, 1, [&](Value row) {
    code.forLoop(code.i64(0), columnCount, 1, [&](Value column) {
      Value target = at(code, pointer, row, ldc, column);
      Value value = code.load(at(code, bufferC, row, stride, column), type);
      // Memory that is overwritten may hold anything, such as NaN.
      Value old = code.select(adding, code.load(target, type),
                              code.constant(type, 0.0));
      code.store(code.add(old, value), target);
    });
  });
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void MatmulEmitter::emitPack(CodeBuilder &code, const Operand &operand,
                             Value outer, Value count, Value k, Value kCount,
                             int64_t panel, Value target) {
  Value one = code.i64(1);
  Value outerStride = code.select(operand.contiguousInK, operand.stride, one);
  Value kStride = code.select(operand.contiguousInK, one, operand.stride);
  Value source =
      at(code, operand.data, outer, outerStride, code.mul(k, kStride));
  Value whole = code.equal(count, code.i64(panel));
  auto branch = scf::IfOp::create(code, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToStart(branch.elseBlock());
  packPartial(code, source, outerStride, kStride, count, kCount, panel, target);
  code.setInsertionPointToStart(branch.thenBlock());
  auto direction =
      scf::IfOp::create(code, operand.contiguousInK, /*withElseRegion=*/true);
  code.setInsertionPointToStart(direction.thenBlock());
  packAlongK(code, source, operand.stride, kCount, panel, target);
  code.setInsertionPointToStart(direction.elseBlock());
  packAlongOuter(code, source, operand.stride, kCount, panel, target);
}

/// Rows of the panel are contiguous in the source.
void MatmulEmitter::packAlongOuter(CodeBuilder &code, Value source,
                                   Value stride, Value kCount, int64_t panel,
                                   Value target) {
  Value width = code.i64(panel);
  code.forLoop(code.i64(0), kCount, 1, [&](Value k) {
    Value from = code.offset(source, code.mul(k, stride), type);
    Value to = code.offset(target, code.mul(k, width), type);
    code.forColumns(panel, sizes.lanes, 1, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces) {
        Value value =
            code.load(code.offset(from, piece.column, type),
                      VectorType::get(piece.width, type), sizeOf(type));
        code.store(value, code.offset(to, piece.column, type), sizeOf(type));
      }
    });
  });
}

/// Transposes a square of vectors, halves of halves: after the step of distance
/// h, blocks of h x h have changed places.
static void transposeSquare(CodeBuilder &code, MutableArrayRef<Value> rows) {
  int64_t size = rows.size();
  for (int64_t h = size / 2; h >= 1; h /= 2)
    for (int64_t i = 0; i < size; ++i) {
      if (i & h)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < size; ++lane) {
        low.push_back(lane & h ? size + lane - h : lane);
        high.push_back(lane & h ? size + lane : lane + h);
      }
      Value first = rows[i], second = rows[i + h];
      rows[i] = vector::ShuffleOp::create(code, first, second, low);
      rows[i + h] = vector::ShuffleOp::create(code, first, second, high);
    }
}

/// Columns of the panel are contiguous in the source: squares are transposed in
/// registers.
void MatmulEmitter::packAlongK(CodeBuilder &code, Value source, Value stride,
                               Value kCount, int64_t panel, Value target) {
  int64_t square = panel % 8 == 0 ? 8 : 4;
  Type vector = VectorType::get(square, type);
  Value squares =
      code.mul(code.div(kCount, code.i64(square)), code.i64(square));
  Value width = code.i64(panel), zero = code.i64(0);
  code.forLoop(zero, width, square, [&](Value outer) {
    auto from = [&](Value row, Value k) {
      return at(code, source, code.add(outer, row), stride, k);
    };
    code.forLoop(zero, squares, square, [&](Value k) {
      SmallVector<Value> rows;
      for (int64_t r = 0; r < square; ++r)
        rows.push_back(code.load(from(code.i64(r), k), vector, sizeOf(type)));
      transposeSquare(code, rows);
      for (int64_t r = 0; r < square; ++r)
        code.store(rows[r],
                   at(code, target, code.add(k, code.i64(r)), width, outer),
                   sizeOf(type));
    });
    code.forLoop(squares, kCount, 1, [&](Value k) {
      code.forLoop(zero, code.i64(square), 1, [&](Value row) {
        code.store(code.load(from(row, k), type),
                   at(code, target, k, width, code.add(outer, row)));
      });
    });
  });
}

/// Packs a panel at the edge of the matrix; the rest of it is zero.
void MatmulEmitter::packPartial(CodeBuilder &code, Value source,
                                Value outerStride, Value kStride, Value count,
                                Value kCount, int64_t panel, Value target) {
  Value width = code.i64(panel), zero = code.i64(0);
  code.forLoop(zero, kCount, 1, [&](Value k) {
    code.forLoop(zero, count, 1, [&](Value outer) {
      Value value = code.load(
          at(code, source, outer, outerStride, code.mul(k, kStride)), type);
      code.store(value, at(code, target, k, width, outer));
    });
    code.forLoop(count, width, 1, [&](Value outer) {
      code.store(code.constant(type, 0.0), at(code, target, k, width, outer));
    });
  });
}

void mlir::dyna::cpu::emitGeneratedMatmul(CpuLowering &module,
                                          LLVM::LLVMFuncOp function,
                                          Type type) {
  MatmulEmitter(module, function.getName(), type).emit(function);
}
