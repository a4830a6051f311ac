//===- Epilogues.cpp - Finds epilogues that libraries can compute ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/Epilogues.h"
#include "runtime/abi/Kernels.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::dyna;

bool mlir::dyna::isRowProduct(Operation *op) {
  auto product = dyn_cast_if_present<MatrixProductOpInterface>(op);
  return product && product.getProduct().isPerRow();
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
using Members = llvm::SmallPtrSet<Operation *, 8>;

/// An epilogue as ops of a sweep, or of what is to become one.
struct Match {
  int32_t kind;
  Operation *product;
  SmallVector<Operation *, 2> ops;
};
} // namespace

/// Returns the product that gives its result to `value` alone, if it can have
/// an epilogue. Libraries have none in f64.
static Operation *productOf(Value value) {
  Operation *product = value.getDefiningOp();
  return isRowProduct(product) && value.hasOneUse() &&
                 !getElementTypeOrSelf(value).isF64() &&
                 !cast<MatrixProductOpInterface>(product)
                      .getProduct()
                      .accumulator
             ? product
             : nullptr;
}

/// Returns true if the library supports this gelu: cuBLASLt needs rows of aux
/// in whole groups of eight.
static bool hasGelu(Value value, GeluForm form) {
  return form == GeluForm::Tanh &&
         cast<RankedTensorType>(value.getType()).getDimSize(1) % 8 == 0;
}

/// Returns the epilogues that begin with `op`, among ops of `members`, shortest
/// first.
static SmallVector<Match, 2> matchFrom(Operation *op, const Members &members) {
  SmallVector<Match, 2> found;
  if (auto bias = dyn_cast<BiasOp>(op)) {
    Operation *product = productOf(bias.getX());
    if (!product)
      return found;
    found.push_back({DYNA_EPILOGUE_BIAS, product, {op}});
    for (Operation *user : op->getUsers())
      if (auto gelu = dyn_cast<GeluOp>(user);
          gelu && members.contains(gelu) &&
          hasGelu(gelu.getX(), gelu.getForm())) {
        found.push_back({DYNA_EPILOGUE_BIAS_GELU, product, {op, gelu}});
        break;
      }
  } else if (auto grad = dyn_cast<GeluGradOp>(op)) {
    Operation *product = productOf(grad.getDy());
    if (product && !members.contains(grad.getX().getDefiningOp()) &&
        hasGelu(grad.getX(), grad.getForm()))
      found.push_back({DYNA_EPILOGUE_GELU_GRAD, product, {op}});
  }
  return found;
}

/// Returns the result of the sweep that `value` of its body becomes; null if
/// there is none or more than one.
static Value leaving(RowsOp rows, Value value) {
  Value found;
  Operation *yield = rows.getBody().front().getTerminator();
  for (OpOperand &operand : yield->getOpOperands())
    if (operand.get() == value) {
      if (found)
        return Value();
      found = rows->getResult(operand.getOperandNumber());
    }
  return found;
}

static DescribedEpilogue describe(RowsOp rows, const Match &match) {
  DescribedEpilogue epilogue;
  epilogue.kind = match.kind;
  epilogue.product = match.product;
  epilogue.result = leaving(rows, match.ops.back()->getResult(0));
  if (auto grad = dyn_cast<GeluGradOp>(match.ops.front())) {
    epilogue.aux = grad.getX();
    return epilogue;
  }
  epilogue.bias = cast<BiasOp>(match.ops.front()).getBias();
  if (match.kind == DYNA_EPILOGUE_BIAS_GELU)
    epilogue.aux = leaving(rows, match.ops.front()->getResult(0));
  return epilogue;
}

SmallVector<DescribedEpilogue> mlir::dyna::describedEpilogues(RowsOp rows) {
  Block &body = rows.getBody().front();
  Members members;
  for (Operation &op : body.without_terminator())
    members.insert(&op);
  llvm::MapVector<Operation *, DescribedEpilogue> found;
  size_t ops = 0;
  unsigned results = 0;
  for (Operation &op : body.without_terminator()) {
    SmallVector<Match, 2> matches = matchFrom(&op, members);
    if (matches.empty())
      continue;
    DescribedEpilogue epilogue = describe(rows, matches.back());
    if (!epilogue.result)
      return {};
    ops += matches.back().ops.size();
    bool keepsSum = epilogue.kind == DYNA_EPILOGUE_BIAS_GELU && epilogue.aux;
    results += keepsSum ? 2 : 1;
    found[epilogue.product] = epilogue;
  }
  if (found.empty() || ops != members.size() ||
      results != rows->getNumResults())
    return {};
  // Only products directly before the sweep can have it as epilogue.
  SmallVector<DescribedEpilogue> epilogues;
  for (Operation *before = rows->getPrevNode(); epilogues.size() < found.size();
       before = before->getPrevNode()) {
    auto epilogue = found.find(before);
    if (epilogue == found.end())
      return {};
    epilogues.push_back(epilogue->second);
  }
  std::reverse(epilogues.begin(), epilogues.end());
  return epilogues;
}

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

static bool isUsedBy(Value value, function_ref<bool(Operation *)> who) {
  return llvm::any_of(value.getUsers(), who);
}

/// Returns the number of rows that are moved less if the product has the
/// epilogue instead of the sweep of `members`. All rows have one size.
static int savedRows(const Match &match, const Members &members) {
  auto isOutside = [&](Operation *user) { return !members.contains(user); };
  auto isRest = [&](Operation *user) {
    return members.contains(user) && !llvm::is_contained(match.ops, user);
  };
  // Without the epilogue, the product is written and read again.
  int before = 2, after = 0;
  for (Operation *op : match.ops) {
    Value made = op->getResult(0);
    bool leaves = isUsedBy(made, isOutside), stays = isUsedBy(made, isRest);
    before += leaves;
    // C is always written, and the sum only for users other than the gelu.
    after += op == match.ops.back() || leaves || stays;
    after += stays;
  }
  // The product reads aux, and the remaining ops may have to read it again.
  if (auto grad = dyn_cast<GeluGradOp>(match.ops.front()))
    after += isUsedBy(grad.getX(), isRest);
  return before - after;
}

/// Returns the best match that begins with an op of the sweep; none if none
/// saves.
static std::optional<Match> bestMatch(ArrayRef<Operation *> ops,
                                      const FusionUnit &sweep) {
  Members members;
  for (int node : sweep.rows)
    members.insert(ops[node]);
  std::optional<Match> best;
  int most = 0;
  for (int node : sweep.rows)
    for (const Match &match : matchFrom(ops[node], members))
      if (int saved = savedRows(match, members); saved > most) {
        most = saved;
        best = match;
      }
  return best;
}

namespace {
/// Maps ops and values to the unit that contains their results.
class UnitNumbers {
public:
  UnitNumbers(ArrayRef<Operation *> ops, ArrayRef<FusionUnit> units) {
    for (auto [number, unit] : llvm::enumerate(units)) {
      if (unit.leader >= 0)
        numbers[ops[unit.leader]] = number;
      for (int node : unit.rows)
        numbers[ops[node]] = number;
    }
  }
  /// Returns the unit of an op; 0 for ops before all units.
  size_t of(Operation *op) const { return numbers.lookup(op); }
  /// Returns true if all other operands of the epilogue exist before the
  /// product.
  bool areThere(const Match &match) const {
    for (Operation *op : match.ops)
      for (Value operand : op->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (maker && maker != match.product &&
            !llvm::is_contained(match.ops, maker) &&
            of(maker) >= of(match.product))
          return false;
      }
    return true;
  }

private:
  DenseMap<Operation *, size_t> numbers;
};
} // namespace

void mlir::dyna::takeDescribedEpilogues(ArrayRef<Operation *> ops,
                                        std::vector<FusionUnit> &units) {
  DenseMap<Operation *, int> nodes;
  for (auto [node, op] : llvm::enumerate(ops))
    nodes[op] = static_cast<int>(node);
  UnitNumbers numbers(ops, units);
  // Products that stand where they stood, and those that move to the sweep: it
  // alone uses their results.
  DenseMap<size_t, FusionUnit> inPlace;
  std::vector<SmallVector<FusionUnit>> before(units.size());
  llvm::DenseSet<size_t> moved;
  for (auto [number, unit] : llvm::enumerate(units))
    while (std::optional<Match> match = bestMatch(ops, unit)) {
      FusionUnit taken;
      taken.leader = nodes.lookup(match->product);
      for (Operation *op : match->ops)
        taken.rows.push_back(nodes.lookup(op));
      llvm::erase_if(unit.rows, [&](int node) {
        return llvm::is_contained(taken.rows, node);
      });
      size_t place = numbers.of(match->product);
      if (numbers.areThere(*match)) {
        inPlace[place] = std::move(taken);
      } else {
        moved.insert(place);
        before[number].push_back(std::move(taken));
      }
    }
  std::vector<FusionUnit> result;
  for (auto [number, unit] : llvm::enumerate(units)) {
    for (FusionUnit &product : before[number])
      result.push_back(std::move(product));
    if (auto taken = inPlace.find(number); taken != inPlace.end())
      result.push_back(std::move(taken->second));
    else if (!moved.contains(number) &&
             (unit.leader >= 0 || !unit.rows.empty()))
      result.push_back(std::move(unit));
  }
  units = std::move(result);
}
