//===- Metrics.h - Writes a line of metrics for each step -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_METRICS_H
#define DYNA_RUNTIME_TRAIN_METRICS_H

#include "runtime/base/error/Status.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/plan/model/Model.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/Plan.h"
#include "runtime/planner/report/PlanReport.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Samples and micro-batches of one phase of a step with several graphs.
struct PhaseMetrics {
  std::string strategy; ///< its name
  int64_t samples = 0, tokens = 0, microBatches = 0;
  /// Samples from ranges of other strategies that were merged into this one;
  /// part of `samples`.
  int64_t merged = 0;
};

/// Weights that are left before a step, in a run with --prune.
struct PruningMetrics {
  double sparsity = 0; ///< target of the schedule
  int64_t survivors = 0;
  std::optional<double>
      eventSeconds; ///< if weights were pruned before the step
};

/// Losses per target token of the layers that give one, with their names, before
/// weights. Empty in a model without exits.
using LayerLosses = std::vector<std::pair<std::string, double>>;

/// Names `sums` of token losses (StepResult::layerLosses).
LayerLosses nameLosses(const Model &model, const std::vector<double> &sums,
                       int64_t targets);

struct StepMetrics {
  int64_t step = 0; ///< from 1: steps done
  double loss = 0;  ///< per target token
  int64_t tokens = 0;
  int64_t targets = 0;
  double seconds = 0;
  double predictedSeconds = 0; ///< by --costs; 0: not predicted
  double coreWaitSeconds = 0;  ///< see StepResult; set if steps are predicted
  double gflops = 0;           ///< matrix products, achieved
  double learningRate = 0;
  double gradientNorm = 0;
  bool hasGradientNorm = true; ///< false if the run computes no norms
  int64_t peakBytes = 0;       ///< of all ranks together
  int64_t microBatches = 0;
  /// Mean seconds of a micro-batch, forward and backward, by layer. Empty if there is
  /// one stage, or if the host does not know them.
  std::vector<double> layerSeconds;
  SliceCount slices; ///< of all phases
  /// Phases in the order in which they ran. Empty if the run has one strategy.
  std::vector<PhaseMetrics> phases;
  /// Values of steps with several strategies, as in StepResult, over the ranks
  /// of all processes.
  double switchSeconds = 0;
  int64_t switchBytes = 0;
  PlanReport measured; ///< of the step without its wait for the plan
  std::optional<PlanReport> predicted;
  double planSeconds = 0;     ///< making this step's plan, ahead of the step
  double planWaitSeconds = 0; ///< waiting for the plan; part of `seconds`
  /// True if this step was launched before the result of the step before was
  /// read. Only on a device that runs late.
  std::optional<bool> launchedAhead;
  /// Reason why the plan differs from the one asked for, as in plans.
  std::string fallback;
  /// Forwards of one layer and micro-batch in each mode of recomputation. Set
  /// only if the planner chose the modes.
  std::optional<std::array<int64_t, 3>> recomputed;
  std::optional<PruningMetrics> pruning;
  LayerLosses losses;

  /// Adds how a plan differs from what was asked for, and counts its slices.
  void addPlan(const plan::Plan &plan, bool choosesRecompute);
};

/// Adds the losses of layers to a line, as `losses`; nothing if there are none.
void addLosses(JsonObject &line, const LayerLosses &losses);

/// A file of JSON lines, one per step. Each line is written whole, so the file
/// is readable at any time. It is locked while it is open. If it is renamed,
/// removed or replaced, as log rotation does, writing continues under the old
/// name. It appends to the file of that name, or makes a new one.
class MetricsFile {
public:
  /// Opens the file. A new run (`resumedStep` below 0) starts the file anew. A
  /// resumed run keeps the lines up to `resumedStep` and appends to them. A
  /// killed run may have written more steps than it saved, and half a line at
  /// the end. Fails, and changes nothing, while another run has the file open.
  static StatusOr<MetricsFile> open(const std::string &path,
                                    int64_t resumedStep = -1);
  /// Returns true if the file has the held-out loss after `step` steps; false
  /// if it is unreadable.
  static bool hasHeldOut(const std::string &path, int64_t step);
  /// Returns whether the file has a held-out loss that a run began or ended with.
  bool hasAnyHeldOut() const { return kept_.heldOutStep >= 0; }
  MetricsFile() = default;

  Status write(const StepMetrics &metrics);
  /// Returns true if the held-out loss after `step` steps is still to be
  /// written. A loss is written once, also if another run continues this one.
  bool startHeldOut(int64_t step) {
    return std::exchange(kept_.heldOutStep, step) != step;
  }
  /// Returns true if the point after `step` steps of the curve of held-out
  /// losses is still to be written. A point is written once.
  bool startCurvePoint(int64_t step) {
    return std::exchange(kept_.curveStep, step) != step;
  }
  /// Writes any other line of JSON. A line that cannot be written is kept, up
  /// to `mostKept` bytes in all. It is written before the next line, as soon as
  /// there is room.
  Status writeLine(const std::string &json);
  /// Fails if lines are still missing.
  Status flush();
  /// Returns a warning about the file for the user, once; empty if there is
  /// none.
  std::string takeNote() { return std::exchange(note_, ""); }

  static constexpr size_t mostKept = 16 << 20;

private:
  /// Part of the file of an earlier run that stays.
  struct KeptLines {
    int64_t bytes = 0;
    int64_t heldOutStep = -1; ///< of the last held-out loss
    int64_t curveStep = -1;   ///< of the last point of their curve
  };
  static StatusOr<KeptLines> linesUpTo(const std::string &path, int64_t step);

  struct Closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  void setFile(int descriptor);
  Status followName();

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  KeptLines kept_;
  std::string unwritten_;
  bool hasLost_ = false;
  bool isFile_ = false; ///< false for a device or a pipe
  bool hasMoved_ =
      false; ///< the file was moved or removed, and the user was told
  std::string note_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_METRICS_H
