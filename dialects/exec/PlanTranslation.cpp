//===- PlanTranslation.cpp - exec and the messages of runtime/plan --------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/PlanTranslation.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

//===----------------------------------------------------------------------===//
// Plans in
//===----------------------------------------------------------------------===//

static void importMicroBatch(OpBuilder &builder, Location location,
                             const plan::MicroBatch &microBatch) {
  SmallVector<int64_t> samples, begins, lengths;
  for (const plan::Segment &segment : microBatch.segments()) {
    samples.push_back(segment.sample());
    begins.push_back(segment.begin());
    lengths.push_back(segment.length());
  }
  MicroBatchOp::create(builder, location, microBatch.replica(), samples, begins,
                       lengths);
}

static void importInstruction(OpBuilder &builder, Location location,
                              const plan::Instruction &i) {
  DoOp::create(builder, location, static_cast<Instruction>(i.op()), i.layer(),
               i.micro_batch(), static_cast<Recompute>(i.recompute()), i.peer(),
               i.message_bytes(), i.kept_offset(), i.late_offset(),
               i.out_offset(), i.grad_in_offset(), i.grad_out_offset(),
               i.workspace_offset(), i.batch_offset());
}

/// Enums of a message may hold any number.
static LogicalResult checkEnums(Location location, const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks())
    for (const plan::Instruction &i : program.instructions()) {
      if (!symbolizeInstruction(static_cast<uint32_t>(i.op())))
        return emitError(location)
               << "the plan has an instruction of the unknown number "
               << static_cast<int>(i.op()) << " on rank " << program.rank();
      if (!symbolizeRecompute(static_cast<uint32_t>(i.recompute())))
        return emitError(location)
               << "the plan has a recompute mode of the unknown number "
               << static_cast<int>(i.recompute()) << " on rank "
               << program.rank();
    }
  return success();
}

FailureOr<PlanOp> mlir::exec::importPlan(OpBuilder &builder, Location location,
                                         const plan::Plan &plan) {
  if (failed(checkEnums(location, plan)))
    return failure();
  StringRef name = plan.name().empty() ? "plan" : StringRef(plan.name());
  DenseI64ArrayAttr lengths;
  if (!plan.lengths().empty())
    lengths = builder.getDenseI64ArrayAttr(
        ArrayRef<int64_t>(plan.lengths().data(), plan.lengths_size()));
  OpBuilder::InsertionGuard guard(builder);
  auto op = PlanOp::create(
      builder, location, builder.getStringAttr(name), FlatSymbolRefAttr(),
      builder.getI64IntegerAttr(static_cast<int64_t>(plan.manifest_hash())),
      builder.getI64IntegerAttr(plan.target_tokens()), lengths, StringAttr());
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (const plan::MicroBatch &microBatch : plan.micro_batches())
    importMicroBatch(builder, location, microBatch);
  for (const plan::RankProgram &program : plan.ranks()) {
    auto rank = RankOp::create(builder, location, program.rank(),
                               program.dynamic_bytes());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&rank.getBody().emplaceBlock());
    for (const plan::Instruction &i : program.instructions())
      importInstruction(builder, location, i);
  }
  // The constraints are what exec can say; what is no field of this version is
  // kept by the message and would be lost here.
  bool isSaid = succeeded(verify(op));
  plan::Plan named = plan;
  named.set_name(name.str());
  if (isSaid &&
      exportPlan(op).SerializeAsString() != named.SerializeAsString()) {
    emitError(location) << "the plan has fields that this version does not "
                           "know: it comes from a newer one";
    isSaid = false;
  }
  if (isSaid)
    return op;
  op.erase();
  return failure();
}

//===----------------------------------------------------------------------===//
// Plans out
//===----------------------------------------------------------------------===//

static void exportInstruction(DoOp op, plan::Instruction *out) {
  out->set_op(static_cast<plan::Instruction::Op>(
      static_cast<int>(op.getInstruction())));
  out->set_layer(op.getLayer());
  out->set_micro_batch(op.getMicroBatch());
  out->set_recompute(
      static_cast<plan::Recompute>(static_cast<int>(op.getRecompute())));
  out->set_peer(op.getPeer());
  out->set_message_bytes(op.getBytes());
  out->set_kept_offset(op.getKept());
  out->set_late_offset(op.getLate());
  out->set_out_offset(op.getOut());
  out->set_grad_in_offset(op.getGradIn());
  out->set_grad_out_offset(op.getGradOut());
  out->set_workspace_offset(op.getWorkspace());
  out->set_batch_offset(op.getBatch());
}

plan::Plan mlir::exec::exportPlan(PlanOp op) {
  plan::Plan plan;
  plan.set_manifest_hash(op.getModel());
  plan.set_target_tokens(op.getTargetTokens());
  plan.set_name(op.getSymName().str());
  for (int64_t length : op.getLengths().value_or(ArrayRef<int64_t>()))
    plan.add_lengths(length);
  for (auto item : op.getOps<MicroBatchOp>()) {
    plan::MicroBatch *microBatch = plan.add_micro_batches();
    microBatch->set_replica(item.getReplica());
    for (auto [sample, begin, length] : llvm::zip_equal(
             item.getSamples(), item.getBegins(), item.getLengths())) {
      plan::Segment *segment = microBatch->add_segments();
      segment->set_sample(sample);
      segment->set_begin(begin);
      segment->set_length(length);
    }
  }
  for (auto rank : op.getOps<RankOp>()) {
    plan::RankProgram *program = plan.add_ranks();
    program->set_rank(rank.getRank());
    program->set_dynamic_bytes(rank.getDynamicBytes());
    for (auto item : rank.getOps<DoOp>())
      exportInstruction(item, program->add_instructions());
  }
  return plan;
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

/// Every list of ranks that hold one part and sum its gradients.
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
  auto op = GraphOp::create(builder, location, builder.getStringAttr(name),
                            builder.getStringAttr(describeStrategy(strategy)),
                            mesh, StringAttr());
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  const ::dyna::ManifestView &model = graph.model();
  for (int stage = 0; stage < graph.stages(); ++stage) {
    SmallVector<StringRef> layers;
    for (int layer = graph.stage(stage).firstLayer;
         layer < graph.stage(stage).endLayer; ++layer)
      layers.push_back(model.layer(layer).name());
    StageOp::create(builder, location, builder.getStrArrayAttr(layers));
  }
  for (int parameter = 0; parameter < model.parameters(); ++parameter)
    // What no layer uses lies nowhere.
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
