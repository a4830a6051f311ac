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
class PipelineSvg {
public:
  /// Adds a step. Bars of switches are waits for them. `title` is plain text.
  void add(const std::string &title, const PlayedStep &played);
  std::string finish() const;

private:
  /// Instructions without a gap, of one micro-batch and colour.
  struct Bar {
    int work; ///< an index of colours
    int microBatch;
    double begin, end;
  };
  struct Row {
    std::string name, place;
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

  std::vector<Panel> panels_;
};

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PIPELINESVG_H
