//===- MemoryNeed.cpp - Adds up the memory that a run needs ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/MemoryNeed.h"

#include "runtime/base/text/Text.h"
#include "runtime/executor/rank/RankMachine.h"
#include "runtime/plan/graph/PersistentLayout.h"

#include <algorithm>

namespace dyna {
namespace {

/// Bytes of a token in host memory: token and target in the sample; token,
/// target, row's sample and position in the staged micro-batch.
constexpr double bytesPerToken = 2 * 4 + 2 * 4 + 2 * 8;
/// Bytes of a sample besides its tokens. They are the sample with its two
/// allocations in a growing vector, the planner's order and bins, the plan's
/// segment and the staged segment.
constexpr double bytesPerSample = 260;
/// Bytes of an instruction in the plan, in the planner, the verifier and the
/// executor.
constexpr double bytesPerInstruction = 300;
/// Instructions of a layer: FORWARD, RECOMPUTE, BACKWARD in two halves and
/// FREE. A micro-batch has one LOAD more.
constexpr double instructionsPerLayer = 5;
/// Bytes of code that the matrix library generates, of its buffers, and of the
/// heap's overhead.
constexpr int64_t libraryBytes = int64_t(32) << 20;
/// Lower bound of the filled part of a bin, found with real lengths.
constexpr double binFill = 0.75;

/// Returns the advice for a micro-batch that does not fit. The number in flight
/// does not matter here: it is lowered automatically.
std::string smallerMicroBatches(const TrainOptions &options) {
  std::string remedy = "lower --tokens-per-micro-batch";
  // These already recompute everything before they report too little memory.
  if (options.recompute != "full" && options.recompute != "auto")
    remedy += " or choose --recompute full";
  return remedy;
}

std::string remedyFor(const MemoryNeed &need, const TrainOptions &options) {
  if (StatusOr<int64_t> limit = parseBytes(options.memoryLimit);
      !options.memoryLimit.empty() && limit.isOk() && *limit <= need.program)
    return "raise it, as the program alone takes " + formatBytes(need.program);
  if (need.data > std::max({need.persistent, need.dynamic, need.batches}))
    return "give the data in fewer, larger documents, or as Megatron-LM .idx "
           "and .bin, whose tables are smallest";
  if (need.batches > std::max(need.persistent, need.dynamic))
    return "lower --tokens-per-batch";
  if (need.isLowered)
    return "lower --rank-memory";
  if (need.dynamic > need.persistent || !options.memoryLimit.empty())
    return smallerMicroBatches(options);
  return "train a smaller model or use a larger machine";
}

Status doesNotFit(const MemoryNeed &need, const TrainOptions &options,
                  const std::string &limit, const std::string &enough = "") {
  return Status::resourceExhausted(formatText(
      "the run needs %s (%s for parameters and their state, %s for "
      "micro-batches of %d tokens, %s for mini-batches of %d tokens, %s "
      "for the tables of the data, %s for saving and loading, %s for the "
      "program "
      "itself), but %s: %s%s",
      formatBytes(need.total()), formatBytes(need.persistent),
      formatBytes(need.dynamic), options.chosenMicroBatch,
      formatBytes(need.batches), options.tokensPerBatch, formatBytes(need.data),
      formatBytes(need.files), formatBytes(need.program), limit,
      remedyFor(need, options), enough));
}

} // namespace

int64_t estimateBatchBytes(const Model &model, const PlanOptions &options,
                           int64_t tokens, double meanTokens) {
  double count = static_cast<double>(tokens);
  double samples = count / std::max(meanTokens, 1.0);
  double microBatches =
      count / (binFill * static_cast<double>(options.maxTokensPerMicroBatch)) +
      1;
  double instructions =
      microBatches * (instructionsPerLayer * model.layers() + 1);
  return static_cast<int64_t>(bytesPerToken * count + bytesPerSample * samples +
                              bytesPerInstruction * instructions);
}

int64_t programBytes(int64_t resident) {
  constexpr int64_t step = int64_t(16) << 20;
  // Allows for stacks, code that is used later, and memory that libraries
  // allocate.
  constexpr int64_t later = int64_t(8) << 20;
  return std::max((resident + later + step - 1) / step, int64_t(2)) * step;
}

Status checkMemoryNeed(const MemoryNeed &need, const TrainOptions &options,
                       int64_t available) {
  const bool isThere = available < 0 || need.toTake() <= available;
  if (!options.memoryLimit.empty()) {
    DYNA_ASSIGN_OR_RETURN(int64_t limit, parseBytes(options.memoryLimit));
    // The message gives exact bytes, because printed sizes are rounded.
    std::string enough;
    if (need.isAll && isThere)
      enough = formatText("; --memory-limit %d is enough", need.total());
    if (need.total() > limit)
      return doesNotFit(need, options,
                        "--memory-limit is " + formatBytes(limit), enough);
  }
  if (!isThere)
    return doesNotFit(need, options,
                      "this machine has only " + formatBytes(available) +
                          " available");
  return Status::ok();
}

int64_t stagedOnDevice(const Model &model, int64_t tokens, double meanTokens) {
  Load load;
  load.queries = load.keys = tokens;
  load.segments = static_cast<int64_t>(static_cast<double>(tokens) /
                                       std::max(meanTokens, 1.0));
  const int64_t bytes = batchLayout(load, model.batchTables()).bytes +
                        tokens * static_cast<int64_t>(sizeof(int32_t));
  // A new staging block is as large as all earlier ones together, so up to
  // twice the bytes are allocated.
  return kStepsInFlight * 2 * bytes;
}

int64_t DeviceMemory::room() const {
  return free < 0 ? -1
                  : std::max<int64_t>(free - std::max(free / 32, staged), 0);
}

/// Returns advice for a run that does not fit the device.
static std::string remedyOnDevice(int64_t persistent, int64_t dynamic,
                                  const TrainOptions &options,
                                  const DeviceMemory &memory) {
  const int64_t most = DeviceMemory{memory.free, 0}.room();
  if (persistent + memory.leastDynamic > most)
    return "train a smaller model or use a device with more memory";
  std::string smaller = options.rankMemory.empty()
                            ? smallerMicroBatches(options)
                            : "lower --rank-memory";
  if (options.rankMemory.empty() && memory.isSizeOpen &&
      persistent + memory.leastDynamic <= memory.room())
    smaller = formatText("take smaller micro-batches by --rank-memory %d, %s",
                         memory.room(), smaller);
  const std::string less =
      formatText("lower --tokens-per-batch: of the device %s are kept for "
                 "steps of %d tokens on their way there",
                 formatBytes(memory.staged), options.tokensPerBatch);
  if (persistent + dynamic <= most)
    return less;
  return persistent > memory.room() ? smaller + ", and " + less : smaller;
}

Status checkDeviceNeed(int64_t persistent, int64_t dynamic,
                       const TrainOptions &options,
                       const DeviceMemory &memory) {
  const int64_t room = memory.room();
  const int64_t missing = persistent + dynamic - room;
  if (room < 0 || missing <= 0)
    return Status::ok();
  return Status::resourceExhausted(formatText(
      "the run needs %s of device memory (%s for parameters and their state, "
      "%s for micro-batches of %d tokens%s), but the device has %s free for "
      "it: %s are missing; %s",
      formatBytes(persistent + dynamic), formatBytes(persistent),
      formatBytes(dynamic), options.chosenMicroBatch,
      memory.leastDynamic > 0 ? formatText(", %s for those of one",
                                           formatBytes(memory.leastDynamic))
                              : "",
      formatBytes(room), formatBytes(missing),
      remedyOnDevice(persistent, dynamic, options, memory)));
}

Status checkAddressNeed(const MemoryNeed &need, int64_t threads,
                        int64_t addressesOfThread, int64_t available) {
  int64_t stacks = threads * addressesOfThread;
  int64_t total = need.toTake() + stacks + libraryBytes;
  if (available < 0 || total <= available)
    return Status::ok();
  return Status::resourceExhausted(formatText(
      "the run needs %s of addresses (%s for its memory, %s for %d threads "
      "more, %s for libraries), but the limits of this process leave %s: raise "
      "them (ulimit -v, ulimit -d), or lower %s",
      formatBytes(total), formatBytes(need.toTake()), formatBytes(stacks),
      threads, formatBytes(libraryBytes), formatBytes(available),
      stacks > need.toTake() ? "--threads" : "--tokens-per-micro-batch"));
}

} // namespace dyna
