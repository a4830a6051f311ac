//===- ProductRuns.cpp - Finds products that can run as one ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/TokenParts.h"
#include "runtime/abi/Abi.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// One product
//===----------------------------------------------------------------------===//

static Value partOf(Operation *op) {
  return cast<MatrixProductOpInterface>(op).getProduct().part();
}

static Value matrixOf(Operation *op) {
  return cast<MatrixProductOpInterface>(op).getProduct().matrix();
}

SmallVector<Value> ProductRun::parts() const {
  return llvm::map_to_vector(ops, partOf);
}

SmallVector<Value> ProductRun::matrices() const {
  return llvm::map_to_vector(ops, matrixOf);
}

Operation *ProductRun::last() const {
  return *llvm::max_element(
      ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

int64_t mlir::dyna::rowBytesOf(Type activation) {
  auto type = cast<RankedTensorType>(activation);
  return type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

namespace {

/// The matrices among the entries of an array of the signature, in order.
class Matrices {
public:
  explicit Matrices(FunctionOp function) {
    for (BlockArgument argument : function.getBody().getArguments()) {
      PlaceAttr place = function.getArgPlace(argument.getArgNumber());
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!place.isArrayEntry() || !type || type.getRank() != 2 ||
          !type.hasStaticShape())
        continue;
      auto &entries = arrays[static_cast<int32_t>(place.getMemory())];
      entries.push_back({place.getIndex(), argument});
    }
    for (auto &[memory, entries] : arrays) {
      llvm::sort(entries, [](auto &a, auto &b) { return a.first < b.first; });
      for (auto [number, entry] : llvm::enumerate(entries))
        numbers[entry.second] = {memory, static_cast<int64_t>(number)};
    }
  }

  /// Returns the array, and the number of its matrix; nothing for other values.
  std::optional<std::pair<int32_t, int64_t>> find(Value value) const {
    auto found = numbers.find(value);
    if (found == numbers.end())
      return std::nullopt;
    return found->second;
  }

private:
  std::map<int32_t, SmallVector<std::pair<int64_t, Value>>> arrays;
  DenseMap<Value, std::pair<int32_t, int64_t>> numbers;
};

/// Products that share what makes them one but for their matrices.
using Family = SmallVector<Operation *>;

class RunFinder {
public:
  explicit RunFinder(FunctionOp function)
      : block(function.getBody().front()), matrices(function), parts(function) {
  }

  SmallVector<ProductRun> find() {
    // Group by x the products of one kind that could be adjacent.
    llvm::MapVector<Value, Family> linears, weights;
    for (Operation &op : block) {
      if (auto linear = dyn_cast<LinearOp>(op)) {
        if (!linear.getBias())
          linears[linear.getX()].push_back(&op);
      } else if (auto gradient = dyn_cast<LinearGradWeightOp>(op)) {
        weights[gradient.getX()].push_back(&op);
      }
    }
    for (auto &[x, family] : linears)
      addNeighbours(family);
    for (auto &[x, family] : weights)
      addNeighbours(family);
    for (auto input : block.getOps<LinearGradInputOp>())
      addChain(input);
    return std::move(runs);
  }

private:
  /// Cuts a family into runs of neighbours.
  void addNeighbours(Family family) {
    llvm::erase_if(family, [&](Operation *op) {
      return !matrices.find(matrixOf(op)) || !isWhole(partOf(op));
    });
    llvm::sort(family, [&](Operation *a, Operation *b) {
      return *matrices.find(matrixOf(a)) < *matrices.find(matrixOf(b));
    });
    for (size_t begin = 0, end = 0; begin < family.size(); begin = end) {
      for (end = begin + 1; end < family.size(); ++end)
        if (!areNeighbours(family[end - 1], family[end]))
          break;
      add(ArrayRef(family).slice(begin, end - begin));
    }
  }

  /// Adds the chain that ends with this op, if there is one.
  void addChain(LinearGradInputOp end) {
    auto next = [](LinearGradInputOp op) {
      if (!op.getResult().hasOneUse())
        return LinearGradInputOp();
      auto user =
          dyn_cast<LinearGradInputOp>(*op.getResult().getUsers().begin());
      return user && user.getAccumulator() == op.getResult()
                 ? user
                 : LinearGradInputOp();
    };
    if (next(end))
      return;
    Family chain = {end};
    for (auto op = end; op.getAccumulator();) {
      op = op.getAccumulator().getDefiningOp<LinearGradInputOp>();
      if (!op || !next(op))
        break;
      chain.push_back(op);
    }
    // Move all or none, because a part of a chain would have to be split off.
    size_t length = chain.size();
    Family sorted = chain;
    for (Operation *op : chain)
      if (!matrices.find(matrixOf(op)) || !isWhole(partOf(op)))
        return;
    llvm::sort(sorted, [&](Operation *a, Operation *b) {
      return *matrices.find(matrixOf(a)) < *matrices.find(matrixOf(b));
    });
    for (size_t i = 1; i < length; ++i)
      if (!areNeighbours(sorted[i - 1], sorted[i]))
        return;
    add(sorted);
  }

  bool areNeighbours(Operation *a, Operation *b) const {
    auto first = *matrices.find(matrixOf(a)),
         second = *matrices.find(matrixOf(b));
    auto typeOf = [](Operation *op) {
      return cast<RankedTensorType>(matrixOf(op).getType());
    };
    return first.first == second.first && first.second + 1 == second.second &&
           typeOf(a).getDimSize(1) == typeOf(b).getDimSize(1) &&
           typeOf(a).getElementType() == typeOf(b).getElementType() &&
           parts.of(partOf(a)) == parts.of(partOf(b));
  }

  bool isWhole(Value part) const {
    return rowBytesOf(part) % DYNA_BLOCK_ALIGNMENT == 0;
  }

  void add(ArrayRef<Operation *> ops) {
    ProductRun run = {SmallVector<Operation *>(ops)};
    SmallVector<Value> activations = run.parts();
    llvm::SmallPtrSet<Value, 4> distinct(activations.begin(),
                                         activations.end());
    if (ops.size() > 1 && distinct.size() == ops.size())
      runs.push_back(std::move(run));
  }

  Block &block;
  const Matrices matrices;
  const TokenParts parts;
  SmallVector<ProductRun> runs;
};

} // namespace

SmallVector<ProductRun> mlir::dyna::findProductRuns(FunctionOp function) {
  return RunFinder(function).find();
}

SmallVector<ProductRun> mlir::dyna::findAdjacentRuns(FunctionOp function) {
  SmallVector<ProductRun> runs = findProductRuns(function);
  llvm::erase_if(runs, [](const ProductRun &run) {
    DenseSet<Operation *> members(run.ops.begin(), run.ops.end());
    Operation *op = run.last();
    for (size_t i = 1; i < run.ops.size(); ++i)
      if (op = op->getPrevNode(); !op || !members.contains(op))
        return true;
    return false;
  });
  return runs;
}

/// Returns true if the values are adjacent columns of the same rows.
static bool areSideBySide(FunctionOp function, ArrayRef<Value> values) {
  PlaceAttr first = function.getPlaceOf(values.front());
  if (!first || first.getStride() == 0)
    return false;
  int64_t column = first.getColumn();
  for (Value value : values) {
    PlaceAttr place = function.getPlaceOf(value);
    if (!place || place.getBlock() != first.getBlock() ||
        place.getStride() != first.getStride() || place.getColumn() != column)
      return false;
    column += rowBytesOf(value);
  }
  return true;
}

SmallVector<ProductRun> mlir::dyna::findJoinedRuns(FunctionOp function) {
  SmallVector<ProductRun> runs = findAdjacentRuns(function);
  llvm::erase_if(runs, [&](const ProductRun &run) {
    return !areSideBySide(function, run.parts());
  });
  return runs;
}
