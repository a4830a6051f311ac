//===- Progress.h - Shows the progress of a run -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROGRESS_H
#define DYNA_RUNTIME_TRAIN_PROGRESS_H

#include "runtime/train/files/Metrics.h"

#include <string>

namespace dyna {

/// Writes a line for the user to stderr, with control characters made visible.
void sayLine(const std::string &text);

/// Shows the progress of a run on stderr. On a terminal it is one line that is
/// rewritten; elsewhere it is a plain line now and then, for readable logs.
class Progress {
public:
  enum class Style { Off, Bar, Lines };

  /// Returns the style for this process: a bar if stderr is a terminal.
  static Style detect(bool forced, bool off);

  Progress(Style style, int64_t firstStep, int64_t steps);
  ~Progress() { finish(); }

  void update(const StepMetrics &metrics);
  /// Writes a line above the bar.
  void note(const std::string &text);
  /// Ends the bar's line.
  void finish();

  /// Formats a duration, such as "1:02:03".
  static std::string formatDuration(double seconds);
  /// Returns the text after the bar.
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
