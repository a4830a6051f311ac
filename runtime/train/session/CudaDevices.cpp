//===- CudaDevices.cpp - Runs on GPUs of NVIDIA ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/attention/AttentionClass.h"
#include "runtime/device/cuda/attention/Cudnn.h"
#include "runtime/device/cuda/kernels/FunctionTable.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/train/session/Devices.h"

#include <algorithm>
#include <chrono>

namespace dyna {
namespace {

/// Longest time for which products are timed at once, in seconds.
constexpr double kTimingSeconds = 30;

Status checkFlags(const Model &model, const TrainOptions &options) {
  const plan::ElementType type = model.manifest().compute_type();
  if (options.tf32 && type != plan::F32)
    return Status::invalidArgument(
        formatText("--tf32 is about products of f32, but this program computes "
                   "in %s: leave it out",
                   elementTypeName(type)));
  if (options.attention == "cudnn" && type != plan::BF16)
    return Status::invalidArgument(formatText(
        "--attention=cudnn is for attention in bf16, but this program "
        "computes in %s: leave it out",
        elementTypeName(type)));
  // If the size of heads is unknown, layers that cuDNN rejects use own kernels.
  const int64_t head = model.manifest().facts().head_dim();
  if (options.attention == "cudnn" && !cuda::arePlannedHeads(head))
    return Status::invalidArgument(formatText(
        "--attention=cudnn takes heads of a multiple of %d elements, up to %d, "
        "but those of this program have %d: leave it out, or give "
        "--attention=own",
        cuda::kPlannedHeadStep, cuda::kPlannedHeadMost, head));
  return Status::ok();
}

StatusOr<std::unique_ptr<Device>> open(const TrainOptions &options,
                                       const dyna_program &program,
                                       const dyna_variant &, int threads) {
  CudaOptions cuda;
  cuda.ordinal = static_cast<int>(options.device);
  cuda.threads = threads;
  // A step may take long without a failure of the device.
  cuda.idleSeconds = static_cast<double>(options.timeout);
  cuda.products.tf32 = options.tf32;
  cuda.products.file = options.algorithms;
  cuda.products.isFixed = options.deterministic;
  cuda.attention.useLibrary = options.attention == "cudnn";
  DYNA_ASSIGN_OR_RETURN(auto device, CudaDevice::create(cuda));
  if (cuda.attention.useLibrary && !device->attention().whyNot().empty())
    return Status::invalidArgument(
        formatText("--attention=cudnn: %s; --attention=own needs no library",
                   device->attention().whyNot()));
  if (!device->products().whyNot().empty())
    for (auto [isGiven, flag] : {std::pair(options.tf32, "--tf32"),
                                 {!options.algorithms.empty(), "--algorithms"}})
      if (isGiven)
        return Status::invalidArgument(
            formatText("%s is for products by cuBLASLt: %s; without it they "
                       "are by own kernels",
                       flag, device->products().whyNot()));
  // Load code before anything runs, so that missing code is reported early.
  if (program.device_code)
    DYNA_RETURN_IF_ERROR(device->loadCode(*program.device_code));
  DYNA_RETURN_IF_ERROR(device->loadCode(dyna_cuda_kernels));
  return std::unique_ptr<Device>(std::move(device));
}

StatusOr<std::string> timeAlgorithms(Device &device,
                                     Device::Deadline deadline) {
  using Clock = std::chrono::steady_clock;
  auto &gpu = static_cast<CudaDevice &>(device);
  cuda::Products &products = gpu.products();
  if (products.unmeasured() == 0)
    return std::string();
  const auto begin = Clock::now();
  Stream &stream = gpu.stream(CudaStreamRole::Compute);
  DYNA_ASSIGN_OR_RETURN(
      int64_t timed,
      products.measure(static_cast<cuda::StreamHandle>(stream.handle()),
                       kTimingSeconds, deadline));
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::string text =
      formatText("algorithms of %d more classes of products timed in %.1f s",
                 timed, took.count());
  // The file is for later runs, so this run goes on without it.
  if (Status kept = products.keep(); !kept.isOk())
    text += ", but not kept: " + kept.message();
  return text;
}

/// Returns the code that a device loads: the program's kernels, if any, and the
/// hand-written ones.
std::vector<const dyna_device_code *> codesOf(const dyna_program &program) {
  std::vector<const dyna_device_code *> codes = {&dyna_cuda_kernels};
  if (program.device_code)
    codes.push_back(program.device_code);
  return codes;
}

/// Returns the oldest driver that loads all code; 0: any.
int64_t oldestDriver(const dyna_program &program) {
  int64_t oldest = 0;
  for (const dyna_device_code *code : codesOf(program))
    oldest = std::max(oldest, code->oldest_driver);
  return oldest;
}

/// Describes if a device with `driver` runs the program, and why not.
const char *verdict(const cuda::Driver &driver, const dyna_program &program,
                    int capability) {
  for (const dyna_device_code *code : codesOf(program)) {
    std::vector<CudaImage> images;
    for (int64_t i = 0; i < code->image_count; ++i)
      images.push_back({code->images[i].architecture,
                        code->images[i].kind == DYNA_IMAGE_PTX,
                        code->images[i].bytes});
    if (code->function_count > 0 && !chooseImage(images, capability))
      return "has no code here";
  }
  return driver.version < oldestDriver(program) ? "needs a newer driver"
                                                : "runs this program";
}

/// Returns one line for each device of the driver.
std::string devicesText(const cuda::Driver &driver,
                        const dyna_program &program) {
  std::string text;
  for (int number = 0; number < driver.devices; ++number) {
    cuda::Ordinal ordinal = 0;
    char name[256] = "";
    int major = 0, minor = 0;
    size_t bytes = 0;
    using namespace cuda;
    bool isKnown =
        driver.device(&ordinal, number) == kSuccess &&
        driver.deviceName(name, sizeof(name), ordinal) == kSuccess &&
        driver.deviceAttribute(&major, kCapabilityMajor, ordinal) == kSuccess &&
        driver.deviceAttribute(&minor, kCapabilityMinor, ordinal) == kSuccess &&
        driver.deviceMemory(&bytes, ordinal) == kSuccess;
    text += isKnown
                ? formatText("  device %d: %s, sm_%d, %s: %s\n", number,
                             printable(name), 10 * major + minor,
                             formatBytes(static_cast<int64_t>(bytes)),
                             verdict(driver, program, 10 * major + minor))
                : formatText("  device %d: says nothing of itself\n", number);
  }
  return text;
}

std::string blasText() {
  auto blas = cuda::Blas::open();
  return blas.isOk() ? formatText("library: cuBLASLt %s (%s)",
                                  blas->versionText(), printable(blas->path))
                     : "no cuBLASLt, products by own kernels: " +
                           blas.status().message();
}

std::string dnnText() {
  auto cudnn = cuda::Cudnn::open();
  return cudnn.isOk()
             ? formatText("library: cuDNN %s (%s), for --attention=cudnn",
                          cudnn->versionText(),
                          printable(cudnn->library.path()))
             : "no cuDNN, attention by own kernels alone: " +
                   cudnn.status().message();
}

std::string describe(const dyna_program &program) {
  std::string text = "cuda\n  kernels for: ";
  text += program.device_code ? describeImages(*program.device_code) : "none";
  if (int64_t oldest = oldestDriver(program))
    text +=
        formatText(" (toolkit of CUDA %d, for drivers of CUDA %s or newer)",
                   oldest / 1000, cuda::versionText(static_cast<int>(oldest)));
  auto driver = cuda::Driver::open();
  text += "\n  ";
  text += driver.isOk() ? formatText("driver: CUDA %s (%s)",
                                     cuda::versionText(driver->version),
                                     printable(driver->path))
                        : driver.status().message();
  text += "\n  " + blasText() + "\n  " + dnnText() + "\n";
  return driver.isOk() ? text + devicesText(*driver, program) : text;
}

} // namespace

const DeviceKind dyna_device_kind = {
    "cuda", "h100", true, 1, checkFlags, open, timeAlgorithms, describe};

} // namespace dyna
