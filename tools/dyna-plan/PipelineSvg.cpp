//===- PipelineSvg.cpp - Draws steps as SVG -------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/PipelineSvg.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/report/PlanReport.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace dyna {
namespace {

using plan::Instruction;

/// Colours that are told apart by those who see no red, or print in grey.
struct Look {
  const char *name, *colour, *ink;
};
enum Colour {
  Forward,
  Backward,
  Weight,
  Recompute,
  Update,
  Exchange,
  Switch,
  None
};
constexpr Look looks[] = {{"forward", "#4477aa", "#ffffff"},
                          {"backward", "#ccbb44", "#000000"},
                          {"weight gradients", "#228833", "#ffffff"},
                          {"computed again", "#aa3377", "#ffffff"},
                          {"update", "#66ccee", "#000000"},
                          {"parameters exchanged", "#bbbbbb", "#000000"},
                          {"switches", "#ee6677", "#000000"},
                          {"idle", "#e4e4e4", "#000000"}};

Colour colourOf(const Instruction &i) {
  switch (passOf(i.op)) {
  case Pass::Forward:
    return Forward;
  case Pass::Backward:
    return Backward;
  case Pass::Weight:
    return Weight;
  case Pass::Recompute:
    return Recompute;
  case Pass::Update:
    return Update;
  case Pass::None:
    break;
  }
  const ExchangeKind kind = exchangeOf(i.op).kind;
  return kind == ExchangeKind::ValueSwitch ||
                 kind == ExchangeKind::GradientSwitch
             ? Switch
             : None;
}

/// Returns "rank 3", "ranks 0-7", or "ranks 0 ... 14" if others lie between them.
std::string nameOf(const std::vector<int> &ranks) {
  if (ranks.size() == 1)
    return formatText("rank %d", ranks[0]);
  const bool isRun =
      ranks.back() - ranks[0] + 1 == static_cast<int>(ranks.size());
  return formatText("ranks %d%s%d", ranks[0], isRun ? "-" : " ... ",
                    ranks.back());
}

/// Returns 1, 2 or 5 times a power of ten, about an eighth of the whole.
double tickOf(double seconds) {
  double tick = std::pow(10, std::floor(std::log10(seconds / 8)));
  while (seconds / tick > 10)
    tick *= seconds / tick > 20 ? 5 : 2;
  return tick;
}

/// Places in the picture, in its units.
constexpr int width = 1000, left = 90, right = 20, top = 30, titleHeight = 24,
              rowHeight = 22, rowGap = 4, panelGap = 14, axisHeight = 34;

class Drawing {
public:
  explicit Drawing(double makespan) : makespan_(makespan) {}

  double x(double time) const {
    return left + time / makespan_ * (width - left - right);
  }
  /// Returns the seconds of one unit of the picture.
  double unit() const { return makespan_ / (width - left - right); }
  void row(const std::string &name, const std::string &place, int y) {
    text += formatText(
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n"
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\">"
        "<title>%s</title></rect>\n",
        left - 8, y + 15, name, left, y, width - left - right, rowHeight,
        looks[None].colour, place);
  }
  /// Draws a bar. `what` names its micro-batches, and `number` is written on it if there
  /// is room.
  void bar(int work, const std::string &what, const std::string &number,
           double begin, double end, int y) {
    const Look &look = looks[work];
    isThere[work] = true;
    const double size = x(end) - x(begin);
    text += formatText(
        "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s>"
        "<title>%s%s: %.6g to %.6g s</title></rect>\n",
        x(begin), y, size, rowHeight, look.colour,
        // An edge would hide a bar that is not longer.
        size < 1 ? "" : " stroke=\"#ffffff\" stroke-width=\"0.5\"", look.name,
        what, begin, end);
    if (!number.empty() && size >= 7.0 * static_cast<double>(number.size()))
      text += formatText(
          "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" font-size=\"11\" "
          "fill=\"%s\">%s</text>\n",
          (x(begin) + x(end)) / 2, y + 15, look.ink, number);
  }
  void legend() {
    int at = left;
    for (int work = 0; work <= None; ++work) {
      if (!isThere[work])
        continue;
      text += formatText(
          "<rect x=\"%d\" y=\"8\" width=\"14\" height=\"14\" fill=\"%s\"/>"
          "<text x=\"%d\" y=\"19\">%s</text>\n",
          at, looks[work].colour, at + 19, looks[work].name);
      at += 40 + 7 * static_cast<int>(std::string(looks[work].name).size());
    }
  }
  void axis(int y) {
    const double tick = tickOf(makespan_);
    const char *unit = tick >= 0.1 ? "s" : tick >= 1e-4 ? "ms" : "us";
    const double scale = tick >= 0.1 ? 1 : tick >= 1e-4 ? 1e3 : 1e6;
    for (int number = 0; number * tick <= makespan_ * (1 + 1e-9); ++number)
      text += formatText("<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%d\" "
                         "stroke=\"#000000\"/><text x=\"%.2f\" y=\"%d\" "
                         "text-anchor=\"middle\">%g %s</text>\n",
                         x(number * tick), y, x(number * tick), y + 5,
                         x(number * tick), y + 20, number * tick * scale, unit);
    text += formatText("<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" "
                       "stroke=\"#000000\"/>\n",
                       left, y, width - right, y);
  }

  std::string text;

private:
  const double makespan_;
  bool isThere[None + 1] = {false, false, false, false,
                            false, false, false, true};
};

} // namespace

std::vector<PipelineSvg::Bar>
PipelineSvg::barsOf(const plan::RankProgram &program, const RankTimes &times,
                    double gap) {
  std::vector<Bar> bars;
  for (size_t index = 0; index < program.instructions.size(); ++index) {
    const Instruction &i = program.instructions[index];
    const Colour work = colourOf(i);
    const TaskTime &time = times.instructions[index];
    if (work == None || time.end <= time.start)
      continue;
    const int m = isPerMicroBatch(i.op) ? i.microBatch : -1;
    if (!bars.empty() && bars.back().work == work &&
        bars.back().microBatch == m && time.start - bars.back().end <= gap)
      bars.back().end = time.end;
    else
      bars.push_back({work, m, time.start, time.end});
  }
  return bars;
}

bool PipelineSvg::Bar::operator==(const Bar &other) const {
  return std::tie(work, microBatch, begin, end) ==
         std::tie(other.work, other.microBatch, other.begin, other.end);
}

void PipelineSvg::joinRows(std::vector<Row> &rows) {
  std::vector<Row> joined;
  for (Row &row : rows) {
    auto same = std::find_if(joined.begin(), joined.end(), [&](const Row &one) {
      return one.place == row.place && one.bars == row.bars;
    });
    if (same == joined.end())
      joined.push_back(std::move(row));
    else
      same->ranks.push_back(row.ranks[0]);
  }
  for (Row &row : joined)
    if (row.ranks.size() > 1)
      row.place += formatText("; %d ranks", row.ranks.size());
  rows = std::move(joined);
}

/// Returns what tips say of a bar behind its colour.
std::string PipelineSvg::describe(const Bar &bar) {
  if (bar.count == 1)
    return bar.microBatch < 0
               ? ""
               : formatText(" of micro-batch %d", bar.microBatch);
  return bar.microBatch < 0
             ? formatText(", %d bars together", bar.count)
             : formatText(" of micro-batches %d to %d, %d bars together",
                          bar.microBatch, bar.lastMicroBatch, bar.count);
}

/// Joins bars that are shorter than a unit of the picture.
class PipelineSvg::ShortBars {
public:
  explicit ShortBars(double unit) : unit_(unit) {}

  std::vector<Bar> join(std::vector<Bar> bars) {
    std::stable_sort(bars.begin(), bars.end(), [](const Bar &a, const Bar &b) {
      return a.begin < b.begin;
    });
    for (const Bar &bar : bars) {
      const bool isShort = bar.end - bar.begin <= unit_;
      if (!isShort || inUnit_.empty() || bar.end - begin_ > unit_)
        closeUnit();
      if (isShort) {
        add(bar);
        continue;
      }
      joined_.push_back(bar);
      growsLast_ = false;
    }
    closeUnit();
    return std::move(joined_);
  }

private:
  void add(const Bar &bar) {
    if (inUnit_.empty())
      begin_ = bar.begin;
    for (Bar &other : inUnit_)
      if (other.work == bar.work) {
        append(bar, other);
        return;
      }
    inUnit_.push_back(bar);
  }

  static void append(const Bar &bar, Bar &to) {
    to.end += bar.end - bar.begin;
    to.count += bar.count;
    to.lastMicroBatch = bar.lastMicroBatch;
  }

  /// Draws the colours of a unit one behind the other. If there is one and the unit before
  /// has the same, they are one bar.
  void closeUnit() {
    if (inUnit_.empty())
      return;
    const bool isOne = inUnit_.size() == 1;
    if (isOne && growsLast_ && joined_.back().work == inUnit_[0].work &&
        begin_ - joined_.back().end <= 1e-3 * unit_) {
      append(inUnit_[0], joined_.back());
    } else {
      double at = begin_;
      for (Bar &bar : inUnit_) {
        const double seconds = bar.end - bar.begin;
        bar.begin = at;
        bar.end = at += seconds;
        joined_.push_back(bar);
      }
      growsLast_ = isOne;
    }
    inUnit_.clear();
  }

  const double unit_;
  double begin_ = 0;        ///< of the unit
  std::vector<Bar> inUnit_; ///< one for each colour
  bool growsLast_ = false;  ///< the last of `joined_` is a unit of one colour
  std::vector<Bar> joined_;
};

void PipelineSvg::add(const std::string &title, const PlayedStep &played) {
  Panel &panel = panels_.emplace_back();
  panel.title = title;
  for (const PlayedPhase &phase : played.phases)
    addPhase(panel, played.areNamed ? phase.graph->name : "", phase.begin,
             *phase.graph->graph, phase.phase->plan, phase.times);
  joinRows(panel.rows);
}

void PipelineSvg::addPhase(Panel &panel, const std::string &strategy,
                           double begin, const ExecutableGraph &graph,
                           const plan::Plan &plan, const PlanTimes &times) {
  const double end = endOfMicroBatches(plan, times);
  panel.rows.resize(plan.rankCount());
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    const auto &place = graph.placeOf(rank);
    Row &row = panel.rows[rank];
    row.ranks = {rank};
    row.place += formatText(
        "%s%sstage %d of replica %d", row.place.empty() ? "" : "; ",
        strategy.empty() ? "" : strategy + ": ", place.stage, place.replica);
    std::vector<Bar> bars =
        barsOf(plan.ranks[rank], times.ranks[rank], 1e-9 * times.makespan);
    // After the end of its phase a rank is in the next phase.
    const auto &own = times.ranks[rank].instructions;
    fillBehind(bars, end,
               strategy.empty() || own.empty() ? times.makespan
                                               : own.back().end);
    for (Bar &bar : bars) {
      bar.begin += begin;
      bar.end += begin;
      row.bars.push_back(bar);
    }
  }
  panel.makespan = std::max(panel.makespan, begin + times.makespan);
}

/// Fills the time after all micro-batches: anything but an update is an
/// exchange, or waits for one.
void PipelineSvg::fillBehind(std::vector<Bar> &bars, double begin,
                             double makespan) {
  const double least = 1e-6 * makespan;
  std::vector<Bar> gaps;
  for (const Bar &bar : bars) {
    if (bar.begin - begin > least)
      gaps.push_back({Exchange, -1, begin, bar.begin});
    begin = std::max(begin, bar.end);
  }
  if (makespan - begin > least)
    gaps.push_back({Exchange, -1, begin, makespan});
  bars.insert(bars.end(), gaps.begin(), gaps.end());
}

std::string PipelineSvg::finish() const {
  double makespan = 0;
  for (const Panel &panel : panels_)
    makespan = std::max(makespan, panel.makespan);
  Drawing drawing(makespan > 0 ? makespan : 1);
  int y = top;
  for (const Panel &panel : panels_) {
    drawing.text +=
        formatText("<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n",
                   left, y + 16, panel.title);
    y += titleHeight;
    for (const Row &row : panel.rows) {
      drawing.row(nameOf(row.ranks), row.place, y);
      for (const Bar &bar : ShortBars(drawing.unit()).join(row.bars))
        drawing.bar(bar.work, describe(bar),
                    bar.microBatch < 0 || bar.count > 1
                        ? ""
                        : formatText("%d", bar.microBatch),
                    bar.begin, bar.end, y);
      y += rowHeight + rowGap;
    }
    y += panelGap;
  }
  y -= panelGap;
  drawing.legend();
  drawing.axis(y);
  y += axisHeight;
  return formatText("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
                    "%d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                    width, y, width, y) +
         drawing.text + "</svg>\n";
}

} // namespace dyna
