//===- OpenSession.cpp - Setting up a run ---------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/OpenSession.h"

#include "runtime/base/Guard.h"
#include "runtime/base/Text.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/CpuFeatures.h"
#include "runtime/executor/OpenProgram.h"
#include "runtime/planner/CutMiniBatch.h"
#include "runtime/planner/RankMemory.h"
#include "runtime/planner/StepRegions.h"
#include "runtime/train/Agreement.h"
#include "runtime/train/Checkpointing.h"
#include "runtime/train/ChooseGraphs.h"
#include "runtime/train/Devices.h"
#include "runtime/train/MemoryNeed.h"
#include "runtime/train/NamedStrategies.h"
#include "runtime/train/PlanFiles.h"
#include "runtime/train/Progress.h"
#include "runtime/train/SearchRanges.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

namespace dyna {
namespace {

/// Documents to train on and to hold out; null: none.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
openDocuments(const Model &model, const TrainOptions &options) {
  DataOptions dataOptions;
  dataOptions.vocabulary = model.manifest().facts().vocabulary();
  dataOptions.seed = static_cast<uint64_t>(options.seed);
  DYNA_ASSIGN_OR_RETURN(DatasetPointer data,
                        openDataset(options.data, dataOptions));
  if (!options.heldOut.empty()) {
    DYNA_ASSIGN_OR_RETURN(DatasetPointer heldOut,
                          openDataset(options.heldOut, dataOptions));
    return std::make_pair(data, heldOut);
  }
  if (options.heldOutFraction > 0) {
    double share = options.heldOutFraction * static_cast<double>(data->size());
    return holdOut(data, std::max<int64_t>(1, std::llround(share)),
                   static_cast<uint64_t>(options.seed));
  }
  return std::make_pair(data, DatasetPointer());
}

/// What the data take, with the tables of their samples.
int64_t dataBytes(const TrainOptions &options, const DatasetPointer &data,
                  const DatasetPointer &heldOut) {
  int64_t bytes = data->heldBytes() + SampleIndex::heldBytes(data->size());
  if (heldOut)
    bytes += SampleIndex::heldBytes(heldOut->size());
  if (heldOut && !options.heldOut.empty()) // else a part of the same files
    bytes += heldOut->heldBytes();
  return bytes;
}

Status openData(const Model &model, Session &session) {
  if (!session.documents) {
    DYNA_ASSIGN_OR_RETURN(session.documents,
                          openDocuments(model, session.options));
  }
  const auto documents = *std::move(session.documents);
  session.documents.reset();
  MemoryNeed need;
  need.isAll = false;
  need.data = dataBytes(session.options, documents.first, documents.second);
  session.dataBytes = need.data;
  DYNA_RETURN_IF_ERROR(
      checkMemoryNeed(need, session.options, availableMemory()));
  SampleOptions samples;
  samples.limit = session.sampleLimit;
  if (session.sampleLimit <
      longestSample(model, graphOfLongest(session).options))
    samples.limitedBy = "tokens in the memory of a rank (--rank-memory)";
  else if (model.manifest().facts().positions() == 0)
    samples.limitedBy = "tokens (--tokens-per-micro-batch)";
  samples.longDocuments = *parseLongDocuments(session.options.longDocuments);
  for (auto [documents, index] : {std::pair(&documents.first, &session.data),
                                  {&documents.second, &session.heldOut}}) {
    if (!*documents)
      continue;
    DYNA_ASSIGN_OR_RETURN(SampleIndexPointer made,
                          SampleIndex::create(*documents, samples));
    *index = made;
  }
  // Memory is kept for the samples that there are.
  int64_t longest = 0;
  for (const SampleIndexPointer &index : {session.data, session.heldOut})
    if (index)
      longest = std::max(longest, index->statistics().longestSample());
  return setLongestSample(session, longest);
}

/// What was compiled stands for what nobody says.
Status takeCompiledRanges(Session &session) {
  TrainOptions &options = session.options;
  const plan::Manifest &manifest = session.model->manifest();
  for (const std::string *said :
       {&options.strategy, &options.ranges, &options.profile})
    if (!said->empty())
      return Status::ok();
  if (manifest.ranges().empty() || manifest.strategies_size() == 0)
    return Status::ok();
  const bool areRedefined = !options.strategies.empty();
  DYNA_ASSIGN_OR_RETURN(Strategy compiled,
                        parseStrategy(manifest.strategies(0)));
  if (!areRedefined && options.ranks > 0 && options.ranks != compiled.ranks())
    return Status::invalidArgument(formatText(
        "--ranks is %d, but this program was compiled with strategies of %d "
        "ranks and ranges of lengths for them (--describe shows both): leave "
        "out --ranks, or give --strategy or --ranges search for %d",
        options.ranks, compiled.ranks(), options.ranks));
  // With the strategies, so that any other binary can resume the run.
  // Those given now stand for compiled ones of the same names.
  DYNA_ASSIGN_OR_RETURN(auto strategies,
                        namedStrategies(*session.model, options.strategies));
  options.strategies = describeStrategies(strategies);
  options.ranges = manifest.ranges();
  session.notes.push_back(formatText(
      "samples go to strategies by their lengths, as this program was compiled "
      "for: --ranges \"%s\"; --strategy gives all to one",
      options.ranges));
  return Status::ok();
}

/// What --ranges search finds stands for it from now on.
Status findRanges(Session &session) {
  TrainOptions &options = session.options;
  DYNA_RETURN_IF_ERROR(takeCompiledRanges(session));
  if (options.ranges != "search")
    return Status::ok();
  if (!options.strategies.empty())
    return Status::invalidArgument(
        "--ranges search and --strategies do not go together: strategies are "
        "what it looks for");
  DYNA_ASSIGN_OR_RETURN(int ranks, searchedRanks(*session.model, options));
  DYNA_ASSIGN_OR_RETURN(session.documents,
                        openDocuments(*session.model, options));
  SampleOptions samples;
  samples.limit = session.model->manifest().facts().positions();
  samples.longDocuments = *parseLongDocuments(options.longDocuments);
  DYNA_ASSIGN_OR_RETURN(SampleIndexPointer index,
                        SampleIndex::create(session.documents->first, samples));
  DYNA_ASSIGN_OR_RETURN(
      FoundRanges found,
      searchRanges(*session.model, options, index->statistics(), ranks));
  options.strategies = found.strategies;
  options.ranges = found.ranges;
  session.notes = found.notes;
  return Status::ok();
}

/// Of this process besides the one that starts them: those of ranks, their
/// workers, and those that plan ahead.
int64_t startedThreads(const TrainOptions &options, int64_t ranks,
                       int threads) {
  int64_t team = threads > 0 ? threads : availableCores();
  return ranks * team - 1 + std::min(options.planAhead, options.planThreads);
}

/// Of a device with memory of its own that runs late.
DeviceMemory memoryThere(const Session &session) {
  const int64_t staged = stagedOnDevice(
      *session.model, session.options.tokensPerBatch,
      session.data ? session.data->statistics().meanTokens() : 1);
  return {session.opened->freeBytes(), session.opened->runsLate() ? staged : 0};
}

/// For arenas of this process: of the device, if it has memory of its own; else of
/// this machine, or of one of as many processes on it; -1: not known.
StatusOr<int64_t> freeBytes(const Session &session) {
  if (session.opened)
    return memoryThere(session).room();
  const TrainOptions &options = session.options;
  int64_t room = availableMemory();
  if (room >= 0)
    room /= launchedProcesses() > 1 ? launchedProcessesHere() : 1;
  if (!options.memoryLimit.empty()) {
    DYNA_ASSIGN_OR_RETURN(int64_t limit, parseBytes(options.memoryLimit));
    room = room < 0 ? limit : std::min(room, limit);
  }
  return room;
}

/// What a run takes of the host beside the arenas of its ranks; more rather than
/// less before its data are open.
MemoryNeed needBesideArenas(const Session &session) {
  // Hardly any data have shorter ones in the mean; with one token a sample there
  // would be no room left for large steps, and samples would be shortened for it.
  constexpr double shortSamples = 8;
  const TrainOptions &options = session.options;
  MemoryNeed need;
  need.data = session.dataBytes;
  need.files = session.fileBytes;
  const int64_t running =
      session.opened && session.opened->runsLate() ? kStepsInFlight : 1;
  need.batches =
      (running + options.planAhead) *
      estimateBatchBytes(*session.model, session.home.options,
                         options.tokensPerBatch,
                         session.data ? session.data->statistics().meanTokens()
                                      : shortSamples);
  return need;
}

/// What is free differs from run to run, and plans that it limits with it.
Status refuseIfDeterministic(const TrainOptions &options) {
  return options.deterministic
             ? Status::invalidArgument(
                   "--deterministic: the memory that happens to be free limits "
                   "what is planned here; say by --rank-memory what may be "
                   "taken")
             : Status::ok();
}

/// A sample may have as many tokens as the model has positions, as long as it
/// fits a rank's memory alone in its micro-batch; in any case as many as a
/// micro-batch of several has.
Status limitSamples(Session &session, bool training, bool runsHere) {
  const TrainOptions &options = session.options;
  // Of several graphs, the one that has the longest samples.
  PlannedGraph &graph = graphOfLongest(session);
  const StepGraphs graphs = session.stepGraphs();
  const PlanOptions plan = graphs.optionsOf(graph);
  const int64_t most = longestSample(*session.model, plan);
  session.sampleLimit = most;
  const bool isSaid = !options.rankMemory.empty();
  if (most <= plan.maxTokensPerMicroBatch || (!isSaid && !runsHere))
    return Status::ok();
  const Persistent persistent = graphs.persistentOf(graph, training);
  const int64_t beside = graphs.heldBeside(graph, training);
  int64_t rankBytes = 0;
  if (isSaid) {
    DYNA_ASSIGN_OR_RETURN(rankBytes, parseBytes(options.rankMemory));
  } else {
    DYNA_ASSIGN_OR_RETURN(int64_t room, freeBytes(session));
    if (room < 0)
      return Status::ok();
    if (!session.opened)
      room = std::max<int64_t>(room - needBesideArenas(session).total(), 0);
    int64_t held = 0;
    for (int rank = 0; rank < graph.graph->ranks(); ++rank)
      held = std::max(held, graphs.heldBytes(rank, training));
    // The other half of what is left is for tables of data and for more
    // micro-batches.
    room /= launchedProcesses() > 1 ? 1 : graph.graph->ranks();
    rankBytes = room - std::max<int64_t>(room - held, 0) / 2;
  }
  DYNA_ASSIGN_OR_RETURN(int64_t longest,
                        longestSampleWithin(*graph.planner, plan, persistent,
                                            rankBytes - beside));
  if (longest < most && !isSaid) {
    // What is free differs a little from process to process and run to run.
    int64_t rounded = plan.maxTokensPerMicroBatch;
    while (2 * rounded <= longest)
      rounded *= 2;
    longest = rounded;
    DYNA_RETURN_IF_ERROR(refuseIfDeterministic(options));
  }
  session.sampleLimit = longest;
  if (longest < most)
    session.notes.push_back(formatText(
        "samples have at most %d of the model's %d positions: alone in a "
        "micro-batch, longer ones do not fit %s of a rank%s",
        longest, most, formatBytes(rankBytes),
        isSaid
            ? " (--rank-memory)"
            : ", half of what is free; --rank-memory says what it may take"));
  return Status::ok();
}

/// Of the ranks of this process.
int64_t sumOf(const std::vector<int> &local,
              const std::vector<int64_t> &bytes) {
  int64_t sum = 0;
  for (int rank : local)
    sum += bytes[rank];
  return sum;
}

constexpr int64_t kNotLimited = std::numeric_limits<int64_t>::max();

/// For the arenas of this process, beside `need`.
StatusOr<int64_t> roomForRanks(const Session &session, const MemoryNeed &need,
                               const std::vector<int> &local) {
  if (local.empty()) // what others have, who run the plans, nobody here knows
    return kNotLimited;
  DYNA_ASSIGN_OR_RETURN(int64_t room, freeBytes(session));
  if (room < 0)
    return kNotLimited;
  return session.opened ? room : std::max<int64_t>(room - need.total(), 0);
}

/// What a rank's arena may take: what the user says; -1, not limited, where
/// `most`, what plans could use, is in the room there is on all machines of the
/// job; else an equal part of it.
StatusOr<int64_t> chooseRankBytes(const TrainOptions &options, int64_t room,
                                  int64_t most, size_t localRanks,
                                  Transport *processes) {
  if (!options.rankMemory.empty())
    return parseBytes(options.rankMemory);
  if (localRanks == 0)
    return -1;
  int64_t share =
      most <= room ? kNotLimited : room / static_cast<int64_t>(localRanks);
  // All make the same plans, for all ranks.
  if (processes) {
    DYNA_ASSIGN_OR_RETURN(share, agreeOnLeast(*processes, share));
  }
  return share == kNotLimited ? -1 : share;
}

/// Of arenas of so many bytes.
using SizeRegions = std::function<StatusOr<StepRegions>(int64_t)>;

/// Regions in arenas of `rankBytes`. Where some rank needs more than such a part at
/// least, the others have less, so that those of this process fit `room` together
/// wherever they can.
StatusOr<StepRegions> fitRegions(const SizeRegions &size,
                                 const std::vector<int> &local, int64_t room,
                                 int64_t rankBytes) {
  DYNA_ASSIGN_OR_RETURN(StepRegions regions, size(rankBytes));
  // One rank has no other to take from.
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

/// Whether arenas of `regions`, which hold `held` bytes more, fit the memory there
/// is beside `need`.
Status checkRegions(const Session &session, MemoryNeed need, int64_t held,
                    int64_t regions, int64_t moreThreads) {
  const TrainOptions &options = session.options;
  if (session.opened) {
    DYNA_RETURN_IF_ERROR(
        checkDeviceNeed(held, regions, options, memoryThere(session)));
  } else {
    need.persistent = held;
    need.dynamic = regions;
  }
  DYNA_RETURN_IF_ERROR(checkMemoryNeed(need, options, availableMemory()));
  // The tables of the data have been taken.
  need.data = 0;
  return checkAddressNeed(need, moreThreads, addressesOfThread(),
                          availableAddresses());
}

/// The regions of all ranks, if those of this process fit the memory there is.
StatusOr<StepRegions> chooseRegions(Session &session,
                                    const std::vector<int> &local, int threads,
                                    bool training, Transport *processes) {
  const TrainOptions &options = session.options;
  MemoryNeed need = needBesideArenas(session);
  const StepGraphs graphs = session.stepGraphs();
  int64_t held = 0;
  for (int rank : local)
    held += graphs.homeBytes(rank, training);
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
  const int64_t bytes = sumOf(local, regions.bytes);
  if (isSaid && held + bytes > room) {
    DYNA_ASSIGN_OR_RETURN(const StepRegions least, atLeast(0));
    // Where sizes of micro-batches are open, less memory makes them smaller.
    need.isLowered =
        held + (session.home.isSizeOpen ? 0 : sumOf(local, least.bytes)) < room;
  }
  DYNA_RETURN_IF_ERROR(checkRegions(
      session, need, held, bytes,
      startedThreads(options, static_cast<int64_t>(local.size()), threads)));
  return regions;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// A few more threads than cores only cost time; very many never get anywhere.
Status checkThreads(const TrainOptions &options) {
  int cores = availableCores();
  if (options.threads <= 8 * static_cast<int64_t>(cores))
    return Status::ok();
  return Status::invalidArgument(formatText(
      "--threads is %d, but this machine gives this process %d cores: use at "
      "most as many",
      options.threads, cores));
}

/// As many as devices of this kind can be for now.
Status checkRanks(const Session &session) {
  const int most = dyna_device_kind.mostRanks;
  const int ranks = session.home.graph->ranks();
  if (most == 0 || ranks <= most)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "strategy '%s' has %d ranks, but a run of --target=%s has one device and "
      "%d rank: leave out --strategy and --ranges",
      session.home.graph->name(), ranks, dyna_device_kind.target, most));
}

/// Processes that do not know of each other would each do all the work.
Status checkLaunch(const TrainOptions &options, bool linked) {
  int processes = launchedProcesses();
  if (processes > 1 && !linked)
    return Status::invalidArgument(formatText(
        "started as one of %d processes, but this program was compiled without "
        "them: give dynac --with=mpi, or start it alone, with ranks as threads",
        processes));
  if (processes > 1 && options.strategy.empty() && options.ranges.empty())
    return Status::invalidArgument(formatText(
        "%d processes were started, but no --strategy says how they share the "
        "work: for example --strategy dp=%d",
        processes, processes));
  return Status::ok();
}

/// The parameters alone count for --load, everything for --resume.
std::string describeStart(const Checkpoint *start,
                          const TrainOptions &options) {
  if (!start)
    return "";
  bool resumes = !options.resume.empty();
  uint64_t sum = resumes ? start->checksum() : start->model.checksum();
  return resumes ? formatText("step %d, checksum %016x", start->step, sum)
                 : formatText("parameters of checksum %016x", sum);
}

/// Of all graphs, with their ranges.
std::string describeGraphs(const Session &session) {
  auto describe = [](const PlannedGraph &graph) {
    Strategy strategy = graph.graph->strategy();
    strategy.name.clear();
    return describeStrategy(strategy);
  };
  std::string text;
  for (const PlannedGraph &graph : session.others)
    text += describe(graph) + "; ";
  return text + describe(session.home);
}

/// What this process must have in common with the others of its job.
Status agree(const Session &session, bool training, const Checkpoint *start,
             Transport &transport) {
  std::vector<SharedFact> facts = {
      {"compiled model", formatText("%016x", session.model->hash())},
      {"strategy", describeGraphs(session)},
      {"task", training ? "training" : "evaluation"},
      {"checkpoint", describeStart(start, session.options)},
      {"costs", session.costsMark()},
      {"tokens of the longest sample", std::to_string(session.sampleLimit)}};
  if (!session.options.plans.empty()) {
    DYNA_ASSIGN_OR_RETURN(std::string plans,
                          describePlans(session.options.plans));
    facts.push_back({"plans", plans});
  }
  for (const auto &[name, value] : commonFlags(session.options))
    facts.push_back({name, value});
  for (const SampleIndexPointer &data : {session.data, session.heldOut})
    facts.push_back({"data", data
                                 ? formatText("%d documents, fingerprint %016x",
                                              data->documents(),
                                              data->dataset().fingerprint())
                                 : ""});
  return checkAgreement(transport, facts);
}

/// This process's ranks, as threads or as the one that a launcher made it.
StatusOr<std::vector<RankResources>> makeResources(const Session &session) {
  int count = session.home.graph->ranks();
  std::vector<RankResources> ranks;
  auto timeout = std::chrono::seconds(session.options.timeout);
  bool linked = &dyna_process_transport != nullptr;
  DYNA_RETURN_IF_ERROR(checkLaunch(session.options, linked));
  if (linked && dyna_process_transport.isLaunched()) {
    DYNA_ASSIGN_OR_RETURN(auto transport,
                          dyna_process_transport.open(count, timeout));
    ranks.emplace_back();
    ranks[0].rank = transport->rank();
    ranks[0].transport = std::move(transport);
    return ranks;
  }
  ranks.resize(count);
  std::vector<std::unique_ptr<Transport>> transports;
  if (count > 1)
    transports = makeThreadTransports(count);
  for (int rank = 0; rank < count; ++rank) {
    ranks[rank].rank = rank;
    if (count == 1)
      continue;
    ranks[rank].transport = std::move(transports[rank]);
    ranks[rank].transport->setTimeout(timeout);
  }
  return ranks;
}

Status makeRanks(Session &session, std::vector<RankResources> &ranks,
                 int threads, const std::vector<int64_t> &dynamic,
                 bool training) {
  const TrainOptions &options = session.options;
  for (RankResources &rank : ranks) {
    auto device = std::move(session.opened);
    if (!device) {
      DYNA_ASSIGN_OR_RETURN(device,
                            dyna_device_kind.open(options, *session.program,
                                                  *session.variant, threads));
    }
    session.devices.push_back(device.get());
    rank.device = std::move(device);
    rank.dynamicBytes = dynamic[rank.rank];
    if (options.trace.empty() && options.profile.empty())
      continue;
    constexpr size_t slices = 1000000;
    session.traces.push_back(
        session.traces.empty()
            ? std::make_unique<TraceRecorder>(slices)
            : std::make_unique<TraceRecorder>(slices, *session.traces[0]));
    rank.trace = session.traces.back().get();
  }
  ExecutorOptions executor;
  executor.seed = static_cast<uint64_t>(options.seed);
  executor.checkMemory = options.checkMemory;
  executor.patience = std::chrono::seconds(options.timeout);
  executor.timesCoreWaits = session.hasCosts();
  const StepGraphs graphs = session.stepGraphs();
  std::vector<GraphUse> uses = {
      {session.home.graph.get(), graphs.persistentOf(session.home, training)}};
  for (const PlannedGraph &graph : session.others)
    uses.push_back({graph.graph.get(), graphs.persistentOf(graph, training)});
  DYNA_ASSIGN_OR_RETURN(
      auto team,
      RankTeam::create(uses, *session.variant, std::move(ranks), executor));
  session.ranks = std::move(team);
  return Status::ok();
}

Status makeTeam(Session &session, std::vector<RankResources> &ranks,
                bool training, const Checkpoint *start) {
  std::vector<int> local;
  for (const RankResources &rank : ranks)
    local.push_back(rank.rank);
  Transport *processes =
      local.size() == 1 ? ranks.front().transport.get() : nullptr;
  if (processes)
    DYNA_RETURN_IF_ERROR(agree(session, training, start, *processes));
  int threads = threadsOfRank(session.options, ranks);
  DYNA_ASSIGN_OR_RETURN(auto regions, chooseRegions(session, local, threads,
                                                    training, processes));
  regions.apply(session.stepGraphs());
  joinGraphs(session, regions.bytes);
  return makeRanks(session, ranks, threads, regions.bytes, training);
}

} // namespace

Status openSession(const dyna_program &program, const Model &model,
                   const TrainOptions &options, bool training,
                   const Checkpoint *start, Session &session) {
  session.options = options;
  session.model = &model;
  session.program = &program;
  DYNA_RETURN_IF_ERROR(checkDevices(model, options));
  DYNA_ASSIGN_OR_RETURN(auto variant,
                        chooseVariant(program, options.isa, cpuFeatures()));
  session.variant = variant;
  if (!options.save.empty() || !options.load.empty() || !options.resume.empty())
    session.fileBytes = checkpointBufferBytes(model);
  DYNA_RETURN_IF_ERROR(checkThreads(options));
  DYNA_RETURN_IF_ERROR(findRanges(session));
  DYNA_RETURN_IF_ERROR(chooseGraphs(session, training));
  DYNA_RETURN_IF_ERROR(checkRanks(session));
  // What fits is asked of it from here on.
  if (dyna_device_kind.hasOwnMemory) {
    DYNA_ASSIGN_OR_RETURN(
        session.opened,
        dyna_device_kind.open(options, program, *variant,
                              static_cast<int>(options.threads)));
  }
  DYNA_RETURN_IF_ERROR(limitSamples(session, training, /*runsHere=*/true));
  DYNA_RETURN_IF_ERROR(openData(model, session));
  DYNA_ASSIGN_OR_RETURN(auto ranks, makeResources(session));
  if (Status status =
          guarded([&] { return makeTeam(session, ranks, training, start); });
      !status.isOk()) {
    // Other processes wait for this one; the team takes care of its own ranks.
    for (RankResources &rank : ranks)
      if (rank.transport)
        rank.transport->abort(status);
    return status;
  }
  for (const std::string &note : session.notes)
    if (session.writesFiles())
      sayLine("note: " + note);
  return Status::ok();
}

Status openPlanning(const Model &model, const TrainOptions &options,
                    Session &session) {
  session.options = options;
  session.model = &model;
  if (int processes = launchedProcesses(); processes > 1)
    return Status::invalidArgument(formatText(
        "%s was started as one of %d processes: start %s",
        options.planOnly.empty() ? "--write-lengths" : "--plan-only", processes,
        options.planOnly.empty() ? "one, without a launcher"
                                 : "planners alone, each with its own I/N"));
  DYNA_RETURN_IF_ERROR(findRanges(session));
  DYNA_RETURN_IF_ERROR(chooseGraphs(session, /*training=*/true));
  DYNA_RETURN_IF_ERROR(limitSamples(session, true, /*runsHere=*/false));
  DYNA_RETURN_IF_ERROR(openData(model, session));
  DYNA_ASSIGN_OR_RETURN(auto regions,
                        chooseRegions(session, {}, 1, true, nullptr));
  regions.apply(session.stepGraphs());
  joinGraphs(session, regions.bytes);
  return Status::ok();
}

} // namespace dyna
