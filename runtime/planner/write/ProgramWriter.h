//===- ProgramWriter.h - The instructions of one rank, without offsets ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H
#define DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/write/PipelineSchedule.h"

namespace dyna {

/// Appends to the program of a rank.
class ProgramWriter {
public:
  ProgramWriter(const ExecutableGraph &graph, const PlanOptions &options,
                plan::Plan &plan, int rank);

  plan::Instruction &add(plan::Instruction::Op op, int layer, int microBatch);

  void forward(int microBatch);
  /// With `last`, no micro-batch adds to the gradients after this one: their
  /// reductions start as soon as they are there, but for those among stages.
  void backward(int microBatch, bool last);
  // The same in pieces, for schedules that fill gaps.
  /// What the layer that backward begins with needs no gradient for.
  void recomputeFirst(int microBatch);
  /// All but that and, with `splitBackward`, weight gradients.
  void backwardBehindRecompute(int microBatch, bool last);
  void backwardWeights(int microBatch, bool last);
  void evaluate(int microBatch);
  /// What a rank without micro-batches contributes to.
  void startReductions();
  /// Reductions among stages; waits for all reductions.
  void finishReductions();
  /// And gradient norms; updates.
  void update();
  /// With ZeRO: starts to fetch the rows that other ranks updated. The first
  /// forward waits for each layer's just before it uses them, so that the
  /// others' travel meanwhile.
  void startGathers();
  /// For those that no forward has waited for.
  void finishGathers();
  void casts();

  /// Whether a send is waited for as soon as it is started.
  bool waitsForSends() const { return ruleOf(options_.schedule).waitsForSends; }
  bool waitsLate() const { return ruleOf(options_.schedule).waitsLate; }
  bool fillsGaps() const { return ruleOf(options_.schedule).adapts; }
  bool isNaive() const { return options_.naiveMessages; }

private:
  void forOwners(plan::Instruction::Op op, bool sharedOnly);
  bool spansStages(int layer) const;
  void startReduction(int layer);
  void startSpanning(plan::Instruction::Op op);
  void startInStage(plan::Instruction::Op op, int layer);
  void waitForGather(int layer);
  plan::Recompute mode(int layer, int microBatch) const;
  bool splits(int layer) const;
  std::vector<int> inputGradients(int microBatch, bool recomputed, bool last);
  void weightGradients(int microBatch, const std::vector<int> &layers);
  void startReductions(int layer);

  const ExecutableGraph &graph_;
  const RankView &view_;
  const PlanOptions &options_;
  plan::RankProgram &program_;
  std::vector<bool> gathering_; ///< by layer
  /// Exchanges of parameters that other stages hold too. Each stage comes to them
  /// in an order of its own layers, and sends and receives in between. All ranks
  /// need one order of what they start, so these exchanges stand apart, in the
  /// order of the parameters: layer by layer if that is the order of the
  /// parameters on every stage, otherwise parameter by parameter.
  struct Spanning {
    int layer, parameter; ///< as Instruction has them
  };
  std::vector<Spanning> spanning_;
};

/// The program of the rank at `place` of the graph: its items and messages in
/// the order of the schedule. `microBatches[m]` is the plan's number of the
/// replica's micro-batch m.
void writeSchedule(const ExecutableGraph &graph,
                   const ExecutableGraph::Place &place,
                   const PipelineSchedule &schedule,
                   const std::vector<int> &microBatches, bool trains,
                   ProgramWriter &writer);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H
