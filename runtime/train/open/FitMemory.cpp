//===- FitMemory.cpp - Fits a run into the memory that is free ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/FitMemory.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/open/CpuFeatures.h"
#include "runtime/train/open/MemoryNeed.h"
#include "runtime/train/session/Agreement.h"
#include "runtime/train/session/Devices.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace dyna {
namespace {

/// Returns the number of threads that this process starts: those of ranks,
/// their workers, and those that plan ahead.
int64_t startedThreads(const TrainOptions &options, int64_t ranks,
                       int threads) {
  int64_t team = threads > 0 ? threads : availableCores();
  // A run that shares plans has one more thread, which repeats its mark
  // (RunBeacon.h).
  return ranks * team - 1 + std::min(options.planAhead, options.planThreads) +
         (options.store.empty() ? 0 : 1);
}

/// Returns the memory of a device that has its own and runs late.
DeviceMemory memoryThere(const Session &session) {
  const int64_t staged = stagedOnDevice(
      *session.model, session.options.tokensPerBatch,
      session.data ? session.data->statistics().meanTokens() : 1);
  return {session.opened->freeBytes(), session.opened->runsLate() ? staged : 0};
}

/// Returns the bytes for the arenas of this process: of the device, if it has
/// its own memory. Otherwise they are this machine's, divided by the number of
/// processes on it. -1 if not known.
StatusOr<int64_t> freeBytes(const Session &session) {
  if (session.opened)
    return memoryThere(session).room();
  const TrainOptions &options = session.options;
  int64_t room = availableMemory();
  if (room >= 0)
    room /= launchedProcesses() > 1 ? launchedProcessesHere() : 1;
  if (!options.memoryLimit.empty()) {
    DYNA_ASSIGN_OR_RETURN(int64_t limit, parseBytes(options.memoryLimit));
    // The program counts toward --memory-limit, but its memory is no longer
    // free.
    limit = std::max<int64_t>(limit - session.programBytes, 0);
    room = room < 0 ? limit : std::min(room, limit);
  }
  return room;
}

/// Returns the need of host memory beside the arenas of ranks. It is an upper
/// estimate before the data are open.
MemoryNeed needBesideArenas(const Session &session) {
  // Data hardly ever have a shorter mean. Counting one token for each sample
  // would leave no room for large steps, and shorten samples without need.
  constexpr double shortSamples = 8;
  const TrainOptions &options = session.options;
  MemoryNeed need;
  need.data = session.dataBytes;
  need.files = session.fileBytes;
  need.program = session.programBytes;
  const int64_t running =
      session.opened && session.opened->runsLate() ? kStepsInFlight : 1;
  need.batches =
      (running + options.planAhead) *
      estimateBatchBytes(*session.model, session.home().options,
                         options.tokensPerBatch,
                         session.data ? session.data->statistics().meanTokens()
                                      : shortSamples);
  return need;
}

/// Refuses --deterministic if free memory limits plans, because it differs from
/// run to run.
Status refuseIfDeterministic(const TrainOptions &options) {
  return options.deterministic
             ? Status::invalidArgument(
                   "--deterministic: the memory that happens to be free limits "
                   "what is planned here; say by --rank-memory what may be "
                   "taken")
             : Status::ok();
}

/// Adds up the bytes of the ranks of this process. `bytes` ends with the last rank that
/// has a place.
int64_t sumOf(const std::vector<int> &local,
              const std::vector<int64_t> &bytes) {
  int64_t sum = 0;
  for (int rank : local)
    sum += rank < static_cast<int>(bytes.size()) ? bytes[rank] : 0;
  return sum;
}

constexpr int64_t kNotLimited = std::numeric_limits<int64_t>::max();

/// Returns the bytes for the arenas of this process, beside `need`.
StatusOr<int64_t> roomForRanks(const Session &session, const MemoryNeed &need,
                               const std::vector<int> &local) {
  if (local.empty()) // other processes run the plans, in unknown memory
    return kNotLimited;
  DYNA_ASSIGN_OR_RETURN(int64_t room, freeBytes(session));
  if (room < 0)
    return kNotLimited;
  return session.opened ? room : std::max<int64_t>(room - need.toTake(), 0);
}

/// Returns the bytes of a rank's arena. With --rank-memory that is its value.
/// It is -1, without limit, if the room of all machines of the job is at least
/// `most`, which plans can use. Otherwise it is an equal share of the room.
StatusOr<int64_t> chooseRankBytes(const TrainOptions &options, int64_t room,
                                  int64_t most, size_t localRanks,
                                  HostExchange *processes) {
  if (!options.rankMemory.empty())
    return parseBytes(options.rankMemory);
  if (localRanks == 0)
    return -1;
  int64_t share =
      most <= room ? kNotLimited : room / static_cast<int64_t>(localRanks);
  // All processes must make the same plans, for all ranks.
  if (processes) {
    DYNA_ASSIGN_OR_RETURN(share, agreeOnLeast(*processes, share));
  }
  return share == kNotLimited ? -1 : share;
}

/// Sizes regions for arenas of so many bytes.
using SizeRegions = std::function<StatusOr<StepRegions>(int64_t)>;

/// Sizes regions in arenas of `rankBytes`. If a rank needs more than that at
/// least, the others get less, so that all arenas of this process fit `room`
/// together if possible.
StatusOr<StepRegions> fitRegions(const SizeRegions &size,
                                 const std::vector<int> &local, int64_t room,
                                 int64_t rankBytes) {
  DYNA_ASSIGN_OR_RETURN(StepRegions regions, size(rankBytes));
  // With a single rank here there is no other rank whose share could shrink.
  if (local.size() < 2 || sumOf(local, regions.bytes) <= room)
    return regions;
  DYNA_ASSIGN_OR_RETURN(StepRegions best, size(0));
  if (sumOf(local, best.bytes) > room)
    return best;
  int64_t low = 0, high = rankBytes;
  const int64_t close = std::max<int64_t>(rankBytes / 256, 1);
  while (high - low > close) {
    const int64_t middle = low + (high - low) / 2;
    DYNA_ASSIGN_OR_RETURN(regions, size(middle));
    const bool fits = sumOf(local, regions.bytes) <= room;
    (fits ? low : high) = middle;
    if (fits)
      best = std::move(regions);
  }
  return best;
}

/// Returns the bytes of the region of home's first rank for the smallest
/// micro-batches.
StatusOr<int64_t> leastDynamic(const Session &session, bool training) {
  PlanOptions options = session.home().options;
  options.maxTokensPerMicroBatch = options.longestSample = 1;
  options.chooseRecompute = false;
  options.recompute = {plan::RECOMPUTE_FULL};
  DYNA_ASSIGN_OR_RETURN(
      auto bytes, session.home().planner->leastDynamicBytes(options, training));
  return bytes.front();
}

/// Fails if arenas of `regions`, with `held` bytes more, do not fit the free
/// memory beside `need`.
Status checkRegions(const Session &session, MemoryNeed need, int64_t held,
                    int64_t regions, bool training, int64_t moreThreads) {
  const TrainOptions &options = session.options;
  if (session.opened) {
    DeviceMemory there = memoryThere(session);
    if (there.room() >= 0 && held + regions > there.room()) {
      DYNA_ASSIGN_OR_RETURN(there.leastDynamic,
                            leastDynamic(session, training));
      there.isSizeOpen = session.home().isSizeOpen;
    }
    DYNA_RETURN_IF_ERROR(checkDeviceNeed(held, regions, options, there));
  } else {
    need.persistent = held;
    need.dynamic = regions;
  }
  DYNA_RETURN_IF_ERROR(checkMemoryNeed(need, options, availableMemory()));
  // The tables of the data are allocated already.
  need.data = 0;
  return checkAddressNeed(need, moreThreads, addressesOfThread(),
                          availableAddresses());
}

} // namespace

int64_t heldAtHome(const Session &session, int rank, bool training) {
  return rank < session.home().graph->ranks()
             ? session.graphs->homeBytes(rank, training)
             : 0;
}

std::vector<int64_t> dynamicBytes(const Session &session,
                                  const StepRegions &regions, bool training) {
  std::vector<int64_t> dynamic = regions.bytes;
  dynamic.resize(session.worldRanks(), 0);
  for (int rank = 0; rank < session.worldRanks(); ++rank) {
    int64_t least = session.arenaBytes;
    if (!session.arenasAtLeast.empty())
      least = std::max(least, session.arenasAtLeast[rank]);
    const int64_t held = heldAtHome(session, rank, training);
    dynamic[rank] = std::max(dynamic[rank],
                             least - ArenaParts::atStart(held, 0).arenaBytes);
  }
  return dynamic;
}

Status limitSamples(Session &session, bool training, bool runsHere) {
  const TrainOptions &options = session.options;
  // With several graphs, use the one with the longest samples.
  const StepGraphs &graphs = *session.graphs;
  const PlannedGraph &graph = graphs.ofLongest();
  const PlanOptions plan = graphs.optionsOf(graph);
  DYNA_ASSIGN_OR_RETURN(const int64_t most,
                        longestSampleOf(graphs, graph, training, -1));
  session.sampleLimit = most;
  const bool isSaid = !options.rankMemory.empty();
  if (most <= plan.maxTokensPerMicroBatch || (!isSaid && !runsHere))
    return Status::ok();
  int64_t rankBytes = 0;
  if (isSaid) {
    DYNA_ASSIGN_OR_RETURN(rankBytes, parseBytes(options.rankMemory));
  } else {
    DYNA_ASSIGN_OR_RETURN(int64_t room, freeBytes(session));
    if (room < 0)
      return Status::ok();
    if (!session.opened)
      room = std::max<int64_t>(room - needBesideArenas(session).toTake(), 0);
    int64_t held = 0;
    for (int rank = 0; rank < graph.graph->ranks(); ++rank)
      held = std::max(held, graphs.heldBytes(rank, training));
    // Leave half of the rest for tables of data and for more micro-batches.
    room /= launchedProcesses() > 1 ? 1 : graph.graph->ranks();
    rankBytes = room - std::max<int64_t>(room - held, 0) / 2;
  }
  DYNA_ASSIGN_OR_RETURN(int64_t longest,
                        longestSampleOf(graphs, graph, training, rankBytes));
  if (longest < most && !isSaid) {
    // Free memory differs a little between processes and runs, so round the
    // length.
    int64_t rounded = plan.maxTokensPerMicroBatch;
    while (2 * rounded <= longest)
      rounded *= 2;
    longest = rounded;
    DYNA_RETURN_IF_ERROR(refuseIfDeterministic(options));
  }
  session.sampleLimit = longest;
  if (longest == most)
    return Status::ok();
  const std::string note = formatText(
      "samples have at most %d of the model's %d positions: alone in a "
      "micro-batch, longer ones do not fit %s of a rank%s",
      longest, most, formatBytes(rankBytes),
      isSaid ? " (--rank-memory)"
             : ", half of what is free; --rank-memory says what it may take");
  if (Status fits =
          plan.slices.check(plan.maxTokensPerMicroBatch,
                            std::max(plan.maxTokensPerMicroBatch, longest));
      plan.slices.any() && !fits.isOk())
    return Status::invalidArgument(fits.message() + "; " + note);
  session.notes.push_back(note);
  return Status::ok();
}

StatusOr<StepRegions> chooseRegions(Session &session,
                                    const std::vector<int> &local, int threads,
                                    bool training, HostExchange *processes) {
  const TrainOptions &options = session.options;
  MemoryNeed need = needBesideArenas(session);
  const StepGraphs &graphs = *session.graphs;
  int64_t held = 0;
  for (int rank : local)
    held += heldAtHome(session, rank, training);
  const bool isSaid = !options.rankMemory.empty();
  const SizeRegions atLeast = [&](int64_t rankBytes) {
    return sizeStepRegions(graphs, options.tokensPerBatch, training, rankBytes,
                           /*atLeast=*/true);
  };
  DYNA_ASSIGN_OR_RETURN(auto regions, atLeast(-1));
  DYNA_ASSIGN_OR_RETURN(int64_t room, roomForRanks(session, need, local));
  DYNA_ASSIGN_OR_RETURN(int64_t rankBytes,
                        chooseRankBytes(options, room,
                                        held + sumOf(local, regions.bytes),
                                        local.size(), processes));
  if (isSaid) {
    DYNA_ASSIGN_OR_RETURN(regions,
                          sizeStepRegions(graphs, options.tokensPerBatch,
                                          training, rankBytes, false));
  } else if (rankBytes >= 0) {
    DYNA_ASSIGN_OR_RETURN(regions,
                          fitRegions(atLeast, local, room - held, rankBytes));
  }
  if (regions.isLimited && !isSaid) {
    DYNA_RETURN_IF_ERROR(refuseIfDeterministic(options));
    session.notes.push_back(
        "the memory there is limits plans, which may so differ from run to "
        "run; --rank-memory says what a rank may take");
  }
  const int64_t bytes = sumOf(local, dynamicBytes(session, regions, training));
  if (isSaid && held + bytes > room) {
    DYNA_ASSIGN_OR_RETURN(const StepRegions least, atLeast(0));
    // If sizes of micro-batches may be chosen, less memory makes them smaller.
    need.isLowered =
        held + (session.home().isSizeOpen ? 0 : sumOf(local, least.bytes)) <
        room;
  }
  session.batchBytes = need.batches;
  DYNA_RETURN_IF_ERROR(checkRegions(
      session, need, held, bytes, training,
      startedThreads(options, static_cast<int64_t>(local.size()), threads)));
  return regions;
}

} // namespace dyna
