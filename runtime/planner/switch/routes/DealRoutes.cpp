//===- DealRoutes.cpp - Deals routes of lots to buckets -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/DealRoutes.h"

#include "runtime/planner/switch/PortLoads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace dyna::switches {
namespace {

/// Largest number of pieces of a lot.
constexpr int64_t kPiecesOfLot = 256;
/// Groups have room for so much more than their even part, as pieces do not fit
/// evenly.
constexpr double kRoom = 1.25;
/// Limit of groups that only serve to fill and drain early. No group holds less
/// than the smallest bucket, because then latencies would count.
constexpr double kMostGroups = 64;
constexpr int64_t kSmallestBucket = int64_t{2} << 20;

/// Measures how far the pieces dealt so far are from the whole plan in small.
/// In that plan every port has carried the same share of its bytes.
class Pace {
public:
  Pace(const std::vector<Lot> &lots, const std::vector<LotRoutes> &routes,
       const SwitchNetwork &network)
      : ports_(static_cast<size_t>(kPorts) * network.ranks) {
    for (size_t lot = 0; lot < lots.size(); ++lot)
      for (const auto &share : routes[lot].shares)
        total_ += static_cast<double>(lots[lot].bytes) * share.part;
  }

  /// Counts what will go over a branch.
  void expect(Range<Branch::PortUse> branch, double bytes) {
    for (const Branch::PortUse &use : branch)
      ports_[use.port].whole += bytes * use.seconds;
  }

  /// Seconds by which the hastiest port of a branch is ahead.
  double ahead(Range<Branch::PortUse> branch) const {
    const double progress = done_ / std::max(total_, 1.0);
    double most = -std::numeric_limits<double>::infinity();
    for (const Branch::PortUse &use : branch) {
      const PortPace &port = ports_[use.port];
      most = std::max(most, port.dealt - progress * port.whole);
    }
    return most;
  }

  void add(Range<Branch::PortUse> branch, double bytes) {
    for (const Branch::PortUse &use : branch)
      ports_[use.port].dealt += bytes * use.seconds;
    done_ += bytes;
  }

private:
  struct PortPace {
    double whole = 0, dealt = 0; ///< seconds
  };
  std::vector<PortPace> ports_;
  double total_ = 0, done_ = 0; ///< bytes
};

/// Groups, at least, from which a piece is given the one that is least busy.
constexpr double kLeastWindow = 3;
/// A piece that is due in so many groups is dealt branch by branch.
constexpr double kWholeWindow = 1.5;

class Dealer {
public:
  Dealer(const std::vector<SwitchTensor> &tensors, const Lots &lots,
         const std::vector<LotRoutes> &routes, const SwitchNetwork &network,
         const SwitchOptions &options, int64_t groups)
      : tensors_(tensors), lots_(lots), routes_(routes), network_(network),
        options_(options), dealt_(tensors, network, options, groups),
        pace_(lots.lots, routes, network), taken_(network.ranks, 0),
        stretches_(lots.lots.size()) {
    for (const LotRoutes &one : routes)
      behind_.emplace_back(one.shares.size(), 0.0);
    for (size_t lot = 0; lot < lots.lots.size(); ++lot)
      addBranches(lots.lots[lot], routes[lot]);
  }

  DealtSwitch deal() {
    const std::vector<Turn> turns = interleave();
    for (const Turn &turn : turns)
      for (const Cell &cell : cellsOf(turn.tensor)) {
        Stretch &stretch = stretches_[cell.lot];
        stretch.begin = std::min(stretch.begin, turn.begin);
        stretch.end = std::max(stretch.end, turn.end);
      }
    for (const Turn &turn : turns)
      for (const Cell &cell : cellsOf(turn.tensor)) {
        keep(turn, cell);
        send(turn.tensor, cell);
      }
    return std::move(dealt_);
  }

private:
  /// A tensor, and the parts of its stream before it and up to its end.
  struct Turn {
    double begin, end; ///< 0 to 1
    int tensor;
    bool operator<(const Turn &other) const {
      return std::pair(begin + end, tensor) <
             std::pair(other.begin + other.end, other.tensor);
    }
  };
  /// Interval of the switch in which a lot is sent, evenly from its first to
  /// its last tensor.
  struct Stretch {
    double begin = 1, end = 0;
    double dealt = 0; ///< bytes
  };

  const std::vector<Cell> &cellsOf(int tensor) const {
    return lots_.classes[lots_.classOf[tensor]].cells;
  }

  /// Returns the parts of the switch between which the next bytes of a lot are sent.
  std::pair<double, double> progressOf(int lot, double bytes) {
    Stretch &one = stretches_[lot];
    const double total =
        std::max<double>(1, static_cast<double>(lots_.lots[lot].bytes));
    const double before = one.dealt / total;
    one.dealt += bytes;
    const double length = one.end - one.begin;
    return {one.begin + std::min(before, 1.0) * length,
            one.begin + std::min(one.dealt / total, 1.0) * length};
  }

  /// The branches of a lot's ways and of the copies that stay.
  struct LotBranches {
    struct Way {
      int whole;
      std::vector<int> parts; ///< one for each hop of a rank that has it
    };
    std::vector<Way> ways;
    std::vector<int> stays;
  };

  void addBranches(const Lot &lot, const LotRoutes &routes) {
    LotBranches result;
    if (lot.delivery == Delivery::Once)
      for (int rank : lot.staying)
        result.stays.push_back(dealt_.addBranch(stayOn({rank})));
    else if (!lot.staying.empty())
      result.stays.push_back(dealt_.addBranch(stayOn(lot.staying)));
    for (const auto &share : routes.shares) {
      LotBranches::Way way = {
          dealt_.addBranch(branchOf(lot, share.route, network_)), {}};
      pace_.expect(dealt_.portsOf(way.whole),
                   static_cast<double>(lot.bytes) * share.part);
      // Part of the route that a rank's hops belong to. Routes list senders
      // before receivers.
      std::map<int, size_t> partOf;
      std::vector<Route> parts;
      for (const Hop &hop : share.route) {
        size_t part = parts.size();
        if (hop.level > 0)
          part = partOf.at(hop.from);
        else
          parts.emplace_back();
        parts[part].push_back(hop);
        partOf[hop.to] = part;
      }
      for (const Route &part : parts)
        way.parts.push_back(parts.size() == 1 ? way.whole
                                              : dealt_.addBranch(branchOf(
                                                    lot, part, network_)));
      result.ways.push_back(std::move(way));
    }
    branches_.push_back(std::move(result));
  }

  /// Tensors between the same ranks are a stream, usually the layers between
  /// two stages. If streams ran one after another, most ports would be idle
  /// most of the time. So all streams begin and end together, each in its own
  /// order.
  std::vector<Turn> interleave() const {
    struct Stream {
      std::vector<int> tensors;
      std::vector<double> ends; ///< bytes, up to each tensor and with it
    };
    std::map<std::pair<std::vector<int>, std::vector<int>>, size_t> known;
    std::vector<size_t> streamOf; // of each class
    std::vector<Stream> streams;
    for (const TensorClass &one : lots_.classes) {
      const SwitchTensor &tensor = tensors_[one.tensors.front()];
      auto [at, isNew] = known.insert(
          {{ranksOf(tensor.from), ranksOf(tensor.to)}, streams.size()});
      if (isNew)
        streams.emplace_back();
      streamOf.push_back(at->second);
    }
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const TensorClass &one = lots_.classes[lots_.classOf[t]];
      Stream &stream = streams[streamOf[lots_.classOf[t]]];
      double bytes = stream.ends.empty() ? 0 : stream.ends.back();
      for (const Cell &cell : one.cells)
        bytes += static_cast<double>(bytesOf(static_cast<int>(t), cell.box));
      stream.tensors.push_back(static_cast<int>(t));
      stream.ends.push_back(bytes);
    }
    std::vector<Turn> turns;
    for (const Stream &stream : streams)
      for (size_t i = 0; i < stream.tensors.size(); ++i) {
        const double begin = i > 0 ? stream.ends[i - 1] : 0;
        const double total = std::max(stream.ends.back(), 1.0);
        turns.push_back(
            {begin / total, stream.ends[i] / total, stream.tensors[i]});
      }
    std::sort(turns.begin(), turns.end());
    return turns;
  }

  static std::vector<int> ranksOf(const std::vector<RankBox> &boxes) {
    std::vector<int> ranks;
    for (const RankBox &one : boxes)
      if (!one.box.isEmpty())
        ranks.push_back(one.rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  int64_t bytesOf(int tensor, const MatrixBox &box) const {
    return box.volume() * tensors_[tensor].elementBytes;
  }

  /// Deals a cell to ranks that already have it.
  void keep(const Turn &turn, const Cell &cell) {
    const std::vector<int> &stays = branches_[cell.lot].stays;
    if (stays.empty())
      return;
    const Lot &lot = lots_.lots[cell.lot];
    size_t which = 0;
    if (lot.delivery == Delivery::Once) {
      // Pick the rank that adds least so far.
      auto least =
          std::min_element(lot.staying.begin(), lot.staying.end(),
                           [&](int a, int b) { return taken_[a] < taken_[b]; });
      which = static_cast<size_t>(least - lot.staying.begin());
      taken_[*least] += bytesOf(turn.tensor, cell.box);
    }
    dealt_.add(turn.tensor, stays[which], cell.box, turn.begin, turn.end);
  }

  /// Deals a cell to ranks that lack it.
  void send(int tensor, const Cell &cell) {
    const LotRoutes &routes = routes_[cell.lot];
    if (routes.shares.empty())
      return;
    const int dim = cell.box.size[0] > 1 ? 0 : 1;
    const int64_t lines = cell.box.size[dim];
    const int64_t pieces = piecesOf(tensor, cell);
    const double bytes = static_cast<double>(bytesOf(tensor, cell.box)) /
                         static_cast<double>(pieces);
    std::vector<int64_t> counts(routes.shares.size(), 0);
    for (int64_t i = 0; i < pieces; ++i)
      ++counts[nextWay(cell.lot, bytes)];
    // Pieces with the same route stay together, as far as a bucket has room.
    int64_t done = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0)
        continue;
      const int64_t begin = lines * done / pieces;
      done += counts[i];
      const int64_t end = lines * done / pieces;
      const int64_t parts = std::clamp<int64_t>(
          bytesOf(tensor, cell.box) * (end - begin) / lines /
              std::max<int64_t>(1, options_.bucketBytes),
          1, end - begin);
      for (int64_t part = 0; part < parts; ++part) {
        MatrixBox box = cell.box;
        const int64_t first = (end - begin) * part / parts;
        box.begin[dim] += begin + first;
        box.size[dim] = (end - begin) * (part + 1) / parts - first;
        sendPiece(tensor, cell.lot, i, box);
      }
    }
  }

  /// Returns the route whose ports are furthest behind, among the routes that
  /// are behind their share.
  size_t nextWay(int lot, double bytes) {
    const auto &shares = routes_[lot].shares;
    const std::vector<LotBranches::Way> &ways = branches_[lot].ways;
    std::vector<double> &behind = behind_[lot];
    size_t best = shares.size();
    double least = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      behind[i] += bytes * shares[i].part;
      if (behind[i] < bytes * shares[i].part / 2)
        continue;
      const double ahead = pace_.ahead(dealt_.portsOf(ways[i].whole));
      if (best == shares.size() || ahead < least)
        best = i, least = ahead;
    }
    behind[best] -= bytes;
    pace_.add(dealt_.portsOf(ways[best].whole), bytes);
    return best;
  }

  int64_t piecesOf(int tensor, const Cell &cell) const {
    if (routes_[cell.lot].shares.size() < 2)
      return 1;
    return mostPieces(cell.box, tensors_[tensor].elementBytes,
                      std::max(options_.smallestPiece,
                               lots_.lots[cell.lot].bytes / kPiecesOfLot));
  }

  /// Sends a piece on one of the routes of its lot. If the piece belongs to
  /// several groups, its branches are dealt one by one, so that ranks can send
  /// it to one node after another.
  void sendPiece(int tensor, int lot, size_t number, const MatrixBox &box) {
    const LotBranches::Way &way = branches_[lot].ways[number];
    auto [begin, end] =
        progressOf(lot, static_cast<double>(bytesOf(tensor, box)));
    const auto groups = static_cast<double>(dealt_.groups());
    const bool isWhole = (end - begin) * groups < kWholeWindow;
    const double least = kLeastWindow / groups;
    if (end - begin < least) {
      const double middle = (begin + end) / 2;
      begin = std::max(0.0, middle - least / 2);
      end = std::min(1.0, middle + least / 2);
    }
    if (isWhole) {
      dealt_.add(tensor, way.whole, box, begin, end);
      return;
    }
    for (int part : way.parts)
      dealt_.add(tensor, part, box, begin, end);
  }

  const std::vector<SwitchTensor> &tensors_;
  const Lots &lots_;
  const std::vector<LotRoutes> &routes_;
  const SwitchNetwork &network_;
  const SwitchOptions &options_;
  DealtSwitch dealt_;
  Pace pace_;
  std::vector<LotBranches> branches_; ///< by lot
  /// Bytes that each route lacks of its share so far, by lot.
  std::vector<std::vector<double>> behind_;
  std::vector<int64_t> taken_;     ///< bytes that each rank adds to its own
  std::vector<Stretch> stretches_; ///< by lot
};

/// Number of groups for these routes. No rank may send or receive more in a
/// group than a bucket holds, with some room because pieces do not fit evenly.
/// Routes of several levels need `levels` groups to fill and to drain, each of
/// which costs a part of the whole. Each group also costs latencies.
struct Grouping {
  int64_t groups = 1;
  int64_t bucketBytes = 0;
};

Grouping chooseGroups(const std::vector<Lot> &lots,
                      const std::vector<LotRoutes> &routes,
                      const SwitchNetwork &network,
                      const SwitchOptions &options) {
  PortLoads seconds(network);
  std::vector<double> sent(static_cast<size_t>(network.ranks), 0);
  std::vector<double> received = sent;
  for (size_t lot = 0; lot < lots.size(); ++lot)
    for (const auto &share : routes[lot].shares)
      for (const Hop &hop : share.route) {
        const double part = static_cast<double>(lots[lot].bytes) * share.part;
        seconds.add(hop.from, hop.to, part);
        sent[hop.from] += part;
        received[hop.to] += part;
      }
  const double most =
      std::max(*std::max_element(sent.begin(), sent.end()),
               *std::max_element(received.begin(), received.end()));
  const double limit =
      static_cast<double>(std::max<int64_t>(1, options.bucketBytes));
  const double latency =
      std::max(1e-9, network.insideLatency + network.betweenLatency);
  // Filling takes time in proportion to a group's size, and each group has
  // latencies. The sum of both is least near the square root.
  const double smallest = std::min(limit, static_cast<double>(kSmallestBucket));
  const double wished = std::min({std::sqrt(seconds.largest() / latency) / 2,
                                  kMostGroups, most / smallest});
  Grouping result;
  result.groups = static_cast<int64_t>(
      std::ceil(std::max({1.0, kRoom * most / limit, wished})));
  result.bucketBytes = std::clamp(
      static_cast<int64_t>(kRoom * most / static_cast<double>(result.groups)),
      std::min(kSmallestBucket, options.bucketBytes), options.bucketBytes);
  return result;
}

} // namespace

DealtSwitch dealRoutes(const std::vector<SwitchTensor> &tensors,
                       const Lots &lots, const std::vector<LotRoutes> &routes,
                       const SwitchNetwork &network,
                       const SwitchOptions &options) {
  const Grouping grouping = chooseGroups(lots.lots, routes, network, options);
  SwitchOptions inGroups = options;
  inGroups.bucketBytes = grouping.bucketBytes;
  return Dealer(tensors, lots, routes, network, inGroups, grouping.groups)
      .deal();
}

} // namespace dyna::switches
