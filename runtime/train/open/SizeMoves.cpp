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
#include <map>
#include <optional>

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

/// A change before a step: an entry of --repack, an event of --freeze, or both. The first
/// one of a resumed run also freezes what was frozen.
struct Change {
  int64_t step = 0;
  std::optional<Repack> repack;
  std::optional<FreezeEvent> freeze;
  bool isResumed = false;

  std::string describe() const {
    return repack   ? "--repack " + describeRepack(*repack)
           : freeze ? "--freeze " + describeFreeze(*freeze)
                    : "--resume";
  }
};

/// Returns all changes in the order of their steps. Entries of --repack whose ranks the
/// run chooses are left out.
StatusOr<std::vector<Change>> changesOf(const Session &session) {
  DYNA_ASSIGN_OR_RETURN(const auto repacks,
                        parseRepacks(session.options.repack));
  DYNA_ASSIGN_OR_RETURN(const auto freezes,
                        parseFreezes(session.options.freeze));
  std::map<int64_t, Change> byStep;
  for (const Repack &repack : repacks)
    if (!repack.goal)
      byStep[repack.step].repack = repack;
  for (const FreezeEvent &event : freezes)
    byStep[event.step].freeze = event;
  if (!session.frozenBefore.empty())
    byStep[session.frozenStep].isResumed = true;
  std::vector<Change> changes;
  for (auto &[step, change] : byStep) {
    change.step = step;
    changes.push_back(std::move(change));
  }
  return changes;
}

Status inChange(const Change &change, const Status &status) {
  return status.isOk()
             ? status
             : Status(status.code(), formatText("%s: %s", change.describe(),
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

} // namespace

StatusOr<NextStrategy> strategyOf(const Repack &repack, const Strategy &now,
                                  int layers) {
  if (repack.ranks == 0)
    return NextStrategy{repack.strategy, ""};
  DYNA_ASSIGN_OR_RETURN(const Strategy packed,
                        packStrategy(now, repack.ranks, layers));
  return NextStrategy{describeStrategy(packed), ""};
}

namespace {

/// Graphs after a change, and their model.
struct SizedChange {
  std::shared_ptr<const Model> model; ///< null: the model does not change
  SizedGraphs sized;

  const StepGraphs &graphs() const { return *sized.chosen.graphs; }
};

/// Sizes the changes of a run one after the other.
class ChangeSizes {
public:
  ChangeSizes(Session &session, int64_t limit)
      : session_(session), limit_(limit), now_(session.graphs.get()),
        options_(session.options), model_(session.model),
        frozen_(session.model->layers(), false) {}

  StatusOr<SizedChange> size(const Change &change) {
    SizedChange next;
    DYNA_RETURN_IF_ERROR(freeze(change, next));
    DYNA_ASSIGN_OR_RETURN(const NextStrategy strategy, strategyBehind(change));
    DYNA_ASSIGN_OR_RETURN(next.sized, sizeGraphs(session_, *model_,
                                                 optionsOf(options_, strategy),
                                                 regionLimit(limit_)));
    DYNA_RETURN_IF_ERROR(checkRanks(next));
    if (change.step >= session_.options.steps && !change.isResumed)
      session_.notes.push_back(formatText("%s is not reached: --steps is %d",
                                          change.describe(),
                                          session_.options.steps));
    options_ = next.sized.chosen.options;
    now_ = &next.graphs();
    return std::move(next);
  }

private:
  Status freeze(const Change &change, SizedChange &next) {
    if (!change.isResumed && !change.freeze)
      return Status::ok();
    if (change.isResumed)
      frozen_ = session_.frozenBefore;
    if (change.freeze && (isGuess_ || change.freeze->isAuto())) {
      // Other layers may be frozen then. What trains needs the most memory.
      isGuess_ = true;
      frozen_.assign(frozen_.size(), false);
    } else if (change.freeze) {
      DYNA_ASSIGN_OR_RETURN(
          frozen_, frozenBehind(*session_.compiled, *change.freeze, frozen_));
    }
    DYNA_ASSIGN_OR_RETURN(Model model,
                          freezeLayers(*session_.compiled, frozen_));
    next.model = std::make_shared<const Model>(std::move(model));
    model_ = next.model.get();
    return Status::ok();
  }

  StatusOr<NextStrategy> strategyBehind(const Change &change) const {
    return change.repack
               ? strategyOf(*change.repack, now_->home().graph->strategy(),
                            model_->layers())
               : presentStrategy(options_, *now_);
  }

  Status checkRanks(const SizedChange &next) const {
    const ExecutableGraph &home = *next.graphs().home().graph;
    const int processes = launchedProcesses();
    if (processes <= 1 || home.ranks() <= processes)
      return Status::ok();
    return Status::invalidArgument(
        formatText("strategy '%s' has %d ranks, but %d processes were started: "
                   "start as many as the run has ranks at most",
                   home.name(), home.ranks(), processes));
  }

  Session &session_;
  const int64_t limit_;
  const StepGraphs *now_;
  TrainOptions options_;
  const Model *model_;
  FrozenLayers frozen_;
  bool isGuess_ = false; ///< after an event of `auto`
};

/// Chooses and sizes the graphs of all changes.
StatusOr<std::vector<SizedChange>>
sizeChanges(Session &session, const std::vector<Change> &changes,
            int64_t limit) {
  ChangeSizes sizes(session, limit);
  std::vector<SizedChange> sized;
  for (const Change &change : changes) {
    auto next = sizes.size(change);
    DYNA_RETURN_IF_ERROR(inChange(change, next.status()));
    sized.push_back(std::move(*next));
  }
  return sized;
}

} // namespace

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
                             const std::vector<SizedChange> &sized,
                             int64_t limit) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  DYNA_ASSIGN_OR_RETURN(
      const SizedGraphs now,
      sizeGraphs(session, *session.model, session.options, regionLimit(limit)));
  session.graphSeconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  bool hasStages = now.chosen.home().graph->stages() > 1;
  for (const SizedChange &next : sized)
    hasStages |= next.graphs().home().graph->stages() > 1;
  // A run that moves went to one stage goes on there.
  if (!hasStages && !session.options.rebalance.empty() &&
      session.options.resume.empty())
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
    for (const SizedChange &next : sized)
      bytes = std::max(
          bytes, bytesOfAnyCut(next.graphs(), next.sized.regions, number));
    bytes = std::min(bytes, most);
  }
  return Status::ok();
}

/// Takes the least bytes of arenas for all changes.
static Status sizeArenas(Session &session, const std::vector<Change> &changes,
                         const std::vector<SizedChange> &sized, int64_t limit) {
  int ranks = session.home().graph->ranks();
  for (const SizedChange &next : sized)
    ranks = std::max(ranks, next.graphs().home().graph->ranks());
  ArenaSizes sizes(ranks, limit);
  const StepGraphs *now = session.graphs.get();
  for (size_t i = 0; i < sized.size(); ++i) {
    sizes.add(sized[i].sized);
    DYNA_RETURN_IF_ERROR(
        inChange(changes[i], sizes.addWay(*now, sized[i].graphs())));
    now = &sized[i].graphs();
  }
  session.arenasAtLeast = std::move(sizes).take();
  session.mostRanks = ranks;
  return Status::ok();
}

Status sizeMoves(Session &session) {
  const TrainOptions &options = session.options;
  DYNA_ASSIGN_OR_RETURN(const auto changes, changesOf(session));
  if (changes.empty() && options.repack.empty() && options.rebalance.empty())
    return Status::ok();
  if (session.hasRanges() &&
      (!options.repack.empty() || !options.rebalance.empty()))
    return Status::invalidArgument(
        formatText("--%s is about the one strategy of a run, but samples go to "
                   "strategies by their lengths here: give --strategy",
                   options.repack.empty() ? "rebalance" : "repack"));
  DYNA_ASSIGN_OR_RETURN(const int64_t limit, rankLimit(options));
  DYNA_ASSIGN_OR_RETURN(const auto sized, sizeChanges(session, changes, limit));
  DYNA_RETURN_IF_ERROR(sizeArenas(session, changes, sized, limit));
  if (options.repack.empty())
    session.mostRanks = 0;
  DYNA_ASSIGN_OR_RETURN(const auto repacks, parseRepacks(options.repack));
  const bool hasGoal =
      std::any_of(repacks.begin(), repacks.end(),
                  [](const Repack &repack) { return repack.goal.has_value(); });
  return options.rebalance.empty() && !hasGoal
             ? Status::ok()
             : reserveForCuts(session, sized, limit);
}

} // namespace dyna
