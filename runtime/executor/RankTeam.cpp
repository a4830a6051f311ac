//===- RankTeam.cpp - The ranks of this process -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankTeam.h"

#include "runtime/base/Guard.h"
#include "runtime/executor/Staging.h"
#include "runtime/plan/PlanVerifier.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dyna {

StatusOr<std::unique_ptr<RankTeam>>
RankTeam::create(const ExecutableGraph &graph, const dyna_variant &variant,
                 std::vector<RankSeat> seats, const ExecutorOptions &options) {
  std::unique_ptr<RankTeam> team(new RankTeam(graph));
  for (RankSeat &seat : seats) {
    auto view = std::make_unique<ManifestView>(graph.rankView(seat.rank));
    team->ranks_.push_back({std::move(seat), std::move(view), nullptr});
  }
  DYNA_RETURN_IF_ERROR(team->onAllRanks([&](Rank &rank) {
    ExecutorOptions own = options;
    own.dynamicBytes = rank.seat.dynamicBytes;
    own.trace = rank.seat.trace;
    own.graph = &graph;
    own.transport = rank.seat.transport.get();
    own.plansAreVerified = true;
    auto executor =
        Executor::create(*rank.view, variant, *rank.seat.device, own);
    if (!executor.isOk()) {
      if (own.transport)
        own.transport->abort(executor.status());
      return executor.status();
    }
    rank.executor = std::move(*executor);
    return Status::ok();
  }));
  return team;
}

RankTeam::~RankTeam() {
  // While the arenas are there, from which others may still read.
  for (Rank &rank : ranks_)
    if (rank.seat.transport)
      rank.seat.transport->leave();
}

Status RankTeam::onAllRanks(const std::function<Status(Rank &)> &body) {
  std::vector<Status> results(ranks_.size());
  // Who ends by an exception has told nobody.
  auto run = [&](size_t local) {
    Status status = guarded([&] { return body(ranks_[local]); });
    if (!status.isOk() && ranks_[local].seat.transport)
      ranks_[local].seat.transport->abort(status);
    results[local] = std::move(status);
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks_.size());
  for (size_t local = 1; local < ranks_.size(); ++local) {
    auto thread = startThread("rank " + std::to_string(ranks_[local].seat.rank),
                              [&, local] { run(local); });
    if (thread.isOk()) {
      threads.push_back(std::move(*thread));
      continue;
    }
    results[local] = thread.status();
    ranks_[local].seat.transport->abort(thread.status());
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

Status RankTeam::run(const plan::Plan &plan, const MiniBatch &miniBatch,
                     const StepScalars &scalars, StepResult &result) {
  // Each executor compares its own program with its own arena.
  VerifyOptions options = {maxBlockBytes, -1, countTargets(miniBatch)};
  if (Status status = verifyPlan(graph_, plan, miniBatch.lengths(), options);
      !status.isOk()) {
    abort(status);
    return status;
  }
  results_.assign(ranks_.size(), {});
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) {
    return rank.executor->run(plan, miniBatch, scalars,
                              results_[&rank - ranks_.data()]);
  }));
  result = results_[0];
  for (size_t local = 1; local < results_.size(); ++local) {
    result.flops += results_[local].flops;
    result.formulaFlops += results_[local].formulaFlops;
    result.keptBytes += results_[local].keptBytes;
    result.liveBytes += results_[local].liveBytes;
    result.dynamicBytes += results_[local].dynamicBytes;
  }
  return Status::ok();
}

StatusOr<std::vector<bool>> RankTeam::any(const std::vector<bool> &here) {
  if (static_cast<int>(ranks_.size()) == graph_.ranks())
    return here;
  std::vector<double> votes(here.begin(), here.end());
  DYNA_RETURN_IF_ERROR(ranks_.front().executor->sumOverRanks(votes));
  std::vector<bool> result;
  for (double vote : votes)
    result.push_back(vote > 0);
  return result;
}

void RankTeam::abort(const Status &reason) {
  for (Rank &rank : ranks_)
    if (rank.seat.transport)
      rank.seat.transport->abort(reason);
}

RankTeam::Rank *RankTeam::findLocal(int rank) {
  for (Rank &local : ranks_)
    if (local.seat.rank == rank)
      return &local;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Logical tensors
//===----------------------------------------------------------------------===//

int64_t RankTeam::elementSize(int parameter, ParameterPart part) const {
  return elementBytes(part == ParameterPart::Copy
                          ? view().computeType(parameter)
                          : view().masterType());
}

/// Of what an executor holds: gradients may be narrower than their sum.
int64_t RankTeam::storedSize(int parameter, ParameterPart part) const {
  return part == ParameterPart::Gradient ? elementBytes(view().gradientType())
                                         : elementSize(parameter, part);
}

int64_t RankTeam::partBytes(int parameter, ParameterPart part) const {
  const Executor &any = *ranks_.front().executor;
  bool exists = part == ParameterPart::Master ||
                (part == ParameterPart::Copy ? view().hasCopy(parameter)
                                             : any.options().training);
  return exists ? view().elements(parameter) * elementSize(parameter, part) : 0;
}

/// Rows that are up to date: with ZeRO those that each holder updates, else all
/// of the first holder's. Every holder adds to a gradient.
std::vector<RankTeam::Piece> RankTeam::pieces(int parameter,
                                              ParameterPart part) const {
  std::vector<Piece> pieces;
  bool all = part == ParameterPart::Gradient;
  bool shares = !all && graph_.strategy().zero;
  for (const std::vector<int> &holders : graph_.copiesOf(parameter)) {
    int64_t count = static_cast<int64_t>(holders.size());
    int64_t rows = graph_.replicaView(holders[0]).rows(parameter);
    for (int64_t index = 0; index < count; ++index)
      if (shares)
        pieces.push_back({holders[index], partBegin(rows, count, index),
                          partBegin(rows, count, index + 1)});
      else if (all || index == 0)
        pieces.push_back({holders[index], 0, rows});
  }
  return pieces;
}

Status RankTeam::fetch(const Piece &piece, int parameter, ParameterPart part,
                       std::vector<unsigned char> &rows) {
  int64_t row = graph_.replicaView(piece.rank).rowElements(parameter) *
                storedSize(parameter, part);
  rows.resize((piece.end - piece.begin) * row);
  Rank *source = findLocal(piece.rank), *target = findLocal(0);
  if (source && !rows.empty())
    DYNA_RETURN_IF_ERROR(source->executor->readRows(
        parameter, part, {piece.begin, piece.end}, rows.data()));
  if ((source && target) || (!source && !target))
    return Status::ok();
  Transport &transport = *(source ? source : target)->seat.transport;
  constexpr int32_t tag = Transport::kLargestTag;
  int64_t bytes = static_cast<int64_t>(rows.size());
  DYNA_ASSIGN_OR_RETURN(
      Ticket ticket,
      source ? transport.startSend(0, tag, rows.data(), bytes, nullptr)
             : transport.startReceive(piece.rank, tag, rows.data(), bytes,
                                      nullptr));
  return transport.wait(ticket, nullptr, transport.deadline());
}

/// Copies `rows` rows of `bytes` bytes between tensors of other row sizes.
static void copyRows(const unsigned char *source, int64_t sourceRow,
                     unsigned char *target, int64_t targetRow, int64_t rows,
                     int64_t bytes) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(target + r * targetRow, source + r * sourceRow, bytes);
}

/// The element of a tensor in its own type, or bf16 widened.
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

static void addGradientRows(plan::ElementType stored,
                            const unsigned char *source, unsigned char *target,
                            int64_t targetRow, int64_t rows, int64_t elements) {
  auto add = stored == plan::F64    ? addRows<double>
             : stored == plan::BF16 ? addRows<uint16_t>
                                    : addRows<float>;
  add(source, target, targetRow, rows, elements);
}

std::vector<Executor::Rows> RankTeam::rowChunks(int parameter,
                                                ParameterPart part) const {
  int64_t row = view().rowElements(parameter) * elementSize(parameter, part);
  int64_t count =
      std::max<int64_t>(1, kRowChunkBytes / std::max<int64_t>(row, 1));
  std::vector<Executor::Rows> chunks;
  int64_t rows = partBytes(parameter, part) > 0 ? view().rows(parameter) : 0;
  for (int64_t begin = 0; begin < rows; begin += count)
    chunks.push_back({begin, std::min(rows, begin + count)});
  return chunks;
}

Status RankTeam::readRows(int parameter, ParameterPart part,
                          Executor::Rows rows, void *target) {
  int64_t size = elementSize(parameter, part);
  int64_t whole = view().rowElements(parameter) * size;
  if (hasRankZero())
    std::memset(target, 0, (rows.end - rows.begin) * whole);
  std::vector<unsigned char> found;
  for (Piece piece : pieces(parameter, part)) {
    const RankPart::Parameter &place =
        graph_.replicaView(piece.rank).place(parameter);
    piece.begin = std::max(piece.begin, rows.begin - place.firstRow);
    piece.end = std::min(piece.end, rows.end - place.firstRow);
    if (piece.begin >= piece.end)
      continue;
    DYNA_RETURN_IF_ERROR(fetch(piece, parameter, part, found));
    if (!hasRankZero())
      continue;
    unsigned char *at = static_cast<unsigned char *>(target) +
                        (place.firstRow + piece.begin - rows.begin) * whole +
                        place.firstColumn * size;
    int64_t count = piece.end - piece.begin;
    if (part != ParameterPart::Gradient)
      copyRows(found.data(), place.rowElements * size, at, whole, count,
               place.rowElements * size);
    else
      addGradientRows(view().gradientType(), found.data(), at, whole, count,
                      place.rowElements);
  }
  return Status::ok();
}

Status RankTeam::writeRows(int parameter, ParameterPart part,
                           Executor::Rows rows, const void *source) {
  int64_t size = elementSize(parameter, part);
  int64_t whole = view().rowElements(parameter) * size;
  std::vector<unsigned char> local;
  for (Rank &rank : ranks_) {
    if (!rank.view->holds(parameter))
      continue;
    const RankPart::Parameter &place = rank.view->place(parameter);
    Executor::Rows own = rank.executor->partRows(parameter, part);
    own.begin = std::max(own.begin, rows.begin - place.firstRow);
    own.end = std::min(own.end, rows.end - place.firstRow);
    if (own.begin >= own.end)
      continue;
    int64_t row = place.rowElements * size;
    local.resize((own.end - own.begin) * row);
    copyRows(static_cast<const unsigned char *>(source) +
                 (place.firstRow + own.begin - rows.begin) * whole +
                 place.firstColumn * size,
             whole, local.data(), row, own.end - own.begin, row);
    DYNA_RETURN_IF_ERROR(
        rank.executor->writeRows(parameter, part, own, local.data()));
  }
  return Status::ok();
}

Status RankTeam::readPart(int parameter, ParameterPart part, void *target) {
  return readRows(parameter, part, {0, view().rows(parameter)}, target);
}

Status RankTeam::writePart(int parameter, ParameterPart part,
                           const void *source) {
  return writeRows(parameter, part, {0, view().rows(parameter)}, source);
}

int64_t RankTeam::arenaBytes() const {
  int64_t bytes = 0;
  for (const Rank &rank : ranks_)
    bytes += rank.executor->arenaBytes();
  return bytes;
}

int64_t RankTeam::persistentBytes() const {
  int64_t bytes = 0;
  for (const Rank &rank : ranks_)
    bytes += rank.executor->persistentBytes();
  return bytes;
}

} // namespace dyna
