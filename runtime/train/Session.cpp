//===- Session.cpp - One run of a compiled binary -------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Session.h"

#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/CpuFeatures.h"
#include "runtime/executor/Program.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/plan/Text.h"
#include "runtime/train/MemoryNeed.h"
#include "runtime/train/Recompute.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dyna {
namespace {

/// Micro-batches of this size keep matrix products busy; larger ones only cost
/// memory.
constexpr int64_t defaultMicroBatch = 4096;

void chooseMicroBatch(const ManifestView &view, TrainOptions &options) {
  int64_t positions = view.manifest().facts().positions();
  if (options.tokensPerMicroBatch == 0)
    options.tokensPerMicroBatch =
        std::max(std::min(options.tokensPerBatch, defaultMicroBatch),
                 std::min(positions, defaultMicroBatch));
  // The model could take longer samples: a silent cut would be a surprise.
  if (positions > options.tokensPerMicroBatch)
    std::fprintf(stderr,
                 "note: samples have at most %lld of the model's %lld "
                 "positions, as they must fit a micro-batch; "
                 "--tokens-per-micro-batch allows more\n",
                 static_cast<long long>(options.tokensPerMicroBatch),
                 static_cast<long long>(positions));
}

HostOptions hostOptions(const TrainOptions &options,
                        const dyna_variant &variant) {
  HostOptions host;
  host.threads = static_cast<int>(options.threads);
  if (options.isa.empty())
    return host;
  // The kernels follow the instruction set that was asked for.
  if (variant.features & DYNA_FEATURE_AVX512)
    host.isa = HostIsa::Avx512;
  else if (variant.features & DYNA_FEATURE_AVX2)
    host.isa = HostIsa::Avx2;
  else
    host.isa = HostIsa::Baseline;
  return host;
}

Status openData(const ManifestView &view, Session &session) {
  const TrainOptions &options = session.options;
  DataOptions dataOptions;
  dataOptions.vocabulary = view.manifest().facts().vocabulary();
  dataOptions.seed = static_cast<uint64_t>(options.seed);
  StatusOr<DatasetPointer> data = openDataset(options.data, dataOptions);
  if (!data.isOk())
    return data.status();
  session.data = *data;
  if (!options.heldOut.empty()) {
    StatusOr<DatasetPointer> heldOut =
        openDataset(options.heldOut, dataOptions);
    if (!heldOut.isOk())
      return heldOut.status();
    session.heldOut = *heldOut;
  } else if (options.heldOutFraction > 0) {
    double share =
        options.heldOutFraction * static_cast<double>((*data)->size());
    auto parts = holdOut(*data, std::max<int64_t>(1, std::llround(share)),
                         static_cast<uint64_t>(options.seed));
    if (!parts.isOk())
      return parts.status();
    session.data = parts->first;
    session.heldOut = parts->second;
  }
  return Status::ok();
}

/// Mean tokens of a sample, from the first ones of the run.
StatusOr<double> meanSampleTokens(const Session &session) {
  constexpr int64_t enoughTokens = 1 << 16;
  BatchReader reader(session.data, session.batchOptions());
  StatusOr<MiniBatch> batch =
      reader.next(std::min(session.options.tokensPerBatch, enoughTokens));
  if (!batch.isOk())
    return batch.status();
  return static_cast<double>(batch->tokens) /
         static_cast<double>(std::max<size_t>(batch->samples.size(), 1));
}

/// Bytes of the dynamic region, if the run fits the memory there is.
StatusOr<int64_t> sizeDynamicRegion(const Session &session, bool training) {
  StatusOr<int64_t> dynamic =
      largestDynamicBytes(*session.view, session.planOptions, training);
  if (!dynamic.isOk())
    return dynamic;
  StatusOr<double> meanTokens = meanSampleTokens(session);
  if (!meanTokens.isOk())
    return meanTokens.status();
  MemoryNeed need;
  need.persistent = persistentLayout(*session.view, training).bytes;
  need.dynamic = *dynamic;
  need.batches =
      (1 + session.options.planAhead) *
      estimateBatchBytes(*session.view, session.planOptions,
                         session.options.tokensPerBatch, *meanTokens);
  DYNA_RETURN_IF_ERROR(
      checkMemoryNeed(need, session.options, availableMemory()));
  return dynamic;
}

} // namespace

int64_t Session::sampleLimit() const {
  int64_t positions = view->manifest().facts().positions();
  return positions > 0 ? std::min(positions, options.tokensPerMicroBatch)
                       : options.tokensPerMicroBatch;
}

BatchOptions Session::batchOptions() const {
  BatchOptions batch;
  batch.positions = sampleLimit();
  batch.longDocuments = *parseLongDocuments(options.longDocuments);
  batch.seed = static_cast<uint64_t>(options.seed);
  return batch;
}

std::vector<int64_t> sampleLengths(const MiniBatch &miniBatch) {
  std::vector<int64_t> lengths;
  for (const Sample &sample : miniBatch.samples)
    lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
  return lengths;
}

Status openSession(const dyna_program &program, const ManifestView &view,
                   const TrainOptions &options, bool training,
                   Session &session) {
  session.options = options;
  session.view = &view;
  chooseMicroBatch(view, session.options);
  auto variant = chooseVariant(program, options.isa, cpuFeatures());
  if (!variant.isOk())
    return variant.status();
  session.variant = *variant;
  auto modes = parseRecompute(options.recompute, view.layers());
  if (!modes.isOk())
    return modes.status();
  session.planOptions.recompute = *modes;
  session.planOptions.maxTokensPerMicroBatch =
      session.options.tokensPerMicroBatch;
  session.planOptions.inFlight = static_cast<int>(options.inFlight);
  session.planOptions.splitBackward = options.splitBackward;
  DYNA_RETURN_IF_ERROR(openData(view, session));
  StatusOr<int64_t> dynamic = sizeDynamicRegion(session, training);
  if (!dynamic.isOk())
    return dynamic.status();
  session.planOptions.dynamicLimit = *dynamic;
  auto device = HostDevice::create(hostOptions(options, **variant));
  if (!device.isOk())
    return device.status();
  session.device = std::move(*device);
  ExecutorOptions executorOptions;
  executorOptions.seed = static_cast<uint64_t>(options.seed);
  executorOptions.dynamicBytes = *dynamic;
  executorOptions.training = training;
  executorOptions.checkMemory = options.checkMemory;
  if (!options.trace.empty())
    executorOptions.trace = &session.trace;
  auto executor =
      Executor::create(view, **variant, *session.device, executorOptions);
  if (!executor.isOk())
    return executor.status();
  session.executor = std::move(*executor);
  return Status::ok();
}

} // namespace dyna
