//===- OpenSession.cpp - Sets up a run ------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/OpenSession.h"

#include "runtime/base/error/Guard.h"
#include "runtime/base/text/Text.h"
#include "runtime/data/LineFields.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/open/CpuFeatures.h"
#include "runtime/executor/open/OpenProgram.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/train/files/PlanFiles.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/NamedStrategies.h"
#include "runtime/train/open/ChooseGraphs.h"
#include "runtime/train/open/FitMemory.h"
#include "runtime/train/open/MemoryNeed.h"
#include "runtime/train/open/SearchRanges.h"
#include "runtime/train/open/SizeMoves.h"
#include "runtime/train/plans/PlanMark.h"
#include "runtime/train/session/Agreement.h"
#include "runtime/train/session/Checkpointing.h"
#include "runtime/train/session/Devices.h"
#include "runtime/train/session/Signals.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

/// Documents to train on and to hold out; null: none.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
openDocuments(const Model &model, const TrainOptions &options) {
  DataOptions dataOptions;
  dataOptions.vocabulary = model.manifest().facts().vocabulary();
  dataOptions.seed = static_cast<uint64_t>(options.seed);
  dataOptions.skipBadLines = options.skipBadLines;
  if (!options.fields.empty()) {
    DYNA_ASSIGN_OR_RETURN(dataOptions.fields, parseLineFields(options.fields));
  }
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

/// Returns the bytes of the data, with the tables of their samples.
int64_t dataBytes(const TrainOptions &options, const DatasetPointer &data,
                  const DatasetPointer &heldOut) {
  int64_t bytes = data->heldBytes() + SampleIndex::heldBytes(data->size());
  if (heldOut)
    bytes += SampleIndex::heldBytes(heldOut->size());
  if (heldOut &&
      !options.heldOut
           .empty()) // otherwise held-out data are a part of the same files
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
      longestSample(model, session.graphs->ofLongest().options))
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
  // Arenas need only hold the longest sample that exists.
  int64_t longest = 0;
  for (const SampleIndexPointer &index : {session.data, session.heldOut})
    if (index)
      longest = std::max(longest, index->statistics().longestSample());
  return setLongestSample(*session.graphs, longest);
}

/// Sets the compiled strategies and ranges, if no flag chooses others.
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
  // The strategies are stored too, so that any other binary can resume the run.
  // Strategies given now replace compiled ones of the same names.
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

/// Runs --ranges search and replaces the flag by the result.
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

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Checks the number of threads. A few more threads than cores only cost time;
/// very many never finish.
Status checkThreads(const TrainOptions &options) {
  int cores = availableCores();
  if (options.threads <= 8 * static_cast<int64_t>(cores))
    return Status::ok();
  return Status::invalidArgument(formatText(
      "--threads is %d, but this machine gives this process %d cores: use at "
      "most as many",
      options.threads, cores));
}

/// Checks that this kind of device supports the number of ranks.
Status checkRanks(const Session &session) {
  const int most = dyna_device_kind.mostRanks;
  const int ranks = session.worldRanks();
  if (most == 0 || ranks <= most)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "strategy '%s' has %d ranks, but a run of --target=%s has one device and "
      "%d rank: leave out --strategy and --ranges",
      session.home().graph->name(), ranks, dyna_device_kind.target, most));
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

/// Describes the start: the parameters alone for --load, everything for
/// --resume.
std::string describeStart(const Checkpoint *start,
                          const TrainOptions &options) {
  if (!start)
    return "";
  bool resumes = !options.resume.empty();
  uint64_t sum = resumes ? start->checksum() : start->model.checksum();
  return resumes ? formatText("step %d, checksum %016x", start->step, sum)
                 : formatText("parameters of checksum %016x", sum);
}

/// Describes all graphs, with their ranges.
std::string describeGraphs(const Session &session) {
  auto describe = [](const PlannedGraph &graph) {
    Strategy strategy = graph.graph->strategy();
    strategy.name.clear();
    return describeStrategy(strategy);
  };
  std::string text;
  for (const PlannedGraph &graph : session.graphs->graphs())
    if (!session.graphs->isHome(graph))
      text += describe(graph) + "; ";
  return text + describe(session.home());
}

/// Checks what this process must have in common with the others of its job.
Status agree(const Session &session, bool training, const Checkpoint *start,
             HostExchange &processes) {
  std::vector<SharedFact> facts = {
      {"compiled model", formatText("%016x", session.model->hash())},
      {"strategy", describeGraphs(session)},
      {"task", training ? "training" : "evaluation"},
      {"checkpoint", describeStart(start, session.options)},
      {"costs", session.costsMark()},
      {"tokens of the longest sample", std::to_string(session.sampleLimit)}};
  if (start)
    DYNA_RETURN_IF_ERROR(start->checkReadable());
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
  return checkAgreement(processes, facts);
}

/// This process's ranks, as threads or as the one that a launcher made it.
StatusOr<std::vector<RankResources>> makeResources(const Session &session) {
  int count = session.worldRanks();
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

} // namespace

std::vector<GraphUse> graphUses(const StepGraphs &graphs, bool training) {
  std::vector<GraphUse> uses = {{graphs.home().graph.get(),
                                 graphs.persistentOf(graphs.home(), training)}};
  for (const PlannedGraph &graph : graphs.graphs())
    if (!graphs.isHome(graph))
      uses.push_back({graph.graph.get(), graphs.persistentOf(graph, training)});
  return uses;
}

namespace {

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
    if (!session.reservedBytes.empty())
      rank.reservedBytes = session.reservedBytes[rank.rank];
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
  executor.sparseFrom = options.sparseFrom;
  executor.seed = static_cast<uint64_t>(options.seed);
  executor.checkMemory = options.checkMemory;
  executor.patience = std::chrono::seconds(options.timeout);
  executor.timesCoreWaits = session.hasCosts();
  executor.mayHaveFewer = session.mostRanks > 0;
  // A host whose device runs late knows when it launched work, not when that
  // ended.
  executor.sharesLayerTimes =
      session.worldRanks() > 1 && !session.device().runsLate();
  // A profile would time a dropped step like any other, so it drops none.
  executor.stops = options.profile.empty() ? isStopped : nullptr;
  DYNA_ASSIGN_OR_RETURN(auto team,
                        RankTeam::create(graphUses(*session.graphs, training),
                                         *session.variant, std::move(ranks),
                                         executor));
  session.ranks = std::move(team);
  return Status::ok();
}

/// Makes the planner. Everything that plans depend on is known from here on.
void openPlanner(Session &session, const StepRegions &regions) {
  regions.apply(*session.graphs);
  session.planner = std::make_unique<StepPlanner>(
      *session.graphs, session.options.mergeRanges == "auto", regions.bytes);
}

Status makeTeam(Session &session, std::vector<RankResources> &ranks,
                bool training, const Checkpoint *start) {
  std::vector<int> local;
  for (const RankResources &rank : ranks)
    local.push_back(rank.rank);
  // If this process has one rank, the other ranks are in other processes.
  std::unique_ptr<HostExchange> processes;
  if (Transport *wires = ranks.front().hostWires(); wires && local.size() == 1)
    processes = std::make_unique<HostExchange>(*wires);
  if (processes)
    DYNA_RETURN_IF_ERROR(agree(session, training, start, *processes));
  if (training && !session.options.store.empty()) {
    auto run = static_cast<int64_t>(drawRun());
    if (processes) {
      DYNA_ASSIGN_OR_RETURN(run, agreeOnLeast(*processes, run));
    }
    session.run = static_cast<uint64_t>(run);
  }
  const int perDevice = session.home().graph->strategy().mirror ? 2 : 1;
  int threads = threadsOfRank(session.options, ranks, perDevice);
  DYNA_ASSIGN_OR_RETURN(auto regions, chooseRegions(session, local, threads,
                                                    training, processes.get()));
  openPlanner(session, regions);
  processes.reset(); // before its transport, which the team owns now
  const std::vector<int64_t> dynamic = dynamicBytes(session, regions, training);
  for (size_t rank = 0; rank < dynamic.size(); ++rank) {
    const int64_t held = heldAtHome(session, static_cast<int>(rank), training);
    const int64_t bytes = ArenaParts::atStart(held, dynamic[rank]).arenaBytes;
    session.arenas.push_back(
        session.reservedBytes.empty()
            ? bytes
            : std::max(bytes, session.reservedBytes[rank]));
  }
  return makeRanks(session, ranks, threads, dynamic, training);
}

} // namespace

Status openSession(const dyna_program &program, const Model &model,
                   const TrainOptions &options, bool training,
                   const Checkpoint *start, Session &session) {
  session.options = options;
  session.model = session.compiled = &model;
  session.program = &program;
  session.programBytes = programBytes(residentMemory());
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
  // Open the device now, because the steps below ask for its free memory.
  if (dyna_device_kind.hasOwnMemory) {
    DYNA_ASSIGN_OR_RETURN(
        session.opened,
        dyna_device_kind.open(options, program, *variant,
                              static_cast<int>(options.threads)));
  }
  DYNA_RETURN_IF_ERROR(limitSamples(session, training, /*runsHere=*/true));
  DYNA_RETURN_IF_ERROR(openData(model, session));
  if (training) {
    DYNA_RETURN_IF_ERROR(sizeMoves(session));
    DYNA_RETURN_IF_ERROR(checkRanks(session));
  }
  DYNA_ASSIGN_OR_RETURN(auto ranks, makeResources(session));
  if (Status status =
          guarded([&] { return makeTeam(session, ranks, training, start); });
      !status.isOk()) {
    // Other processes wait for this one. The team aborts its own ranks.
    for (RankResources &rank : ranks)
      rank.abort(status);
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
  session.model = session.compiled = &model;
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
  openPlanner(session, regions);
  return Status::ok();
}

} // namespace dyna
