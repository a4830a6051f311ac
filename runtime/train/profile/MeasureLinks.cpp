//===- MeasureLinks.cpp - Measures link latency and bandwidth -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/MeasureLinks.h"

#include "runtime/base/text/Text.h"
#include "runtime/cost/CostTable.h"

#include <algorithm>
#include <unistd.h>

namespace dyna {
namespace {

constexpr int repeats = 15;

/// Returns a link. `less` is the time of a few bytes, `more` that of `bytes`
/// more.
cost::Link linkOf(double less, double more, double bytes) {
  cost::Link link;
  link.set_latency_seconds(less);
  link.set_bytes_per_second(std::max(1.0, bytes / std::max(more - less, 1e-9)));
  return link;
}

/// Measures links by sums, as an all-reduce on a ring.
StatusOr<cost::Link> linkOfSums(RankTeam &ranks) {
  const int n = ranks.graph().ranks();
  constexpr int64_t few = 1, many = INT64_C(1) << 20;
  DYNA_ASSIGN_OR_RETURN(double less, ranks.timeSum(few, repeats));
  DYNA_ASSIGN_OR_RETURN(double more, ranks.timeSum(many, repeats));
  cost::Link link = linkOf(less, more,
                           2.0 * (n - 1) / n * sizeof(double) *
                               static_cast<double>(many - few));
  link.set_latency_seconds(less / (2 * (n - 1)));
  return link;
}

StatusOr<cost::Link> linkOfMessages(RankTeam &ranks, int peer) {
  constexpr int64_t few = 8, many = INT64_C(8) << 20;
  DYNA_ASSIGN_OR_RETURN(double less, ranks.timeMessage(0, peer, few, repeats));
  DYNA_ASSIGN_OR_RETURN(double more, ranks.timeMessage(0, peer, many, repeats));
  return linkOf(less, more, static_cast<double>(many - few));
}

uint64_t hashOfHost() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0)
    return 0;
  uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
  for (const char *c = name; *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * UINT64_C(1099511628211);
  return hash;
}

} // namespace

StatusOr<std::vector<uint64_t>> findHosts(RankTeam &ranks) {
  const auto count = static_cast<size_t>(ranks.graph().ranks());
  if (ranks.localRanks() == count)
    return std::vector<uint64_t>(count, 0);
  // The exchange adds numbers, so each rank writes its hash to two places of
  // its own, as halves that doubles hold exactly.
  const uint64_t own = hashOfHost();
  std::vector<double> halves(2 * count);
  const auto place = 2 * static_cast<size_t>(ranks.firstRank());
  halves[place] = static_cast<double>(own >> 32);
  halves[place + 1] = static_cast<double>(own & 0xffffffff);
  DYNA_RETURN_IF_ERROR(ranks.executor(0).sumOverRanks(halves));
  std::vector<uint64_t> hosts;
  for (size_t rank = 0; rank < count; ++rank)
    hosts.push_back(static_cast<uint64_t>(halves[2 * rank]) << 32 |
                    static_cast<uint64_t>(halves[2 * rank + 1]));
  return hosts;
}

int ranksPerNode(const std::vector<uint64_t> &hosts) {
  const auto differs = std::find_if(hosts.begin(), hosts.end(),
                                    [&](uint64_t h) { return h != hosts[0]; });
  if (differs == hosts.end())
    return 0;
  const auto row = static_cast<size_t>(differs - hosts.begin());
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    for (size_t other = 0; other < rank; ++other)
      if ((hosts[rank] == hosts[other]) != (rank / row == other / row))
        return 0;
  return static_cast<int>(row);
}

StatusOr<MeasuredLinks> measureLinks(RankTeam &ranks,
                                     const std::vector<uint64_t> &hosts,
                                     const cost::Cluster &before) {
  MeasuredLinks links;
  if (hosts.size() == 1) {
    links.note = "one rank has no links: none were measured";
    return links;
  }
  links.cluster = before;
  cost::Cluster &cluster = *links.cluster;
  const cost::Cluster described = CostTable::host().cluster().description();
  auto keep = [](bool isThere, const char *what) {
    return formatText("%s %s", what,
                      isThere ? "are those of the file before"
                              : "are those described for 'host'");
  };
  int here = -1, away = -1; // the nearest ranks of both kinds
  for (int rank = static_cast<int>(hosts.size()) - 1; rank > 0; --rank)
    (hosts[rank] == hosts[0] ? here : away) = rank;
  if (away < 0) {
    DYNA_ASSIGN_OR_RETURN(*cluster.mutable_inside(), linkOfSums(ranks));
    links.note = "all ranks are on one node: links " +
                 keep(before.has_between(), "between nodes");
    if (!before.has_between())
      *cluster.mutable_between() = described.between();
    return links;
  }
  DYNA_ASSIGN_OR_RETURN(*cluster.mutable_between(),
                        linkOfMessages(ranks, away));
  links.note = formatText("links between nodes: ranks 0 and %d", away);
  if (here >= 0) {
    DYNA_ASSIGN_OR_RETURN(*cluster.mutable_inside(),
                          linkOfMessages(ranks, here));
    links.note += formatText("; inside: ranks 0 and %d", here);
  } else {
    links.note += "; " + keep(before.has_inside(), "those inside");
    if (!before.has_inside())
      *cluster.mutable_inside() = described.inside();
  }
  if (int row = ranksPerNode(hosts); row > 0)
    cluster.set_devices_per_node(row);
  else
    links.note += "; ranks do not lie on nodes in rows: write devices_per_node "
                  "by hand";
  return links;
}

} // namespace dyna
