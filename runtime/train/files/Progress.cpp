//===- Progress.cpp - Shows the progress of a run -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/Progress.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dyna {
namespace {

constexpr double secondsBetweenLines = 10;
constexpr int barWidth = 24;

int terminalWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
    return size.ws_col;
  return 100;
}

} // namespace

Progress::Style Progress::detect(bool forced, bool off) {
  if (off)
    return Style::Off;
  return forced || isatty(STDERR_FILENO) ? Style::Bar : Style::Lines;
}

Progress::Progress(Style style, int64_t firstStep, int64_t steps)
    : style_(style), firstStep_(firstStep), steps_(steps) {}

std::string Progress::formatDuration(double seconds) {
  long long whole = std::llround(std::max(0.0, seconds));
  if (whole >= 3600)
    return formatText("%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                      whole % 60);
  return formatText("%d:%02d", whole / 60, whole % 60);
}

std::string Progress::formatStep(const StepMetrics &metrics, int64_t steps,
                                 double secondsLeft) {
  double rate = metrics.seconds > 0
                    ? static_cast<double>(metrics.tokens) / metrics.seconds
                    : 0;
  std::string predicted =
      metrics.predictedSeconds > 0
          ? formatText("  %.3f s (predicted %.3f)", metrics.seconds,
                       metrics.predictedSeconds)
          : "";
  return formatText("step %d/%d  loss %.4f  %.0f tok/s  %.1f GFLOP/s%s  %s "
                    "left",
                    metrics.step, steps, metrics.loss, rate, metrics.gflops,
                    predicted, formatDuration(secondsLeft));
}

void Progress::update(const StepMetrics &metrics) {
  if (style_ == Style::Off)
    return;
  elapsed_ += metrics.seconds;
  recent_ =
      recent_ == 0 ? metrics.seconds : 0.9 * recent_ + 0.1 * metrics.seconds;
  sinceLine_ += metrics.seconds;
  double left = recent_ * static_cast<double>(steps_ - metrics.step);
  std::string text = formatStep(metrics, steps_, left);
  if (style_ == Style::Lines) {
    bool due = sinceLine_ >= secondsBetweenLines ||
               metrics.step == firstStep_ + 1 || metrics.step == steps_;
    if (due) {
      std::fprintf(stderr, "%s\n", text.c_str());
      sinceLine_ = 0;
    }
    return;
  }
  int64_t filled = steps_ > 0 ? barWidth * metrics.step / steps_ : barWidth;
  filled = std::clamp<int64_t>(filled, 0, barWidth);
  std::string line = "[" + std::string(filled, '#') +
                     std::string(barWidth - filled, '.') + "] " + text;
  line.resize(std::min<size_t>(line.size(), terminalWidth() - 1));
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  lineOpen_ = true;
}

void Progress::clearLine() {
  if (lineOpen_)
    std::fprintf(stderr, "\r\033[K");
  lineOpen_ = false;
}

void sayLine(const std::string &text) {
  std::fprintf(stderr, "%s\n", messageText(text).c_str());
}

void Progress::note(const std::string &text) {
  clearLine();
  sayLine(text);
}

void Progress::finish() {
  if (lineOpen_)
    std::fprintf(stderr, "\n");
  lineOpen_ = false;
}

} // namespace dyna
