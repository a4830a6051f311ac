//===- Agreement.cpp - Processes of one job do the same -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Agreement.h"

#include "runtime/abi/Random.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <numeric>

namespace dyna {

namespace {

/// Everybody's numbers, rank by rank.
StatusOr<std::vector<uint64_t>> gather(Transport &transport, Group &world,
                                       const std::vector<uint64_t> &own) {
  // Copied, never added up: the element type gives the size alone.
  static_assert(sizeof(uint64_t) == sizeof(double), "numbers travel as f64");
  std::vector<uint64_t> all(own.size() * transport.ranks());
  DYNA_ASSIGN_OR_RETURN(
      Ticket ticket,
      world.start(Collective::flat(CollectiveKind::AllGather, own.data(),
                                   all.data(), static_cast<int64_t>(all.size()),
                                   DYNA_ELEMENT_F64),
                  nullptr));
  DYNA_RETURN_IF_ERROR(transport.wait(ticket, nullptr, transport.deadline()));
  return all;
}

StatusOr<std::unique_ptr<Group>> makeWorld(Transport &transport) {
  std::vector<int> ranks(transport.ranks());
  std::iota(ranks.begin(), ranks.end(), 0);
  return transport.createGroup(ranks, transport.deadline());
}

} // namespace

StatusOr<int64_t> agreeOnLeast(Transport &transport, int64_t own) {
  DYNA_ASSIGN_OR_RETURN(auto world, makeWorld(transport));
  DYNA_ASSIGN_OR_RETURN(
      auto all, gather(transport, *world, {static_cast<uint64_t>(own)}));
  int64_t least = own;
  for (uint64_t number : all)
    least = std::min(least, static_cast<int64_t>(number));
  return least;
}

Status checkAgreement(Transport &transport,
                      const std::vector<SharedFact> &facts) {
  DYNA_ASSIGN_OR_RETURN(auto world, makeWorld(transport));
  const size_t ranks = static_cast<size_t>(transport.ranks());
  // What is compared first, so that the number of values is alike.
  std::string names;
  std::vector<uint64_t> own;
  for (const SharedFact &fact : facts) {
    names += fact.name + "\n";
    own.push_back(dyna_hash_name(fact.value.c_str()));
  }
  DYNA_ASSIGN_OR_RETURN(
      auto lists, gather(transport, *world, {dyna_hash_name(names.c_str())}));
  for (size_t rank = 1; rank < ranks; ++rank)
    if (lists[rank] != lists.front())
      return Status::invalidArgument(formatText(
          "rank %d has other flags than rank 0, or is another program: start "
          "all processes with one program and the same flags",
          rank));
  DYNA_ASSIGN_OR_RETURN(auto all, gather(transport, *world, own));
  for (size_t f = 0; f < facts.size(); ++f)
    for (size_t rank = 1; rank < ranks; ++rank)
      if (all[rank * facts.size() + f] != all[f])
        return Status::invalidArgument(formatText(
            "rank %d differs from rank 0 in its %s (here, on rank %d: %s): "
            "start "
            "all processes with one program, the same flags and the same data",
            rank, facts[f].name, transport.rank(),
            facts[f].value.empty() ? "none" : facts[f].value.c_str()));
  return Status::ok();
}

} // namespace dyna
