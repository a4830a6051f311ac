//===- PlanVerifier.cpp - Verifies a plan before it runs ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/PlanRules.h"
#include "runtime/plan/verify/ExchangeChecker.h"
#include "runtime/plan/verify/MemoryChecker.h"
#include "runtime/plan/verify/OrderChecker.h"
#include "runtime/plan/verify/SliceOrder.h"
#include "runtime/plan/verify/TurnChecker.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

using plan::Instruction;

/// Adds words before the text of a failure.
Status prefixed(const std::string &words, const Status &status) {
  std::string what = status.message().substr(std::string("plan: ").size());
  return Status(status.code(), "plan: " + words + ": " + what);
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// Verifies P2.
Status checkTargets(const plan::Plan &plan, const std::vector<int64_t> &lengths,
                    int64_t targets, bool isPhase) {
  int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  if (targets >= 0 && plan.targetTokens != targets)
    return refuse(PlanRule::Covered,
                  formatText("counts %d targets, but the mini-batch has %d",
                             plan.targetTokens, targets));
  if (targets < 0 && tokens > 0 && plan.targetTokens == 0)
    return refuse(PlanRule::Covered,
                  "counts no targets, but a loss is divided by their number");
  if (plan.targetTokens < 0 || (plan.targetTokens > tokens && !isPhase))
    return refuse(PlanRule::Covered,
                  formatText("counts %d targets, but the mini-batch has %d "
                             "tokens",
                             plan.targetTokens, tokens));
  return Status::ok();
}

/// Verifies P2: after its last position a model's table has no row to look up.
Status checkLengths(const Model &model, const std::vector<int64_t> &lengths) {
  int64_t positions = model.manifest().facts().positions();
  // This limit keeps sums of lengths from overflowing.
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (lengths[sample] < 0 || lengths[sample] > maxMicroBatchTokens)
      return refuse(
          PlanRule::Covered,
          formatText("sample %d has %d tokens, but 0 to %d are possible",
                     sample, lengths[sample], maxMicroBatchTokens));
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (positions > 0 && lengths[sample] > positions)
      return refuse(PlanRule::Covered,
                    formatText("sample %d has %d tokens, but the model has "
                               "%d positions",
                               sample, lengths[sample], positions));
  return Status::ok();
}

/// Verifies P2 of a segment that is longer than its sample.
Status checkPadding(const Model &model, int m, const plan::Segment &segment) {
  const int64_t positions = model.manifest().facts().positions();
  if (segment.length > maxMicroBatchTokens ||
      (positions > 0 && segment.length > positions))
    return refuse(PlanRule::Covered,
                  formatText("micro-batch %d pads sample %d to %d tokens, at "
                             "most %d are possible",
                             m, segment.sample, segment.length,
                             positions > 0
                                 ? std::min(positions, maxMicroBatchTokens)
                                 : maxMicroBatchTokens));
  for (const plan::LayerKind &kind : model.manifest().kinds())
    if (looksBehind(kind))
      return refuse(
          PlanRule::Covered,
          formatText("micro-batch %d pads sample %d, but '%s' has "
                     "attention that is not causal and would look there",
                     m, segment.sample, kind.name()));
  return Status::ok();
}

/// Verifies P2: models have one stream of tokens today.
Status checkStreams(int m, const plan::Segment &segment) {
  if (segment.stream != 0)
    return refuse(
        PlanRule::Covered,
        formatText("micro-batch %d takes tokens of stream %d of sample "
                   "%d: a model has stream 0 alone",
                   m, segment.stream, segment.sample));
  if (segment.keyStream != 0)
    return refuse(
        PlanRule::Covered,
        formatText("micro-batch %d gives sample %d keys of stream %d: "
                   "cross-attention is not supported yet",
                   m, segment.sample, segment.keyStream));
  return Status::ok();
}

/// Verifies P2 of a segment that has not all tokens of its sample.
Status checkSlice(const Model &model, int m, const plan::Segment &segment) {
  for (const plan::LayerKind &kind : model.manifest().kinds()) {
    if (looksBehind(kind))
      return refuse(
          PlanRule::Covered,
          formatText("micro-batch %d takes a slice of sample %d, but '%s' has "
                     "attention that is not causal and looks at later slices",
                     m, segment.sample, kind.name()));
    if (lacksKeyStore(kind))
      return refuse(
          PlanRule::Covered,
          formatText("micro-batch %d takes a slice of sample %d, but '%s' has "
                     "no store for the keys of slices; compile the model again",
                     m, segment.sample, kind.name()));
  }
  return Status::ok();
}

/// Verifies P2: the tokens of the segment are in range.
Status checkKeys(int m, const plan::Segment &segment) {
  if (segment.keyBegin < -maxMicroBatchTokens ||
      segment.keyBegin > maxMicroBatchTokens ||
      segment.keyEnd > maxMicroBatchTokens ||
      segment.keyEnd < plan::Segment::ownEnd)
    return refuse(PlanRule::Covered,
                  formatText("micro-batch %d gives sample %d keys out of range",
                             m, segment.sample));
  const TokenRange keys = segment.keys();
  const int64_t end = segment.queries().end();
  if (keys.begin != 0 || keys.length != end)
    return refuse(
        PlanRule::Covered,
        formatText("micro-batch %d gives sample %d keys [%d, +%d), but "
                   "its tokens up to the segment's last are [0, +%d)",
                   m, segment.sample, keys.begin, keys.length, end));
  return Status::ok();
}

/// Tokens of a sample that the segments so far cover.
struct Covered {
  int64_t tokens = 0;
  int microBatch = -1; ///< of the last segment
  bool isWhole = false;
};

/// Verifies P2: segments of a sample follow each other without gap or overlap.
Status cover(const plan::Plan &plan, int m, const plan::Segment &segment,
             int64_t tokens, Covered &covered) {
  const int64_t sample = segment.sample;
  if (covered.isWhole)
    return refuse(PlanRule::Covered,
                  formatText("sample %d is in two segments, the second in "
                             "micro-batch %d",
                             sample, m));
  if (segment.begin != covered.tokens)
    return refuse(PlanRule::Covered,
                  formatText("micro-batch %d takes tokens of sample %d from %d "
                             "on, but micro-batches before it end at %d",
                             m, sample, segment.begin, covered.tokens));
  if (covered.microBatch == m)
    return refuse(
        PlanRule::Covered,
        formatText("micro-batch %d has two slices of sample %d", m, sample));
  if (covered.microBatch >= 0 &&
      plan.microBatches[covered.microBatch].replica !=
          plan.microBatches[m].replica)
    return refuse(PlanRule::Covered,
                  formatText("slices of sample %d are in micro-batches %d and "
                             "%d of two replicas",
                             sample, covered.microBatch, m));
  covered.tokens += segment.length;
  covered.microBatch = m;
  covered.isWhole = covered.tokens >= tokens;
  return Status::ok();
}

/// Verifies P2.
Status checkSegments(const Model &model, const plan::Plan &plan,
                     const std::vector<int64_t> &lengths) {
  std::vector<Covered> covered(lengths.size());
  if (plan.microBatches.size() > static_cast<size_t>(plan::maxMicroBatches))
    return refuse(PlanRule::Covered,
                  formatText("has %d micro-batches, at most %d are possible",
                             plan.microBatches.size(), plan::maxMicroBatches));
  for (int m = 0; m < plan.microBatchCount(); ++m) {
    int64_t tokens = 0;
    for (const plan::Segment &segment : plan.microBatches[m].segments) {
      int64_t sample = segment.sample;
      if (sample < 0 || sample >= static_cast<int64_t>(lengths.size()))
        return refuse(PlanRule::Covered,
                      formatText("micro-batch %d names sample %d of %d", m,
                                 sample, lengths.size()));
      const bool isPadded =
          segment.begin == 0 && segment.length > lengths[sample];
      if (isPadded)
        DYNA_RETURN_IF_ERROR(checkPadding(model, m, segment));
      else if (segment.begin < 0 || segment.length < 0 ||
               segment.length > lengths[sample] ||
               segment.begin > lengths[sample] - segment.length)
        return refuse(PlanRule::Covered,
                      formatText("micro-batch %d takes tokens [%d, +%d) of "
                                 "sample %d, which has %d",
                                 m, segment.begin, segment.length, sample,
                                 lengths[sample]));
      DYNA_RETURN_IF_ERROR(checkStreams(m, segment));
      DYNA_RETURN_IF_ERROR(checkKeys(m, segment));
      if (segment.length == 0 && lengths[sample] > 0)
        return refuse(
            PlanRule::Covered,
            formatText("micro-batch %d has an empty slice of sample %d", m,
                       sample));
      DYNA_RETURN_IF_ERROR(
          cover(plan, m, segment, lengths[sample], covered[sample]));
      if (segment.length < lengths[sample])
        DYNA_RETURN_IF_ERROR(checkSlice(model, m, segment));
      tokens += segment.length;
    }
    if (tokens > maxMicroBatchTokens)
      return refuse(PlanRule::Covered,
                    formatText("micro-batch %d has %d tokens, at most %d are "
                               "possible",
                               m, tokens, maxMicroBatchTokens));
  }
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (!covered[sample].isWhole)
      return refuse(
          PlanRule::Covered,
          covered[sample].microBatch < 0
              ? formatText("sample %d is in no micro-batch", sample)
              : formatText("micro-batches have only the first %d of %d tokens "
                           "of sample %d",
                           covered[sample].tokens, lengths[sample], sample));
  return Status::ok();
}

/// Verifies P6: fields of instructions, ranges of layers and micro-batches, and
/// existence of functions.
Status checkInstructions(const RankView &view, const plan::Plan &plan,
                         const plan::RankProgram &program, int &index) {
  for (index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    auto bad = [&](const std::string &what) {
      return refuse(PlanRule::There, formatText("instruction %d (%s)%s", index,
                                                describeInstruction(i), what));
    };
    if (i.op <= Instruction::OP_UNKNOWN || i.op > Instruction::Op_MAX)
      return bad(" is not known");
    for (int number = 0; number < fieldCount; ++number) {
      auto field = static_cast<Field>(number);
      int64_t value = fieldOf(i, field);
      if (value != 0 && !hasField(i.op, field))
        return bad(formatText(" has no '%s', but it is %d; it has %s",
                              fieldName(field), value, listFields(i.op)));
      if (value == 0 && needsField(i.op, field))
        return bad(formatText(" needs '%s'", fieldName(field)));
    }
    const bool isMessage = exchangeOf(i.op).isMessage();
    const int layers = isMessage ? view.model().edges() : view.layers();
    if (i.layer < 0 || i.layer >= layers)
      return bad(formatText(": there are %d layers", layers));
    if (hasField(i.op, Field::Parameter) && view.hasLayer(i.layer) &&
        (i.parameter < 0 ||
         i.parameter > view.layer(i.layer).parameters_size()))
      return bad(formatText(": its layer has %d parameters",
                            view.layer(i.layer).parameters_size()));
    if (namesLayer(i.op) && !isMessage && !view.hasLayer(i.layer))
      return bad(formatText(": this rank has layers %d to %d",
                            view.firstLayer(), view.endLayer() - 1));
    if (isPerMicroBatch(i.op) &&
        (i.microBatch < 0 || i.microBatch >= plan.microBatchCount()))
      return bad(
          formatText(": there are %d micro-batches", plan.microBatchCount()));
    if (i.recompute < plan::RECOMPUTE_NONE ||
        i.recompute > plan::RECOMPUTE_FULL)
      return bad(": unknown recompute mode");
    if (int role = roleOf(i); role >= 0 && !view.hasRole(i.layer, role))
      return bad(": its layer kind '" + view.kind(i.layer).name() +
                 "' has no such function");
  }
  return Status::ok();
}

/// Adds the instruction to a failure: "plan: instruction 4 (FORWARD ...):
/// what".
Status atInstruction(const Status &status, int index, const Instruction &i) {
  return prefixed(
      formatText("instruction %d (%s)", index, describeInstruction(i)), status);
}

/// Notes where the program fails, if it does.
Status at(const VerifyOptions &options, int rank, int index, Status status) {
  if (options.failedAt && !status.isOk())
    *options.failedAt = {rank, index};
  return status;
}

/// Verifies P3 to P8 of one rank.
Status verifyProgram(const RankView &view, const plan::Plan &plan, int rank,
                     const std::vector<int> &microBatches,
                     const VerifyOptions &options) {
  const plan::RankProgram &program = plan.ranks[rank];
  const int64_t limit = options.limits.empty()
                            ? maxBlockBytes
                            : std::min(maxBlockBytes, options.limits[rank]);
  if (program.dynamicBytes < 0 || program.dynamicBytes > limit)
    return at(
        options, rank, -1,
        refuse(PlanRule::Fits, formatText("needs %d bytes, but the limit is %d",
                                          program.dynamicBytes, limit)));
  int index = -1;
  if (Status status = checkInstructions(view, plan, program, index);
      !status.isOk())
    return at(options, rank, index, status);
  auto order = OrderChecker::create(
      view, microBatches,
      {options.isPhase, options.isSwitched, options.updates});
  ProgramBlocks blocks(view, plan, program);
  SliceOrder slices(view, blocks.bundles());
  MemoryChecker memory(blocks, program.dynamicBytes);
  for (index = 0; index < program.count(); ++index) {
    const Instruction &i = program.instructions[index];
    if (Status status = order->step(i); !status.isOk())
      return at(options, rank, index, atInstruction(status, index, i));
    if (Status status = slices.step(i); !status.isOk())
      return at(options, rank, index, atInstruction(status, index, i));
    if (Status status = memory.step(index, i); !status.isOk())
      return at(options, rank, index, atInstruction(status, index, i));
  }
  if (Status status = order->finish(); !status.isOk())
    return at(options, rank, -1, status);
  if (Status status = memory.finish(); !status.isOk())
    return at(options, rank, -1, status);
  // Places of a phase are verified together with its step.
  if (!options.isPhase && !(program.places == plan::PhasePlaces()))
    return at(
        options, rank, -1,
        refuse(PlanRule::There, "has places of a phase, but stands alone"));
  return Status::ok();
}

/// Adds the rank to a failure, if there are several.
Status onRank(Status status, int rank, int ranks) {
  if (status.isOk() || ranks == 1)
    return status;
  return prefixed(formatText("rank %d", rank), status);
}

Status checkRanks(const plan::Plan &plan, int ranks) {
  if (plan.rankCount() != ranks)
    return refuse(PlanRule::Made,
                  ranks == 1 ? formatText("expects one rank, but has %d",
                                          plan.rankCount())
                             : formatText("expects %d ranks, but has %d", ranks,
                                          plan.rankCount()));
  return Status::ok();
}

/// Verifies P5 between ranks: either all ranks with parameters update them, or
/// none does.
Status checkUpdates(const ExecutableGraph &graph, const plan::Plan &plan) {
  int with = -1, without = -1;
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    const RankView &view = graph.replicaView(rank);
    bool owns = false, updates = false;
    for (int l = view.firstLayer(); l < view.endLayer(); ++l)
      owns |= view.ownsParameters(l);
    for (const Instruction &i : plan.ranks[rank].instructions)
      updates |= i.op == Instruction::UPDATE;
    if (owns)
      (updates ? with : without) = rank;
  }
  if (with < 0 || without < 0)
    return Status::ok();
  return refuse(PlanRule::Updated,
                formatText("rank %d updates no parameters, but rank %d does",
                           without, with));
}

/// Verifies P3 between micro-batches. One plan has one loss, divided by all
/// targets: training on some alone would give their gradients too little
/// weight.
Status checkPurpose(const plan::Plan &plan, PlanPosition &failedAt) {
  const Instruction *first = nullptr;
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    for (int index = 0; index < plan.ranks[rank].count(); ++index) {
      const Instruction &i = plan.ranks[rank].instructions[index];
      if (i.op != Instruction::FORWARD && i.op != Instruction::EVALUATE)
        continue;
      if (!first)
        first = &i;
      if (first->op == i.op)
        continue;
      failedAt = {rank, index};
      bool evaluates = i.op == Instruction::EVALUATE;
      return refuse(PlanRule::Ordered,
                    formatText("micro-batch %d is %s, but micro-batch %d is "
                               "%s: a plan trains on "
                               "all or evaluates all",
                               i.microBatch,
                               evaluates ? "evaluated" : "trained on",
                               first->microBatch,
                               evaluates ? "trained on" : "evaluated"));
    }
  return Status::ok();
}

Status checkReplicas(const plan::Plan &plan, int replicas) {
  for (int m = 0; m < plan.microBatchCount(); ++m)
    if (int replica = plan.microBatches[m].replica;
        replica < 0 || replica >= replicas)
      return refuse(PlanRule::Covered,
                    formatText("micro-batch %d is for replica %d of %d", m,
                               replica, replicas));
  return Status::ok();
}

} // namespace

Status verifyRanks(const ExecutableGraph &graph, const plan::Plan &plan,
                   const std::vector<int> &ranks,
                   const std::vector<int64_t> &lengths,
                   const VerifyOptions &options) {
  const Model &model = graph.model();
  if (plan.manifestHash != model.hash())
    return refuse(PlanRule::Made,
                  formatText("made for model %016x, but this is %016x",
                             plan.manifestHash, model.hash()));
  DYNA_RETURN_IF_ERROR(checkRanks(plan, graph.ranks()));
  if (plan.graph != graph.name())
    return refuse(PlanRule::Made, "made for strategy '" + plan.graph +
                                      "', but this is '" + graph.name() + "'");
  DYNA_RETURN_IF_ERROR(checkLengths(model, lengths));
  DYNA_RETURN_IF_ERROR(checkSegments(model, plan, lengths));
  DYNA_RETURN_IF_ERROR(
      checkTargets(plan, lengths, options.targets, options.isPhase));
  DYNA_RETURN_IF_ERROR(checkReplicas(plan, graph.replicas()));
  std::vector<std::vector<int>> microBatches =
      microBatchesOfReplicas(plan, graph.replicas());
  for (int rank : ranks)
    DYNA_RETURN_IF_ERROR(onRank(
        verifyProgram(graph.replicaView(rank), plan, rank,
                      microBatches[graph.placeOf(rank).replica], options),
        rank, graph.ranks()));
  return Status::ok();
}

Status verifyPlan(const ExecutableGraph &graph, const plan::Plan &plan,
                  const std::vector<int64_t> &lengths,
                  const VerifyOptions &options) {
  PlanPosition ignored;
  PlanPosition &failedAt = options.failedAt ? *options.failedAt : ignored;
  failedAt = {};
  std::vector<int> all(graph.ranks());
  std::iota(all.begin(), all.end(), 0);
  DYNA_RETURN_IF_ERROR(verifyRanks(graph, plan, all, lengths, options));
  DYNA_RETURN_IF_ERROR(checkPurpose(plan, failedAt));
  if (graph.ranks() == 1) {
    if (options.starts)
      options.starts->starts.resize(1);
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(checkUpdates(graph, plan));
  DYNA_RETURN_IF_ERROR(
      options.starts ? compareExchanges(graph, plan, failedAt, *options.starts)
                     : verifyExchanges(graph, plan, failedAt));
  return graph.strategy().mirror ? verifyTurns(graph, plan, failedAt)
                                 : Status::ok();
}

} // namespace dyna
