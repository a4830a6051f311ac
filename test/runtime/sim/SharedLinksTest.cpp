//===- SharedLinksTest.cpp - Max-min fair shares, by their definition -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/sim/RandomPlan.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace dyna;

namespace {

using Sharing = SimulationOptions::Sharing;
constexpr double never = std::numeric_limits<double>::infinity();

/// One transfer on its way.
struct Flow {
  std::map<std::string, double> uses; ///< of each link, at speed 1
  double most = 1;
  double begin = 0, left = 0; ///< when it moves, and for how long alone
  double speed = 0, end = never;
};

/// When transfers end that begin at given times: from one beginning or end to the
/// next, all speeds being found anew. Nothing is known of bundles and of who
/// shares with whom.
class Network {
public:
  Network(const PlanWork &work, Sharing sharing)
      : work_(work), byNodes_(sharing == Sharing::Nodes) {}

  Flow flowOf(const PlannedTransfer &transfer, double start) const {
    Flow flow;
    flow.begin = start + transfer.latency;
    flow.left = transfer.seconds - transfer.latency;
    const Cluster &cluster = work_.cluster();
    const bool ports = byNodes_ && transfer.leavesNode;
    std::map<int, int> onNode;
    for (int p = 0; p < transfer.parties; ++p)
      ++onNode[cluster.nodeOf(work_.party(transfer, p))];
    int widest = 0;
    for (auto [node, count] : onNode)
      widest = std::max(widest, count);
    for (int p = 0; p < transfer.parties; ++p) {
      const int rank = work_.party(transfer, p), node = cluster.nodeOf(rank);
      for (const char *way : {"out", "in"}) {
        if (transfer.isMessage() && (way[0] == 'o') != (p == 0))
          continue; // one sends, the other receives
        const bool passesInside =
            transfer.isMessage() ? !transfer.leavesNode : onNode[node] > 1;
        if (passesInside)
          flow.uses[formatText("rank %d inside %s", rank, way)] = 1;
        if (ports)
          flow.uses[formatText("node %d %s", node, way)] =
              transfer.isMessage() ? 1 : widest;
        else if (transfer.leavesNode)
          flow.uses[formatText("rank %d between %s", rank, way)] = 1;
      }
    }
    if (ports && transfer.isMessage())
      flow.most =
          std::max(1.0, cluster.description().inside().bytes_per_second() /
                            cluster.description().between().bytes_per_second());
    return flow;
  }

  void run(std::vector<Flow> &flows) {
    std::vector<Flow *> moving;
    double now = 0;
    auto waits = [&](const Flow &flow) {
      return flow.end == never &&
             std::find(moving.begin(), moving.end(), &flow) == moving.end();
    };
    for (;;) {
      raise(moving);
      double next = never;
      for (const Flow &flow : flows)
        if (waits(flow))
          next = std::min(next, std::max(now, flow.begin));
      for (const Flow *flow : moving)
        next = std::min(next, now + flow->left / flow->speed);
      if (next == never)
        return;
      for (Flow *flow : moving)
        flow->left -= (next - now) * flow->speed;
      now = next;
      for (Flow *flow : moving)
        if (flow->left <= 1e-12)
          flow->end = now;
      moving.erase(std::remove_if(moving.begin(), moving.end(),
                                  [](Flow *f) { return f->end != never; }),
                   moving.end());
      for (Flow &flow : flows)
        if (waits(flow) && flow.begin <= now) {
          if (flow.left <= 0)
            flow.end = now;
          else
            moving.push_back(&flow);
        }
    }
  }

  int unequal = 0; ///< dealings in which one had more than an equal share

private:
  double capacity(const std::string &link) const {
    return link[0] == 'n' ? work_.cluster().description().devices_per_node()
                          : 1;
  }

  /// All speeds rise together; who uses a full link stays.
  void raise(const std::vector<Flow *> &moving) {
    std::map<std::string, double> left, equal;
    for (const Flow *flow : moving)
      for (const auto &[link, use] : flow->uses) {
        left[link] = capacity(link);
        equal[link] += use;
      }
    std::vector<Flow *> open = moving;
    for (Flow *flow : open)
      flow->speed = 0;
    while (!open.empty()) {
      double step = never;
      std::map<std::string, double> load;
      for (const Flow *flow : open) {
        step = std::min(step, flow->most - flow->speed);
        for (const auto &[link, use] : flow->uses)
          load[link] += use;
      }
      for (const auto &[link, use] : load)
        step = std::min(step, left[link] / use);
      for (Flow *flow : open)
        flow->speed += step;
      for (const auto &[link, use] : load)
        left[link] -= step * use;
      auto stays = [&](const Flow *flow) {
        return flow->speed >= flow->most * (1 - 1e-12) ||
               std::any_of(
                   flow->uses.begin(), flow->uses.end(),
                   [&](const auto &use) { return left[use.first] <= 1e-12; });
      };
      open.erase(std::remove_if(open.begin(), open.end(), stays), open.end());
    }
    auto hasMore = [&](const Flow *flow) {
      double share = flow->most;
      for (const auto &[link, use] : flow->uses)
        share = std::min(share, capacity(link) / equal[link]);
      return flow->speed > share * (1 + 1e-6);
    };
    unequal += std::any_of(moving.begin(), moving.end(), hasMore);
  }

  const PlanWork &work_;
  const bool byNodes_;
};

/// A transfer begins when all its ranks have come and the one before it in its line
/// has ended; who waits goes on with the last end.
void checkOrder(const PlanWork &work, const PlanTimes &times) {
  std::vector<double> begins(work.transfers().size(), 0);
  std::vector<int> last(work.lines(), -1);
  for (int rank = 0; rank < work.ranks(); ++rank) {
    double now = 0;
    for (int i = 0; i < work.steps(rank).size(); ++i) {
      const PlanWork::Step &step = work.steps(rank)[i];
      const TaskTime &time = times.ranks[rank].instructions[i];
      ASSERT_EQ(time.start, now);
      for (int u = step.first; u < step.first + step.count; ++u) {
        const int t = work.use(u);
        const PlannedTransfer &transfer = work.transfers()[t];
        if (step.kind == PlanWork::Step::Kind::Start) {
          begins[t] = std::max(begins[t], now);
          if (work.party(transfer, 0) == rank) {
            if (int &before = last[transfer.line]; before >= 0)
              begins[t] = std::max(begins[t], times.transfers[before].end);
            last[transfer.line] = t;
          }
        } else {
          now = std::max(now, times.transfers[t].end);
        }
      }
      if (step.kind == PlanWork::Step::Kind::Run)
        now += step.seconds;
      ASSERT_EQ(time.end, now) << rank << " " << i;
    }
  }
  for (size_t t = 0; t < begins.size(); ++t)
    if (!work.transfers()[t].isMeeting())
      ASSERT_EQ(times.transfers[t].start, begins[t]) << t;
}

TEST(SharedLinksTest, SharesAreMaxMinFair) {
  int unequal = 0, shared = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    RandomPlan random(seed, 1 + static_cast<int>(seed % 20));
    SimulationOptions options;
    options.sharing = seed % 2 ? Sharing::Devices : Sharing::Nodes;
    if (seed % 5 == 0)
      options.streams = SimulationOptions::Streams::One;
    SCOPED_TRACE(
        formatText("seed %d, %s", seed, random.timed.planner.graph().name()));
    PlanTimes times = random.play(options);
    const auto &transfers = random.work.transfers();
    if (options.streams == SimulationOptions::Streams::Lines)
      checkOrder(random.work, times);
    Network network(random.work, options.sharing);
    std::vector<Flow> flows;
    std::vector<size_t> numbers;
    for (size_t t = 0; t < transfers.size(); ++t)
      if (!transfers[t].isMeeting()) {
        flows.push_back(network.flowOf(transfers[t], times.transfers[t].start));
        numbers.push_back(t);
      }
    network.run(flows);
    for (size_t i = 0; i < flows.size(); ++i) {
      const TaskTime &time = times.transfers[numbers[i]];
      ASSERT_NEAR(time.end, flows[i].end, 1e-7 * (1 + time.end)) << numbers[i];
      shared +=
          time.end - time.start > transfers[numbers[i]].seconds * (1 + 1e-6);
    }
    unequal += network.unequal;
  }
  // Else the links of these plans would show nothing.
  EXPECT_GT(shared, 200);
  EXPECT_GT(unequal, 15);
}

} // namespace
