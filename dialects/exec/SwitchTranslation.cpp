//===- SwitchTranslation.cpp - Translates switches to exec and back -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/SwitchTranslation.h"

using namespace mlir;
using namespace mlir::exec;

namespace plan = ::dyna::plan;

// The numbers of the dialect and those of the runtime must agree.
static_assert(static_cast<int>(ParameterPart::Master) ==
                  static_cast<int>(::dyna::ParameterPart::Master) &&
              static_cast<int>(ParameterPart::Copy) ==
                  static_cast<int>(::dyna::ParameterPart::Copy) &&
              static_cast<int>(ParameterPart::Gradient) ==
                  static_cast<int>(::dyna::ParameterPart::Gradient) &&
              static_cast<int>(SwitchPlace::Old) ==
                  static_cast<int>(::dyna::SwitchPlace::Old) &&
              static_cast<int>(SwitchPlace::New) ==
                  static_cast<int>(::dyna::SwitchPlace::New) &&
              static_cast<int>(SwitchPlace::Passing) ==
                  static_cast<int>(::dyna::SwitchPlace::Passing));

//===----------------------------------------------------------------------===//
// Switches
//===----------------------------------------------------------------------===//

/// Appends begin and end of rows, then of columns.
static void appendBox(SmallVectorImpl<int64_t> &numbers,
                      const ::dyna::Box &box) {
  for (int dim : {0, 1}) {
    numbers.push_back(box.begin[dim]);
    numbers.push_back(box.begin[dim] + box.size[dim]);
  }
}

static ::dyna::Box boxOf(ArrayRef<int64_t> numbers) {
  ::dyna::Box box;
  for (int dim : {0, 1}) {
    box.begin.push_back(numbers[2 * dim]);
    box.size.push_back(numbers[2 * dim + 1] - numbers[2 * dim]);
  }
  return box;
}

static SmallVector<int64_t>
numbersOf(const std::vector<::dyna::RankBox> &boxes) {
  SmallVector<int64_t> numbers;
  for (const ::dyna::RankBox &one : boxes) {
    numbers.push_back(one.rank);
    appendBox(numbers, one.box);
  }
  return numbers;
}

static std::vector<::dyna::RankBox> rankBoxesOf(ArrayRef<int64_t> numbers) {
  std::vector<::dyna::RankBox> boxes;
  for (; !numbers.empty(); numbers = numbers.drop_front(5))
    boxes.push_back({static_cast<int>(numbers[0]), boxOf(numbers.slice(1, 4))});
  return boxes;
}

static void importBucket(OpBuilder &builder, Location location,
                         const ::dyna::SwitchBucket &bucket) {
  auto op = BucketOp::create(builder, location,
                             bucket.after < 0
                                 ? IntegerAttr()
                                 : builder.getI32IntegerAttr(bucket.after));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (const ::dyna::SwitchTransfer &transfer : bucket.transfers) {
    SmallVector<int64_t> box;
    appendBox(box, transfer.box);
    TransferOp::create(builder, location, transfer.tensor, box, transfer.from,
                       transfer.to, static_cast<SwitchPlace>(transfer.source),
                       static_cast<SwitchPlace>(transfer.target));
  }
}

SwitchPlanOp
mlir::exec::importSwitch(OpBuilder &builder, Location location,
                         const SwitchName &name, const ::dyna::Model &model,
                         const std::vector<::dyna::SwitchTensor> &tensors,
                         const ::dyna::SwitchPlan &plan) {
  OpBuilder::InsertionGuard guard(builder);
  auto symbol = [&](StringRef text) {
    return text.empty() ? FlatSymbolRefAttr()
                        : FlatSymbolRefAttr::get(builder.getContext(), text);
  };
  auto op = SwitchPlanOp::create(
      builder, location, MovedAttr::get(builder.getContext(), name.moved),
      symbol(name.graph), symbol(name.behind), symbol(name.home));
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (const ::dyna::SwitchTensor &tensor : tensors)
    TensorOp::create(
        builder, location, model.parameter(tensor.parameter).name(),
        static_cast<ParameterPart>(tensor.part), tensor.elementBytes,
        numbersOf(tensor.from), numbersOf(tensor.to));
  for (const ::dyna::SwitchBucket &bucket : plan.buckets)
    importBucket(builder, location, bucket);
  return op;
}

std::vector<::dyna::SwitchTensor>
mlir::exec::exportTensors(SwitchPlanOp op, const ::dyna::Model *model) {
  std::vector<::dyna::SwitchTensor> tensors;
  for (auto item : op.getOps<TensorOp>()) {
    ::dyna::SwitchTensor &tensor = tensors.emplace_back();
    if (model)
      tensor.parameter = model->findParameter(item.getParameter().str());
    tensor.part = static_cast<::dyna::ParameterPart>(item.getPart());
    tensor.elementBytes = static_cast<int64_t>(item.getElementBytes());
    tensor.from = rankBoxesOf(item.getFrom());
    tensor.to = rankBoxesOf(item.getTo());
    // Gradients are added, and each exactly once.
    tensor.delivery = op.getMoved() == Moved::Gradients ? ::dyna::Delivery::Once
                                                        : ::dyna::Delivery::All;
  }
  return tensors;
}

::dyna::SwitchPlan mlir::exec::exportSwitch(SwitchPlanOp op) {
  ::dyna::SwitchPlan plan;
  for (auto item : op.getOps<BucketOp>()) {
    ::dyna::SwitchBucket &bucket = plan.buckets.emplace_back();
    if (item.getAfter())
      bucket.after = static_cast<int>(*item.getAfter());
    for (auto moved : item.getOps<TransferOp>()) {
      ::dyna::SwitchTransfer &transfer = bucket.transfers.emplace_back();
      transfer.tensor = static_cast<int>(moved.getTensor());
      transfer.from = static_cast<int>(moved.getFrom());
      transfer.to = static_cast<int>(moved.getTo());
      transfer.source = static_cast<::dyna::SwitchPlace>(moved.getSource());
      transfer.target = static_cast<::dyna::SwitchPlace>(moved.getTarget());
      transfer.box = boxOf(moved.getBox());
    }
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

FailureOr<StepOp> mlir::exec::importStep(ModuleOp module, Location location,
                                         StringRef name,
                                         const plan::StepPlan &step) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<std::pair<StringRef, ArrayRef<int64_t>>> phases;
  for (auto [number, phase] : llvm::enumerate(step.phases)) {
    plan::Plan own = phase.plan;
    if (own.name.empty())
      own.name = (name + ".phase" + llvm::Twine(number)).str();
    if (SymbolTable::lookupSymbolIn(module, own.name))
      return emitError(location)
             << "phase " << number << " has the plan '" << own.name
             << "', but a name like that is there already";
    FailureOr<PlanOp> op = importPlan(builder, location, own);
    if (failed(op))
      return failure();
    phases.push_back({op->getSymName(), phase.samples});
  }
  auto op = StepOp::create(builder, location, builder.getStringAttr(name));
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (auto [plan, samples] : phases)
    PhaseOp::create(builder, location, plan, samples);
  return op;
}

SmallVector<PlanOp> mlir::exec::plansOf(StepOp op) {
  SmallVector<PlanOp> plans;
  for (auto phase : op.getOps<PhaseOp>())
    plans.push_back(
        SymbolTable::lookupNearestSymbolFrom<PlanOp>(op, phase.getPlanAttr()));
  return plans;
}

plan::StepPlan mlir::exec::exportStep(StepOp op) {
  plan::StepPlan step;
  for (auto [phase, plan] : llvm::zip_equal(op.getOps<PhaseOp>(), plansOf(op)))
    step.phases.push_back({exportPlan(plan), phase.getSamples().vec()});
  return step;
}

PhaseOp mlir::exec::findPhase(PlanOp op) {
  for (auto step : op->getParentOfType<ModuleOp>().getOps<StepOp>())
    for (auto phase : step.getOps<PhaseOp>())
      if (phase.getPlan() == op.getSymName())
        return phase;
  return {};
}
