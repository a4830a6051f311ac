//===- Routes.cpp - Searches routes of lots over ports --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/Routes.h"

#include "runtime/planner/switch/PortLoads.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace dyna::switches {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Prices relative to 1 for a port as busy as the busiest. They are the price
/// of an idle port, and that of each level that a rank waits for. Deep routes
/// take longer to fill and drain ports, and ports wait for each other
/// meanwhile.
constexpr double kBasePrice = 0.01;
constexpr double kLevelPrice = 0.2;
/// Limit of the exponent: a higher power would react to differences smaller
/// than those of coarse shares.
constexpr int kLargestPower = 31;
/// A rank at a deeper level does not send to other nodes.
constexpr int kDeepestExit = 2;
/// Largest number of shares of a lot. It falls, down to `kFewShares`, if one
/// sweep over all shares would look at more than `kSweepWork` ports. Coarse
/// shares load busy ports unevenly.
constexpr int kMostShares = 32, kFewShares = 8;
constexpr double kSweepWork = 1e6;
/// The search ends after this number of consecutive sweeps that gain less than
/// `kSweepGain`.
constexpr int kIdleSweeps = 2;
constexpr double kSweepGain = 0.003;

double power(double x, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, x *= x)
    if (exponent & 1)
      result *= x;
  return result;
}

/// Builds a route. Knows the ranks that already have a share, and the prices of
/// further hops.
class RouteBuilder {
public:
  explicit RouteBuilder(const SwitchNetwork &network)
      : network_(network), loads_(network), level_(network.ranks, -1),
        exits_(network.nodes()) {
    insideSeconds_ = network.insideRate > 0 ? 1 / network.insideRate : 0;
    betweenSeconds_ = network.betweenRate > 0 ? 1 / network.betweenRate : 0;
  }

  /// Sets the time that prices compare loads with, and the exponent.
  void setPrices(double seconds, int exponent) {
    perSecond_ = seconds > 0 ? 1 / seconds : 0;
    exponent_ = exponent;
  }

  void setDetours(bool hasDetours) { hasDetours_ = hasDetours; }

  const PortLoads &loads() const { return loads_; }

  void add(const Route &route, double bytes) {
    for (const Hop &hop : route)
      loads_.add(hop.from, hop.to, bytes);
  }

  /// Builds the route of so many bytes of a lot, and adds their load. `turn`
  /// selects among equals.
  Route build(const Lot &lot, double bytes, int turn) {
    route_.clear();
    bytes_ = bytes;
    insideStep_ = bytes * insideSeconds_;
    betweenStep_ = bytes * betweenSeconds_;
    for (int rank : lot.holders)
      reach(rank, 0);
    if (lot.delivery == Delivery::Once)
      deliverOnce(lot);
    else
      deliverAll(lot, turn);
    for (int rank : reached_)
      level_[rank] = -1;
    for (int node : reachedNodes_)
      exits_[node] = Exit();
    reached_.clear();
    reachedNodes_.clear();
    return route_;
  }

private:
  /// Cheapest exit of a node for the bytes that it has. It leaves over the port
  /// of a rank, which gets the bytes from `feeder` if it does not have them.
  struct Exit {
    double price = kNever;
    int gate = -1, feeder = -1;
    bool isKnown = false, isReached = false;
  };

  bool has(int rank) const { return level_[rank] >= 0; }

  /// Returns the price of one more byte over a port.
  double price(Port port, int rank) const {
    const bool isInside = port == Port::InsideOut || port == Port::InsideIn;
    const double seconds = isInside ? insideSeconds_ : betweenSeconds_;
    const double step = isInside ? insideStep_ : betweenStep_;
    return seconds *
           (kBasePrice +
            power((loads_.at(port, rank) + step) * perSecond_, exponent_));
  }
  /// Returns the price of the wait until a rank of this level has the data.
  double levelPrice(int level, double seconds) const {
    return kLevelPrice * level * seconds;
  }

  void reach(int rank, int level) {
    level_[rank] = level;
    reached_.push_back(rank);
    Exit &exit = exits_[network_.nodeOf(rank)];
    if (!exit.isReached)
      reachedNodes_.push_back(network_.nodeOf(rank));
    exit.isReached = true;
    exit.isKnown = false;
  }

  void hop(int from, int to) {
    route_.push_back({from, to, level_[from]});
    loads_.add(from, to, bytes_);
    exits_[network_.nodeOf(from)].isKnown = false;
    reach(to, level_[from] + 1);
  }

  /// Returns the rank that sends to others of its node at the least price, and
  /// that price; -1 if the node has nothing.
  std::pair<int, double> cheapestFeeder(int node) const {
    int best = -1;
    double least = kNever;
    for (int rank = network_.firstOf(node); rank < network_.endOf(node); ++rank)
      if (has(rank))
        if (double cost = price(Port::InsideOut, rank) +
                          levelPrice(level_[rank], insideSeconds_);
            cost < least)
          least = cost, best = rank;
    return {best, least};
  }

  const Exit &exitOf(int node) {
    Exit &exit = exits_[node];
    if (exit.isKnown)
      return exit;
    exit.isKnown = true;
    exit.price = kNever;
    auto [feeder, feeding] = cheapestFeeder(node);
    for (int rank = network_.firstOf(node); rank < network_.endOf(node);
         ++rank) {
      if (level_[has(rank) ? rank : feeder] > kDeepestExit ||
          (!has(rank) && !hasDetours_))
        continue;
      double cost =
          price(Port::NetworkOut, rank) +
          (has(rank) ? levelPrice(level_[rank], betweenSeconds_)
                     : feeding + price(Port::InsideIn, rank) +
                           levelPrice(level_[feeder] + 1, betweenSeconds_));
      if (cost < exit.price)
        exit.price = cost, exit.gate = rank, exit.feeder = feeder;
    }
    return exit;
  }

  /// Returns the node with the cheapest exit, except one; -1 if no other node
  /// has the data.
  int cheapestExit(int except) {
    int best = -1;
    double least = kNever;
    for (int node : reachedNodes_)
      if (node != except && exitOf(node).price < least)
        least = exits_[node].price, best = node;
    return best;
  }

  void cross(int fromNode, int entry) {
    const Exit exit = exitOf(fromNode);
    if (!has(exit.gate))
      hop(exit.feeder, exit.gate);
    hop(exit.gate, entry);
  }

  void deliverAll(const Lot &lot, int turn) {
    // Needers by node; first where the node has it, then where it must enter.
    nodes_.clear();
    for (size_t i = 0; i < lot.lacking.size();) {
      size_t begin = i;
      int node = network_.nodeOf(lot.lacking[i]);
      while (i < lot.lacking.size() && network_.nodeOf(lot.lacking[i]) == node)
        ++i;
      nodes_.push_back({node, begin, i, !exits_[node].isReached});
    }
    for (const Needers &needers : nodes_)
      if (!needers.mustEnter)
        serve(lot, needers, turn);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Needers &needers = nodes_[(i + turn) % nodes_.size()];
      if (!needers.mustEnter)
        continue;
      enter(lot, needers);
      serve(lot, needers, turn);
    }
  }

  struct Needers {
    int node;
    size_t begin, end; ///< in Lot::lacking
    bool mustEnter;
  };

  /// Sends one copy over the network, to a rank that needs it or to one that
  /// lends its port.
  void enter(const Lot &lot, const Needers &needers) {
    const int node = needers.node;
    int entry = -1;
    double least = kNever;
    for (int rank = network_.firstOf(node); rank < network_.endOf(node);
         ++rank) {
      // A gate sends the bytes once more; a rank that needs them saves a copy
      // inside the node.
      bool needs = std::binary_search(lot.lacking.begin() + needers.begin,
                                      lot.lacking.begin() + needers.end, rank);
      if (!needs && !hasDetours_)
        continue;
      double cost =
          price(Port::NetworkIn, rank) +
          (needs ? -price(Port::InsideIn, rank) : price(Port::InsideOut, rank));
      if (cost < least)
        least = cost, entry = rank;
    }
    cross(cheapestExit(node), entry);
  }

  void serve(const Lot &lot, const Needers &needers, int turn) {
    const size_t count = needers.end - needers.begin;
    for (size_t i = 0; i < count; ++i) {
      int rank = lot.lacking[needers.begin + (i + turn) % count];
      if (has(rank))
        continue;
      auto [feeder, feeding] = cheapestFeeder(needers.node);
      // Use the network if ports inside the node are busy. A gate that has the
      // bytes already hands them on.
      const double busy = std::max(loads_.at(Port::InsideOut, feeder),
                                   loads_.at(Port::InsideIn, rank));
      if (hasDetours_ && !needers.mustEnter && busy * perSecond_ > 0.5 &&
          crossInstead(needers.node, rank,
                       feeding + price(Port::InsideIn, rank)))
        continue;
      hop(feeder, rank);
    }
  }

  /// Brings the lot from another node, if that costs less. It goes into the
  /// rank's own network port, or into that of another rank without it.
  bool crossInstead(int node, int rank, double inside) {
    const int other = network_.nodes() > 1 ? cheapestExit(node) : -1;
    if (other < 0)
      return false;
    int entry = -1;
    for (int in = network_.firstOf(node); in < network_.endOf(node); ++in) {
      double cost = exits_[other].price + price(Port::NetworkIn, in) +
                    (in == rank ? 0
                                : price(Port::InsideOut, in) +
                                      price(Port::InsideIn, rank));
      if (cost < inside && !has(in))
        inside = cost, entry = in;
    }
    if (entry < 0)
      return false;
    cross(other, entry);
    if (entry != rank)
      hop(entry, rank);
    return true;
  }

  /// Sends the lot to the needer with the least price.
  void deliverOnce(const Lot &lot) {
    int bestFrom = -1, bestTo = -1, entry = -1, exitNode = -1;
    double least = kNever;
    for (int rank : lot.lacking) {
      int node = network_.nodeOf(rank);
      if (exits_[node].isReached) {
        auto [feeder, feeding] = cheapestFeeder(node);
        if (double cost = feeding + price(Port::InsideIn, rank); cost < least)
          least = cost, bestFrom = feeder, bestTo = rank, entry = -1;
      }
      if (int other = network_.nodes() > 1 ? cheapestExit(node) : -1;
          other >= 0) {
        for (int in = network_.firstOf(node); in < network_.endOf(node); ++in) {
          double cost = exits_[other].price + price(Port::NetworkIn, in) +
                        (in == rank ? 0
                                    : price(Port::InsideOut, in) +
                                          price(Port::InsideIn, rank));
          if (cost < least && (in == rank || (hasDetours_ && !has(in))))
            least = cost, bestTo = rank, entry = in, exitNode = other;
        }
      }
    }
    if (entry < 0) {
      hop(bestFrom, bestTo);
      return;
    }
    cross(exitNode, entry);
    if (entry != bestTo)
      hop(entry, bestTo);
  }

  const SwitchNetwork &network_;
  PortLoads loads_;
  double insideSeconds_ = 0, betweenSeconds_ = 0; ///< of a byte
  double perSecond_ = 0;
  int exponent_ = 1;
  bool hasDetours_ = true;

  // State of the share that is being built.
  double bytes_ = 0, insideStep_ = 0, betweenStep_ = 0;
  Route route_;
  std::vector<int> level_; ///< by rank, -1: does not have it
  std::vector<int> reached_, reachedNodes_;
  std::vector<Exit> exits_; ///< by node
  std::vector<Needers> nodes_;
};

struct Share {
  int lot = 0;
  int turn = 0;
  double bytes = 0;
  Route route;
};

/// Returns the number of shares of each lot, so that all shares have about one
/// size. A lot that a rank lacks has at least one, at most `mostShares`, and at
/// most as many as it has pieces.
std::vector<int> countShares(const std::vector<Lot> &lots, int ranks,
                             int mostShares) {
  double total = 0;
  for (const Lot &lot : lots)
    total += static_cast<double>(lot.bytes) *
             static_cast<double>(!lot.lacking.empty());
  const double unit = total / (static_cast<double>(ranks) * mostShares);
  std::vector<int> counts(lots.size(), 0);
  for (size_t i = 0; i < lots.size(); ++i) {
    if (lots[i].lacking.empty())
      continue;
    const double most =
        static_cast<double>(std::min<int64_t>(mostShares, lots[i].pieces));
    counts[i] = static_cast<int>(
        std::clamp(static_cast<double>(lots[i].bytes) / unit, 1.0, most));
  }
  return counts;
}

/// Estimates how many ports a sweep looks at.
double sweepWork(const std::vector<Lot> &lots, const std::vector<int> &counts,
                 const SwitchNetwork &network) {
  double work = 0;
  for (size_t i = 0; i < lots.size(); ++i) {
    const auto ranks = static_cast<double>(lots[i].lacking.size());
    const double nodes = std::min(ranks, static_cast<double>(network.nodes()));
    work += counts[i] * (ranks + nodes * network.nodes());
  }
  return work;
}

/// Cuts lots into shares, in turns from the largest lot on.
std::vector<Share> cutLots(const std::vector<Lot> &lots,
                           const SwitchNetwork &network) {
  int mostShares = kMostShares;
  std::vector<int> counts = countShares(lots, network.ranks, mostShares);
  while (mostShares > kFewShares &&
         sweepWork(lots, counts, network) > kSweepWork) {
    mostShares /= 2;
    counts = countShares(lots, network.ranks, mostShares);
  }
  std::vector<int> order;
  for (size_t i = 0; i < lots.size(); ++i)
    if (counts[i] > 0)
      order.push_back(static_cast<int>(i));
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return lots[a].bytes != lots[b].bytes ? lots[a].bytes > lots[b].bytes
                                          : a < b;
  });
  std::vector<Share> shares;
  for (int turn = 0; turn < mostShares; ++turn)
    for (int lot : order)
      if (turn < counts[lot])
        shares.push_back({lot,
                          turn,
                          static_cast<double>(lots[lot].bytes) / counts[lot],
                          {}});
  return shares;
}

std::vector<LotRoutes> joinShares(const std::vector<Lot> &lots,
                                  std::vector<Share> shares) {
  std::vector<LotRoutes> result(lots.size());
  for (Share &share : shares) {
    auto &known = result[share.lot].shares;
    double part = share.bytes / static_cast<double>(lots[share.lot].bytes);
    auto same = std::find_if(known.begin(), known.end(), [&](const auto &one) {
      return one.route == share.route;
    });
    if (same == known.end())
      known.push_back({std::move(share.route), part});
    else
      same->part += part;
  }
  return result;
}

} // namespace

Routes findRoutes(const std::vector<Lot> &lots, const SwitchNetwork &network,
                  const RouteSettings &settings) {
  RouteBuilder builder(network);
  builder.setDetours(settings.hasDetours);
  std::vector<Share> shares = cutLots(lots, network);
  builder.setPrices(settings.bound, 3);
  for (Share &share : shares)
    share.route = builder.build(lots[share.lot], share.bytes, share.turn);
  std::vector<Share> best = shares;
  double least = builder.loads().largest();
  for (int sweep = 0, exponent = 7, idle = 0;
       sweep < settings.sweeps && idle < kIdleSweeps &&
       least > settings.bound * 1.005;
       ++sweep) {
    builder.setPrices(std::max(settings.bound, least), exponent);
    for (Share &share : shares) {
      builder.add(share.route, -share.bytes);
      share.route = builder.build(lots[share.lot], share.bytes, share.turn);
    }
    const double largest = builder.loads().largest();
    idle = largest < least * (1 - kSweepGain) ? 0 : idle + 1;
    if (largest < least) {
      least = largest;
      best = shares;
    }
    exponent = std::min(2 * exponent + 1, kLargestPower);
  }
  return {joinShares(lots, std::move(best)), least};
}

} // namespace dyna::switches
