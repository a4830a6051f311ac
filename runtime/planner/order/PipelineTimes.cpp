//===- PipelineTimes.cpp - Times the items of a pipeline ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineTimes.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/ChimeraSlots.h"
#include "runtime/planner/order/schedules/StageGraph.h"
#include "runtime/sim/TaskGraph.h"

namespace dyna {

ItemSeconds::ItemSeconds(const PipelineProblem &problem) : problem_(problem) {
  double longest = 1e-18;
  for (const StageLink &link : problem.links)
    longest = std::max(longest, std::min(link.seconds, most));
  for (const auto *list : {&problem.forward, &problem.backward})
    for (const std::vector<double> &stage : *list)
      for (double seconds : stage)
        longest = std::max(longest, std::min(seconds, most));
  least_ = 1e-9 * longest;
}

namespace {

/// Returns the seconds of the message that a predecessor sends.
double messageSecondsOf(const Predecessor &one) {
  if (!one.link)
    return 0;
  return one.kind == ItemKind::Backward ? one.link->secondsBack()
                                        : one.link->seconds;
}

/// Adds the items of a pipeline, and its messages that take time, to a graph of tasks.
class Clock {
public:
  /// Stage s has lane s, or the last lane but s if the pipeline `isMirrored`.
  Clock(StageOrders &orders, const PipelineProblem &problem,
        const ClockOptions &options, TaskGraph &graph, bool isMirrored = false)
      : orders_(orders), problem_(problem), options_(options),
        seconds_(problem), stages_(static_cast<int>(orders.size())),
        links_(problem), graph_(graph), isMirrored_(isMirrored),
        tasks_(orders.size()) {
    taskOf_.assign(static_cast<size_t>(3) * stages_ * problem.microBatches(),
                   -1);
  }

  Status check() const { return links_.check(); }

  size_t items() const {
    size_t items = 0;
    for (const auto &list : orders_)
      items += list.size();
    return items;
  }

  int laneOf(int stage) const {
    return isMirrored_ ? stages_ - 1 - stage : stage;
  }

  /// Adds the next item of a stage to its lane.
  void addNext(int s) {
    const PipelineItem &item = orders_[s][tasks_[s].size()];
    int m = item.microBatch, first = -1;
    if (item.isBackward() && options_.fillsGaps &&
        problem_.recomputeOf(s, m) > 0)
      first = graph_.add(laneOf(s), seconds_.recompute(s, m));
    int task = graph_.add(laneOf(s), secondsOf(s, item));
    tasks_[s].push_back({first < 0 ? task : first, task});
    taskOf(item.kind, s, m) = task;
  }

  /// Makes all items wait for their predecessors.
  void connect() {
    for (int s = 0; s < stages_; ++s)
      for (int m = 0; m < problem_.microBatches(); ++m)
        connect(s, m);
  }

  void read(const std::vector<TaskTime> &times) {
    for (int s = 0; s < stages_; ++s)
      for (size_t i = 0; i < orders_[s].size(); ++i) {
        auto [first, last] = tasks_[s][i];
        orders_[s][i].start = times[first].start;
        orders_[s][i].inputs = times[last].start;
        orders_[s][i].end = times[last].end;
      }
  }

  /// Describes the item of a task; empty if it is none of this pipeline.
  std::string describe(int task) const {
    for (int s = 0; s < stages_; ++s)
      for (size_t i = 0; i < orders_[s].size(); ++i) {
        const PipelineItem &item = orders_[s][i];
        auto [first, last] = tasks_[s][i];
        if (first == task || last == task)
          return formatText("the %s of micro-batch %d on stage %d",
                            item.isForward()    ? "forward"
                            : item.isBackward() ? "backward"
                                                : "weight gradients",
                            item.microBatch, s);
      }
    return "";
  }

private:
  double secondsOf(int s, const PipelineItem &item) const {
    int m = item.microBatch;
    if (item.isForward())
      return seconds_.forward(s, m);
    if (!item.isBackward())
      return seconds_.weight(s, m);
    if (!options_.fillsGaps)
      return seconds_.backward(s, m);
    return seconds_.inputGradient(s, m);
  }

  int &taskOf(ItemKind kind, int s, int m) {
    return taskOf_[(static_cast<size_t>(kind) * stages_ + s) *
                       problem_.microBatches() +
                   m];
  }

  void connect(int s, int m) {
    for (ItemKind kind :
         {ItemKind::Forward, ItemKind::Backward, ItemKind::Weight})
      if (const int task = taskOf(kind, s, m); task >= 0)
        links_.forEachPredecessor(s, kind, m, [&](const Predecessor &one) {
          deliver(taskOf(one.kind, one.stage, one.microBatch), task,
                  messageSecondsOf(one));
        });
    if (options_.sentAhead > 0 && m >= options_.sentAhead)
      for (const StageLink &link : links_.outOf(s))
        graph_.wait(taskOf(ItemKind::Forward, s, m),
                    taskOf(ItemKind::Forward, link.to, m - options_.sentAhead));
  }

  void deliver(int from, int to, double seconds) {
    if (seconds > 0) {
      int message = graph_.add(TaskGraph::noLane, seconds);
      graph_.wait(message, from);
      from = message;
    }
    graph_.wait(to, from);
  }

  StageOrders &orders_;
  const PipelineProblem &problem_;
  const ClockOptions &options_;
  ItemSeconds seconds_;
  const int stages_;
  const StageGraph links_;
  TaskGraph &graph_;
  const bool isMirrored_;
  /// First and last task of every item, by stage.
  std::vector<std::vector<std::pair<int, int>>> tasks_;
  std::vector<int> taskOf_; ///< [kind][stage][micro-batch]; -1: none
};

/// Returns the slots of all items of a pipeline, by stage.
std::vector<std::vector<int64_t>> slotsOf(const MirroredPipeline &pipeline) {
  std::vector<std::vector<SlotItem>> stages;
  for (const auto &items : pipeline.orders) {
    stages.emplace_back();
    for (const PipelineItem &item : items)
      stages.back().push_back({item.isForward()    ? SlotItem::Kind::Forward
                               : item.isBackward() ? SlotItem::Kind::Backward
                                                   : SlotItem::Kind::Weight,
                               item.microBatch});
  }
  std::vector<std::pair<int, int>> links;
  const StageGraph graph(pipeline.problem);
  for (int s = 0; s < static_cast<int>(stages.size()); ++s)
    for (const StageLink &link : graph.outOf(s))
      links.push_back({link.from, link.to});
  return chimeraSlots(stages, links);
}

} // namespace

Status timeItems(StageOrders &orders, const PipelineProblem &problem,
                 const ClockOptions &options) {
  const int stages = static_cast<int>(orders.size());
  TaskGraph graph(stages);
  Clock clock(orders, problem, options, graph);
  DYNA_RETURN_IF_ERROR(clock.check());
  graph.reserve(2 * clock.items(), 3 * clock.items());
  for (int s = 0; s < stages; ++s)
    for (size_t i = 0; i < orders[s].size(); ++i)
      clock.addNext(s);
  clock.connect();
  auto describe = [&](int task) {
    const std::string item = clock.describe(task);
    return item.empty() ? "a message" : item;
  };
  DYNA_ASSIGN_OR_RETURN(std::vector<TaskTime> times, graph.run(describe));
  clock.read(times);
  return Status::ok();
}

Status timeMirrored(MirroredPipeline down, MirroredPipeline up,
                    const ClockOptions &options) {
  const int stages = static_cast<int>(down.orders.size());
  if (static_cast<int>(up.orders.size()) != stages)
    return Status::internal("mirrored pipelines have equally many stages");
  TaskGraph graph(stages);
  Clock first(down.orders, down.problem, options, graph);
  Clock second(up.orders, up.problem, options, graph, /*isMirrored=*/true);
  DYNA_RETURN_IF_ERROR(first.check());
  DYNA_RETURN_IF_ERROR(second.check());
  const size_t items = first.items() + second.items();
  graph.reserve(2 * items, 3 * items);
  const auto downSlots = slotsOf(down), upSlots = slotsOf(up);
  for (int s = 0; s < stages; ++s) {
    const int mirrored = stages - 1 - s;
    const std::vector<int64_t> &others = upSlots[mirrored];
    size_t next = 0;
    for (int64_t slot : downSlots[s]) {
      for (; next < others.size() && others[next] < slot; ++next)
        second.addNext(mirrored);
      first.addNext(s);
    }
    for (; next < others.size(); ++next)
      second.addNext(mirrored);
  }
  first.connect();
  second.connect();
  auto describe = [&](int task) {
    if (std::string item = first.describe(task); !item.empty())
      return item + ", downwards";
    const std::string item = second.describe(task);
    return item.empty() ? "a message" : item + ", upwards";
  };
  DYNA_ASSIGN_OR_RETURN(std::vector<TaskTime> times, graph.run(describe));
  first.read(times);
  second.read(times);
  return Status::ok();
}

double makespanOf(const StageOrders &orders) {
  double end = 0;
  for (const auto &list : orders)
    if (!list.empty())
      end = std::max(end, list.back().end);
  return end;
}

std::vector<int64_t> peakBytesOf(const StageOrders &orders,
                                 const PipelineProblem &problem) {
  std::vector<int64_t> peaks;
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    int s = static_cast<int>(stage);
    bool apart = std::any_of(
        orders[s].begin(), orders[s].end(),
        [](const PipelineItem &i) { return i.kind == ItemKind::Weight; });
    int64_t bytes = 0, peak = 0;
    for (const PipelineItem &item : orders[s]) {
      int m = item.microBatch;
      int64_t held = problem.heldBytes(s, m), late = problem.lateBytes(s, m);
      if (item.isForward())
        bytes += held;
      else if (item.isBackward())
        bytes -= apart ? held - late : problem.freedBytes(s, m);
      else
        bytes -= late;
      peak = std::max(peak, bytes);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

namespace {

/// Times at which what items run after has come to their stages.
class ItemArrivals {
public:
  ItemArrivals(const StageOrders &orders, const PipelineProblem &problem)
      : graph_(problem),
        forward_(orders.size(), std::vector<double>(problem.microBatches())),
        backward_(forward_) {
    for (size_t s = 0; s < orders.size(); ++s)
      for (const PipelineItem &item : orders[s])
        if (item.kind != ItemKind::Weight)
          (item.isForward() ? forward_ : backward_)[s][item.microBatch] =
              item.end;
  }

  /// Returns true for items that no other stage, and no turn, holds back.
  bool isAlwaysThere(int s, const PipelineItem &item) const {
    return item.kind == ItemKind::Weight ||
           (item.isForward() && graph_.into(s).empty());
  }

  double find(int s, const PipelineItem &item) const {
    double arrival = 0;
    graph_.forEachPredecessor(
        s, item.kind, item.microBatch, [&](const Predecessor &one) {
          const auto &ends =
              one.kind == ItemKind::Forward ? forward_ : backward_;
          arrival = std::max(arrival, ends[one.stage][one.microBatch] +
                                          messageSecondsOf(one));
        });
    return arrival;
  }

private:
  const StageGraph graph_;
  std::vector<std::vector<double>> forward_, backward_; ///< ends, by stage
};

} // namespace

std::vector<SafetyStock> safetyStockOf(const StageOrders &orders,
                                       const PipelineProblem &problem) {
  const int stages = static_cast<int>(orders.size());
  const ItemArrivals arrivalsOf(orders, problem);
  // An item that arrives just as a stage becomes free keeps it busy, but is no
  // stock.
  const double moment = 1e-9 * makespanOf(orders);
  std::vector<SafetyStock> stocks;
  for (int s = 0; s < stages; ++s) {
    std::vector<double> arrivals, starts;
    double begin = 0, end = 0;
    bool backwards = false;
    for (const PipelineItem &item : orders[s]) {
      if (item.isBackward() && !backwards) {
        backwards = true;
        begin = item.start;
      }
      if (item.isForward())
        end = item.start;
      if (arrivalsOf.isAlwaysThere(s, item))
        continue;
      arrivals.push_back(arrivalsOf.find(s, item));
      starts.push_back(item.start);
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::sort(starts.begin(), starts.end());
    std::vector<int> ready;
    for (const PipelineItem &item : orders[s]) {
      double now = item.start;
      if (item.kind == ItemKind::Weight || now < begin || now > end)
        continue;
      auto before = [&](const std::vector<double> &times) {
        return std::lower_bound(times.begin(), times.end(), now - moment) -
               times.begin();
      };
      ready.push_back(static_cast<int>(
          std::max<ptrdiff_t>(0, before(arrivals) - before(starts))));
    }
    SafetyStock &stock = stocks.emplace_back();
    if (ready.empty())
      continue;
    for (int items : ready)
      stock.mean += items / static_cast<double>(ready.size());
    std::nth_element(ready.begin(), ready.begin() + ready.size() / 2,
                     ready.end());
    stock.median = ready[ready.size() / 2];
  }
  return stocks;
}

} // namespace dyna
