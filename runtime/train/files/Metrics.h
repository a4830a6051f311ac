//===- Metrics.h - What is written about each step --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_METRICS_H
#define DYNA_RUNTIME_TRAIN_METRICS_H

#include "runtime/base/error/Status.h"
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

/// What a phase of a step of several graphs was given.
struct PhaseMetrics {
  std::string strategy; ///< its name
  int64_t samples = 0, tokens = 0, microBatches = 0;
  /// Of the samples, those of the ranges of others, merged into this one.
  int64_t merged = 0;
};

/// Weights that are left before a step, in a run with --prune.
struct PruningMetrics {
  double sparsity = 0; ///< as the schedule has it
  int64_t survivors = 0;
  std::optional<double>
      eventSeconds; ///< if weights were pruned before the step
};

struct StepMetrics {
  int64_t step = 0; ///< from 1: steps done
  double loss = 0;  ///< per target token
  int64_t tokens = 0;
  int64_t targets = 0;
  double seconds = 0;
  double predictedSeconds = 0; ///< by --costs; 0: by nobody
  double coreWaitSeconds = 0;  ///< StepResult's, where steps are predicted
  double gflops = 0;           ///< matrix products, achieved
  double learningRate = 0;
  double gradientNorm = 0;
  bool hasGradientNorm = true; ///< of a run without norms it is none
  int64_t peakBytes = 0;       ///< of all ranks together
  int64_t microBatches = 0;
  /// Mean seconds of a micro-batch, forward and backward, by layer. Empty if there is
  /// one stage, or if the host does not know them.
  std::vector<double> layerSeconds;
  SliceCount slices; ///< of all phases
  /// In the order in which they ran; none where there is one strategy.
  std::vector<PhaseMetrics> phases;
  /// Where there are several: StepResult's, of the ranks of all processes.
  double switchSeconds = 0;
  int64_t switchBytes = 0;
  PlanReport measured; ///< of the step without its wait for the plan
  std::optional<PlanReport> predicted;
  double planSeconds = 0; ///< that making this step's plan took, ahead of it
  double planWaitSeconds = 0; ///< that the step waited for it, in `seconds`
  /// Whether the device had the step before the one before was read, where it runs
  /// late.
  std::optional<bool> launchedAhead;
  /// As of plans.
  std::string fallback;
  /// Where modes of recomputation were chosen: forwards of one layer and
  /// micro-batch in each.
  std::optional<std::array<int64_t, 3>> recomputed;
  std::optional<PruningMetrics> pruning;

  /// Adds the differences of a plan from what was asked for, and counts its slices.
  void addPlan(const plan::Plan &plan, bool choosesRecompute);
};

/// A file of JSON lines, one per step, readable at any time: each line is
/// written whole. It is locked as long as it is open. If it is renamed, removed
/// or replaced, lines go on under its name, as for a log that is rotated: at
/// the end of what stands there, or in a new file.
class MetricsFile {
public:
  /// A new run (`resumedStep` below 0) starts the file anew. A resumed one goes
  /// on after the lines up to its step: a run that was killed had written
  /// further than it had saved, and its last line may be half of one. Fails,
  /// with nothing changed, while another run has the file open.
  static StatusOr<MetricsFile> open(const std::string &path,
                                    int64_t resumedStep = -1);
  /// Returns whether the file has the held-out loss after `step` steps. What cannot
  /// be read has none.
  static bool hasHeldOut(const std::string &path, int64_t step);
  /// Returns whether the file has a held-out loss that a run began or ended with.
  bool hasAnyHeldOut() const { return kept_.heldOutStep >= 0; }
  MetricsFile() = default;

  Status write(const StepMetrics &metrics);
  /// Whether the held-out loss after `step` steps is still to be written; each
  /// is, once, also by a run that another one continues.
  bool startHeldOut(int64_t step) {
    return std::exchange(kept_.heldOutStep, step) != step;
  }
  /// Returns whether the point of the curve of held-out losses after `step` steps is
  /// still to be written, which it is once.
  bool startCurvePoint(int64_t step) {
    return std::exchange(kept_.curveStep, step) != step;
  }
  /// Any other line of JSON. What could not be written is kept, up to
  /// `mostKept` bytes, and comes before the next line once there is room.
  Status writeLine(const std::string &json);
  /// Fails if lines are still missing.
  Status flush();
  /// What the user should know of the file, once.
  std::string takeNote() { return std::exchange(note_, ""); }

  static constexpr size_t mostKept = 16 << 20;

private:
  /// Lines of an earlier run that stay.
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
  bool isFile_ = false;   ///< no device, no pipe
  bool hasMoved_ = false; ///< the file was taken away, which was said
  std::string note_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_METRICS_H
