//===- CudaModule.cpp - Loads code of a CUDA device -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/CudaModule.h"

#include "runtime/abi/DeviceCode.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <cstring>

using namespace dyna;
using namespace dyna::cuda;

const CudaImage *dyna::chooseImage(const std::vector<CudaImage> &images,
                                   int capability) {
  const CudaImage *best = nullptr;
  for (const CudaImage &image : images) {
    bool runs = image.capability <= capability &&
                (image.isPtx || image.capability / 10 == capability / 10);
    bool isBetter =
        !best || (best->isPtx && !image.isPtx) ||
        (best->isPtx == image.isPtx && image.capability > best->capability);
    if (runs && isBetter)
      best = &image;
  }
  return best;
}

static std::string nameOf(const CudaImage &image) {
  if (image.capability == 0)
    return "emulated";
  return formatText("%s_%d", image.isPtx ? "compute" : "sm", image.capability);
}

/// Returns advice on what to compile for, so that a device of `capability` runs
/// it.
static std::string adviceFor(int capability) {
  if (capability == 0)
    return "the stand-in runs what is compiled with --arch=emulated";
  if (capability < 80)
    return "GPUs before compute capability 8.0 are not supported";
  // Suggest the latest architecture that dynac knows and whose code or PTX this
  // device can run.
  int best = 80;
  for (int known : DYNA_ARCHITECTURES)
    if (known <= capability)
      best = known;
  return formatText("compile it with --arch=sm_%d", best);
}

StatusOr<std::unique_ptr<CudaModule>>
CudaModule::load(const std::shared_ptr<PrimaryContext> &context,
                 const std::vector<CudaImage> &images) {
  DYNA_RETURN_IF_ERROR(context->enter());
  const CudaImage *image = chooseImage(images, context->capability());
  if (!image) {
    std::string all;
    for (const CudaImage &held : images)
      all += (all.empty() ? "" : ", ") + nameOf(held);
    return Status::invalidArgument(formatText(
        "%s is of architecture sm_%d, for which this program holds no code "
        "(it has %s); %s",
        context->label(), context->capability(), all.empty() ? "none" : all,
        adviceFor(context->capability())));
  }
  char log[1024] = "";
  int32_t options[] = {kJitErrorLog, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  Module module = nullptr;
  Result result = context->driver().loadModule(
      &module, image->data, image->isPtx ? 2 : 0,
      image->isPtx ? options : nullptr, image->isPtx ? values : nullptr);
  Status status =
      context->check(result, formatText("loading code for %s", nameOf(*image)));
  if (!status.isOk()) {
    log[strcspn(log, "\n")] = 0;
    return log[0]
               ? Status(status.code(), status.message() + ": " + printable(log))
               : status;
  }
  return std::unique_ptr<CudaModule>(new CudaModule(context, module));
}

CudaModule::~CudaModule() {
  if (context_->awaitIdle())
    (void)context_->driver().unloadModule(module_);
}

StatusOr<CudaKernel> CudaModule::kernel(const std::string &name,
                                        int64_t sharedBytes) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  CudaKernel kernel;
  Result result =
      context_->driver().findFunction(&kernel.function, module_, name.c_str());
  if (result == kNotFound)
    return Status::invalidArgument(formatText(
        "%s: its code has no kernel %s", context_->label(), printable(name)));
  DYNA_RETURN_IF_ERROR(
      context_->check(result, formatText("finding kernel %s", name)));
  if (sharedBytes > context_->maxSharedBytes())
    return Status::resourceExhausted(formatText(
        "kernel %s needs %s of shared memory, but %s has %s for a block", name,
        formatBytes(sharedBytes), context_->label(),
        formatBytes(context_->maxSharedBytes())));
  if (sharedBytes > kSharedWithoutAsking) {
    DYNA_RETURN_IF_ERROR(context_->check(
        context_->driver().setFunction(kernel.function, kMaxDynamicShared,
                                       static_cast<int>(sharedBytes)),
        formatText("giving kernel %s %d bytes of shared memory", name,
                   sharedBytes)));
    // Prefer shared memory over cache, so that more blocks run at once. Such
    // kernels do not read through this cache.
    DYNA_RETURN_IF_ERROR(context_->check(
        context_->driver().setFunction(kernel.function, kSharedCarveout, 100),
        formatText("giving kernel %s shared memory before cache", name)));
  }
  kernel.name = context_->keepName(name);
  return kernel;
}
