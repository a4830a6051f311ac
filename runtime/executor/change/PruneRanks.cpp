//===- PruneRanks.cpp - Prunes the weights of a team ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/RankTeam.h"

#include <algorithm>
#include <chrono>

namespace dyna {

Status RankTeam::prune(const PruneOrder &order, PruneResult &result) {
  std::vector<PruneResult> results(ranks_.size());
  DYNA_RETURN_IF_ERROR(onAllRanks([&](Rank &rank) {
    return rank.executor->prune(model(), order, results[&rank - ranks_.data()]);
  }));
  // The results of all ranks agree except for their times.
  result = results.front();
  for (const PruneResult &one : results)
    result.seconds = std::max(result.seconds, one.seconds);
  if (!result.refusal.empty())
    return Status::ok();
  const auto begin = std::chrono::steady_clock::now();
  DYNA_RETURN_IF_ERROR(chooseForms());
  result.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return Status::ok();
}

void RankTeam::useDenseForms() {
  for (Rank &rank : ranks_)
    if (rank.executor->hasPlace())
      rank.executor->seat().forms().clear();
}

Status RankTeam::clearPrunedScores() {
  for (Rank &rank : ranks_)
    if (rank.executor->hasPlace())
      for (int p = 0; p < model().parameters(); ++p)
        DYNA_RETURN_IF_ERROR(
            rank.executor->seat().zeroPruned(p, ParameterPart::Score));
  return Status::ok();
}

StatusOr<std::vector<double>> RankTeam::survivorsByParameter() {
  std::vector<double> counts(model().parameters(), 0);
  for (Rank &rank : ranks_)
    DYNA_RETURN_IF_ERROR(rank.executor->addSurvivors(counts));
  DYNA_RETURN_IF_ERROR(sum(counts));
  return counts;
}

StatusOr<std::vector<double>> RankTeam::survivorsByLayer() {
  DYNA_ASSIGN_OR_RETURN(const auto counts, survivorsByParameter());
  std::vector<double> layers;
  for (int layer = 0; layer < model().layers(); ++layer) {
    layers.push_back(0);
    for (int p : model().layer(layer).parameters())
      layers.back() += model().hasMask(p)
                           ? counts[p]
                           : static_cast<double>(model().elements(p));
  }
  return layers;
}

} // namespace dyna
