//===- PlanTranslation.cpp - Translates plans and graphs to exec and back -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/PlanTranslation.h"
#include "mlir/IR/Verifier.h"
#include "runtime/plan/program/InstructionTable.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

//===----------------------------------------------------------------------===//
// Plans in
//===----------------------------------------------------------------------===//

static void importMicroBatch(OpBuilder &builder, Location location,
                             const plan::MicroBatch &microBatch) {
  SmallVector<int64_t> samples, begins, lengths, streams, keys;
  bool hasStream = false, hasKeys = false;
  for (const plan::Segment &segment : microBatch.segments) {
    samples.push_back(segment.sample);
    begins.push_back(segment.begin);
    lengths.push_back(segment.length);
    streams.push_back(segment.stream);
    hasStream |= segment.stream != 0;
    keys.append({segment.keyStream, segment.keyBegin, segment.keyEnd});
    hasKeys |= segment.keyStream != 0 || segment.keyBegin != 0 ||
               segment.keyEnd != plan::Segment::ownEnd;
  }
  MicroBatchOp::create(
      builder, location, microBatch.replica, samples, begins, lengths,
      hasStream ? builder.getDenseI64ArrayAttr(streams) : DenseI64ArrayAttr(),
      hasKeys ? builder.getDenseI64ArrayAttr(keys) : DenseI64ArrayAttr());
}

static void importInstruction(OpBuilder &builder, Location location,
                              const plan::Instruction &i) {
  DoOp::create(builder, location, static_cast<int32_t>(i.op), i.layer,
               i.microBatch, static_cast<Recompute>(i.recompute), i.phase,
               i.bucket, i.parameter,
               ArrayRef(i.places).take_front(::dyna::takenBy(i.op).count));
}

FailureOr<PlanOp> mlir::exec::importPlan(OpBuilder &builder, Location location,
                                         const plan::Plan &plan) {
  StringRef name = plan.name.empty() ? "plan" : StringRef(plan.name);
  DenseI64ArrayAttr lengths;
  if (!plan.lengths.empty())
    lengths = builder.getDenseI64ArrayAttr(plan.lengths);
  OpBuilder::InsertionGuard guard(builder);
  auto op = PlanOp::create(
      builder, location, builder.getStringAttr(name), FlatSymbolRefAttr(),
      plan.graph.empty() ? StringAttr() : builder.getStringAttr(plan.graph),
      builder.getI64IntegerAttr(static_cast<int64_t>(plan.manifestHash)),
      builder.getI64IntegerAttr(plan.targetTokens), lengths);
  if (!plan.fallback.empty())
    op.setFallbackAttr(builder.getStringAttr(plan.fallback));
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    importMicroBatch(builder, location, microBatch);
  for (auto [number, program] : llvm::enumerate(plan.ranks)) {
    auto place = [&, &places =
                         program.places](int64_t plan::PhasePlaces::*member) {
      const int64_t bytes = places.*member;
      return bytes == plan::PhasePlaces().*member
                 ? IntegerAttr()
                 : builder.getI64IntegerAttr(bytes);
    };
    auto rank = RankOp::create(
        builder, location, static_cast<int32_t>(number), program.dynamicBytes,
        place(&plan::PhasePlaces::dynamic), place(&plan::PhasePlaces::values),
        place(&plan::PhasePlaces::gradients),
        place(&plan::PhasePlaces::valueTransit),
        place(&plan::PhasePlaces::gradientTransit));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&rank.getBody().emplaceBlock());
    for (const plan::Instruction &i : program.instructions)
      importInstruction(builder, location, i);
  }
  if (succeeded(verify(op)))
    return op;
  op.erase();
  return failure();
}

//===----------------------------------------------------------------------===//
// Plans out
//===----------------------------------------------------------------------===//

static plan::Instruction exportInstruction(DoOp op) {
  plan::Instruction i;
  i.op = static_cast<plan::Instruction::Op>(op.getInstruction());
  i.layer = static_cast<int32_t>(op.getLayer());
  i.microBatch = static_cast<int32_t>(op.getMicroBatch());
  i.recompute = static_cast<plan::Recompute>(op.getRecompute());
  i.phase = static_cast<int32_t>(op.getPhase());
  i.bucket = static_cast<int32_t>(op.getBucket());
  i.parameter = static_cast<int32_t>(op.getParameter());
  llvm::copy(op.getPlaces(), i.places.begin());
  return i;
}

static plan::PhasePlaces exportPlaces(RankOp op) {
  plan::PhasePlaces places;
  auto take = [](std::optional<uint64_t> stated, int64_t &place) {
    if (stated)
      place = static_cast<int64_t>(*stated);
  };
  take(op.getAt(), places.dynamic);
  take(op.getValues(), places.values);
  take(op.getGradients(), places.gradients);
  take(op.getValuesTransit(), places.valueTransit);
  take(op.getGradientsTransit(), places.gradientTransit);
  return places;
}

/// Returns the name by which plans refer to their graph.
static std::string graphNameOf(PlanOp op) {
  if (op.getStrategy())
    return op.getStrategy()->str();
  if (!op.getGraphAttr())
    return "";
  auto graph =
      SymbolTable::lookupNearestSymbolFrom<GraphOp>(op, op.getGraphAttr());
  return ::dyna::graphName(strategyOf(graph));
}

LogicalResult mlir::exec::requireComplete(PlanOp op) {
  if (!op.isDraft())
    return success();
  return op.emitOpError() << "is a draft, which nobody runs: run "
                          << (op.hasPrograms() ? "" : "--dyna-schedule and ")
                          << "--dyna-order-communication on it first";
}

plan::Plan mlir::exec::exportPlan(PlanOp op) {
  plan::Plan plan;
  plan.manifestHash = op.getModel();
  plan.targetTokens = static_cast<int64_t>(op.getTargetTokens());
  plan.name = op.getSymName().str();
  plan.graph = graphNameOf(op);
  if (StringAttr fallback = op.getFallbackAttr())
    plan.fallback = fallback.str();
  llvm::append_range(plan.lengths,
                     op.getLengths().value_or(ArrayRef<int64_t>()));
  for (auto item : op.getOps<MicroBatchOp>()) {
    plan::MicroBatch &microBatch = plan.microBatches.emplace_back();
    microBatch.replica = static_cast<int32_t>(item.getReplica());
    for (auto [sample, begin, length] : llvm::zip_equal(
             item.getSamples(), item.getBegins(), item.getLengths())) {
      const size_t at = microBatch.segments.size();
      plan::Segment &segment = microBatch.segments.emplace_back(
          plan::Segment{sample, begin, length});
      if (auto streams = item.getStreams())
        segment.stream = static_cast<int32_t>((*streams)[at]);
      if (auto keys = item.getKeys()) {
        segment.keyStream = static_cast<int32_t>((*keys)[3 * at]);
        segment.keyBegin = (*keys)[3 * at + 1];
        segment.keyEnd = (*keys)[3 * at + 2];
      }
    }
  }
  for (auto rank : op.getOps<RankOp>()) {
    plan::RankProgram &program = plan.ranks.emplace_back();
    program.dynamicBytes = static_cast<int64_t>(rank.getDynamicBytes());
    program.places = exportPlaces(rank);
    for (auto item : rank.getOps<DoOp>())
      program.instructions.push_back(exportInstruction(item));
  }
  return plan;
}

LogicalResult mlir::exec::setGraph(PlanOp op, GraphOp graph) {
  std::string name = ::dyna::graphName(strategyOf(graph));
  if (op.getStrategy() && *op.getStrategy() != name)
    return op.emitOpError()
           << "was made for strategy '" << *op.getStrategy() << "', but @"
           << graph.getSymName() << " is '" << name << "'";
  op.removeStrategyAttr();
  op.setGraph(graph.getSymName());
  return success();
}

Operation *mlir::exec::findInstruction(PlanOp op, int rank, int instruction) {
  for (auto program : op.getOps<RankOp>()) {
    if (static_cast<int>(program.getRank()) != rank)
      continue;
    for (auto [index, item] : llvm::enumerate(program.getOps<DoOp>()))
      if (static_cast<int>(index) == instruction)
        return item;
    return program;
  }
  return op;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// Returns every list of ranks that hold one part and sum its gradients.
static SmallVector<Attribute> holdersOf(OpBuilder &builder, int parameter,
                                        const ::dyna::ExecutableGraph &graph) {
  SmallVector<Attribute> lists;
  int stage = graph.stagesOf(parameter).front();
  for (int shard = 0; shard < graph.strategy().tp; ++shard) {
    std::vector<int> ranks =
        graph.holders(parameter, graph.rankAt({0, stage, shard}));
    Attribute list = builder.getDenseI64ArrayAttr(
        SmallVector<int64_t>(ranks.begin(), ranks.end()));
    if (!llvm::is_contained(lists, list))
      lists.push_back(list);
  }
  return lists;
}

GraphOp mlir::exec::importGraph(OpBuilder &builder, Location location,
                                StringRef name,
                                const ::dyna::ExecutableGraph &graph) {
  OpBuilder::InsertionGuard guard(builder);
  ::dyna::Strategy strategy = graph.strategy();
  strategy.name.clear();
  strategy.layers.clear();
  auto mesh = dist::MeshAttr::get(builder.getContext(), graph.mesh());
  auto op =
      GraphOp::create(builder, location, builder.getStringAttr(name),
                      builder.getStringAttr(describeStrategy(strategy)), mesh);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  const ::dyna::Model &model = graph.model();
  for (int stage = 0; stage < graph.stages(); ++stage) {
    SmallVector<StringRef> layers;
    for (int layer = graph.stage(stage).firstLayer;
         layer < graph.stage(stage).endLayer; ++layer)
      layers.push_back(model.layer(layer).name());
    StageOp::create(builder, location, builder.getStrArrayAttr(layers));
  }
  for (int parameter = 0; parameter < model.parameters(); ++parameter)
    // A parameter without a layer that uses it has no place.
    if (!graph.stagesOf(parameter).empty())
      ParameterOp::create(
          builder, location,
          FlatSymbolRefAttr::get(builder.getContext(),
                                 model.parameter(parameter).name()),
          dist::LayoutAttr::get(mesh, graph.layout(parameter)),
          builder.getArrayAttr(holdersOf(builder, parameter, graph)));
  return op;
}

::dyna::Strategy mlir::exec::strategyOf(GraphOp op) {
  ::dyna::Strategy strategy = *::dyna::parseStrategy(op.getStrategy().str());
  for (auto stage : op.getOps<StageOp>())
    strategy.layers.push_back(static_cast<int>(stage.getLayers().size()));
  return strategy;
}
