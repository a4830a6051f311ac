//===- Move.cpp - Plans messages that move a tensor -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Move.h"

#include <algorithm>

namespace dyna {
namespace {

/// Returns the indices of dimension `d` at which a part of `box` begins, and
/// its end.
std::vector<int64_t> cutsOf(const Box &box, const std::vector<RankBox> &parts,
                            size_t d) {
  std::vector<int64_t> cuts = {box.begin[d], box.begin[d] + box.size[d]};
  for (const RankBox &part : parts)
    for (int64_t cut :
         {part.box.begin[d], part.box.begin[d] + part.box.size[d]})
      if (cuts[0] < cut && cut < cuts[1])
        cuts.push_back(cut);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

/// Cuts `box` along the borders of all parts, in the order of its elements.
/// Each piece is inside of a part or outside of it.
std::vector<Box> cutAlong(const Box &box, const std::vector<RankBox> &parts) {
  std::vector<Box> pieces = {box};
  for (size_t d = 0; d < box.begin.size(); ++d) {
    std::vector<int64_t> cuts = cutsOf(box, parts, d);
    std::vector<Box> finer;
    for (const Box &piece : pieces)
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        finer.push_back(piece);
        finer.back().begin[d] = cuts[i];
        finer.back().size[d] = cuts[i + 1] - cuts[i];
      }
    pieces = std::move(finer);
  }
  return pieces;
}

/// Appends `b` to `a` where together they are a box, `b` behind `a` along one
/// dimension.
bool join(Box &a, const Box &b) {
  int differing = -1;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    if (a.begin[d] == b.begin[d] && a.size[d] == b.size[d])
      continue;
    if (differing >= 0 || a.begin[d] + a.size[d] != b.begin[d])
      return false;
    differing = static_cast<int>(d);
  }
  if (differing < 0)
    return false;
  a.size[differing] += b.size[differing];
  return true;
}

/// Joins the transfers behind `first`, all to one box, wherever that makes
/// fewer of them: runs along the last dimension grow, then rows of them.
void joinFrom(std::vector<Transfer> &transfers, size_t first) {
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = first; i < transfers.size(); ++i)
      for (size_t j = i + 1; j < transfers.size();) {
        if (transfers[i].from != transfers[j].from ||
            !join(transfers[i].box, transfers[j].box)) {
          ++j;
          continue;
        }
        transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(j));
        joined = true;
      }
  }
}

} // namespace

StatusOr<std::vector<Transfer>> planMove(const std::vector<RankBox> &from,
                                         const std::vector<RankBox> &to) {
  std::vector<Transfer> transfers;
  std::map<int, int64_t> load; // elements that a rank sends to others
  for (const RankBox &wanted : to) {
    if (wanted.box.isEmpty())
      continue;
    std::vector<RankBox> parts;
    for (const RankBox &one : from)
      if (Box part = intersect(one.box, wanted.box); !part.isEmpty())
        parts.push_back({one.rank, std::move(part)});
    size_t first = transfers.size();
    for (const Box &piece : cutAlong(wanted.box, parts)) {
      const RankBox *sender = nullptr;
      for (const RankBox &part : parts) {
        if (!part.box.contains(piece))
          continue;
        bool isNearer =
            sender && sender->rank != wanted.rank &&
            (part.rank == wanted.rank || load[part.rank] < load[sender->rank]);
        if (!sender || isNearer)
          sender = &part;
      }
      if (!sender)
        return Status::invalidArgument("no rank has the elements " +
                                       piece.describe() + ", which rank " +
                                       std::to_string(wanted.rank) + " needs");
      if (sender->rank != wanted.rank)
        load[sender->rank] += piece.volume();
      transfers.push_back({sender->rank, wanted.rank, piece});
    }
    joinFrom(transfers, first);
  }
  return transfers;
}

std::vector<Transfer> planSum(const std::vector<RankBox> &from,
                              const std::vector<RankBox> &to) {
  std::vector<Transfer> transfers;
  for (const RankBox &wanted : to)
    for (const RankBox &summand : from)
      if (Box part = intersect(summand.box, wanted.box); !part.isEmpty())
        transfers.push_back({summand.rank, wanted.rank, std::move(part)});
  return transfers;
}

} // namespace dyna
