//===- SizeMoves.cpp - Sizes arenas for graphs that follow ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/SizeMoves.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/rank/ArenaParts.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace dyna {
namespace {

/// Bytes that stay on a rank under some graphs; none without a place.
int64_t persistentOn(const StepGraphs &graphs, int rank) {
  return rank < graphs.home().graph->ranks()
             ? graphs.homeBytes(rank, /*training=*/true)
             : 0;
}

/// Bytes of an arena that has regions of so many bytes at either end.
int64_t arenaFor(int64_t persistentBytes, int64_t regionBytes) {
  return bytesToReplace(persistentBytes, regionBytes, /*transit=*/0);
}

/// Arenas of the ranks of a run. They grow for graphs, and for the switches
/// between graphs.
class ArenaSizes {
public:
  /// `limit`: largest number of bytes of a rank; -1: not limited.
  ArenaSizes(int ranks, int64_t limit)
      : limit_(limit), bytes_(ranks, std::max<int64_t>(limit, 0)) {}

  void add(const SizedGraphs &sized) {
    // Under a limit of memory, all arenas are as large as the limit.
    for (size_t rank = 0; rank < sized.regions.bytes.size() && limit_ < 0;
         ++rank)
      bytes_[rank] = std::max(
          bytes_[rank],
          arenaFor(persistentOn(*sized.chosen.graphs, static_cast<int>(rank)),
                   sized.regions.bytes[rank]));
  }

  Status addWay(const StepGraphs &from, const StepGraphs &to) {
    ReplacementCost cost;
    DYNA_ASSIGN_OR_RETURN(
        const GraphSwitch state,
        planState(from, to, static_cast<int>(bytes_.size()), cost));
    for (size_t rank = 0; rank < bytes_.size(); ++rank) {
      const int64_t before = persistentOn(from, static_cast<int>(rank));
      const int64_t behind = persistentOn(to, static_cast<int>(rank));
      const int64_t passed = state.sides[rank].passedBytes;
      const int64_t need = bytesToReplace(before, behind, passed);
      if (limit_ >= 0 && need > limit_)
        return Status::resourceExhausted(formatText(
            "on the way, rank %d needs %s: %s for the tensors of '%s', %s for "
            "those of '%s' and %s for what is passed on; it may take %s, so "
            "that %s are missing: --rank-memory %d is enough for it",
            rank, formatBytes(need), formatBytes(before),
            from.home().graph->name(), formatBytes(behind),
            to.home().graph->name(), formatBytes(passed), formatBytes(limit_),
            formatBytes(need - limit_), need));
      bytes_[rank] = std::max(bytes_[rank], need);
    }
    return Status::ok();
  }

  std::vector<int64_t> take() && { return std::move(bytes_); }

private:
  const int64_t limit_;
  std::vector<int64_t> bytes_; ///< by rank
};

Status inEntry(const Repack &repack, const Status &status) {
  return status.isOk()
             ? status
             : Status(status.code(),
                      formatText("--repack %s: %s", describeRepack(repack),
                                 status.message()));
}

/// Returns the bytes of --rank-memory; -1: not given.
StatusOr<int64_t> rankLimit(const TrainOptions &options) {
  return options.rankMemory.empty() ? StatusOr<int64_t>(-1)
                                    : parseBytes(options.rankMemory);
}

/// Returns the bytes in which a replacement sizes regions, in arenas of `limit` bytes.
int64_t regionLimit(int64_t limit) {
  return limit < 0 ? -1 : std::max<int64_t>(regionBytesBeside(limit, 1), 0);
}

/// Chooses and sizes the graphs of an entry, behind those of `now`.
StatusOr<SizedGraphs> sizeEntry(const Session &session, const Repack &repack,
                                const TrainOptions &now, const Strategy &home,
                                int64_t limit) {
  DYNA_ASSIGN_OR_RETURN(const NextStrategy next,
                        strategyOf(repack, home, session.model->layers()));
  return sizeGraphs(session, optionsOf(now, next), regionLimit(limit));
}

} // namespace

StatusOr<NextStrategy> strategyOf(const Repack &repack, const Strategy &now,
                                  int layers) {
  if (repack.ranks == 0)
    return NextStrategy{repack.strategy, ""};
  DYNA_ASSIGN_OR_RETURN(const Strategy packed,
                        packStrategy(now, repack.ranks, layers));
  return NextStrategy{describeStrategy(packed), ""};
}

/// Chooses and sizes the graphs of all entries.
static StatusOr<std::vector<SizedGraphs>>
sizeEntries(Session &session, const std::vector<Repack> &repacks,
            int64_t limit) {
  std::vector<SizedGraphs> sized;
  const StepGraphs *now = session.graphs.get();
  TrainOptions options = session.options;
  for (const Repack &repack : repacks) {
    if (repack.goal)
      continue; // known while the run trains
    auto next = sizeEntry(session, repack, options,
                          now->home().graph->strategy(), limit);
    DYNA_RETURN_IF_ERROR(inEntry(repack, next.status()));
    const std::string name = next->chosen.home().graph->name();
    const int ranks = next->chosen.home().graph->ranks();
    if (const int processes = launchedProcesses();
        processes > 1 && ranks > processes)
      return inEntry(
          repack,
          Status::invalidArgument(formatText(
              "strategy '%s' has %d ranks, but %d processes were started: "
              "start as many as the run has ranks at most",
              name, ranks, processes)));
    if (repack.step >= session.options.steps)
      session.notes.push_back(
          formatText("--repack %s is not reached: --steps is %d",
                     describeRepack(repack), session.options.steps));
    options = next->chosen.options;
    sized.push_back(std::move(*next));
    now = sized.back().chosen.graphs.get();
  }
  return sized;
}

/// Returns bytes that the arena of a rank needs at most for a cut of these stages. A
/// stage never has more than all stages together.
static int64_t bytesOfAnyCut(const StepGraphs &graphs,
                             const StepRegions &regions, int rank) {
  const ExecutableGraph &graph = *graphs.home().graph;
  if (rank >= graph.ranks())
    return 0;
  const Strategy &strategy = graph.strategy();
  const int64_t sharers = strategy.zero ? strategy.dp : 1;
  int64_t tensors = 0, region = 0;
  ExecutableGraph::Place place = graph.placeOf(rank);
  for (place.stage = 0; place.stage < graph.stages(); ++place.stage) {
    const int other = graph.rankAt(place);
    tensors += sharers * persistentOn(graphs, other);
    region += regions.bytes[static_cast<size_t>(other)];
  }
  return bytesToReplace(tensors, tensors, tensors) + region;
}

/// Reserves addresses for all cuts of the graphs, as far as the process has them.
static Status reserveForCuts(Session &session,
                             const std::vector<SizedGraphs> &sized,
                             int64_t limit) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  DYNA_ASSIGN_OR_RETURN(
      const SizedGraphs now,
      sizeGraphs(session, session.options, regionLimit(limit)));
  session.graphSeconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  bool hasStages = now.chosen.home().graph->stages() > 1;
  for (const SizedGraphs &next : sized)
    hasStages |= next.chosen.home().graph->stages() > 1;
  if (!hasStages && !session.options.rebalance.empty())
    return Status::invalidArgument(formatText(
        "--rebalance moves layers between stages, but strategy '%s' has one "
        "stage: give a strategy with pp=2 or more",
        session.home().graph->name()));
  if (limit >= 0) // arenas are already as large as the limit
    return Status::ok();
  const auto ranks = static_cast<size_t>(session.worldRanks());
  const int64_t left = availableAddresses();
  // Leave the other half for later allocations of the process.
  const int64_t most =
      left < 0
          ? std::numeric_limits<int64_t>::max()
          : left / 2 / (launchedProcesses() > 1 ? 1 : session.worldRanks());
  session.reservedBytes.assign(ranks, 0);
  for (size_t rank = 0; rank < ranks; ++rank) {
    int64_t &bytes = session.reservedBytes[rank];
    const int number = static_cast<int>(rank);
    bytes = bytesOfAnyCut(*now.chosen.graphs, now.regions, number);
    for (const SizedGraphs &next : sized)
      bytes = std::max(
          bytes, bytesOfAnyCut(*next.chosen.graphs, next.regions, number));
    bytes = std::min(bytes, most);
  }
  return Status::ok();
}

/// Takes the least bytes of arenas for all entries of --repack.
static Status sizeArenas(Session &session, const std::vector<Repack> &repacks,
                         const std::vector<SizedGraphs> &sized, int64_t limit) {
  int ranks = session.home().graph->ranks();
  for (const SizedGraphs &graphs : sized)
    ranks = std::max(ranks, graphs.chosen.home().graph->ranks());
  ArenaSizes sizes(ranks, limit);
  const StepGraphs *now = session.graphs.get();
  size_t number = 0;
  for (const Repack &repack : repacks) {
    if (repack.goal)
      continue;
    const SizedGraphs &graphs = sized[number++];
    const StepGraphs &next = *graphs.chosen.graphs;
    sizes.add(graphs);
    DYNA_RETURN_IF_ERROR(inEntry(repack, sizes.addWay(*now, next)));
    now = &next;
  }
  session.arenasAtLeast = std::move(sizes).take();
  session.mostRanks = ranks;
  return Status::ok();
}

Status sizeMoves(Session &session) {
  const TrainOptions &options = session.options;
  DYNA_ASSIGN_OR_RETURN(const auto repacks, parseRepacks(options.repack));
  if (repacks.empty() && options.rebalance.empty())
    return Status::ok();
  if (session.hasRanges())
    return Status::invalidArgument(
        formatText("--%s is about the one strategy of a run, but samples go to "
                   "strategies by their lengths here: give --strategy",
                   repacks.empty() ? "rebalance" : "repack"));
  DYNA_ASSIGN_OR_RETURN(const int64_t limit, rankLimit(options));
  DYNA_ASSIGN_OR_RETURN(const auto sized, sizeEntries(session, repacks, limit));
  DYNA_RETURN_IF_ERROR(sizeArenas(session, repacks, sized, limit));
  if (repacks.empty())
    session.mostRanks = 0;
  const bool hasGoal =
      std::any_of(repacks.begin(), repacks.end(),
                  [](const Repack &repack) { return repack.goal.has_value(); });
  return options.rebalance.empty() && !hasGoal
             ? Status::ok()
             : reserveForCuts(session, sized, limit);
}

} // namespace dyna
