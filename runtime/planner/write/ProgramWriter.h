//===- ProgramWriter.h - Writes the instructions of one rank --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H
#define DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/planner/write/PipelineSchedule.h"

namespace dyna {

/// Appends instructions without places to the program of a rank.
class ProgramWriter {
public:
  /// `bundles` are those of the replica's micro-batches, if there are any. All arguments
  /// must outlive the writer.
  ProgramWriter(const ExecutableGraph &graph, const PlanChoice &choice,
                plan::Plan &plan, int rank, const Bundles *bundles = nullptr);

  plan::Instruction &add(plan::Instruction::Op op, int layer, int microBatch);

  void forward(int microBatch);
  /// Writes the backward of a micro-batch. With `last`, no later micro-batch
  /// adds to the gradients. Their reductions start as soon as they are
  /// complete, except reductions among stages.
  void backward(int microBatch, bool last);
  // The parts of backward, for schedules that fill gaps.
  /// Writes the recomputation of the first layer of backward, which needs no
  /// gradient.
  void recomputeFirst(int microBatch);
  /// Writes the rest of backward; with `splitBackward`, without weight
  /// gradients.
  void backwardBehindRecompute(int microBatch, bool last);
  void backwardWeights(int microBatch, bool last);
  void evaluate(int microBatch);
  /// Reductions that a rank without micro-batches takes part in.
  void startReductions();
  /// Starts reductions among stages, and waits for all reductions.
  void finishReductions();
  /// Finishes reductions, computes gradient norms and updates.
  void update();
  /// Starts to gather the rows that other ranks updated, with ZeRO. The first
  /// forward waits for the rows of each layer just before it uses them. The
  /// rows of other layers travel meanwhile.
  void startGathers();
  /// Waits for gathers that no forward has waited for.
  void finishGathers();
  void casts();

  /// Returns true if a send is waited for as soon as it is started.
  bool waitsForSends() const { return ruleOf(choice_.schedule).waitsForSends; }
  bool waitsLate() const { return ruleOf(choice_.schedule).waitsLate; }
  bool fillsGaps() const { return ruleOf(choice_.schedule).adapts; }
  bool isNaive() const { return choice_.naiveMessages; }
  /// Returns true if reductions start inside the last backward. A rank that shares its
  /// device starts them behind it. Inside it they would keep the device until the other
  /// holders start theirs, and these may need the same device first.
  bool reducesEarly() const { return !graph_.strategy().mirror; }

private:
  bool storesKeys(int layer, int microBatch) const;
  bool isFirstOfBundle(int microBatch) const;
  bool isLastOfBundle(int microBatch) const;
  void takeKeys(int layer, int microBatch);
  void clearKeyGradients(int layer, int microBatch);
  /// Frees the stores after their last use, which is a backward, or an
  /// evaluation.
  void freeKeys(int layer, int microBatch, bool isForward);
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
  const PlanChoice &choice_;
  plan::RankProgram &program_;
  const Bundles *bundles_;      ///< of the replica; null: it has none
  std::vector<bool> gathering_; ///< by layer
  /// Exchanges of parameters that other stages hold too. Each stage reaches them in the
  /// order of its own layers, with messages in between. All ranks need one order of
  /// starts, so these exchanges stand apart, in the order of the parameters. They go
  /// layer by layer if every stage has that order, otherwise parameter by parameter.
  struct Spanning {
    int layer, parameter; ///< fields of the instruction
  };
  std::vector<Spanning> spanning_;
};

/// Writes the program of the rank at `place`: items and messages in the order of the
/// schedule. Links of the schedule name edges of the model. `microBatches[m]` is the plan's number of the replica's
/// micro-batch m.
void writeSchedule(const ExecutableGraph::Place &place,
                   const PipelineSchedule &schedule,
                   const std::vector<int> &microBatches, bool trains,
                   ProgramWriter &writer);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PROGRAMWRITER_H
