//===- DealtSwitchTest.cpp - Where pieces of a switch are dealt -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/DealtSwitch.h"
#include "test/runtime/planner/switch/SwitchCases.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>
#include <set>

using namespace dyna;
using namespace dyna::switches;

namespace {

/// A tree of hops from ranks 0 and 1.
Route drawRoute(Draw &draw, int ranks) {
  Route route;
  std::vector<std::pair<int, int>> reached = {{0, 0},
                                              {1, 0}}; // and their level
  for (int to = 2; to < ranks; ++to)
    if (draw.below(3) > 0) {
      auto [from, level] =
          reached[draw.below(static_cast<int>(reached.size()))];
      route.push_back({from, to, level});
      reached.emplace_back(to, level + 1);
    }
  if (route.empty())
    route.push_back({0, 2, 0});
  return route;
}

TEST(DealtSwitch, BranchesKnowTheirPortsAndRanks) {
  Draw draw(1);
  const SwitchNetwork network = nodesOf(2, 4);
  for (int i = 0; i < 200; ++i) {
    const Route route = drawRoute(draw, network.ranks);
    Lot lot;
    for (const Hop &hop : route)
      lot.lacking.push_back(hop.to);
    std::map<size_t, double> ports, foundPorts;
    std::map<std::pair<int, int>, std::array<int, 3>> ranks, foundRanks;
    for (const Hop &hop : route) {
      const bool isInside = network.nodeOf(hop.from) == network.nodeOf(hop.to);
      auto add = [&](Port kind, int rank) {
        ports[static_cast<size_t>(rank) * kPorts + static_cast<size_t>(kind)] +=
            network.secondsPerByte(isInside);
      };
      add(isInside ? Port::InsideOut : Port::NetworkOut, hop.from);
      add(isInside ? Port::InsideIn : Port::NetworkIn, hop.to);
      auto &sender = ranks[{hop.level, hop.from}];
      ++sender[0], ++sender[1];
      auto &receiver = ranks[{hop.level, hop.to}];
      ++receiver[0], ++receiver[2];
    }
    const Branch branch = branchOf(lot, route, network);
    EXPECT_EQ(branch.steps.size(), route.size());
    for (const Branch::PortUse &use : branch.ports)
      EXPECT_TRUE(foundPorts.insert({use.port, use.seconds}).second);
    for (const Branch::RankUse &use : branch.ranks)
      EXPECT_TRUE(foundRanks
                      .insert({{use.level, use.rank},
                               {use.transfers, use.sent, use.received}})
                      .second);
    EXPECT_EQ(foundPorts, ports);
    EXPECT_EQ(foundRanks, ranks);
  }
}

/// A piece of one hop, or of one rank that keeps it.
struct OneHop {
  int from, to;
  int64_t bytes;
};

OneHop drawHop(Draw &draw, int ranks, int64_t bytes) {
  return {draw.below(ranks), draw.below(ranks), bytes};
}

/// Pieces, each a tensor of its own.
std::vector<SwitchTensor> tensorsOf(const std::vector<OneHop> &pieces) {
  std::vector<SwitchTensor> tensors;
  for (const OneHop &piece : pieces)
    tensors.push_back(bytesOn({piece.from}, {piece.to}, piece.bytes));
  return tensors;
}

void deal(DealtSwitch &dealt, const SwitchNetwork &network, int tensor,
          const OneHop &piece, double begin, double end) {
  Lot lot;
  lot.lacking = {piece.to};
  const int branch = dealt.addBranch(
      piece.from == piece.to
          ? stayOn({piece.from})
          : branchOf(lot, {{piece.from, piece.to, 0}}, network));
  dealt.add(tensor, branch, {{0, 0}, {piece.bytes, 1}}, begin, end);
}

/// Seconds of ports in groups of which none is ever full.
class NaiveGroups {
public:
  explicit NaiveGroups(const SwitchNetwork &network) : network_(network) {}

  /// Adds a piece to the first of the groups in which its busiest port is least busy.
  size_t add(const OneHop &piece, size_t first, size_t last) {
    size_t best = first;
    for (size_t g = first; g <= last; ++g)
      if (busiest(g, piece) < busiest(best, piece))
        best = g;
    for (auto [port, seconds] : portsOf(piece))
      groups_[best][port] += seconds;
    return best;
  }

private:
  using Seconds = std::map<std::pair<Port, int>, double>;

  Seconds portsOf(const OneHop &piece) const {
    if (piece.from == piece.to)
      return {};
    const bool isInside =
        network_.nodeOf(piece.from) == network_.nodeOf(piece.to);
    const double seconds =
        static_cast<double>(piece.bytes) * network_.secondsPerByte(isInside);
    return {
        {{isInside ? Port::InsideOut : Port::NetworkOut, piece.from}, seconds},
        {{isInside ? Port::InsideIn : Port::NetworkIn, piece.to}, seconds}};
  }

  double busiest(size_t group, const OneHop &piece) {
    double most = 0;
    for (auto [port, seconds] : portsOf(piece))
      most = std::max(most, groups_[group][port] + seconds);
    return most;
  }

  const SwitchNetwork network_;
  std::map<size_t, Seconds> groups_;
};

TEST(DealtSwitch, PiecesGoWhereTheirPortsAreLeastBusy) {
  constexpr int groups = 8; // all of a window are looked at
  Draw draw(2);
  const SwitchNetwork network = nodesOf(2, 3);
  for (int i = 0; i < 100; ++i) {
    std::vector<OneHop> pieces;
    for (int t = 0; t < 60; ++t)
      pieces.push_back(drawHop(draw, network.ranks, 8 + draw.below(64)));
    const std::vector<SwitchTensor> tensors = tensorsOf(pieces);
    DealtSwitch dealt(tensors, network, {}, groups);
    NaiveGroups naive(network);
    std::map<size_t, std::set<int>> expected;
    for (int t = 0; t < 60; ++t) {
      const int first = draw.below(groups);
      const int last = first + draw.below(groups - first);
      deal(dealt, network, t, pieces[t], (first + 0.5) / groups,
           (last + 0.5) / groups);
      expected[naive.add(pieces[t], first, last)].insert(t);
    }
    const SwitchPlan plan = std::move(dealt).plan();
    ASSERT_EQ(plan.buckets.size(), expected.size());
    auto bucket = plan.buckets.begin();
    for (const auto &[group, members] : expected) {
      std::set<int> found;
      for (const SwitchTransfer &transfer : (bucket++)->transfers)
        found.insert(transfer.tensor);
      EXPECT_EQ(found, members) << "group " << group;
    }
  }
}

/// A piece that takes 8 s over the network and 1 s inside goes where the network port is
/// idle, although the other one is busy for 5 s there.
TEST(DealtSwitch, PiecesCountAtTheirOwnPorts) {
  const SwitchNetwork network = nodesOf(2, 3);
  const std::vector<SwitchTensor> tensors = {
      bytesOn({0}, {1}, 40), bytesOn({0}, {3}, 1), bytesOn({0}, {1, 3}, 8)};
  DealtSwitch dealt(tensors, network, {}, 2);
  deal(dealt, network, 0, {0, 1, 40}, 0, 0);
  deal(dealt, network, 1, {0, 3, 1}, 0.5, 0.5);
  Lot lot;
  lot.lacking = {1, 3};
  const int both =
      dealt.addBranch(branchOf(lot, {{0, 1, 0}, {0, 3, 0}}, network));
  dealt.add(2, both, {{0, 0}, {8, 1}}, 0, 1);
  const SwitchPlan plan = std::move(dealt).plan();
  ASSERT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.buckets[0].transfers.size(), 3u);
}

/// Checks a bucket of pieces of one hop: what a rank sends, and receives, is within the
/// limit, unless it is one piece alone.
void expectWithinLimits(const SwitchBucket &bucket,
                        const std::vector<SwitchTensor> &tensors,
                        const SwitchOptions &limits) {
  std::map<std::pair<int, bool>, std::vector<int64_t>> bytes; // rank, receives
  std::map<int, int64_t> transfers;
  for (const SwitchTransfer &transfer : bucket.transfers) {
    ++transfers[transfer.from];
    if (transfer.from == transfer.to)
      continue;
    ++transfers[transfer.to];
    for (bool receives : {false, true})
      bytes[{receives ? transfer.to : transfer.from, receives}].push_back(
          transfer.box.volume() * tensors[transfer.tensor].elementBytes);
  }
  for (const auto &[rank, count] : transfers)
    EXPECT_LE(count, limits.bucketTransfers) << "rank " << rank;
  for (const auto &[port, parts] : bytes) {
    const int64_t sum = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    EXPECT_TRUE(parts.size() == 1 || sum <= limits.bucketBytes)
        << "rank " << port.first << (port.second ? " receives " : " sends ")
        << sum << " of " << limits.bucketBytes;
  }
}

TEST(DealtSwitch, GroupsAreWithinTheLimits) {
  Draw draw(3);
  const SwitchNetwork network = nodesOf(2, 3);
  for (int i = 0; i < 200; ++i) {
    SwitchOptions limits;
    limits.bucketTransfers = 1 + draw.below(8);
    limits.bucketBytes = 1 + draw.below(400);
    std::vector<OneHop> pieces;
    for (int t = 0; t < 60; ++t)
      pieces.push_back(drawHop(draw, network.ranks, 1 + draw.below(200)));
    const std::vector<SwitchTensor> tensors = tensorsOf(pieces);
    DealtSwitch dealt(tensors, network, limits, 1 + draw.below(4));
    for (int t = 0; t < 60; ++t)
      deal(dealt, network, t, pieces[t], 0, draw.below(2));
    size_t transfers = 0;
    for (const SwitchBucket &bucket : std::move(dealt).plan().buckets) {
      expectWithinLimits(bucket, tensors, limits);
      transfers += bucket.transfers.size();
    }
    EXPECT_EQ(transfers, pieces.size());
  }
}

/// Pieces of one sender to one receiver fill one group after another.
TEST(DealtSwitch, GroupsAreFilledBeforeTheNextOne) {
  const SwitchNetwork network = nodesOf(1, 2);
  for (auto [bytes, perBucket] :
       {std::pair(25, 4), {50, 2}, {60, 1}, {300, 1}}) {
    const std::vector<OneHop> pieces(12, {0, 1, bytes});
    const std::vector<SwitchTensor> tensors = tensorsOf(pieces);
    SwitchOptions limits;
    limits.bucketBytes = 100;
    DealtSwitch dealt(tensors, network, limits, 1);
    for (int t = 0; t < 12; ++t)
      deal(dealt, network, t, pieces[t], 0, 1);
    const SwitchPlan plan = std::move(dealt).plan();
    EXPECT_EQ(static_cast<int>(plan.buckets.size()), 12 / perBucket) << bytes;
  }
}

} // namespace
