//===- AttentionPlans.cpp - Runs attention of a CUDA device by cuDNN ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/AttentionPlans.h"

#include "runtime/base/text/Text.h"

using namespace dyna;
using namespace dyna::cuda;

/// The first devices for which cuDNN reads ragged rows in all versions taken.
static constexpr int kOldestCapability = 90;

//===----------------------------------------------------------------------===//
// Making and freeing
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<AttentionPlans>>
AttentionPlans::create(std::shared_ptr<PrimaryContext> context,
                       const AttentionOptions &options) {
  std::unique_ptr<AttentionPlans> made(
      new AttentionPlans(std::move(context), options));
  if (!options.useLibrary)
    made->whyNot_ = "cuDNN is not wanted";
  else
    DYNA_RETURN_IF_ERROR(made->openLibrary());
  return made;
}

Status AttentionPlans::openLibrary() {
  // The emulated device reports 0. Treat it as the oldest capability.
  int capability = context_->capability();
  if (capability < 10)
    capability = kOldestCapability;
  if (capability < kOldestCapability) {
    whyNot_ = formatText("cuDNN is taken from compute capability %d.%d on",
                         kOldestCapability / 10, kOldestCapability % 10);
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(context_->enter());
  StatusOr<Cudnn> cudnn = Cudnn::open();
  if (!cudnn.isOk()) {
    whyNot_ = cudnn.status().message();
    return Status::ok();
  }
  auto device = CudnnDevice::create(*cudnn, capability);
  if (!device.isOk()) {
    whyNot_ = device.status().message();
    return Status::ok();
  }
  const int64_t bytes = options_.workspaceBytes;
  Result result =
      context_->driver().allocate(&workspace_, static_cast<size_t>(bytes));
  if (result == kOutOfMemory)
    return Status::resourceExhausted(
        formatText("%s has not the %s of memory left that cuDNN works in: "
                   "--attention=own needs none of it",
                   context_->label(), formatBytes(bytes)));
  DYNA_RETURN_IF_ERROR(
      context_->check(result, "taking the workspace of cuDNN"));
  workspaceBytes_ = bytes;
  device_ = std::move(*device);
  version_ = cudnn->versionText();
  return Status::ok();
}

AttentionPlans::~AttentionPlans() {
  if (!device_)
    return;
  if (context_->awaitIdle()) {
    plans_ = RecentlyUsed<AttentionClass, Planned>(1);
    device_.reset();
    (void)context_->driver().release(workspace_);
    return;
  }
  // The driver must not be called any more, so the plans are leaked on purpose.
  plans_.forEach([](const AttentionClass &, Planned &planned) {
    (void)planned.plan.release();
  });
  (void)device_.release();
}

std::string AttentionPlans::describe() const {
  if (!device_)
    return "attention by own kernels (" + whyNot_ + ")";
  int64_t planned = 0, refused = 0;
  std::string why;
  plans_.forEach([&](const AttentionClass &, const Planned &entry) {
    if (entry.plan) {
      ++planned;
      return;
    }
    ++refused;
    why = entry.whyNot;
  });
  std::string text = "attention by cuDNN " + version_;
  if (!options_.isOrdered)
    text += " in any order";
  if (planned > 0)
    text += formatText(", plans of %d classes", planned);
  if (refused > 0)
    text += formatText(", %d classes by own kernels (%s)", refused, why);
  return text;
}

StatusOr<std::string> AttentionPlans::properties() const {
  if (!device_)
    return Status::invalidArgument(whyNot_);
  return device_->properties();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

StatusOr<AttentionPlans::Planned *>
AttentionPlans::planOf(const AttentionClass &shape) {
  if (Planned *known = plans_.find(shape))
    return known;
  // Kernels of the plan that will be evicted may still run.
  if (plans_.isFull() && !context_->awaitIdle())
    return context_->enter();
  Planned planned;
  if (auto made = CudnnPlan::make(*device_, shape); !made.isOk())
    planned.whyNot = made.status().message();
  else if (int64_t bytes = shape.beforePlan() + (*made)->workspaceBytes();
           bytes > workspaceBytes_)
    planned.whyNot = formatText(
        "%s needs %s of workspace, more than the %s there are", shape.text(),
        formatBytes(bytes), formatBytes(workspaceBytes_));
  else
    planned.plan = std::move(*made);
  return &plans_.add(shape, std::move(planned));
}

StatusOr<AttentionPlans::Call>
AttentionPlans::prepare(const AttentionClass &shape,
                        const dyna_segments &segments, StreamHandle stream) {
  Call call;
  DYNA_RETURN_IF_ERROR(context_->enter());
  DYNA_ASSIGN_OR_RETURN(Planned * planned, planOf(shape));
  if (!planned->plan)
    return call;
  DYNA_RETURN_IF_ERROR(context_->follow(lastStream_, stream));
  shape_ = shape;
  call.shape = &shape_;
  call.plan = planned->plan.get();
  char *at = reinterpret_cast<char *>(workspace_);
  auto take = [&](int64_t bytes) {
    char *taken = at;
    at += bytes;
    return taken;
  };
  gpu::AttentionTablesArguments &tables = call.tables;
  tables.segments = segments.data;
  tables.count = segments.count;
  tables.filled = shape.segments;
  tables.rows = segments.tq;
  tables.lengths = reinterpret_cast<int32_t *>(take(shape.lengthsBytes()));
  tables.offsets =
      reinterpret_cast<int64_t *>(take(shape.tables() * shape.tableBytes()));
  tables.pitch = shape.tableBytes() / 8;
  tables.tables = shape.tables();
  for (int32_t table = 0; table < shape.tables(); ++table)
    tables.strides[table] = shape.strides[table];
  call.sums = take(shape.sumsBytes());
  call.workspace = at;
  return call;
}

StatusOr<AttentionPlans::Call> AttentionPlans::prepare(const dyna_attention &p,
                                                       StreamHandle stream) {
  if (!device_ || p.segments->tq == 0 || whyNotPlanned(p))
    return Call();
  return prepare(AttentionClass::of(p), *p.segments, stream);
}

StatusOr<AttentionPlans::Call>
AttentionPlans::prepare(const dyna_attention_grad &p, StreamHandle stream) {
  if (!device_ || p.forward.segments->tq == 0 || whyNotPlanned(p))
    return Call();
  return prepare(AttentionClass::of(p, options_.isOrdered), *p.forward.segments,
                 stream);
}

Status AttentionPlans::run(const Call &call, AttentionTensors tensors,
                           StreamHandle stream) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  tensors.lengths = call.tables.lengths;
  for (int64_t table = 0; table < call.tables.tables; ++table)
    tensors.tables[table] = call.tables.offsets + table * call.tables.pitch;
  if (!tensors.lse)
    tensors.lse = call.sums;
  PrimaryContext::StreamRecord *record = context_->find(stream);
  if (Status status = call.plan->run(*device_, tensors, call.workspace, stream);
      !status.isOk())
    return context_->end(formatText("%s (cuDNN %s, %s): %s", call.shape->text(),
                                    version_, call.plan->engine(),
                                    status.message()),
                         record ? record->kernel : nullptr);
  ++calls_;
  if (record)
    record->kernel =
        call.shape->isGradient ? "attention_grad_bf16" : "attention_bf16";
  return Status::ok();
}
