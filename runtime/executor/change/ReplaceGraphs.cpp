//===- ReplaceGraphs.cpp - Replaces graphs between two steps --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All that can be refused is refused before any rank does anything. The state is then
// carried to the other end of the arena, while the present graphs keep theirs. Only
// when all ranks have all of it, each of them goes over to the next graphs.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/executor/run/Executor.h"

namespace dyna {

/// Bytes of the tensors that stay on a rank; none on one without a place.
static int64_t persistentBytesOn(const GraphUse &home, int rank) {
  return rank < home.graph->ranks()
             ? persistentLayout(home.graph->rankView(rank), home.persistent)
                   .bytes
             : 0;
}

/// Bytes of the region that plans use on a rank.
static int64_t regionOn(const Replacement &to, int rank) {
  return rank < static_cast<int>(to.regionBytes.size()) ? to.regionBytes[rank]
                                                        : 0;
}

Status Executor::checkReplacement(const Replacement &to) const {
  if (!launched_.empty())
    return Status::internal("graphs are replaced while a step is in flight");
  if (to.graphs.empty() || !to.state)
    return Status::internal("a replacement needs graphs and their state");
  const Model &model = to.home().model();
  if (model.compiledHash() != modelHash_)
    return Status::invalidArgument(
        formatText("strategy '%s' is of model %016x, but this run has %016x: "
                   "graphs can only be replaced by those of the same model",
                   to.home().name(), model.compiledHash(), modelHash_));
  DYNA_RETURN_IF_ERROR(checkGraphs(to.graphs, /*mayHaveFewer=*/true));
  const int rank = machine_.rank();
  if (to.state->sides.size() != static_cast<size_t>(machine_.ranks()))
    return Status::internal("the state's switch is for other ranks");
  auto next =
      nextParts(machine_.parts(), persistentBytesOn(to.graphs.front(), rank),
                to.state->sides[rank].passedBytes);
  if (next.isOk())
    return Status::ok();
  return Status(next.status().code(),
                formatText("rank %d, on its way to strategy '%s', %s", rank,
                           to.home().name(), next.status().message()));
}

Status Executor::prepareReplacement(const Replacement &to) {
  auto prepare = [&]() -> Status {
    const int rank = machine_.rank();
    auto next = std::make_unique<NextGraphs>();
    DYNA_ASSIGN_OR_RETURN(NextParts parts,
                          nextParts(machine_.parts(),
                                    persistentBytesOn(to.graphs.front(), rank),
                                    to.state->sides[rank].passedBytes));
    next->parts = parts.parts;
    next->regionBytes =
        rank >= to.home().ranks() ? 0
        : to.regionBytes.empty()
            ? next->parts.regionBytes
            : std::min(regionOn(to, rank), next->parts.regionBytes);
    machine_.noteUse(machine_.parts().persistentBytes +
                     next->parts.persistentBytes +
                     to.state->sides[rank].passedBytes);
    next->ranks = to.home().ranks();
    next->version = to.version;
    GraphSeat *behind = nullptr;
    if (rank < to.home().ranks()) {
      machine_.device().team().wake();
      next->seats = makeSeats(to.graphs, next->parts.persistent);
      behind = next->seats.front().get();
      DYNA_RETURN_IF_ERROR(connect(next->seats));
    }
    // All other bytes arrive, or are gathered before layers read them.
    if (behind)
      DYNA_RETURN_IF_ERROR(behind->clearGradients());
    DYNA_RETURN_IF_ERROR(SwitchCarrier(machine_).carryState(
        *to.state, hasPlace() ? &seat() : nullptr, behind, parts.transit,
        to.bytesUnderWay));
    DYNA_RETURN_IF_ERROR(machine_.synchronize());
    // A rank that sends nothing does not notice otherwise that a rank was lost.
    if (options_.transport)
      DYNA_RETURN_IF_ERROR(options_.transport->progress());
    next_ = std::move(next);
    return Status::ok();
  };
  const Moment before = options_.trace ? now() : Moment();
  const Status status = prepare();
  if (options_.trace)
    traceBetweenSteps("MOVE", "move", to.step, before);
  if (!status.isOk() && options_.transport)
    options_.transport->abort(status);
  return status;
}

Status Executor::endReplacement(bool isDone) {
  std::unique_ptr<NextGraphs> next = std::move(next_);
  if (!isDone || !next)
    return Status::ok();
  seats_ = std::move(next->seats);
  activeRanks_ = next->ranks;
  version_ = next->version;
  endedTurns_ = 0;
  DYNA_RETURN_IF_ERROR(machine_.layOut(next->parts, next->regionBytes));
  if (!hasPlace())
    machine_.device().team().rest();
  if (memoryCheck_)
    memoryCheck_ = std::make_unique<MemoryCheck>(machine_);
  return Status::ok();
}

} // namespace dyna
