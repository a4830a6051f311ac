//===- DriverModules.cpp - Modules and launches of it -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/DriverState.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

using namespace dyna::standins;

DYNA_STANDIN_EXPORT Result cuModuleLoadDataEx(Module *module, const void *image,
                                              unsigned count, int32_t *options,
                                              void **values) {
  return inContext([&](CUctx_st &context) -> Result {
    const auto *table = static_cast<const dyna_emulated_image *>(image);
    bool isTable =
        strcmp(table->magic, DYNA_EMULATED_MAGIC) == 0 && // others are shorter
        table->byte_size == sizeof(dyna_emulated_image);
    if (!isTable) {
      // Of PTX the first line is "read", for a log.
      size_t bytes = 0;
      for (unsigned i = 0; i < count; ++i)
        if (options[i] == kJitErrorLogBytes)
          bytes = reinterpret_cast<size_t>(values[i]);
      for (unsigned i = 0; i < count && bytes > 0; ++i)
        if (options[i] == kJitErrorLog)
          snprintf(static_cast<char *>(values[i]), bytes,
                   "line 1: the stand-in knows no PTX\nand so on\n");
      return count > 0 ? kInvalidPtx : kInvalidImage;
    }
    *module = new CUmod_st{table, {}};
    context.modules.insert(*module);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuModuleUnload(Module module) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.modules.count(module) == 0)
      return kInvalidHandle;
    if (!context.streams.finish())
      endProcess("cuModuleUnload");
    context.modules.erase(module);
    delete module;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuModuleGetFunction(Function *function,
                                               Module module,
                                               const char *name) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.modules.count(module) == 0)
      return kInvalidHandle;
    const dyna_emulated_image &image = *module->image;
    for (int64_t i = 0; i < image.count; ++i)
      if (strcmp(image.kernels[i].name, name) == 0) {
        module->functions.push_back(
            std::make_unique<CUfunc_st>(CUfunc_st{&image, &image.kernels[i]}));
        *function = module->functions.back().get();
        return kSuccess;
      }
    return kNotFound;
  });
}

DYNA_STANDIN_EXPORT Result cuFuncSetAttribute(Function function,
                                              int32_t attribute, int value) {
  return inContext([=](CUctx_st &) -> Result {
    if (attribute == kSharedCarveout)
      return value >= -1 && value <= 100 ? kSuccess : kInvalidValue;
    if (attribute != kMaxDynamicShared || value < 0 || value > kMaxSharedBytes)
      return kInvalidValue;
    function->maxDynamicShared = value;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuLaunchKernel(Function function, unsigned gridX,
                                          unsigned gridY, unsigned gridZ,
                                          unsigned blockX, unsigned blockY,
                                          unsigned blockZ, unsigned shared,
                                          StreamHandle stream, void **params,
                                          void **extra) {
  return inContext([&](CUctx_st &context) -> Result {
    // One struct of arguments, and one dimension, are all that is emulated.
    if (params || !extra || gridX == 0 || gridY != 1 || gridZ != 1 ||
        blockX == 0 || blockX > DYNA_EMULATED_MAX_BLOCK || blockY != 1 ||
        blockZ != 1 ||
        shared > static_cast<unsigned>(function->maxDynamicShared))
      return kInvalidValue;
    const char *data = nullptr;
    size_t bytes = 0;
    for (; *extra != kLaunchEnd; extra += 2) {
      if (*extra == kLaunchBuffer)
        data = static_cast<const char *>(extra[1]);
      else if (*extra == kLaunchBufferBytes)
        bytes = *static_cast<const size_t *>(extra[1]);
      else
        return kInvalidValue;
    }
    const dyna_emulated_entry &entry = *function->entry;
    if (!data || static_cast<int64_t>(bytes) != entry.argument_bytes)
      return kInvalidValue;
    // The driver copies arguments when it is called; so that the kernel may
    // have any alignment, into whole words.
    auto arguments = std::make_shared<std::vector<std::max_align_t>>(
        bytes / sizeof(std::max_align_t) + 1);
    memcpy(arguments->data(), data, bytes);
    auto run = [&context, arguments, image = function->image, entry, gridX,
                blockX, shared]() -> Result {
      dyna_emulated_launch launch = {entry.name,
                                     entry.kernel,
                                     arguments->data(),
                                     static_cast<int32_t>(gridX),
                                     static_cast<int32_t>(blockX),
                                     context.streams.random().next(),
                                     shared};
      char message[512] = "";
      context.memory.open();
      int32_t failed = image->run(&launch, message, sizeof(message));
      context.memory.close();
      if (failed)
        machine().failure = message;
      else if (int64_t bytes = context.memory.overwritten(); bytes >= 0) {
        machine().failure = "kernel " + std::string(entry.name) +
                            " wrote behind an allocation of " +
                            std::to_string(bytes) + " bytes";
        failed = 1;
      }
      return failed ? kLaunchFailed : kSuccess;
    };
    return give(context, stream, {DYNA_STANDIN_KERNEL, entry.name}, run);
  });
}
