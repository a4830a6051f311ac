//===- RankTimes.cpp - Times sums, messages and new memory of ranks -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/RankTeam.h"

#include <algorithm>
#include <chrono>

namespace dyna {

StatusOr<double> RankTeam::timeSum(int64_t count, int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) -> Status {
    std::vector<double> meet(1), values(count);
    for (int i = 0; i < repeats; ++i) {
      // Let all ranks begin together, so that no time includes waiting for the
      // last.
      DYNA_RETURN_IF_ERROR(rank.executor->sumOverRanks(meet));
      auto begin = Clock::now();
      DYNA_RETURN_IF_ERROR(rank.executor->sumOverRanks(values));
      if (&rank == &ranks_.front())
        seconds.push_back(
            std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return Status::ok();
  }));
  return *std::min_element(seconds.begin(), seconds.end());
}

StatusOr<double> RankTeam::timeMessage(int from, int to, int64_t bytes,
                                       int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) -> Status {
    const int own = rank.own.rank;
    if (own != from && own != to)
      return Status::ok();
    const int peer = own == from ? to : from;
    std::vector<unsigned char> buffer(bytes);
    auto pass = [&](bool sends) {
      return sends ? rank.host->send(peer, buffer.data(), bytes)
                   : rank.host->receive(peer, buffer.data(), bytes);
    };
    // Do not count the first exchange, because links are made at their first
    // use.
    for (int i = 0; i <= repeats; ++i) {
      auto begin = Clock::now();
      DYNA_RETURN_IF_ERROR(pass(own == from));
      DYNA_RETURN_IF_ERROR(pass(own != from));
      std::chrono::duration<double> both = Clock::now() - begin;
      if (own == from && i > 0)
        seconds.push_back(both.count() / 2);
    }
    return Status::ok();
  }));
  return seconds.empty() ? 0.0
                         : *std::min_element(seconds.begin(), seconds.end());
}

StatusOr<double> RankTeam::timeNewMemory(int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  if (!ranks_.front().own.device->takesMemoryLate())
    return 0.0;
  const auto begin = Clock::now();
  // The buffers live until all ranks have one, so none gets the pages of another.
  std::vector<std::unique_ptr<Buffer>> buffers(ranks_.size());
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) -> Status {
    DYNA_ASSIGN_OR_RETURN(buffers[&rank - ranks_.data()],
                          rank.own.device->allocate(bytes));
    return Status::ok();
  }));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace dyna
