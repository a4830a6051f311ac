//===- CudaCode.cpp - Loads the kernels of a program ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/CudaCode.h"

#include "runtime/base/text/Text.h"

using namespace dyna;
using namespace dyna::cuda;

StatusOr<std::unique_ptr<CudaCode>>
CudaCode::load(const std::shared_ptr<PrimaryContext> &context,
               const dyna_device_code &code) {
  std::unique_ptr<CudaCode> loaded(new CudaCode(code));
  if (code.function_count == 0) // a model without any has no images either
    return loaded;
  const int version = context->driver().version;
  if (version < code.oldest_driver)
    return Status::invalidArgument(formatText(
        "%s: its driver is of CUDA %s, but this program's kernels were made "
        "with "
        "a toolkit of CUDA %d and need a driver of CUDA %s or newer%s: update "
        "the driver, or build Dyna and the program with an older toolkit",
        context->label(), cuda::versionText(version), code.oldest_driver / 1000,
        cuda::versionText(static_cast<int>(code.oldest_driver)),
        code.oldest_driver == 13000   ? " (release 580)"
        : code.oldest_driver == 12000 ? " (release 525)"
                                      : ""));
  std::vector<CudaImage> images;
  for (int64_t i = 0; i < code.image_count; ++i) {
    const dyna_device_image &image = code.images[i];
    images.push_back(
        {image.architecture, image.kind == DYNA_IMAGE_PTX, image.bytes});
  }
  DYNA_ASSIGN_OR_RETURN(loaded->module_, CudaModule::load(context, images));
  for (int64_t i = 0; i < code.function_count; ++i) {
    const dyna_device_function &function = code.functions[i];
    DYNA_ASSIGN_OR_RETURN(
        CudaKernel kernel,
        loaded->module_->kernel(function.name, function.shared_bytes));
    loaded->kernels_.push_back(kernel);
  }
  return loaded;
}

Status CudaCode::check(int64_t function, int64_t argumentBytes) const {
  if (function < 0 || function >= code_.function_count)
    return Status::invalidArgument(
        formatText("a launch of kernel %d, but the code has %d", function,
                   code_.function_count));
  const dyna_device_function &described = code_.functions[function];
  if (described.argument_bytes != argumentBytes)
    return Status::invalidArgument(
        formatText("a launch of kernel %s with %d bytes of arguments, but it "
                   "takes %d",
                   described.name, argumentBytes, described.argument_bytes));
  return Status::ok();
}

std::string dyna::describeImages(const dyna_device_code &code) {
  std::string text;
  for (int64_t i = 0; i < code.image_count; ++i) {
    const dyna_device_image &image = code.images[i];
    text += text.empty() ? "" : ", ";
    text += image.kind == DYNA_IMAGE_EMULATED ? "emulated"
            : image.kind == DYNA_IMAGE_PTX
                ? formatText("compute_%d (PTX)", image.architecture)
                : formatText("sm_%d", image.architecture);
  }
  return text.empty() ? "none" : text;
}
