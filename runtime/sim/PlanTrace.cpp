//===- PlanTrace.cpp - Writes a simulated plan as a trace ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanTrace.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/sim/PlanMemory.h"

#include <map>

namespace dyna {
namespace {

using plan::Instruction;

class StepTracer {
public:
  StepTracer(TraceWriter &writer, const TracedStep &step,
             const ExecutableGraph &graph, const plan::Plan &plan,
             const PlanWork &work, const PlanTimes &times)
      : writer_(writer), step_(step), graph_(graph), plan_(plan),
        isSliced_(countSlices(plan).samples > 0), work_(work), times_(times) {}

  void programs() {
    for (int rank = 0; rank < plan_.rankCount(); ++rank) {
      const int process = step_.firstProcess + rank;
      std::string name = step_.name.empty() ? "" : step_.name + " ";
      writer_.nameProcess(process, name + formatText("rank %d", rank));
      writer_.nameTrack(process, 0, "instructions");
      std::vector<LiveMemory> live = liveMemory(graph_, plan_, rank);
      const auto &program = plan_.ranks[rank].instructions;
      for (size_t index = 0; index < program.size(); ++index) {
        const TaskTime &time = times_.ranks[rank].instructions[index];
        instruction(rank, program[index], time);
        if (index == 0 || live[index].bytes != live[index - 1].bytes)
          writer_.liveBytes(process, step_.begin + time.start,
                            live[index].bytes);
      }
      // The next phase of the step may follow at once.
      const auto &own = times_.ranks[rank].instructions;
      const double end =
          step_.phase < 0 || own.empty() ? times_.makespan : own.back().end;
      writer_.liveBytes(process, step_.begin + end, 0);
    }
  }

  /// Names the tokens of a micro-batch, if the step slices samples.
  void addTokens(TraceArguments &arguments) const {
    if (isSliced_ && arguments.microBatch >= 0)
      arguments.tokens = tokensOf(plan_.microBatches[arguments.microBatch]);
  }

  void transfers() {
    for (size_t t = 0; t < work_.transfers().size(); ++t) {
      const PlannedTransfer &transfer = work_.transfers()[t];
      if (transfer.isMeeting())
        continue;
      const int rank = work_.party(transfer, 0);
      TraceArguments arguments;
      arguments.step = step_.step;
      arguments.layer = transfer.layer;
      arguments.microBatch = transfer.microBatch;
      addTokens(arguments);
      arguments.bytes = transfer.bytes;
      const TaskTime &time = times_.transfers[t];
      writer_.slice(step_.firstProcess + rank, track(rank, transfer),
                    kindName(transfer.kind), "transfer",
                    step_.begin + time.start, step_.begin + time.end,
                    arguments);
    }
  }

private:
  void instruction(int rank, const Instruction &i, const TaskTime &time) {
    TraceArguments arguments;
    arguments.step = step_.step;
    arguments.phase = step_.phase;
    if (step_.phase >= 0)
      arguments.strategy = graph_.strategy().name.c_str();
    if (namesLayer(i.op))
      arguments.layer = i.layer;
    if (isPerMicroBatch(i.op))
      arguments.microBatch = i.microBatch;
    addTokens(arguments);
    const RankView &view = graph_.replicaView(rank);
    const int process = step_.firstProcess + rank;
    const double begin = step_.begin + time.start;
    const double end = step_.begin + time.end;
    writer_.slice(process, 0, instructionName(i.op),
                  namesLayer(i.op) ? view.kind(view.layerOf(i)).name()
                                   : std::string("step"),
                  begin, end, arguments);
    ExchangeOp op = exchangeOf(i.op);
    if (!op.isMessage() || op.sends != op.starts)
      return;
    const int own = process;
    const int peer = step_.firstProcess +
                     graph_.peerOf(rank, edgeOf(i), op.isTowardsConsumer());
    writer_.arrow(process, 0, begin, end,
                  messageArrow(step_.step, op.sends ? own : peer,
                               op.sends ? peer : own, op.isGradient(),
                               messageNumber(i),
                               graph_.channelIndex(edgeOf(i))),
                  op.sends);
  }

  /// Phases number their micro-batches anew.
  int messageNumber(const Instruction &i) const {
    constexpr int phaseBits = 24;
    return i.microBatch + (step_.phase > 0 ? step_.phase << phaseBits : 0);
  }

  static const char *kindName(PlannedTransfer::Kind kind) {
    switch (kind) {
    case PlannedTransfer::Kind::Activation:
      return "activation";
    case PlannedTransfer::Kind::Gradient:
      return "gradient";
    case PlannedTransfer::Kind::Reduction:
      return "reduction";
    case PlannedTransfer::Kind::Gather:
      return "gather";
    default:
      return "meeting";
    }
  }

  /// Returns the track of a line. Lines of different groups of ranks may have
  /// the same name.
  int track(int rank, const PlannedTransfer &transfer) {
    int &track = tracks_[{rank, transfer.line}];
    if (track > 0)
      return track;
    std::string name =
        transfer.isMessage()
            ? formatText("%s to rank %d",
                         transfer.kind == PlannedTransfer::Kind::Gradient
                             ? "gradients"
                             : "activations",
                         work_.party(transfer, 1))
            : formatText("parameters of %d ranks", transfer.parties);
    if (int before = named_[{rank, name}]++; before > 0)
      name += formatText(" (%d)", before + 1);
    return track = writer_.track(step_.firstProcess + rank, name);
  }

  TraceWriter &writer_;
  const TracedStep &step_;
  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  const bool isSliced_;
  const PlanWork &work_;
  const PlanTimes &times_;
  std::map<std::pair<int, int>, int> tracks_;        ///< by rank and line
  std::map<std::pair<int, std::string>, int> named_; ///< lines, by rank
};

} // namespace

void tracePlan(TraceWriter &writer, const TracedStep &step,
               const ExecutableGraph &graph, const plan::Plan &plan,
               const PlanWork &work, const PlanTimes &times, bool ofHosts) {
  StepTracer tracer(writer, step, graph, plan, work, times);
  tracer.programs();
  if (!ofHosts)
    tracer.transfers();
}

} // namespace dyna
