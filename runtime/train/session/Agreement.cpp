//===- Agreement.cpp - Checks that processes of one job agree -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Agreement.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

StatusOr<int64_t> agreeOnLeast(HostExchange &host, int64_t own) {
  DYNA_ASSIGN_OR_RETURN(auto all, host.gather({static_cast<uint64_t>(own)}));
  int64_t least = own;
  for (uint64_t number : all)
    least = std::min(least, static_cast<int64_t>(number));
  return least;
}

Status checkAgreement(HostExchange &host,
                      const std::vector<SharedFact> &facts) {
  const size_t ranks = static_cast<size_t>(host.ranks());
  // Compare names first, so that all ranks have the same number of values.
  std::string names;
  std::vector<uint64_t> own;
  for (const SharedFact &fact : facts) {
    names += fact.name + "\n";
    own.push_back(dyna_hash_name(fact.value.c_str()));
  }
  DYNA_ASSIGN_OR_RETURN(auto lists,
                        host.gather({dyna_hash_name(names.c_str())}));
  for (size_t rank = 1; rank < ranks; ++rank)
    if (lists[rank] != lists.front())
      return Status::invalidArgument(formatText(
          "rank %d has other flags than rank 0, or is another program: start "
          "all processes with one program and the same flags",
          rank));
  DYNA_ASSIGN_OR_RETURN(auto all, host.gather(own));
  for (size_t f = 0; f < facts.size(); ++f)
    for (size_t rank = 1; rank < ranks; ++rank)
      if (all[rank * facts.size() + f] != all[f])
        return Status::invalidArgument(formatText(
            "rank %d differs from rank 0 in its %s (here, on rank %d: %s): "
            "start "
            "all processes with one program, the same flags and the same data",
            rank, facts[f].name, host.rank(),
            facts[f].value.empty() ? "none" : facts[f].value.c_str()));
  return Status::ok();
}

} // namespace dyna
