//===- DealRoutes.cpp - From ways of lots to buckets ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switches/DealRoutes.h"

#include "runtime/planner/SwitchTimes.h"
#include "runtime/planner/switches/Buckets.h"

#include <algorithm>
#include <limits>
#include <map>

namespace dyna::switches {
namespace {

/// Pieces that a lot is cut into, if it has to be.
constexpr int64_t kPiecesOfLot = 64;
/// What the busiest port carries is cut into so many buckets, that the last of
/// them is soon passed on; below the smallest, latencies would count.
constexpr int64_t kGroups = 16;
constexpr int64_t kSmallestBucket = int64_t{2} << 20;

/// How far what was dealt is from the whole plan in small: every port at the
/// same part of all that it will carry.
class Pace {
public:
  Pace(const std::vector<Lot> &lots, const std::vector<LotRoutes> &routes,
       const SwitchNetwork &network)
      : whole_(network), dealt_(network) {
    for (size_t lot = 0; lot < lots.size(); ++lot)
      for (const auto &share : routes[lot].shares) {
        const double bytes = static_cast<double>(lots[lot].bytes) * share.part;
        for (const Hop &hop : share.route)
          whole_.add(hop.from, hop.to, bytes);
        total_ += bytes;
      }
  }

  /// Seconds by which the hastiest port of a way is ahead.
  double ahead(const Route &route, const SwitchNetwork &network) const {
    const double progress = done_ / std::max(total_, 1.0);
    double most = -std::numeric_limits<double>::infinity();
    for (const Hop &hop : route) {
      const bool isInside = network.nodeOf(hop.from) == network.nodeOf(hop.to);
      const Port out = isInside ? Port::InsideOut : Port::NetworkOut;
      const Port in = isInside ? Port::InsideIn : Port::NetworkIn;
      most = std::max(
          {most, dealt_.at(out, hop.from) - progress * whole_.at(out, hop.from),
           dealt_.at(in, hop.to) - progress * whole_.at(in, hop.to)});
    }
    return most;
  }

  void add(const Route &route, double bytes) {
    for (const Hop &hop : route)
      dealt_.add(hop.from, hop.to, bytes);
    done_ += bytes;
  }

private:
  PortLoads whole_, dealt_;
  double total_ = 0, done_ = 0; ///< bytes
};

class Dealer {
public:
  Dealer(const std::vector<SwitchTensor> &tensors, const Lots &lots,
         const std::vector<LotRoutes> &routes, const SwitchNetwork &network,
         const SwitchOptions &options)
      : tensors_(tensors), lots_(lots), routes_(routes), network_(network),
        options_(options), buckets_(network, options),
        pace_(lots.lots, routes, network), taken_(network.ranks, 0) {
    for (const LotRoutes &one : routes)
      behind_.emplace_back(one.shares.size(), 0.0);
  }

  SwitchPlan deal() {
    for (int t : interleave())
      for (const Cell &cell : lots_.classes[lots_.classOf[t]].cells) {
        keep(t, cell);
        send(t, cell);
      }
    return buckets_.finish();
  }

private:
  /// Tensors between the same ranks are a stream, of layers between two stages
  /// as a rule. One stream behind the other would leave most ports idle most of
  /// the time; so all of them begin and end together, each in its own order.
  std::vector<int> interleave() const {
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
    std::vector<std::pair<double, int>> order; // by the middle of each
    for (const Stream &stream : streams)
      for (size_t i = 0; i < stream.tensors.size(); ++i) {
        double begin = i > 0 ? stream.ends[i - 1] : 0;
        double total = std::max(stream.ends.back(), 1.0);
        order.push_back({(begin + stream.ends[i]) / total, stream.tensors[i]});
      }
    std::sort(order.begin(), order.end());
    std::vector<int> result;
    for (const auto &[progress, tensor] : order)
      result.push_back(tensor);
    return result;
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

  int64_t bytesOf(int tensor, const Box &box) const {
    return box.volume() * tensors_[tensor].elementBytes;
  }

  /// On ranks that have what they need.
  void keep(int tensor, const Cell &cell) {
    const Lot &lot = lots_.lots[cell.lot];
    std::vector<int> one;
    const std::vector<int> *ranks = &lot.staying;
    if (lot.delivery == Delivery::Once && !lot.staying.empty()) {
      // The one that adds least by now.
      one = {*std::min_element(
          lot.staying.begin(), lot.staying.end(),
          [&](int a, int b) { return taken_[a] < taken_[b]; })};
      ranks = &one;
      taken_[one.front()] += bytesOf(tensor, cell.box);
    }
    for (int rank : *ranks) {
      Hop hop = {rank, rank, 0};
      buckets_.makeRoom({hop}, 0);
      buckets_.add(hop, {tensor, rank, rank, SwitchPlace::Old, SwitchPlace::New,
                         cell.box});
    }
  }

  /// To ranks that lack it.
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
    // Pieces that go one way stay together, as far as a bucket has room.
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
        Box box = cell.box;
        const int64_t first = (end - begin) * part / parts;
        box.begin[dim] += begin + first;
        box.size[dim] = (end - begin) * (part + 1) / parts - first;
        sendPiece(tensor, lots_.lots[cell.lot], routes.shares[i].route, box);
      }
    }
  }

  /// Of the ways that are behind their part the one whose ports are, too.
  size_t nextWay(int lot, double bytes) {
    const auto &shares = routes_[lot].shares;
    std::vector<double> &behind = behind_[lot];
    size_t best = shares.size();
    double least = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      behind[i] += bytes * shares[i].part;
      if (behind[i] < bytes * shares[i].part / 2)
        continue;
      double ahead = pace_.ahead(shares[i].route, network_);
      if (best == shares.size() || ahead < least)
        best = i, least = ahead;
    }
    behind[best] -= bytes;
    pace_.add(shares[best].route, bytes);
    return best;
  }

  int64_t piecesOf(int tensor, const Cell &cell) const {
    if (routes_[cell.lot].shares.size() < 2)
      return 1;
    return mostPieces(cell.box, tensors_[tensor].elementBytes,
                      std::max(options_.smallestPiece,
                               lots_.lots[cell.lot].bytes / kPiecesOfLot));
  }

  void sendPiece(int tensor, const Lot &lot, const Route &route,
                 const Box &box) {
    const int64_t bytes = bytesOf(tensor, box);
    buckets_.makeRoom(route, bytes);
    auto lands = [&](int rank, size_t hop) {
      return lot.delivery == Delivery::Once
                 ? hop + 1 == route.size()
                 : std::binary_search(lot.lacking.begin(), lot.lacking.end(),
                                      rank);
    };
    for (size_t i = 0; i < route.size(); ++i) {
      const Hop &hop = route[i];
      SwitchTransfer one = {tensor,           hop.from,         hop.to,
                            SwitchPlace::Old, SwitchPlace::New, box};
      if (hop.level > 0)
        one.source = lands(hop.from, 0) && lot.delivery == Delivery::All
                         ? SwitchPlace::New
                         : SwitchPlace::Passing;
      if (!lands(hop.to, i))
        one.target = SwitchPlace::Passing;
      buckets_.add(hop, std::move(one));
    }
  }

  const std::vector<SwitchTensor> &tensors_;
  const Lots &lots_;
  const std::vector<LotRoutes> &routes_;
  const SwitchNetwork &network_;
  const SwitchOptions &options_;
  Buckets buckets_;
  Pace pace_;
  /// Bytes that each way lacks of its part by now, by lot.
  std::vector<std::vector<double>> behind_;
  std::vector<int64_t> taken_; ///< bytes that each rank adds to its own
};

/// Bytes over the port that most go over.
int64_t largestPort(const std::vector<Lot> &lots,
                    const std::vector<LotRoutes> &routes,
                    SwitchNetwork network) {
  network.insideRate = network.betweenRate = 1;
  PortLoads loads(network);
  for (size_t lot = 0; lot < lots.size(); ++lot)
    for (const auto &share : routes[lot].shares)
      for (const Hop &hop : share.route)
        loads.add(hop.from, hop.to,
                  static_cast<double>(lots[lot].bytes) * share.part);
  return static_cast<int64_t>(loads.largest());
}

} // namespace

SwitchPlan dealRoutes(const std::vector<SwitchTensor> &tensors,
                      const Lots &lots, const std::vector<LotRoutes> &routes,
                      const SwitchNetwork &network,
                      const SwitchOptions &options) {
  SwitchOptions inGroups = options;
  inGroups.bucketBytes = std::clamp(
      largestPort(lots.lots, routes, network) / kGroups,
      std::min(kSmallestBucket, options.bucketBytes), options.bucketBytes);
  return Dealer(tensors, lots, routes, network, inGroups).deal();
}

} // namespace dyna::switches
