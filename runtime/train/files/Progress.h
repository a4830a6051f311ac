//===- Progress.h - Where the run stands ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROGRESS_H
#define DYNA_RUNTIME_TRAIN_PROGRESS_H

#include "runtime/train/files/Metrics.h"

#include <string>

namespace dyna {

/// On a terminal one line that renews itself; elsewhere a plain line now and
/// then, so that logs stay readable. Writes to stderr.
/// Tells the user a line, whatever is in it.
void sayLine(const std::string &text);

class Progress {
public:
  enum class Style { Off, Bar, Lines };

  /// The style of this process: a bar if stderr is a terminal.
  static Style detect(bool forced, bool off);

  Progress(Style style, int64_t firstStep, int64_t steps);
  ~Progress() { finish(); }

  void update(const StepMetrics &metrics);
  /// A sentence above the bar.
  void note(const std::string &text);
  /// Ends the bar's line.
  void finish();

  /// "1:02:03".
  static std::string formatDuration(double seconds);
  /// The text after the bar.
  static std::string formatStep(const StepMetrics &metrics, int64_t steps,
                                double secondsLeft);

private:
  void clearLine();

  Style style_;
  int64_t firstStep_, steps_;
  double elapsed_ = 0;
  double recent_ = 0; ///< seconds per step, smoothed
  double sinceLine_ = 0;
  bool lineOpen_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROGRESS_H
