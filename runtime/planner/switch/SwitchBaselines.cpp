//===- SwitchBaselines.cpp - Plans baselines for switches -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/SwitchBaselines.h"

#include "runtime/planner/switch/PortLoads.h"
#include "runtime/planner/switch/routes/Buckets.h"

#include <algorithm>
#include <limits>

namespace dyna {
namespace {

using switches::Buckets;
using switches::Cell;
using switches::Hop;
using switches::Lot;
using switches::Lots;

const SwitchOptions kUnlimited = {std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::max(), 0, 0};

bool isAmong(const std::vector<int> &ranks, int rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Calls `visit(tensor, cell, lot, bytes)` for every cell of every tensor.
template <typename Visit>
Status forCells(const std::vector<SwitchTensor> &tensors, Visit visit) {
  DYNA_ASSIGN_OR_RETURN(Lots lots, switches::findLots(tensors));
  for (size_t t = 0; t < tensors.size(); ++t)
    for (const Cell &cell : lots.classes[lots.classOf[t]].cells)
      visit(static_cast<int>(t), cell, lots.lots[cell.lot],
            cell.box.volume() * tensors[t].elementBytes);
  return Status::ok();
}

/// Returns the ranks that receive the lot: all, or only the first, which is a
/// holder if there is one.
std::vector<int> receiversOf(const Lot &lot) {
  if (lot.delivery == Delivery::All)
    return lot.needers;
  return {lot.staying.empty() ? lot.needers.front() : lot.staying.front()};
}

/// Lets every receiver get a cell from the holder that `choose(lot, receiver,
/// bytes)` returns, or keep its own. `add(hop, tensor, cell, bytes)` puts it
/// into a bucket.
template <typename Choose, typename Add>
Status dealDirect(const std::vector<SwitchTensor> &tensors, Buckets &buckets,
                  Choose choose, Add add) {
  return forCells(tensors, [&](int tensor, const Cell &cell, const Lot &lot,
                               int64_t bytes) {
    for (int to : receiversOf(lot)) {
      int from = isAmong(lot.holders, to) ? to : choose(lot, to, bytes);
      Hop hop = {from, to, 0};
      buckets.makeRoom({hop}, from == to ? 0 : bytes, 0);
      add(hop, tensor, cell, bytes);
    }
  });
}

template <typename Choose>
StatusOr<SwitchPlan> planDirect(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options, Choose choose) {
  Buckets buckets(network, options, 1);
  DYNA_RETURN_IF_ERROR(
      dealDirect(tensors, buckets, choose,
                 [&](const Hop &hop, int tensor, const Cell &cell, int64_t) {
                   buckets.add(hop, {tensor, hop.from, hop.to, SwitchPlace::Old,
                                     SwitchPlace::New, cell.box});
                 }));
  return buckets.finish();
}

StatusOr<SwitchPlan> planUnlimited(const std::vector<SwitchTensor> &tensors,
                                   const SwitchNetwork &network) {
  return planAlgorithm1(tensors, network, kUnlimited);
}

StatusOr<SwitchPlan> planFirstOwner(const std::vector<SwitchTensor> &tensors,
                                    const SwitchNetwork &network) {
  return planDirect(
      tensors, network, kUnlimited,
      [](const Lot &lot, int, int64_t) { return lot.holders.front(); });
}

StatusOr<SwitchPlan> planGather(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network) {
  Buckets buckets(network, kUnlimited, 1);
  auto carry = [&](int tensor, const Cell &cell, const Lot &lot,
                   int64_t bytes) {
    const std::vector<int> receivers = receiversOf(lot);
    const int middle = tensor % network.ranks;
    const bool isThere = isAmong(lot.holders, middle);
    const bool needsIt = std::find(receivers.begin(), receivers.end(),
                                   middle) != receivers.end();
    switches::Route route;
    if (!isThere || needsIt)
      route.push_back({isThere ? middle : lot.holders.front(), middle, 0});
    for (int to : receivers)
      if (to != middle)
        route.push_back({middle, to, isThere ? 0 : 1});
    buckets.makeRoom(route, bytes, 0);
    for (const Hop &hop : route) {
      SwitchTransfer one = {tensor,           hop.from,         hop.to,
                            SwitchPlace::Old, SwitchPlace::New, cell.box};
      if (hop.level == 0 && hop.to == middle && !needsIt)
        one.target = SwitchPlace::Passing;
      if (hop.level == 1)
        one.source = needsIt ? SwitchPlace::New : SwitchPlace::Passing;
      buckets.add(hop, std::move(one));
    }
  };
  DYNA_RETURN_IF_ERROR(forCells(tensors, carry));
  return buckets.finish();
}

/// The owner in the receiver's node that has sent least inside of nodes, or else
/// the one that has sent least between them.
class LeastSender {
public:
  explicit LeastSender(const SwitchNetwork &network)
      : network_(network), inside_(network.ranks, 0),
        between_(network.ranks, 0) {}

  int choose(const Lot &lot, int to, int64_t bytes) {
    int best = -1;
    bool isBestNear = false;
    for (int from : lot.holders) {
      bool isNear = network_.nodeOf(from) == network_.nodeOf(to);
      const auto &sent = isNear ? inside_ : between_;
      if (best < 0 || (isNear && !isBestNear) ||
          (isNear == isBestNear && sent[from] < sent[best])) {
        best = from;
        isBestNear = isNear;
      }
    }
    (isBestNear ? inside_ : between_)[best] += bytes;
    return best;
  }

private:
  const SwitchNetwork &network_;
  std::vector<int64_t> inside_, between_; ///< bytes sent, by rank
};

} // namespace

StatusOr<SwitchPlan> planAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                    const SwitchNetwork &network,
                                    const SwitchOptions &options) {
  LeastSender sender(network);
  return planDirect(tensors, network, options,
                    [&](const Lot &lot, int to, int64_t bytes) {
                      return sender.choose(lot, to, bytes);
                    });
}

StatusOr<SwitchMessages>
messagesOfAlgorithm1(const std::vector<SwitchTensor> &tensors,
                     const SwitchNetwork &network,
                     const SwitchOptions &options) {
  LeastSender sender(network);
  Buckets buckets(network, options, 1);
  struct Sent {
    int from, to;
    int64_t bytes;
  };
  std::vector<std::vector<Sent>> sent; // by bucket
  DYNA_RETURN_IF_ERROR(dealDirect(
      tensors, buckets,
      [&](const Lot &lot, int to, int64_t bytes) {
        return sender.choose(lot, to, bytes);
      },
      [&](const Hop &hop, int, const Cell &, int64_t bytes) {
        if (sent.size() <= buckets.current())
          sent.resize(buckets.current() + 1);
        sent[buckets.current()].push_back({hop.from, hop.to, bytes});
      }));
  SwitchMessages messages;
  MessageJoiner joiner(network.ranks, messages);
  for (const std::vector<Sent> &bucket : sent) {
    if (bucket.empty())
      continue;
    joiner.begin();
    for (const Sent &one : bucket)
      joiner.add(one.from, one.to, one.bytes, SwitchPlace::Old,
                 SwitchPlace::New);
    joiner.end(-1);
  }
  return messages;
}

StatusOr<double> secondsOfAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                     const SwitchNetwork &network) {
  LeastSender sender(network);
  PortLoads loads(network);
  DYNA_RETURN_IF_ERROR(
      forCells(tensors, [&](int, const Cell &, const Lot &lot, int64_t bytes) {
        for (int to : receiversOf(lot))
          if (!isAmong(lot.holders, to))
            loads.add(sender.choose(lot, to, bytes), to,
                      static_cast<double>(bytes));
      }));
  return loads.largest();
}

const std::vector<SwitchBaseline> &switchBaselines() {
  static const std::vector<SwitchBaseline> baselines = {
      {"algorithm1", "HotSPa, Algorithm 1", planUnlimited, Fusing::Buckets},
      {"unfused", "Algorithm 1, a message for each box", planUnlimited,
       Fusing::None},
      {"first-owner", "from the first that has it", planFirstOwner,
       Fusing::Buckets},
      {"gather", "every tensor to one rank, and from there", planGather,
       Fusing::Buckets}};
  return baselines;
}

} // namespace dyna
