//===- Distributed.cpp - Runs local functions on all ranks at once --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Distributed.h"

#include "test/reference/Formulas.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;
using ::dyna::Box;
using ::dyna::Mesh;

//===----------------------------------------------------------------------===//
// Boxes of tensors
//===----------------------------------------------------------------------===//

/// Calls `visit(whole, part)` with the flat indices of every element of `box`
/// in a tensor of `shape` and in one of `partShape` that begins where the box
/// does.
template <typename Visit>
static void forEachElement(const std::vector<int64_t> &shape,
                           const std::vector<int64_t> &partShape,
                           const Box &box, Visit visit) {
  int64_t volume = box.volume();
  for (int64_t i = 0; i < volume; ++i) {
    int64_t rest = i, whole = 0, part = 0, wholeStride = 1, partStride = 1;
    for (size_t dim = shape.size(); dim-- > 0;) {
      int64_t index = rest % box.size[dim];
      rest /= box.size[dim];
      whole += (box.begin[dim] + index) * wholeStride;
      part += index * partStride;
      wholeStride *= shape[dim];
      partStride *= partShape[dim];
    }
    visit(whole, part);
  }
}

Tensor reference::scatter(const Tensor &whole, dist::LayoutAttr layoutAttr,
                          int64_t position, RankedTensorType localType) {
  Mesh mesh = layoutAttr.getMesh().getMesh();
  ::dyna::Layout layout = layoutAttr.getLayout();
  Box box = ::dyna::localBox(mesh, layout, whole.shape, position);
  std::vector<int64_t> shape = box.size;
  for (auto [size, fixed] : llvm::zip_equal(shape, localType.getShape()))
    size = ShapedType::isDynamic(fixed) ? size : fixed;
  Tensor part(shape, std::numeric_limits<double>::quiet_NaN());
  bool isFirst = mesh.indexIn(position, layout.partial) == 0;
  forEachElement(whole.shape, part.shape, box, [&](int64_t from, int64_t to) {
    part[to] = isFirst ? whole[from] : 0.0;
  });
  return part;
}

Tensor reference::gather(const std::vector<Tensor> &parts,
                         dist::LayoutAttr layoutAttr,
                         const std::vector<int64_t> &shape) {
  Mesh mesh = layoutAttr.getMesh().getMesh();
  ::dyna::Layout layout = layoutAttr.getLayout();
  Tensor whole(shape);
  // A box and an addend of it: the first rank that has both counts, the others
  // hold the same.
  std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t> seen;
  for (int64_t position = 0; position < mesh.size(); ++position) {
    Box box = ::dyna::localBox(mesh, layout, shape, position);
    auto key = std::pair(box.begin, mesh.indexIn(position, layout.partial));
    int64_t first = seen.insert({key, position}).first->second;
    const Tensor &part = parts[position], &other = parts[first];
    forEachElement(shape, part.shape, box, [&](int64_t to, int64_t from) {
      if (position == first)
        whole[to] += part[from];
      else if (part[from] != other[from])
        whole[to] = std::numeric_limits<double>::infinity();
    });
  }
  return whole;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
class Lockstep {
public:
  Lockstep(const Mesh &mesh, const Context &context)
      : mesh(mesh), context(context), ranks(mesh.size()) {}

  LogicalResult visit(Operation *op);
  Environment &operator[](int64_t rank) { return ranks[rank]; }

private:
  Tensor &tensor(Value value, int64_t rank) {
    return std::get<Tensor>(ranks[rank][value]);
  }
  std::vector<int64_t> membersOf(int64_t rank, dist::GroupAttr group) {
    return mesh.groupPositions(rank, group.getParts());
  }
  Tensor sum(Value value, ArrayRef<int64_t> members, bool isMaximum);
  Tensor concatenate(Value value, ArrayRef<int64_t> members, int64_t dim);
  Tensor cut(const Tensor &whole, int64_t dim, int64_t parts, int64_t index);
  /// The result of a collective on one rank.
  Tensor exchange(Operation *op, int64_t rank);
  LogicalResult visitSharded(Operation *op);
  LogicalResult visitTokens(Operation *op, int64_t rank, dist::GroupAttr group,
                            const Context &context);
  Context contextOf(Operation *op, int64_t rank);
  void runHead(Operation *op, Value x, Value weight, Value targets,
               int64_t ignore, ShardAttr shard, Value loss, Value dX,
               Value accumulator, Value accumulated);

  const Mesh &mesh;
  const Context &context;
  std::vector<Environment> ranks;
};
} // namespace

Tensor Lockstep::sum(Value value, ArrayRef<int64_t> members, bool isMaximum) {
  Tensor result = tensor(value, members.front());
  for (int64_t member : members.drop_front())
    for (size_t i = 0; i < result.values.size(); ++i) {
      double other = tensor(value, member).values[i];
      result.values[i] = isMaximum ? std::max(result.values[i], other)
                                   : result.values[i] + other;
    }
  return result;
}

Tensor Lockstep::concatenate(Value value, ArrayRef<int64_t> members,
                             int64_t dim) {
  std::vector<int64_t> shape = tensor(value, members.front()).shape;
  shape[dim] = 0;
  for (int64_t member : members)
    shape[dim] += tensor(value, member).shape[dim];
  Tensor whole(shape);
  Box box = Box::whole(shape);
  for (int64_t member : members) {
    const Tensor &part = tensor(value, member);
    box.size[dim] = part.shape[dim];
    forEachElement(shape, part.shape, box,
                   [&](int64_t to, int64_t from) { whole[to] = part[from]; });
    box.begin[dim] += part.shape[dim];
  }
  return whole;
}

Tensor Lockstep::cut(const Tensor &whole, int64_t dim, int64_t parts,
                     int64_t index) {
  Box box = Box::whole(whole.shape);
  box.begin[dim] = ::dyna::partBegin(whole.shape[dim], parts, index);
  box.size[dim] = ::dyna::partSize(whole.shape[dim], parts, index);
  Tensor part(box.size);
  forEachElement(whole.shape, part.shape, box,
                 [&](int64_t from, int64_t to) { part[to] = whole[from]; });
  return part;
}

Tensor Lockstep::exchange(Operation *op, int64_t rank) {
  auto group = op->getAttrOfType<dist::GroupAttr>("group");
  std::vector<int64_t> members = membersOf(rank, group);
  int64_t parts = group.getSize();
  int64_t index = mesh.indexIn(rank, group.getParts());
  Value x = op->getOperand(0);
  return llvm::TypeSwitch<Operation *, Tensor>(op)
      .Case([&](dist::AllReduceOp reduce) {
        return sum(x, members, reduce.getMax());
      })
      .Case([&](dist::AllGatherOp gather) {
        return concatenate(x, members, gather.getDim());
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        return cut(sum(x, members, false), scatter.getDim(), parts, index);
      })
      .Case([&](dist::SliceOp slice) {
        return cut(tensor(x, rank), slice.getDim(), parts, index);
      })
      .Case([&](dist::AllToAllOp all) {
        return cut(concatenate(x, members, all.getDim()), all.getTo(), parts,
                   index);
      });
}

//===----------------------------------------------------------------------===//
// Ops on parts
//===----------------------------------------------------------------------===//

namespace {
/// The rows of a table that a rank has.
struct Rows {
  int64_t begin, size;
  bool contain(int64_t id) const { return id >= begin && id < begin + size; }
};
} // namespace

static Rows rowsOf(ShardAttr shard, const Mesh &mesh, int64_t rank) {
  // Tables are split over the whole mesh.
  return {::dyna::partBegin(shard.getRows(), mesh.size(), rank),
          ::dyna::partSize(shard.getRows(), mesh.size(), rank)};
}

/// Statistics of all ranks first, then each rank's own loss and gradients.
void Lockstep::runHead(Operation *op, Value x, Value weight, Value targets,
                       int64_t ignore, ShardAttr shard, Value loss, Value dX,
                       Value accumulator, Value accumulated) {
  std::vector<Tensor> logits;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    Tensor own = tensor(weight, rank);
    own.shape[0] = rowsOf(shard, mesh, rank).size;
    own.values.resize(Tensor::countElements(own.shape));
    logits.push_back(linear(tensor(x, rank), own, nullptr));
  }
  const Ids ids = std::get<Ids>(ranks[0][targets]);
  double total = 0.0;
  for (size_t t = 0; t < ids.size(); ++t) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (const Tensor &own : logits)
      for (int64_t c = 0; c < own.width(); ++c)
        largest = std::max(largest, own.at(t, c));
    for (const Tensor &own : logits)
      for (int64_t c = 0; c < own.width(); ++c)
        sum += std::exp(own.at(t, c) - largest);
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      Rows rows = rowsOf(shard, mesh, rank);
      Tensor &own = logits[rank];
      bool isTarget = ids[t] != ignore && rows.contain(ids[t]);
      if (isTarget)
        total += largest + std::log(sum) - own.at(t, ids[t] - rows.begin);
      for (int64_t c = 0; c < own.width(); ++c) {
        double wanted = isTarget && c == ids[t] - rows.begin ? 1.0 : 0.0;
        double probability = std::exp(own.at(t, c) - largest) / sum;
        own.at(t, c) = ids[t] == ignore
                           ? 0.0
                           : (probability - wanted) * context.inverseTargets;
      }
    }
  }
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    ranks[rank][loss] = Tensor({1}, total);
    if (!dX)
      continue;
    Tensor own = tensor(weight, rank);
    own.shape[0] = logits[rank].width();
    own.values.resize(Tensor::countElements(own.shape));
    ranks[rank][dX] = linearGradInput(logits[rank], own);
    if (!accumulator)
      continue;
    Tensor gradient = tensor(accumulator, rank);
    addLinearGradWeight(gradient, logits[rank], tensor(x, rank));
    ranks[rank][accumulated] = std::move(gradient);
  }
}

LogicalResult Lockstep::visitSharded(Operation *op) {
  auto shard = op->getAttrOfType<ShardAttr>("shard");
  if (auto head = dyn_cast<LinearCrossEntropyOp>(op)) {
    runHead(op, head.getX(), head.getWeight(), head.getTargets(),
            head.getIgnoreIndex(), shard, head.getLoss(), {}, {}, {});
    return success();
  }
  if (auto head = dyn_cast<LinearCrossEntropyTrainOp>(op)) {
    runHead(op, head.getX(), head.getWeight(), head.getTargets(),
            head.getIgnoreIndex(), shard, head.getLoss(), head.getDX(),
            head.getAccumulator(), head.getResult());
    return success();
  }
  if (auto head = dyn_cast<LinearCrossEntropyInputOp>(op)) {
    runHead(op, head.getX(), head.getWeight(), head.getTargets(),
            head.getIgnoreIndex(), shard, head.getLoss(), head.getDX(), {}, {});
    return success();
  }
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    Rows rows = rowsOf(shard, mesh, rank);
    if (auto lookup = dyn_cast<EmbeddingOp>(op)) {
      const Ids &ids = std::get<Ids>(ranks[rank][lookup.getIds()]);
      const Tensor &table = tensor(lookup.getTable(), rank);
      Tensor result({int64_t(ids.size()), table.width()});
      for (size_t t = 0; t < ids.size(); ++t)
        for (int64_t j = 0; rows.contain(ids[t]) && j < table.width(); ++j)
          result.at(t, j) = table.at(ids[t] - rows.begin, j);
      ranks[rank][lookup.getResult()] = std::move(result);
    } else if (auto grad = dyn_cast<EmbeddingGradOp>(op)) {
      const Ids &ids = std::get<Ids>(ranks[rank][grad.getIds()]);
      const Tensor &dy = tensor(grad.getDy(), rank);
      Tensor result = tensor(grad.getAccumulator(), rank);
      for (size_t t = 0; t < ids.size(); ++t)
        for (int64_t j = 0; rows.contain(ids[t]) && j < dy.width(); ++j)
          result.at(ids[t] - rows.begin, j) += dy.at(t, j);
      ranks[rank][grad.getResult()] = std::move(result);
    } else {
      return op->emitOpError("is not known in parts");
    }
  }
  return success();
}

/// The segments as seen by a rank that has only some of the rows.
static Segments cutSegments(const Segments &all, int64_t begin, int64_t size) {
  Segments part;
  for (Segment segment : all.list) {
    int64_t first = std::max(segment.queryBegin, begin);
    int64_t last =
        std::min(segment.queryBegin + segment.queryLength, begin + size);
    if (first >= last)
      continue;
    segment.position += first - segment.queryBegin;
    segment.queryBegin = first - begin;
    segment.queryLength = last - first;
    part.list.push_back(segment);
  }
  return part;
}

/// Positions and random numbers count tokens of the whole micro-batch.
LogicalResult Lockstep::visitTokens(Operation *op, int64_t rank,
                                    dist::GroupAttr group,
                                    const Context &context) {
  Environment &environment = ranks[rank];
  for (Value operand : op->getOperands())
    if (auto *all = std::get_if<Segments>(&environment[operand])) {
      Segments saved = *all;
      int64_t index = mesh.indexIn(rank, group.getParts());
      int64_t tokens = saved.tokens();
      *all =
          cutSegments(saved, ::dyna::partBegin(tokens, group.getSize(), index),
                      ::dyna::partSize(tokens, group.getSize(), index));
      LogicalResult result = evaluateOperation(op, environment, context);
      environment[operand] = std::move(saved);
      return result;
    }
  return op->emitOpError("counts tokens, but takes no segments");
}

/// Random numbers count features of the whole row.
Context Lockstep::contextOf(Operation *op, int64_t rank) {
  Context own = context;
  if (auto group = dist::kFeatures.of(op))
    own.firstFeature = mesh.indexIn(rank, group.getParts()) *
                       tensor(op->getOperand(0), rank).width();
  return own;
}

LogicalResult Lockstep::visit(Operation *op) {
  if (auto fused = dyn_cast<dist::ExchangeOp>(op)) {
    for (auto [result, one] :
         llvm::zip_equal(fused.getResults(), fused.getCollectives())) {
      if (failed(visit(one)))
        return failure();
      for (Environment &rank : ranks) {
        Datum given = rank.at(one->getResult(0)); // a new entry moves the rest
        rank[result] = std::move(given);
      }
    }
    return success();
  }
  if (op->hasAttr("shard"))
    return visitSharded(op);
  auto tokens = dist::kTokens.of(op);
  std::vector<Tensor> exchanged;
  bool isCollective = isa_and_present<dist::DistDialect>(op->getDialect());
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    if (isCollective) {
      exchanged.push_back(exchange(op, rank));
      continue;
    }
    const Context own = contextOf(op, rank);
    if (failed(tokens ? visitTokens(op, rank, tokens, own)
                      : evaluateOperation(op, ranks[rank], own)))
      return failure();
  }
  for (auto [rank, result] : llvm::enumerate(exchanged))
    ranks[rank][op->getResult(0)] = std::move(result);
  return success();
}

LogicalResult reference::runLocal(FunctionOp function, const Mesh &mesh,
                                  std::vector<LayerRun> &runs,
                                  const Context &context) {
  Block &block = function.getBody().front();
  Lockstep lockstep(mesh, context);
  for (auto [rank, run] : llvm::enumerate(runs)) {
    std::vector<Datum> args = run.collectArguments(function);
    for (auto [argument, datum] : llvm::zip_equal(block.getArguments(), args))
      lockstep[rank][argument] = std::move(datum);
  }
  for (Operation &op : block.without_terminator())
    if (failed(lockstep.visit(&op)))
      return failure();
  for (auto [rank, run] : llvm::enumerate(runs)) {
    std::vector<Datum> results;
    for (Value value : block.getTerminator()->getOperands())
      results.push_back(lockstep[rank].at(value));
    run.setResults(function, std::move(results));
  }
  return success();
}
