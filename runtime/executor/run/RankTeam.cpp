//===- RankTeam.cpp - Drives the ranks of this process --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/RankTeam.h"

#include "runtime/base/error/Guard.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace dyna {

void RankResources::abort(const Status &reason) const {
  for (Transport *wires : {transport.get(), hostTransport.get()})
    if (wires)
      wires->abort(reason);
}

StatusOr<std::unique_ptr<RankTeam>>
RankTeam::create(const std::vector<GraphUse> &graphs,
                 const dyna_variant &variant, std::vector<RankResources> ranks,
                 const ExecutorOptions &options) {
  std::unique_ptr<RankTeam> team(new RankTeam(graphs, options.sparseFrom));
  for (RankResources &own : ranks)
    team->ranks_.push_back({std::move(own), nullptr, nullptr});
  if (static_cast<int>(team->ranks_.size()) == team->worldRanks())
    for (size_t local = 0; local < team->ranks_.size(); ++local)
      team->turns_.emplace_back();
  DYNA_RETURN_IF_ERROR(team->onAllRanks([&](Rank &rank) {
    ExecutorOptions own = options;
    own.dynamicBytes = rank.own.dynamicBytes;
    own.reservedBytes = rank.own.reservedBytes;
    own.trace = rank.own.trace;
    own.transport = rank.own.transport.get();
    if (Transport *wires = rank.own.hostWires())
      rank.host = std::make_unique<HostExchange>(*wires);
    own.host = rank.host.get();
    own.turns = team->turns_.empty() ? nullptr : &team->turns_;
    DYNA_ASSIGN_OR_RETURN(
        rank.executor,
        Executor::create(graphs, variant, *rank.own.device, own));
    return Status::ok();
  }));
  return team;
}

RankTeam::~RankTeam() {
  // Leave before the arenas are freed, from which other ranks may still read.
  for (Rank &rank : ranks_)
    for (Transport *wires :
         {rank.own.transport.get(), rank.own.hostTransport.get()})
      if (wires)
        wires->leave();
}

Status RankTeam::onAllRanks(const std::function<Status(Rank &)> &body) {
  std::vector<Status> results(ranks_.size());
  // After an exception the other ranks do not know of the failure yet.
  auto run = [&](size_t local) {
    Status status = guarded([&] { return body(ranks_[local]); });
    if (!status.isOk())
      ranks_[local].own.abort(status);
    results[local] = std::move(status);
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks_.size());
  for (size_t local = 1; local < ranks_.size(); ++local) {
    auto thread = startThread("rank " + std::to_string(ranks_[local].own.rank),
                              [&, local] { run(local); });
    if (thread.isOk()) {
      threads.push_back(std::move(*thread));
      continue;
    }
    results[local] = thread.status();
    ranks_[local].own.abort(thread.status());
    break;
  }
  run(0);
  for (std::thread &thread : threads)
    thread.join();
  Status first;
  for (Status &result : results)
    if (!result.isOk() &&
        (first.isOk() || first.code() == StatusCode::PeerFailed))
      first = std::move(result);
  return first;
}

Status RankTeam::run(const VerifiedStep &step, const MiniBatch &miniBatch,
                     const StepScalars &scalars, StepResult &result) {
  return runAll(
      [&](Executor &rank, StepResult &own) {
        return rank.run(step, miniBatch, scalars, own);
      },
      result);
}

Status RankTeam::launch(const VerifiedStep &step, const MiniBatch &miniBatch,
                        const StepScalars &scalars) {
  return onAllRanks([&](Rank &rank) {
    return rank.executor->launch(step, miniBatch, scalars);
  });
}

Status RankTeam::finish(StepResult &result) {
  return runAll(
      [](Executor &rank, StepResult &own) { return rank.finish(own); }, result);
}

Status
RankTeam::runAll(const std::function<Status(Executor &, StepResult &)> &body,
                 StepResult &result) {
  results_.assign(ranks_.size(), {});
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) {
    return body(*rank.executor, results_[&rank - ranks_.data()]);
  }));
  result = results_[0];
  for (size_t local = 1; local < results_.size(); ++local) {
    result.flops += results_[local].flops;
    result.formulaFlops += results_[local].formulaFlops;
    result.keptBytes += results_[local].keptBytes;
    result.storeBytes += results_[local].storeBytes;
    result.liveBytes += results_[local].liveBytes;
    result.dynamicBytes += results_[local].dynamicBytes;
    result.switchBytes += results_[local].switchBytes;
    result.switchSeconds =
        std::max(result.switchSeconds, results_[local].switchSeconds);
    result.coreWaitSeconds =
        std::max(result.coreWaitSeconds, results_[local].coreWaitSeconds);
  }
  if (result.uses.size() <= results_.size())
    return Status::ok();
  // With ranks in other processes, `uses` has the numbers of all ranks.
  result.flops = result.switchSeconds = result.coreWaitSeconds = 0;
  result.switchBytes = 0;
  for (const RankUse &use : result.uses) {
    result.flops += use.flops;
    result.switchBytes += use.switchBytes;
    result.switchSeconds = std::max(result.switchSeconds, use.switchSeconds);
    result.coreWaitSeconds =
        std::max(result.coreWaitSeconds, use.coreWaitSeconds);
  }
  return Status::ok();
}

int RankTeam::worldRanks() const {
  const Transport *wires = ranks_.front().own.transport.get();
  return wires ? wires->ranks() : 1;
}

void RankTeam::setVersion(int64_t version) {
  for (Rank &rank : ranks_)
    rank.executor->setVersion(version);
}

Status RankTeam::checkReplacement(const Replacement &to) const {
  for (const Rank &rank : ranks_)
    DYNA_RETURN_IF_ERROR(rank.executor->checkReplacement(to));
  return Status::ok();
}

Status RankTeam::replace(const Replacement &to) {
  // Ask every rank before any of them begins.
  const Status refused = checkReplacement(to);
  DYNA_ASSIGN_OR_RETURN(auto isRefused, any({!refused.isOk()}));
  if (isRefused[0])
    return refused.isOk() ? Status(StatusCode::PeerFailed,
                                   "another process refuses the graphs")
                          : refused;
  Status status = onAllRanks(
      [&](Rank &rank) { return rank.executor->prepareReplacement(to); });
  // No rank may free its old tensors before all ranks have the new ones.
  if (status.isOk())
    status = any({false}).status();
  const bool isDone = status.isOk();
  for (Rank &rank : ranks_)
    if (Status ended = rank.executor->endReplacement(isDone); status.isOk())
      status = std::move(ended);
  if (isDone) {
    graphs_ = to.graphs;
    // Other ranks share devices now.
    for (DeviceTurns &turns : turns_)
      turns.restart();
  }
  DYNA_RETURN_IF_ERROR(status);
  return chooseForms();
}

StatusOr<std::vector<bool>> RankTeam::any(const std::vector<bool> &here) {
  if (static_cast<int>(ranks_.size()) == worldRanks())
    return here;
  std::vector<double> votes(here.begin(), here.end());
  DYNA_RETURN_IF_ERROR(ranks_.front().executor->sumOverRanks(votes));
  std::vector<bool> result;
  for (double vote : votes)
    result.push_back(vote > 0);
  return result;
}

Status RankTeam::shareFromFirst(std::vector<double> &values) {
  if (!hasRankZero())
    std::fill(values.begin(), values.end(), 0.0);
  return sum(values);
}

Status RankTeam::sum(std::vector<double> &values) {
  // One process has all ranks, or each process has one.
  return static_cast<int>(ranks_.size()) == worldRanks()
             ? Status::ok()
             : ranks_.front().executor->sumOverRanks(values);
}

void RankTeam::abort(const Status &reason) {
  for (Rank &rank : ranks_)
    rank.own.abort(reason);
}

RankTeam::Rank *RankTeam::findLocal(int rank) {
  for (Rank &local : ranks_)
    if (local.own.rank == rank)
      return &local;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

/// Cuts transfers into boxes of few bytes, of whole rows.
static std::vector<Transfer> cutRows(const std::vector<Transfer> &transfers,
                                     int64_t element) {
  std::vector<Transfer> cut;
  for (const Transfer &one : transfers) {
    int64_t row = std::max<int64_t>(one.box.size[1] * element, 1);
    int64_t rows = std::max<int64_t>(1, kRowChunkBytes / row);
    for (int64_t done = 0; done < one.box.size[0]; done += rows) {
      Transfer &piece = cut.emplace_back(one);
      piece.box.begin[0] += done;
      piece.box.size[0] = std::min(rows, one.box.size[0] - done);
    }
  }
  return cut;
}

/// Carries out transfers one after another. So every process meets its
/// transfers in one order, and holds at most one of them.
Status RankTeam::carry(const std::vector<Transfer> &transfers, int64_t element,
                       const Take &take, const Give &give) {
  std::vector<unsigned char> bytes;
  for (const Transfer &one : cutRows(transfers, element)) {
    Rank *source = findLocal(one.from), *target = findLocal(one.to);
    if (!source && !target)
      continue;
    bytes.resize(one.box.volume() * element);
    if (source)
      DYNA_RETURN_IF_ERROR(take(one.from, one.box, bytes.data()));
    const auto size = static_cast<int64_t>(bytes.size());
    if (!target)
      DYNA_RETURN_IF_ERROR(source->host->send(one.to, bytes.data(), size));
    if (!source)
      DYNA_RETURN_IF_ERROR(target->host->receive(one.from, bytes.data(), size));
    if (target)
      DYNA_RETURN_IF_ERROR(give(one.to, one.box, bytes.data()));
  }
  return Status::ok();
}

RankTeam::Take RankTeam::takeFromHome(int parameter, ParameterPart part) {
  return [this, parameter, part](int rank, const Box &box, void *bytes) {
    return findLocal(rank)->executor->seat().readBox(parameter, part, box,
                                                     bytes);
  };
}

//===----------------------------------------------------------------------===//
// Logical tensors
//===----------------------------------------------------------------------===//

int64_t RankTeam::logicalBytes(int parameter, ParameterPart part) const {
  return partElementBytes(
      model(), parameter,
      part == ParameterPart::Gradient ? ParameterPart::Master : part);
}

int64_t RankTeam::partBytes(int parameter, ParameterPart part) const {
  const bool trains =
      includes(graphs_.front().persistent, Persistent::Training);
  const bool exists =
      part == ParameterPart::Master ||
      (part == ParameterPart::Copy    ? model().hasCopy(parameter)
       : part == ParameterPart::Mask  ? trains && model().hasMask(parameter)
       : part == ParameterPart::Score ? trains && model().hasScores(parameter)
       : part == ParameterPart::Gradient
           ? trains && !model().isFrozen(parameter)
           : trains && model().hasMoments(parameter));
  return exists ? model().elements(parameter) * logicalBytes(parameter, part)
                : 0;
}

std::vector<RankBox> RankTeam::boxesOf(int parameter,
                                       ParameterPart part) const {
  return part == valuePart(model(), parameter)
             ? graph().currentBoxes(parameter)
             : graph().updatedBoxes(parameter);
}

std::vector<RowRange> RankTeam::rowChunks(int parameter,
                                          ParameterPart part) const {
  int64_t row = model().rowElements(parameter) * logicalBytes(parameter, part);
  int64_t count =
      std::max<int64_t>(1, kRowChunkBytes / std::max<int64_t>(row, 1));
  std::vector<RowRange> chunks;
  int64_t rows = partBytes(parameter, part) > 0 ? model().rows(parameter) : 0;
  for (int64_t begin = 0; begin < rows; begin += count)
    chunks.push_back({begin, std::min(rows, begin + count)});
  return chunks;
}

/// Copies `rows` rows of `bytes` bytes between tensors of other row sizes.
static void copyRows(const void *source, int64_t sourceRow, void *target,
                     int64_t targetRow, int64_t rows, int64_t bytes) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(static_cast<char *>(target) + r * targetRow,
                static_cast<const char *>(source) + r * sourceRow, bytes);
}

/// Returns an element of a tensor in its own type, or bf16 widened.
static float widen(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}
static float widen(float value) { return value; }
static double widen(double value) { return value; }

/// Adds `rows` rows of elements to a tensor of the type they widen to.
template <typename Stored>
static void addRows(const unsigned char *source, unsigned char *target,
                    int64_t targetRow, int64_t rows, int64_t elements) {
  for (int64_t r = 0; r < rows; ++r) {
    const Stored *from =
        reinterpret_cast<const Stored *>(source) + r * elements;
    auto *to =
        reinterpret_cast<decltype(widen(Stored())) *>(target + r * targetRow);
    for (int64_t i = 0; i < elements; ++i)
      to[i] += widen(from[i]);
  }
}

static void addGradientRows(plan::ElementType stored, const void *source,
                            unsigned char *target, int64_t targetRow,
                            int64_t rows, int64_t elements) {
  auto add = stored == plan::F64    ? addRows<double>
             : stored == plan::BF16 ? addRows<uint16_t>
                                    : addRows<float>;
  add(static_cast<const unsigned char *>(source), target, targetRow, rows,
      elements);
}

/// Rows of the logical tensor as a box.
static Box boxOfRows(const Model &model, int parameter, RowRange rows) {
  return {{rows.begin, 0}, {rows.count(), model.rowElements(parameter)}};
}

/// Returns the offset of a box in a buffer of these rows.
static int64_t offsetIn(const Box &rows, const Box &box) {
  Box local = box.relativeTo(rows);
  return local.begin[0] * rows.size[1] + local.begin[1];
}

Status RankTeam::readRows(int parameter, ParameterPart part, RowRange rows,
                          void *target) {
  const bool sums = part == ParameterPart::Gradient;
  const plan::ElementType stored = typeOf(model(), parameter, part);
  const int64_t size = logicalBytes(parameter, part);
  const Box wanted = boxOfRows(model(), parameter, rows);
  const int64_t whole = wanted.size[1] * size;
  auto give = [&](int, const Box &box, const void *bytes) {
    auto *at =
        static_cast<unsigned char *>(target) + offsetIn(wanted, box) * size;
    if (sums)
      addGradientRows(stored, bytes, at, whole, box.size[0], box.size[1]);
    else
      copyRows(bytes, box.size[1] * size, at, whole, box.size[0],
               box.size[1] * size);
    return Status::ok();
  };
  if (sums && hasRankZero())
    std::memset(target, 0, wanted.volume() * size);
  StatusOr<std::vector<Transfer>> transfers =
      sums ? planSum(graph().summandBoxes(parameter), {{0, wanted}})
           : planMove(boxesOf(parameter, part), {{0, wanted}});
  DYNA_RETURN_IF_ERROR(transfers.status());
  return carry(*transfers, partElementBytes(model(), parameter, part),
               takeFromHome(parameter, part), give);
}

Status RankTeam::writeRows(int parameter, ParameterPart part, RowRange rows,
                           const void *source) {
  const int64_t size = logicalBytes(parameter, part);
  const Box all = boxOfRows(model(), parameter, rows);
  std::vector<RankBox> from, to;
  for (Rank &rank : ranks_) {
    from.push_back({rank.own.rank, all});
    if (!rank.executor->hasPlace())
      continue;
    const GraphSeat &seat = rank.executor->seat();
    if (seat.view().holds(parameter))
      to.push_back(
          {rank.own.rank, intersect(all, seat.partBox(parameter, part))});
  }
  DYNA_ASSIGN_OR_RETURN(auto transfers, planMove(from, to));
  auto take = [&](int, const Box &box, void *bytes) {
    const char *at =
        static_cast<const char *>(source) + offsetIn(all, box) * size;
    copyRows(at, all.size[1] * size, bytes, box.size[1] * size, box.size[0],
             box.size[1] * size);
    return Status::ok();
  };
  auto give = [&](int rank, const Box &box, const void *bytes) {
    return findLocal(rank)->executor->seat().writeBox(parameter, part, box,
                                                      bytes);
  };
  return carry(transfers, size, take, give);
}

//===----------------------------------------------------------------------===//
// Forms of weights
//===----------------------------------------------------------------------===//

Status RankTeam::chooseForms() {
  for (int p = 0; p < model().parameters(); ++p)
    if (model().hasMask(p) && model().acceptsSparse(p))
      DYNA_RETURN_IF_ERROR(chooseForm(
          p, sparseFrom_ > 0 ? sparseFrom_
                             : sparseCrossing(model().computeType(p))));
  return Status::ok();
}

Status RankTeam::chooseForm(int parameter, double sparseFrom) {
  const std::vector<RankBox> whole = graph().boxes(parameter);
  // Under ZeRO a rank has masks of the rows that it updates, and reads all.
  DYNA_ASSIGN_OR_RETURN(auto transfers,
                        planMove(graph().updatedBoxes(parameter), whole));
  std::vector<Box> boxes(ranks_.size());
  std::vector<std::vector<uint8_t>> masks(ranks_.size());
  for (const RankBox &one : whole)
    if (Rank *rank = findLocal(one.rank)) {
      const size_t local = rank - ranks_.data();
      boxes[local] = one.box;
      masks[local].resize(static_cast<size_t>(one.box.volume()));
    }
  auto give = [&](int rank, const Box &box, const void *bytes) {
    const size_t local = findLocal(rank) - ranks_.data();
    copyRows(bytes, box.size[1],
             masks[local].data() + offsetIn(boxes[local], box),
             boxes[local].size[1], box.size[0], box.size[1]);
    return Status::ok();
  };
  DYNA_RETURN_IF_ERROR(
      carry(transfers, 1, takeFromHome(parameter, ParameterPart::Mask), give));
  return onAllRanks([&](Rank &rank) {
    const std::vector<uint8_t> &mask = masks[&rank - ranks_.data()];
    return mask.empty() ? Status::ok()
                        : rank.executor->seat().chooseForm(
                              parameter, mask.data(), sparseFrom);
  });
}

int64_t RankTeam::takenBytes() const {
  int64_t bytes = 0;
  for (const Rank &rank : ranks_)
    bytes += rank.executor->takenBytes();
  return bytes;
}

int64_t RankTeam::persistentBytes() const {
  int64_t bytes = 0;
  for (const Rank &rank : ranks_)
    bytes += rank.executor->persistentBytes();
  return bytes;
}

} // namespace dyna
