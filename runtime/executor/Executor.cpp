//===- Executor.cpp - Interprets one rank's instructions ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/Executor.h"

#include "runtime/base/Text.h"
#include "runtime/executor/RankExchange.h"
#include "runtime/executor/Run.h"
#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/PlanVerifier.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dyna {

using plan::Instruction;

namespace {

/// Longer than any instruction takes; a device that hangs is noticed.
constexpr std::chrono::minutes patience{30};
constexpr int64_t pageBytes = 4096;

} // namespace

Executor::Executor(const ManifestView &view, const dyna_variant &variant,
                   Device &device, const ExecutorOptions &options)
    : view_(view), variant_(variant), device_(device), options_(options),
      layout_(persistentLayout(view, options.training)) {}

Executor::~Executor() {
  if (exchange_)
    exchange_->transport().noteTime(nullptr);
}

StatusOr<std::unique_ptr<Executor>>
Executor::create(const ManifestView &view, const dyna_variant &variant,
                 Device &device, const ExecutorOptions &options) {
  std::unique_ptr<Executor> executor(
      new Executor(view, variant, device, options));
  DYNA_RETURN_IF_ERROR(executor->initialize());
  return executor;
}

Status Executor::initialize() {
  dynamicStart_ = (layout_.bytes + pageBytes - 1) / pageBytes * pageBytes;
  DYNA_ASSIGN_OR_RETURN(auto stream, device_.createStream());
  stream_ = std::move(stream);
  DYNA_ASSIGN_OR_RETURN(
      auto arena, device_.allocate(dynamicStart_ + options_.dynamicBytes));
  arena_ = std::move(arena);
  DYNA_RETURN_IF_ERROR(device_.fill(*stream_, *arena_, 0, arena_->bytes(), 0));
  groups_.assign(DYNA_GROUP_COUNT, dyna_group{1, 0, nullptr});
  if (options_.graph && options_.graph->ranks() > 1) {
    if (!options_.transport)
      return Status::internal("several ranks need a transport");
    DYNA_ASSIGN_OR_RETURN(
        auto exchange,
        RankExchange::create(*options_.graph, view_, *options_.transport));
    exchange_ = std::move(exchange);
    groups_ = exchange_->groups();
    if (options_.trace)
      options_.transport->noteTime(&spent_);
  }
  context_.abi_version = DYNA_ABI_VERSION;
  context_.rank = exchange_ ? exchange_->rank() : 0;
  context_.world = view_.ranks();
  context_.group_count = static_cast<int32_t>(groups_.size());
  context_.groups = groups_.data();
  context_.message = message_;
  context_.message_capacity = sizeof(message_);
  context_.seed = options_.seed;
  device_.bind(context_, *stream_);
  if (options_.checkMemory)
    memoryCheck_ = std::make_unique<MemoryCheck>(
        view_, device_, *stream_, *arena_, layout_, dynamicStart_);
  return synchronize();
}

Status Executor::synchronize() {
  return device_.synchronize(*stream_,
                             std::chrono::steady_clock::now() + patience);
}

const MemoryReport &Executor::memoryReport() const {
  static const MemoryReport none;
  return memoryCheck_ ? memoryCheck_->report() : none;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void *Executor::persistent(int64_t offset) const {
  return static_cast<char *>(arena_->data()) + offset;
}

void *Executor::dynamic(int64_t offset) const {
  return persistent(dynamicStart_ + offset);
}

void *Executor::block(const Run &run, Operand operand) const {
  return dynamic(run.place(operand));
}

int64_t Executor::placeOf(int parameter, ParameterPart part) const {
  const ParameterPlace &place = layout_.parameters[parameter];
  switch (part) {
  case ParameterPart::Master:
    return place.master;
  case ParameterPart::Copy:
    return place.copy;
  case ParameterPart::Gradient:
    return place.gradient;
  case ParameterPart::FirstMoment:
    return place.m;
  case ParameterPart::SecondMoment:
    return place.v;
  }
  return -1;
}

Executor::Rows Executor::partRows(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  bool updatedOnly =
      part == ParameterPart::FirstMoment ||
      part == ParameterPart::SecondMoment ||
      (part == ParameterPart::Master && view_.hasCopy(parameter));
  if (placeOf(parameter, part) < 0)
    return {};
  if (updatedOnly)
    return {place.updateBegin, place.updateEnd};
  return {0, view_.rows(parameter)};
}

int64_t Executor::rowBytes(int parameter, ParameterPart part) const {
  plan::ElementType type =
      part == ParameterPart::Copy       ? view_.computeType(parameter)
      : part == ParameterPart::Gradient ? view_.gradientType()
                                        : view_.masterType();
  return view_.rowElements(parameter) * elementBytes(type);
}

int64_t Executor::partBytes(int parameter, ParameterPart part) const {
  Rows rows = partRows(parameter, part);
  return (rows.end - rows.begin) * rowBytes(parameter, part);
}

dyna_tensor Executor::tensorOf(int parameter, ParameterPart part) const {
  int64_t place = placeOf(parameter, part);
  if (place < 0)
    return {nullptr, 0};
  Rows rows = partRows(parameter, part);
  return {persistent(place), rows.end - rows.begin};
}

dyna_tensor Executor::updatedRows(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  int64_t rows = place.updateEnd - place.updateBegin;
  if (placeOf(parameter, part) < 0 || rows == 0)
    return {nullptr, 0};
  int64_t skipped = place.updateBegin - partRows(parameter, part).begin;
  return {persistent(placeOf(parameter, part) +
                     skipped * rowBytes(parameter, part)),
          rows};
}

Status Executor::readPart(int parameter, ParameterPart part, void *target) {
  return readRows(parameter, part, partRows(parameter, part), target);
}

Status Executor::writePart(int parameter, ParameterPart part,
                           const void *source) {
  return writeRows(parameter, part, partRows(parameter, part), source);
}

/// Where the rows begin in the arena.
StatusOr<int64_t> Executor::findRows(int parameter, ParameterPart part,
                                     Rows rows) const {
  int64_t place = placeOf(parameter, part);
  Rows all = partRows(parameter, part);
  if (place < 0 || rows.begin < all.begin || rows.end > all.end)
    return Status::internal("parameter '" + view_.parameter(parameter).name() +
                            "' has no such part or rows");
  return place + (rows.begin - all.begin) * rowBytes(parameter, part);
}

Status Executor::readRows(int parameter, ParameterPart part, Rows rows,
                          void *target) {
  DYNA_ASSIGN_OR_RETURN(int64_t place, findRows(parameter, part, rows));
  DYNA_RETURN_IF_ERROR(
      device_.copyToHost(*stream_, target, *arena_, place,
                         (rows.end - rows.begin) * rowBytes(parameter, part)));
  return synchronize();
}

Status Executor::writeRows(int parameter, ParameterPart part, Rows rows,
                           const void *source) {
  DYNA_ASSIGN_OR_RETURN(int64_t place, findRows(parameter, part, rows));
  DYNA_RETURN_IF_ERROR(device_.copyToDevice(*stream_, *arena_, place, source,
                                            (rows.end - rows.begin) *
                                                rowBytes(parameter, part)));
  return synchronize();
}

Status Executor::clearGradients() {
  for (int p = 0; p < view_.parameters(); ++p)
    if (int64_t place = placeOf(p, ParameterPart::Gradient); place >= 0)
      DYNA_RETURN_IF_ERROR(device_.fill(
          *stream_, *arena_, place, partBytes(p, ParameterPart::Gradient), 0));
  return synchronize();
}

//===----------------------------------------------------------------------===//
// Running a plan
//===----------------------------------------------------------------------===//

namespace {

int64_t mostOf(const std::vector<int64_t> &bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

} // namespace

Status Executor::run(const plan::Plan &plan, const MiniBatch &miniBatch,
                     const StepScalars &scalars, StepResult &result) {
  std::vector<int64_t> lengths = miniBatch.lengths();
  VerifyOptions limits = {arena_->bytes() - dynamicStart_, context_.rank,
                          countTargets(miniBatch)};
  if (!options_.plansAreVerified)
    DYNA_RETURN_IF_ERROR(
        options_.graph ? verifyPlan(*options_.graph, plan, lengths, limits)
                       : verifyPlan(view_, plan, lengths, limits));
  else if (int64_t bytes = plan.ranks[context_.rank].dynamicBytes;
           bytes > limits.dynamicLimit)
    return Status::resourceExhausted(
        formatText("the plan needs %s, but this rank took %s",
                   formatBytes(bytes), formatBytes(limits.dynamicLimit)));
  if (plan.microBatchCount() > 0 && plan.targetTokens <= 0)
    return Status::invalidArgument("the mini-batch has no target in the loss");
  result = StepResult();
  Run run(view_, plan, context_.rank, miniBatch, scalars, result);
  result.dynamicBytes = run.program.dynamicBytes;
  context_.step = scalars.step;
  context_.inverse_targets =
      plan.targetTokens > 0 ? 1.0 / plan.targetTokens : 0;
  context_.optimizer = scalars.optimizer;
  context_.optimizer.gradient_scale = 1;
  Traffic before = exchange_ ? exchange_->transport().traffic() : Traffic();
  Status status = runProgram(run);
  if (exchange_) {
    result.traffic = exchange_->transport().traffic();
    result.traffic.add(before, -1);
  }
  if (!status.isOk() && exchange_)
    exchange_->transport().abort(status);
  return status;
}

Status Executor::runProgram(Run &run) {
  if (memoryCheck_)
    DYNA_RETURN_IF_ERROR(memoryCheck_->begin());
  StepResult &result = run.result;
  result.keptBytes = mostOf(run.blocks.liveBytes(BlockKind::Kept));
  std::vector<int64_t> live = run.blocks.liveBytes();
  result.liveBytes = mostOf(live);
  for (run.index = 0; run.index < run.program.count(); ++run.index) {
    const Instruction &i = run.program.instructions[run.index];
    double begin = options_.trace ? options_.trace->now() : 0;
    context_.matrix_flops = 0;
    spent_.clear();
    DYNA_RETURN_IF_ERROR(runInstruction(run));
    result.flops += static_cast<double>(context_.matrix_flops);
    result.formulaFlops += formulaFlops(run, i);
    if (options_.trace)
      trace(run, i, begin, live[run.index]);
    // What was started goes on between instructions too, not only in kernels
    // and waits.
    if (exchange_)
      DYNA_RETURN_IF_ERROR(exchange_->transport().progress());
  }
  DYNA_RETURN_IF_ERROR(synchronize());
  // Each loss is known to one rank, the others add zeros.
  if (exchange_ && !result.microBatchLosses.empty())
    DYNA_RETURN_IF_ERROR(
        exchange_->sum(result.microBatchLosses, stream_->handle()));
  for (double loss : result.microBatchLosses)
    result.lossSum += loss;
  return Status::ok();
}

void Executor::trace(const Run &run, const Instruction &i, double begin,
                     int64_t liveBytes) {
  TraceRecorder &recorder = *options_.trace;
  TraceSlice slice;
  slice.name = instructionName(i.op);
  slice.category =
      namesLayer(i.op) ? view_.kind(i.layer).name().c_str() : "step";
  slice.step = run.scalars.step;
  slice.layer = namesLayer(i.op) ? i.layer : -1;
  slice.microBatch = isPerMicroBatch(i.op) ? i.microBatch : -1;
  slice.beginSeconds = begin;
  slice.seconds = recorder.now() - begin;
  slice.liveBytes = liveBytes;
  slice.flops = static_cast<double>(context_.matrix_flops);
  recorder.add(slice);
  slice.category = "exchange";
  slice.flops = 0;
  slice.isInner = true;
  for (const Transport::Spent &spent : spent_) {
    slice.name = spent.what;
    slice.beginSeconds = recorder.at(spent.begin);
    slice.seconds = recorder.at(spent.end) - slice.beginSeconds;
    recorder.add(slice);
  }
}

Status Executor::runInstruction(Run &run) {
  const Instruction &i = run.program.instructions[run.index];
  message_[0] = '\0';
  context_.layer = i.layer;
  Status status = callLayer(run, i);
  if (!status.isOk())
    return Status(status.code(),
                  formatText("step %d, instruction %d (%s of '%s'): %s",
                             run.scalars.step, run.index,
                             describeInstruction(i), view_.kind(i.layer).name(),
                             status.message()));
  return memoryCheck_ ? memoryCheck_->after(run.blocks, run.index, i)
                      : Status::ok();
}

double Executor::formulaFlops(const Run &run, const Instruction &i) const {
  if (!isPerMicroBatch(i.op) || roleOf(i) < 0)
    return 0;
  const plan::LayerKind &kind = view_.kind(i.layer);
  const plan::LayerKind::Role &role = kind.roles(roleOf(i));
  const Staging &staging = run.staging[i.microBatch];
  double perTarget = static_cast<double>(role.flops_per_target());
  if (int slot = kind.target_table();
      perTarget > 0 && slot < kind.parameters_size())
    perTarget *=
        static_cast<double>(view_.rows(view_.layer(i.layer).parameters(slot))) /
        static_cast<double>(kind.parameters(slot).shape(0));
  return static_cast<double>(role.flops_per_token()) * staging.extent.tq +
         static_cast<double>(role.flops_per_pair()) * staging.pairs +
         static_cast<double>(role.flops_per_causal_pair()) *
             staging.causalPairs +
         std::round(perTarget) * staging.targets;
}

} // namespace dyna
