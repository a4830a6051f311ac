//===- PipelineSvg.h - Draws steps as SVG -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PIPELINESVG_H
#define DYNA_TOOLS_DYNA_PLAN_PIPELINESVG_H

#include "runtime/planner/report/StepReport.h"

#include <string>
#include <vector>

namespace dyna {

/// Draws simulated steps as SVG, one below the other on one time scale. Each
/// rank has a row, with time to the right. The work of a micro-batch on a stage
/// is a bar with its number and a colour. Grey is idle time.
///
/// Pictures of many ranks and slices stay small enough for a browser. Ranks of one stage
/// and replica share a row if their bars are equal. Bars below a unit of the picture are
/// joined: in each unit every colour keeps its share. So a row has at most a few thousand
/// bars.
class PipelineSvg {
public:
  /// Adds a step. Bars of switches are waits for them. `title` is plain text.
  void add(const std::string &title, const PlayedStep &played);
  std::string finish() const;

private:
  /// Instructions without a gap, of one micro-batch and colour; or several such bars that
  /// are too short to be drawn.
  struct Bar {
    int work; ///< an index of colours
    int microBatch;
    double begin, end;
    int count = 1; ///< of the bars that were joined
    int lastMicroBatch = microBatch;
    bool operator==(const Bar &other) const;
  };
  struct Row {
    std::vector<int> ranks; ///< ascending
    std::string place;
    std::vector<Bar> bars;
  };
  struct Panel {
    std::string title;
    std::vector<Row> rows;
    double makespan = 0;
  };
  static std::vector<Bar> barsOf(const plan::RankProgram &program,
                                 const RankTimes &times, double gap);
  /// Adds a phase that begins at `begin`. `strategy` names the strategy of the rows'
  /// places if there are several.
  static void addPhase(Panel &panel, const std::string &strategy, double begin,
                       const ExecutableGraph &graph, const plan::Plan &plan,
                       const PlanTimes &times);

  static void fillBehind(std::vector<Bar> &bars, double begin, double makespan);
  /// Gives ranks of one place with equal bars one row.
  static void joinRows(std::vector<Row> &rows);
  static std::string describe(const Bar &bar);
  class ShortBars;

  std::vector<Panel> panels_;
};

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PIPELINESVG_H
