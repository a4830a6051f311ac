//===- RowsLowering.cpp - Lowers sweeps over rows -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers a `dyna.rows` (codegen/rows) to a kernel. A row belongs to a *team* of
// threads. Each thread has the same pieces of every row. The first piece has as
// many columns as one access reads, and each further piece is one team further
// on. Values of a piece stay in registers from the first pass over the row to
// the last. So do the sums over rows of its columns.
//
//     no sum over columns   the team is a warp with some columns of a row;
//                           other warps have the rest of it
//     narrow rows           the team is a warp with a whole row
//     wide rows             the team is a block with a whole row
//
// Results that sum over rows (gradients of vectors) are added up per block.
// Each block has its own row in the scratch memory, and the number of blocks
// follows from the number of rows. A second kernel, over columns, adds these
// rows in order.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaLowering.h"
#include "codegen/layers/RowsSlots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/memory/value/Target.h"
#include "runtime/abi/Abi.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

namespace {
/// Distribution of rows over threads.
struct Teams {
  int64_t lanes;       ///< columns of a piece
  int64_t pieces;      ///< per thread and row
  int64_t teamThreads; ///< a warp or the block
  int64_t blockThreads;
  int64_t columnGroups; ///< teams that share a row
  bool keepsOperands;   ///< from one pass to the next

  int64_t perBlock() const { return blockThreads / teamThreads; }
  /// Columns of a row that a team has.
  int64_t columns() const { return lanes * pieces * teamThreads; }
};
} // namespace

static int64_t divideUp(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Returns how many elements of a row a thread can keep with so many registers.
/// Registers hold the operands that passes read, and the sums over rows of
/// their columns. What one piece needs comes on top.
static int64_t keptElements(const RowsPlan &plan,
                            const RowsArguments &arguments,
                            int64_t registers = 80) {
  constexpr int64_t most = 32;
  const auto values = static_cast<int64_t>(arguments.operands.size() +
                                           plan.accumulations.size());
  const int64_t words = plan.accumulator.isF64() ? 2 : 1;
  return std::min(most, registers / std::max<int64_t>(values, 1)) / words;
}

/// Distributes a row for which blocks of 512 threads have too few registers.
/// Uses as many threads as have a piece, each with as few pieces as fit its
/// registers. If they never fit, every pass reads operands again.
static void dealWideRow(const RowsPlan &plan, const RowsArguments &arguments,
                        Teams &teams) {
  constexpr int64_t registers = 65536, most = 200, beside = 40;
  constexpr int64_t mostThreads = 1024, leastThreads = 128;
  const int64_t all = divideUp(plan.width, teams.lanes);
  auto threadsOf = [&](int64_t pieces) {
    return divideUp(divideUp(all, pieces), warpThreads) * warpThreads;
  };
  for (int64_t pieces = divideUp(all, mostThreads);
       threadsOf(pieces) >= leastThreads; ++pieces) {
    const int64_t free =
        std::min(most, registers / threadsOf(pieces) / 8 * 8) - beside;
    if (pieces * teams.lanes > keptElements(plan, arguments, free))
      continue;
    teams.pieces = pieces;
    teams.teamThreads = teams.blockThreads = threadsOf(pieces);
    return;
  }
  teams.keepsOperands = false;
  teams.teamThreads = teams.blockThreads = threadsOf(teams.pieces);
}

/// Bytes of shared memory for rotated rows that other threads read back.
static int64_t rowMemoryOf(const RowsPlan &plan) {
  int64_t bytes = 0;
  for (Value value : plan.stashes)
    if (value.getDefiningOp<RotaryOp>())
      bytes += dyna_align_block(plan.width * sizeOf(plan.accumulator));
  return bytes;
}

static bool needsRowMemory(const RowsPlan &plan) {
  return rowMemoryOf(plan) != 0;
}

/// Columns that every access of the sweep can have at once.
static int64_t lanesOf(FunctionLowering &function, const RowsPlan &plan,
                       const RowsArguments &arguments) {
  SmallVector<int64_t> counts = {plan.width};
  Type narrowest = plan.accumulator;
  auto visit = [&](Value value) {
    Type element = elementOf(value);
    if (sizeOf(element) < sizeOf(narrowest))
      narrowest = element;
    if (!isActivation(value.getType()))
      return;
    counts.push_back(arguments.strides.lookup(value));
    counts.push_back(function.placeOf(value).getColumn() / sizeOf(element));
  };
  for (auto [value, slot] : arguments.operands)
    visit(value);
  for (auto [value, stride] : arguments.strides)
    visit(value);
  return accessLanes(narrowest, counts);
}

static Teams dealRows(const RowsPlan &plan, const RowsArguments &arguments,
                      int64_t lanes) {
  Teams teams;
  teams.lanes = lanes;
  teams.columnGroups = 1;
  teams.keepsOperands = true;
  const int64_t kept = keptElements(plan, arguments);
  if (plan.statistics.empty() && plan.rotaries.empty()) {
    teams.teamThreads = warpThreads;
    teams.blockThreads = 8 * warpThreads;
    int64_t share = divideUp(plan.width, warpThreads * lanes);
    teams.pieces =
        std::clamp<int64_t>(share, 1, std::max<int64_t>(8 / lanes, 1));
    teams.columnGroups = divideUp(plan.width, teams.columns());
    return teams;
  }
  teams.teamThreads = warpThreads;
  teams.blockThreads = rowsPerBlock * warpThreads;
  if (plan.width > warpThreads * kept || needsRowMemory(plan)) {
    teams.teamThreads = 128;
    while (teams.teamThreads < 512 && teams.teamThreads * kept < plan.width)
      teams.teamThreads *= 2;
    teams.blockThreads = teams.teamThreads;
  }
  teams.pieces = divideUp(plan.width, teams.teamThreads * lanes);
  // Heads of rotated rows need a power of two of threads.
  if (teams.teamThreads != warpThreads && teams.pieces * lanes > kept &&
      plan.rotaries.empty())
    dealWideRow(plan, arguments, teams);
  return teams;
}

namespace {
class CudaRows : public RowsTarget {
public:
  CudaRows(Kernel &kernel, const RowsSlots &slots, const RowsPlan &plan,
           const Teams &teams)
      : kernel(kernel), code_(kernel.code), slots(slots), plan(plan),
        teams(teams) {}

  void emit(RowsOp op, Value rows);

private:
  CodeBuilder &code() override { return code_; }
  Value argument(unsigned number) override { return kernel.slot(number); }
  Value takeMemory(int64_t bytes) override;
  Value table(ArrayRef<double> values) override { return kernel.table(values); }
  SmallVector<Value>
  sumColumns(int64_t count, int64_t unroll, unsigned sums, Type type,
             function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) override;
  void
  turnHeads(int64_t half, int64_t heads, Type type,
            function_ref<Angles(const Piece &)> angles,
            function_ref<void(Value, const Piece &, function_ref<Angles()>)>
                turn) override;
  bool keepsPieces() const override { return true; }
  bool keepsOperands() const override { return teams.keepsOperands; }
  void syncRow() override {
    teams.teamThreads == warpThreads ? kernel.syncWarp() : kernel.syncBlock();
  }
  void addToSum(unsigned number, const Piece &piece, Value value) override;

  void takeSharedMemory();
  void findPieces();
  void storeSums(Value part);
  Value &sumOf(unsigned number, const Piece &piece) {
    return sums[number * teams.pieces + piece.number];
  }

  Kernel &kernel;
  CodeBuilder &code_;
  const RowsSlots &slots;
  const RowsPlan &plan;
  const Teams &teams;

  Value team, teamThread; ///< of the block, of the team
  SmallVector<Piece> ownPieces;
  SmallVector<Value> sums; ///< over the rows so far, by number and piece
  Value shared;            ///< null: none
  int64_t rowMemory = 0;   ///< bytes of it taken for rows
};
} // namespace

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void CudaRows::findPieces() {
  CodeBuilder &code = code_;
  Value thread = kernel.thread();
  Value block = kernel.blockIndex();
  team = teams.perBlock() == 1 ? code.i64(0) : code.shiftRight(thread, 5);
  teamThread = teams.perBlock() == 1
                   ? thread
                   : code.bitAnd(thread, code.i64(warpThreads - 1));
  Value first = code.mul(teamThread, code.i64(teams.lanes));
  if (teams.columnGroups > 1) {
    Value group =
        arith::RemUIOp::create(code, block, code.i64(teams.columnGroups));
    first = code.add(first, code.mul(group, code.i64(teams.columns())));
  }
  bool isWhole = plan.width == teams.columns() * teams.columnGroups;
  for (int64_t i = 0; i < teams.pieces; ++i) {
    Value column =
        code.add(first, code.i64(i * teams.lanes * teams.teamThreads));
    Piece piece = {column, teams.lanes, teams.lanes, i};
    int64_t last = (i + 1) * teams.lanes * teams.teamThreads;
    if (!isWhole && (teams.columnGroups > 1 || last > plan.width)) {
      piece.active = code.less(column, code.i64(plan.width));
      piece.column = code.min(column, code.i64(plan.width - teams.lanes));
    }
    ownPieces.push_back(piece);
  }
}

SmallVector<Value>
CudaRows::sumColumns(int64_t count, int64_t, unsigned sums, Type,
                     function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) {
  assert(count == plan.width && "rows have one width");
  SmallVector<Value> terms = body(ownPieces);
  SmallVector<Value> totals(sums);
  for (auto [index, term] : llvm::enumerate(terms)) {
    const Piece &piece = ownPieces[index / sums];
    if (piece.active) {
      Value zero = code_.like(term, 0.0);
      term = code_.select(piece.active, term, zero);
    }
    Value &total = totals[index % sums];
    total = total ? code_.add(total, term) : term;
  }
  for (Value &total : totals)
    total = code_.horizontalSum(total);
  if (sums == 0)
    return totals;
  if (teams.teamThreads != warpThreads)
    return kernel.sumOfBlock(totals, shared);
  for (Value &total : totals)
    total = kernel.sumOfWarp(total);
  return totals;
}

/// Lanes have pieces of a half, as many heads at once as there are lanes for,
/// and know their angles over all heads.
void CudaRows::turnHeads(
    int64_t half, int64_t heads, Type,
    function_ref<Angles(const Piece &)> angles,
    function_ref<void(Value, const Piece &, function_ref<Angles()>)> turn) {
  CodeBuilder &code = code_;
  // Other threads may still read the shared memory of the row before.
  if (needsRowMemory(plan))
    kernel.syncBlock();
  int64_t lanes = std::gcd(teams.lanes, half), count = half / lanes;
  // A head has a power of two of lanes, so that shifts find the head.
  int64_t perHead =
      std::min<int64_t>(llvm::PowerOf2Ceil(count), teams.teamThreads);
  int64_t atOnce = teams.teamThreads / perHead;
  Value lane = code.bitAnd(teamThread, code.i64(perHead - 1));
  Value firstHead = code.shiftRight(teamThread, llvm::Log2_64(perHead));
  for (int64_t first = 0; first < count; first += perHead) {
    Value column = code.mul(code.add(lane, code.i64(first)), code.i64(lanes));
    Piece piece = {column, lanes, lanes};
    if (first + perHead > count) {
      piece.active = code.less(column, code.i64(half));
      piece.column = code.min(column, code.i64(half - lanes));
    }
    Angles known = angles(piece);
    kernel.loop(code.mul(firstHead, code.i64(2 * half)),
                code.i64(heads * 2 * half), code.i64(atOnce * 2 * half),
                [&](Value head) { turn(head, piece, [&] { return known; }); });
  }
}

//===----------------------------------------------------------------------===//
// Sums over rows
//===----------------------------------------------------------------------===//

void CudaRows::addToSum(unsigned number, const Piece &piece, Value value) {
  Value &sum = sumOf(number, piece);
  sum = code_.add(sum, value);
}

/// Reserves shared memory for sums of a block's warps, and for rows that wait
/// for other passes. Sums over rows of a block's teams use the same memory
/// later.
void CudaRows::takeSharedMemory() {
  int64_t size = sizeOf(plan.accumulator), bytes = 0;
  if (teams.teamThreads != warpThreads)
    bytes = std::max<int64_t>(plan.statistics.size(), 1) *
            (teams.teamThreads / warpThreads) * size;
  bytes = dyna_align_block(bytes);
  rowMemory = bytes;
  bytes += rowMemoryOf(plan);
  if (teams.perBlock() > 1 && !plan.accumulations.empty())
    bytes = std::max(bytes, teams.columns() * size);
  if (bytes != 0)
    shared = kernel.sharedMemory(bytes);
}

Value CudaRows::takeMemory(int64_t bytes) {
  Value memory = code_.offsetBytes(shared, rowMemory);
  rowMemory += dyna_align_block(bytes);
  return memory;
}

/// Adds the sums of the block's teams, in their order, and stores them as row
/// `part` of the partial sums.
void CudaRows::storeSums(Value part) {
  CodeBuilder &code = code_;
  Type type = plan.accumulator;
  int64_t perBlock = teams.perBlock();
  for (unsigned number = 0; number < plan.accumulations.size(); ++number) {
    // Find the place among the pieces of the team, as if it were the only team.
    auto place = [&](const Piece &piece) {
      Value index =
          code.add(code.mul(teamThread, code.i64(teams.lanes)),
                   code.i64(piece.number * teams.lanes * teams.teamThreads));
      return code.offset(shared, index, type);
    };
    int64_t alignment =
        std::min<int64_t>(teams.lanes * sizeOf(type), accessBytes);
    if (perBlock > 1) {
      kernel.syncBlock();
      for (int64_t turn = 0; turn + 1 < perBlock; ++turn) {
        code.ifThen(code.equal(team, code.i64(turn)), [&] {
          for (const Piece &piece : ownPieces) {
            Value sum = sumOf(number, piece);
            if (turn > 0)
              sum = code.add(
                  code.loadElements(place(piece), type, piece.width, alignment),
                  sum);
            code.storeElements(sum, place(piece), type, alignment);
          }
        });
        kernel.syncBlock();
      }
    }
    Value row = code.offset(kernel.slot(slots.arguments.partials[number]),
                            code.mul(part, code.i64(plan.width)), type);
    auto store = [&] {
      for (const Piece &piece : ownPieces)
        code.ifActive(piece, [&] {
          Value sum = sumOf(number, piece);
          if (perBlock > 1)
            sum = code.add(
                code.loadElements(place(piece), type, piece.width, alignment),
                sum);
          code.storeElements(sum, code.offset(row, piece.column, type), type,
                             alignmentOf(piece, plan.width, type));
        });
    };
    if (perBlock > 1)
      code.ifThen(code.equal(team, code.i64(perBlock - 1)), store);
    else
      store();
  }
}

void CudaRows::emit(RowsOp op, Value rows) {
  CodeBuilder &code = code_;
  takeSharedMemory();
  findPieces();
  // Blocks of the same columns are `columnGroups` apart.
  Value block = kernel.blockIndex(), blocks = kernel.gridSize();
  if (teams.columnGroups > 1) {
    Value groups = code.i64(teams.columnGroups);
    block = arith::DivUIOp::create(code, block, groups);
    blocks = arith::DivUIOp::create(code, blocks, groups);
  }
  Value perBlock = code.i64(teams.perBlock());
  RowsEmitter emitter(*this, op, plan, slots.arguments);
  emitter.begin(/*chunk=*/Value());
  SmallVector<Value> zeros(
      plan.accumulations.size() * teams.pieces,
      code.constant(VectorType::get(teams.lanes, plan.accumulator), 0.0));
  sums = kernel.loop(code.add(code.mul(block, perBlock), team), rows,
                     code.mul(blocks, perBlock), zeros,
                     [&](Value row, ValueRange carried) {
                       sums = llvm::to_vector_of<Value>(carried);
                       emitter.emitRow(row);
                       return sums;
                     });
  if (!plan.accumulations.empty())
    storeSums(block);
}

//===----------------------------------------------------------------------===//
// The layer function's side
//===----------------------------------------------------------------------===//

/// Groups of threads of the second kernel that share columns. Each group adds
/// up equally many partial sums in order, and loads some of them at once.
static constexpr int64_t sumGroups = 8, sumsAtOnce = 4;

/// Returns the number of blocks that add up rows separately. It follows from
/// the number of rows alone, so that results are reproducible. A team has at
/// least two rows. All groups of the second kernel have equally many blocks.
static Value partsOf(CodeBuilder &host, const Target &target, Value rows,
                     const Teams &teams) {
  constexpr int64_t unit = sumGroups * sumsAtOnce;
  assert(target.partialSums % unit == 0 && "room for whole groups");
  Value wanted = host.ceilDiv(rows, host.i64(2 * teams.perBlock()));
  return host.min(host.i64(target.partialSums), host.roundUp(wanted, unit));
}

namespace {
/// Threads of a block, each with `lanes` columns of one sum; a group is a warp.
struct PartialSums {
  Kernel &kernel;
  CodeBuilder &code;
  Type type;
  int64_t width, lanes;
  Value group, lane, column, shared;

  /// `rest`: index of the block among those with columns of this sum.
  PartialSums(Kernel &kernel, Type type, int64_t width, int64_t lanes,
              Value rest)
      : kernel(kernel), code(kernel.code), type(type), width(width),
        lanes(lanes) {
    group = code.shiftRight(kernel.thread(), 5);
    lane = code.bitAnd(kernel.thread(), code.i64(warpThreads - 1));
    column = code.mul(code.add(code.mul(rest, code.i64(warpThreads)), lane),
                      code.i64(lanes));
  }
  int64_t shareBytes() const { return lanes * sizeOf(type); }
  Value shareOf(Value ofGroup) {
    Value index = code.add(code.mul(ofGroup, code.i64(warpThreads)), lane);
    return code.offset(shared, code.mul(index, code.i64(lanes)), type);
  }
  Value load(Value base, Type element) {
    return code.loadElements(base, element, lanes, lanes * sizeOf(element));
  }

  /// Adds the group's share, whose partial sums follow each other.
  void addShare(unsigned fromSlot, unsigned partsSlot) {
    Value from = code.offset(kernel.slot(fromSlot), column, type);
    Value each =
        code.shiftRight(kernel.slot(partsSlot), llvm::Log2_64(sumGroups));
    Value first = code.mul(group, each);
    Value zero = code.constant(VectorType::get(lanes, type), 0.0);
    SmallVector<Value> sum =
        code.forLoop(first, code.add(first, each), sumsAtOnce, zero,
                     [&](Value part, ValueRange carried) {
                       SmallVector<Value> terms;
                       for (int64_t i = 0; i < sumsAtOnce; ++i)
                         terms.push_back(load(
                             code.offset(from,
                                         code.mul(code.add(part, code.i64(i)),
                                                  code.i64(width)),
                                         type),
                             type));
                       Value total = carried[0];
                       for (Value term : terms)
                         total = code.add(total, term);
                       return SmallVector<Value>{total};
                     });
    code.storeElements(sum[0], shareOf(group), type, shareBytes());
  }
  /// Adds the shares in the order of the groups; rounds to `element` once.
  void addShares(unsigned toSlot, Type element) {
    Value to = code.offset(kernel.slot(toSlot), column, element);
    Value sum = load(shareOf(code.i64(0)), type);
    for (int64_t i = 1; i < sumGroups; ++i)
      sum = code.add(sum, load(shareOf(code.i64(i)), type));
    code.storeElements(code.add(load(to, element), sum), to, element,
                       lanes * sizeOf(element));
  }
};
} // namespace

/// Emits the kernel that adds `parts` partial sums to the accumulators, for all
/// sums of a sweep. A thread adds some partial sums of some columns of one
/// accumulator.
static void addPartials(CudaLowering &module, FunctionLowering &function,
                        const RowsPlan &plan, const RowsSlots &given,
                        Value parts) {
  CodeBuilder &host = function.getCode();
  int64_t width = plan.width;
  int64_t lanes = accessLanes(plan.accumulator, {width});
  Slots slots;
  unsigned partsSlot = slots.add(parts);
  SmallVector<std::pair<unsigned, unsigned>> places;
  for (auto [index, sum] : llvm::enumerate(plan.accumulations)) {
    unsigned from = slots.add(given.slots.get(given.arguments.partials[index]));
    places.push_back({from, slots.add(function.address(sum.accumulator))});
  }
  int64_t blocksEach = divideUp(width, warpThreads * lanes);
  int64_t sums = plan.accumulations.size();
  module.launch(
      function, "sum", slots, sumGroups * warpThreads,
      host.i64(blocksEach * sums), [&](Kernel &kernel) {
        CodeBuilder &code = kernel.code;
        Value block = kernel.blockIndex();
        Value which = arith::DivUIOp::create(code, block, code.i64(blocksEach));
        Value rest = arith::RemUIOp::create(code, block, code.i64(blocksEach));
        PartialSums own(kernel, plan.accumulator, width, lanes, rest);
        Value isColumn = code.less(own.column, code.i64(width));
        own.shared =
            kernel.sharedMemory(sumGroups * warpThreads * own.shareBytes());
        Value isFirst =
            code.bitAnd(isColumn, code.equal(own.group, code.i64(0)));
        for (int64_t i = 0; i < sums; ++i)
          code.ifThen(code.equal(which, code.i64(i)), [&] {
            code.ifThen(isColumn,
                        [&] { own.addShare(places[i].first, partsSlot); });
            kernel.syncBlock();
            code.ifThen(isFirst, [&] {
              own.addShares(places[i].second,
                            elementOf(plan.accumulations[i].accumulator));
            });
          });
      });
}

/// Returns the bytes moved per row. Each outside activation is read once, and
/// each result is written once, with any number of passes.
static int64_t movedPerRow(RowsOp op, const RowsArguments &arguments) {
  int64_t bytes = 0;
  for (auto [value, slot] : arguments.operands)
    if (isActivation(value.getType()))
      bytes += rowBytesOf(value);
  for (auto [index, slot] : arguments.results)
    bytes += rowBytesOf(op.getResult(index));
  return bytes;
}

LogicalResult CudaLowering::lowerRows(FunctionLowering &function, RowsOp op) {
  FailureOr<RowsPlan> plan = planRows(op);
  if (failed(plan))
    return failure();
  FailureOr<RowsSlots> slots = collectSlots(function, op, *plan);
  if (failed(slots) || failed(checkSums(function, op, *plan)))
    return failure();
  // The rest of shared memory is for sums.
  constexpr int64_t limit = sharedBytes - 1024;
  if (rowMemoryOf(*plan) > limit)
    return op.emitOpError("reads rotated rows of ")
           << rowMemoryOf(*plan)
           << " bytes back, but a block of threads has room for " << limit;
  CodeBuilder &host = function.getCode();
  Value rows = function.getTokens(op);
  unsigned rowsSlot = slots->slots.add(rows);
  Teams teams = dealRows(*plan, slots->arguments,
                         lanesOf(function, *plan, slots->arguments));
  Value blocks = plan->accumulations.empty()
                     ? host.ceilDiv(rows, host.i64(teams.perBlock()))
                     : partsOf(host, targetOf(op), rows, teams);
  launch(
      function, "rows", slots->slots, teams.blockThreads,
      host.mul(blocks, host.i64(teams.columnGroups)), [&](Kernel &kernel) {
        kernel.setRowBytes(movedPerRow(op, slots->arguments));
        CudaRows(kernel, *slots, *plan, teams).emit(op, kernel.slot(rowsSlot));
      });
  if (!plan->accumulations.empty())
    addPartials(*this, function, *plan, *slots, blocks);
  return success();
}
