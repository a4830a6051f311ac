//===- Session.cpp - One run of a compiled binary -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/Session.h"

#include "runtime/base/Guard.h"
#include "runtime/base/Text.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/CpuFeatures.h"
#include "runtime/executor/Program.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/planner/Policy.h"
#include "runtime/train/Agreement.h"
#include "runtime/train/Checkpointing.h"
#include "runtime/train/MemoryNeed.h"
#include "runtime/train/Progress.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dyna {
namespace {

/// --threads are those of this process, which its ranks share; all cores are
/// shared with the ranks of other processes of the machine, too.
HostOptions hostOptions(const TrainOptions &options,
                        const dyna_variant &variant,
                        const std::vector<RankSeat> &seats) {
  HostOptions host;
  host.threads = static_cast<int>(options.threads);
  if (const Transport *transport = seats.front().transport.get()) {
    int all = host.threads > 0 ? host.threads : availableCores();
    int share = host.threads > 0 ? static_cast<int>(seats.size())
                                 : transport->ranksPerCore();
    host.threads = std::max(1, all / share);
  }
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

/// Documents to train on and to hold out; null: none.
StatusOr<std::pair<DatasetPointer, DatasetPointer>>
openDocuments(const ManifestView &view, const TrainOptions &options) {
  DataOptions dataOptions;
  dataOptions.vocabulary = view.manifest().facts().vocabulary();
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

Status openData(const ManifestView &view, Session &session) {
  DYNA_ASSIGN_OR_RETURN(auto documents, openDocuments(view, session.options));
  MemoryNeed need;
  need.data = dataBytes(session.options, documents.first, documents.second);
  session.dataBytes = need.data;
  DYNA_RETURN_IF_ERROR(
      checkMemoryNeed(need, session.options, availableMemory()));
  SampleOptions samples;
  samples.limit = session.sampleLimit();
  samples.longDocuments = *parseLongDocuments(session.options.longDocuments);
  for (auto [documents, index] : {std::pair(&documents.first, &session.data),
                                  {&documents.second, &session.heldOut}}) {
    if (!*documents)
      continue;
    DYNA_ASSIGN_OR_RETURN(SampleIndexPointer made,
                          SampleIndex::create(*documents, samples));
    *index = made;
  }
  return Status::ok();
}

/// Of this process besides the one that starts them: those of ranks, their
/// workers, and the one that plans ahead.
int64_t startedThreads(const TrainOptions &options, int64_t ranks,
                       const HostOptions &host) {
  int64_t team = host.threads > 0 ? host.threads : availableCores();
  return ranks * team - 1 + (options.planAhead > 0 ? 1 : 0);
}

/// Bytes of each rank's dynamic region, if the ranks of this process fit the
/// memory there is.
StatusOr<std::vector<int64_t>> sizeDynamicRegions(Session &session,
                                                  const std::vector<int> &local,
                                                  const HostOptions &host,
                                                  bool training) {
  // Of more micro-batches in flight than fill a mini-batch, none can be full.
  PlanOptions largest = session.planOptions;
  largest.inFlight = static_cast<int>(
      std::min<int64_t>(largest.inFlight, session.microBatches + 1));
  DYNA_ASSIGN_OR_RETURN(
      auto dynamic, session.planner->largestDynamicBytes(largest, training));
  MemoryNeed need;
  need.data = session.dataBytes;
  const TrainOptions &options = session.options;
  if (!options.save.empty() || !options.load.empty() || !options.resume.empty())
    session.fileBytes = checkpointBufferBytes(*session.view);
  need.files = session.fileBytes;
  for (int rank : local) {
    need.persistent +=
        persistentLayout(session.graph->rankView(rank), training).bytes;
    need.dynamic += dynamic[rank];
  }
  need.batches = (1 + session.options.planAhead) *
                 estimateBatchBytes(*session.view, session.planOptions,
                                    session.options.tokensPerBatch,
                                    session.data->statistics().meanTokens());
  DYNA_RETURN_IF_ERROR(checkMemoryNeed(need, options, availableMemory()));
  // The tables of the data have been taken.
  need.data = 0;
  DYNA_RETURN_IF_ERROR(checkAddressNeed(
      need, startedThreads(options, static_cast<int64_t>(local.size()), host),
      addressesOfThread(), availableAddresses()));
  return dynamic;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

PlanRequest planRequest(const TrainOptions &options, Strategy strategy) {
  PlanRequest request;
  request.strategy = std::move(strategy);
  request.pipeline = options.pipeline;
  request.recompute = options.recompute;
  request.tokensPerBatch = options.tokensPerBatch;
  request.tokensPerMicroBatch = options.tokensPerMicroBatch;
  request.inFlight = options.inFlight;
  request.splitBackward = options.splitBackward;
  return request;
}

/// And how its plans are made.
Status chooseStrategy(Session &session) {
  const TrainOptions &options = session.options;
  Strategy strategy;
  if (!options.strategy.empty()) {
    const auto &known = session.view->manifest().strategies();
    DYNA_ASSIGN_OR_RETURN(
        Strategy parsed,
        findStrategy(options.strategy, {known.begin(), known.end()}));
    strategy = std::move(parsed);
  }
  if (options.ranks > 0 && options.ranks != strategy.ranks())
    return Status::invalidArgument(formatText(
        "--ranks is %d, but strategy '%s' has %d: give both alike, or "
        "--strategy alone",
        options.ranks, describeStrategy(strategy), strategy.ranks()));
  // More are refused before much is made for each of them.
  if (launchedProcesses() == 1 && strategy.ranks() > kMostThreadRanks)
    return Status::invalidArgument(formatText(
        "strategy '%s' has %d ranks, but one process has at most %d",
        describeStrategy(strategy), strategy.ranks(), kMostThreadRanks));
  DYNA_ASSIGN_OR_RETURN(auto costs,
                        CostModel::open(*session.view, options.costs));
  DYNA_ASSIGN_OR_RETURN(
      auto policy,
      choosePolicy(costs, planRequest(options, std::move(strategy))));
  session.planOptions = policy.options;
  session.microBatches = policy.microBatches;
  session.options.tokensPerMicroBatch = policy.options.maxTokensPerMicroBatch;
  session.notes.insert(session.notes.end(), policy.notes.begin(),
                       policy.notes.end());
  DYNA_ASSIGN_OR_RETURN(
      ExecutableGraph graph,
      ExecutableGraph::create(*session.view, std::move(policy.strategy)));
  session.graph = std::make_unique<ExecutableGraph>(std::move(graph));
  session.planner = std::make_unique<Planner>(*session.graph, std::move(costs));
  return Status::ok();
}

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

/// Processes that do not know of each other would each do all the work.
Status checkLaunch(const TrainOptions &options, bool linked) {
  int processes = launchedProcesses();
  if (processes > 1 && !linked)
    return Status::invalidArgument(formatText(
        "started as one of %d processes, but this program was compiled without "
        "them: give dynac --with=mpi, or start it alone, with ranks as threads",
        processes));
  if (processes > 1 && options.strategy.empty())
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

/// What this process must have in common with the others of its job.
Status agree(const Session &session, bool training, const Checkpoint *start,
             Transport &transport) {
  Strategy strategy = session.graph->strategy();
  strategy.name.clear();
  std::vector<SharedFact> facts = {
      {"compiled model", formatText("%016x", session.view->hash())},
      {"strategy", describeStrategy(strategy)},
      {"task", training ? "training" : "evaluation"},
      {"checkpoint", describeStart(start, session.options)}};
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
StatusOr<std::vector<RankSeat>> makeSeats(const Session &session) {
  int ranks = session.graph->ranks();
  std::vector<RankSeat> seats;
  auto timeout = std::chrono::seconds(session.options.timeout);
  bool linked = &dyna_process_transport != nullptr;
  DYNA_RETURN_IF_ERROR(checkLaunch(session.options, linked));
  if (linked && dyna_process_transport.isLaunched()) {
    DYNA_ASSIGN_OR_RETURN(auto transport,
                          dyna_process_transport.open(ranks, timeout));
    seats.emplace_back();
    seats[0].rank = transport->rank();
    seats[0].transport = std::move(transport);
    return seats;
  }
  seats.resize(ranks);
  std::vector<std::unique_ptr<Transport>> transports;
  if (ranks > 1)
    transports = makeThreadTransports(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    seats[rank].rank = rank;
    if (ranks == 1)
      continue;
    seats[rank].transport = std::move(transports[rank]);
    seats[rank].transport->setTimeout(timeout);
  }
  return seats;
}

Status makeRanks(Session &session, std::vector<RankSeat> &seats,
                 const HostOptions &host, const std::vector<int64_t> &dynamic,
                 bool training) {
  const TrainOptions &options = session.options;
  for (RankSeat &seat : seats) {
    DYNA_ASSIGN_OR_RETURN(auto device, HostDevice::create(host));
    session.devices.push_back(device.get());
    seat.device = std::move(device);
    seat.dynamicBytes = dynamic[seat.rank];
    if (options.trace.empty())
      continue;
    constexpr size_t slices = 1000000;
    session.traces.push_back(
        session.traces.empty()
            ? std::make_unique<TraceRecorder>(slices)
            : std::make_unique<TraceRecorder>(slices, *session.traces[0]));
    seat.trace = session.traces.back().get();
  }
  ExecutorOptions executor;
  executor.seed = static_cast<uint64_t>(options.seed);
  executor.training = training;
  executor.checkMemory = options.checkMemory;
  DYNA_ASSIGN_OR_RETURN(auto team,
                        RankTeam::create(*session.graph, *session.variant,
                                         std::move(seats), executor));
  session.ranks = std::move(team);
  return Status::ok();
}

Status fillSeats(Session &session, std::vector<RankSeat> &seats, bool training,
                 const Checkpoint *start) {
  std::vector<int> local;
  for (const RankSeat &seat : seats)
    local.push_back(seat.rank);
  if (local.size() == 1 && seats.front().transport)
    DYNA_RETURN_IF_ERROR(
        agree(session, training, start, *seats.front().transport));
  HostOptions host = hostOptions(session.options, *session.variant, seats);
  DYNA_ASSIGN_OR_RETURN(auto dynamic,
                        sizeDynamicRegions(session, local, host, training));
  session.planOptions.dynamicLimits = dynamic;
  return makeRanks(session, seats, host, dynamic, training);
}

} // namespace

int64_t Session::peakBytes() const {
  int64_t bytes = ranks->arenaBytes() + fileBytes;
  for (const HostDevice *device : devices)
    bytes += device->scratchBytes();
  return bytes;
}

int64_t Session::sampleLimit() const {
  int64_t positions = view->manifest().facts().positions();
  return positions > 0 ? std::min(positions, options.tokensPerMicroBatch)
                       : options.tokensPerMicroBatch;
}

BatchOptions Session::batchOptions() const {
  BatchOptions batch;
  batch.shuffle = *parseShuffle(options.shuffle);
  batch.seed = static_cast<uint64_t>(options.seed);
  return batch;
}

Status openSession(const dyna_program &program, const ManifestView &view,
                   const TrainOptions &options, bool training,
                   const Checkpoint *start, Session &session) {
  session.options = options;
  session.view = &view;
  DYNA_ASSIGN_OR_RETURN(auto variant,
                        chooseVariant(program, options.isa, cpuFeatures()));
  session.variant = variant;
  DYNA_RETURN_IF_ERROR(checkThreads(options));
  DYNA_RETURN_IF_ERROR(chooseStrategy(session));
  DYNA_RETURN_IF_ERROR(openData(view, session));
  DYNA_ASSIGN_OR_RETURN(auto seats, makeSeats(session));
  if (Status status =
          guarded([&] { return fillSeats(session, seats, training, start); });
      !status.isOk()) {
    // Other processes wait for this one; the team takes care of its own seats.
    for (RankSeat &seat : seats)
      if (seat.transport)
        seat.transport->abort(status);
    return status;
  }
  for (const std::string &note : session.notes)
    if (session.writesFiles())
      sayLine("note: " + note);
  return Status::ok();
}

} // namespace dyna
