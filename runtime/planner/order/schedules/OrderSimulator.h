//===- OrderSimulator.h - Simulates an order --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All stages run the forwards in one order and the backwards in one order. A
// free stage runs its next backward, if the gradient has arrived. Otherwise it
// runs its next forward, if the input has arrived and the kept memory fits.
// Otherwise, if backward is split, it runs weight gradients that were left. So
// an order of forwards and one of backwards define all stages. Items and times
// are those of `timeItems` with `fillsGaps`, to the last bit.
//
// A search simulates thousands of orders that differ little. One order is the
// base, whose state is kept at many moments. Another order is simulated from
// the last moment at which no stage has reached the first difference. All
// tables are flat, and nothing is allocated for an order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSIMULATOR_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSIMULATOR_H

#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/StageGraph.h"

#include <limits>

namespace dyna {

struct MicroBatchOrder {
  std::vector<int> forwards, backwards;
};

/// Choice of a stage if more than one item is ready.
struct DispatchRule {
  /// Forwards come first while the stage runs ahead by less than the number of
  /// later stages.
  bool fillsFirst = false;
  /// A weight gradient is left where input is known to come before this share
  /// of its time has passed.
  double patience = 0.5;
};

class OrderSimulator {
public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// `problem` must outlive this. Its links form no circle. Orders keep `previous`:
  /// forwards of a chain in its order, backwards in reverse.
  /// `mostKept[s]`: micro-batches that a stage may hold, whatever their bytes.
  /// Without limits of bytes, no more weight gradients wait on a stage than there are
  /// levels of stages. Gaps of a pipeline are no longer than that.
  OrderSimulator(const PipelineProblem &problem, std::vector<int> mostKept);

  /// Sets the rule of later simulations; drops the base.
  void setRule(const DispatchRule &rule);

  /// Returns the makespan, or `never` in three cases. It is above `bound`, or
  /// the order waits for memory for ever, or it seems to be above `bound`. The
  /// last is a guess: `patience` micro-batches after the last difference, the
  /// first stage is later than in the base.
  double evaluate(const MicroBatchOrder &order, double bound,
                  int patience = std::numeric_limits<int>::max());
  /// Does the same without bound and guess; the order becomes the base.
  double adopt(const MicroBatchOrder &order);
  /// Does the same without base, and returns the items.
  double play(const MicroBatchOrder &order, StageOrders &items);

  /// Returns the number of items simulated so far.
  int64_t items() const { return items_; }

private:
  struct Stage {
    double free = 0; ///< when its last item ends
    double left = 0; ///< least seconds of all items that it has not begun
    int64_t held = 0;
    int forwards = 0, backwards = 0, weights = 0; ///< begun
    /// Forwards whose inputs, and backwards whose gradients, are known to come.
    int inputs = 0, gradients = 0;
  };
  /// State of the base before an item.
  struct Moment {
    int64_t items = -1; ///< before it; -1: none
    double makespan = 0;
  };
  /// Times by stage and position.
  struct Times {
    /// Ends of forwards and backwards, and when a stage chose its backward.
    std::vector<double> forward, backward, chosen;
    /// When all inputs of a forward have come, and all gradients of a backward; and
    /// from when on the backward may begin.
    std::vector<double> input, gradient, ready;
  };
  /// Seconds and bytes by micro-batch; stages that have the same share rows.
  struct Row {
    const double *forward, *recompute, *backward, *weight;
    const int64_t *held, *late;
    int64_t limit;
    int mostKept;
    int mostLate; ///< backwards whose weight gradients may wait
    StageGraph::Links into, outOf;
    int depth; ///< as in StageGraph
    double up; ///< the least from the end of a backward to the end of all
  };
  enum class Mode { Try, Record, Play };
  /// State of the simulation of one order.
  struct Simulation {
    Mode mode;
    double bound;
    StageOrders *out;
    int64_t items = 0;
    double makespan = 0; ///< `never` once it is given up
  };

  void fillRows(const PipelineProblem &problem, std::vector<int> mostKept);
  void findLeastUp();
  double simulate(const MicroBatchOrder &order, Mode mode, double bound,
                  StageOrders *items);
  int64_t begin(const MicroBatchOrder &order, Mode mode, double &makespan);
  bool runsBackward(int s) const;
  void runBackward(int s, Simulation &now);
  void runForward(int s, Simulation &now);
  void runWeight(int s, Simulation &now);
  int64_t restore(Mode mode, int forwards, int backwards, double &makespan);
  void save(Moment &moment, Stage *states, int64_t items, double makespan);
  bool forwardFits(int s) const;
  double gradientReady(int s) const;
  void takeInputs(int s);
  void takeGradients(int s);
  void decide(int s);
  int first() const;

  int stages_, count_;
  bool split_;
  StageGraph graph_;
  int firstStage_;              ///< a stage that no other one links to
  std::vector<double> seconds_; ///< targets of pointers in rows
  std::vector<int64_t> bytes_;
  std::vector<Row> rows_;
  std::vector<double> work_; ///< of each stage
  DispatchRule rule_;

  // The order that is being simulated.
  const int *forwards_ = nullptr, *backwards_ = nullptr;
  std::vector<int> position_; ///< of each micro-batch in `forwards_`
  std::vector<Stage> now_;
  /// When each stage begins its next item, and from when on it may run a backward
  /// or a forward.
  struct Next {
    double time, backward, forward;
  };
  std::vector<Next> next_;
  std::vector<uint64_t> keys_; ///< times and stages
  uint64_t stageBits_;
  Times *times_ = nullptr;
  int watched_ = 0; ///< backwards of the first stage are compared from here on

  // The base order, and the order that is being tried.
  MicroBatchOrder base_;
  Times ofBase_, ofTrial_;
  std::vector<double> ends_;                 ///< of the first stage's backwards
  int mostForwards_ = 0, mostBackwards_ = 0; ///< begun by any stage
  std::vector<Moment> byForward_, byBackward_;
  std::vector<Stage> statesByForward_, statesByBackward_;
  int64_t items_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSIMULATOR_H
