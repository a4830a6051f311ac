//===- Counts.cpp - Counts the work, memory and traffic of every rank -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/Counts.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

void RankCounts::add(const RankTeam &ranks) {
  sums_.resize(ranks.localRanks());
  for (size_t local = 0; local < sums_.size(); ++local) {
    const StepResult &result = ranks.lastResult(local);
    StepResult &sum = sums_[local];
    sum.flops += result.flops;
    sum.formulaFlops += result.formulaFlops;
    sum.keptBytes = std::max(sum.keptBytes, result.keptBytes);
    sum.storeBytes = std::max(sum.storeBytes, result.storeBytes);
    sum.traffic.add(result.traffic);
    sum.switches.resize(std::max(sum.switches.size(), result.switches.size()));
    for (size_t to = 0; to < result.switches.size(); ++to) {
      sum.switches[to].values += result.switches[to].values;
      sum.switches[to].gradients += result.switches[to].gradients;
    }
  }
}

static void addBytes(JsonObject &object, const GraphSeat &rank) {
  static constexpr std::pair<const char *, ParameterPart> parts[] = {
      {"master_bytes", ParameterPart::Master},
      {"copy_bytes", ParameterPart::Copy},
      {"gradient_bytes", ParameterPart::Gradient},
      {"first_moment_bytes", ParameterPart::FirstMoment},
      {"second_moment_bytes", ParameterPart::SecondMoment}};
  for (auto [name, part] : parts) {
    int64_t bytes = 0;
    for (int p = 0; p < rank.view().parameters(); ++p)
      bytes += rank.partBytes(p, part);
    object.add(name, bytes);
  }
}

static void addTraffic(JsonObject &object, const Traffic &traffic) {
  auto countOf = [](int64_t count, int64_t bytes) {
    return JsonObject().add("count", count).add("bytes", bytes);
  };
  object.add("messages", countOf(traffic.messages, traffic.messageBytes));
  for (int kind = 0; kind < kCollectiveKinds; ++kind)
    object.add(
        nameOf(static_cast<CollectiveKind>(kind)),
        countOf(traffic.collectives[kind], traffic.collectiveBytes[kind]));
  object.add("collective_calls", traffic.collectiveCalls);
}

/// Returns bytes by the rank that they went to.
static JsonObject switchesJson(const std::vector<SwitchedBytes> &switches) {
  JsonArray values, gradients;
  for (const SwitchedBytes &to : switches) {
    values.add(to.values);
    gradients.add(to.gradients);
  }
  return JsonObject().add("values", values).add("gradients", gradients);
}

std::string RankCounts::toJson(RankTeam &ranks) const {
  JsonArray all;
  for (size_t local = 0; local < sums_.size(); ++local) {
    const StepResult &sum = sums_[local];
    JsonObject rank;
    rank.add("rank", ranks.firstRank() + local)
        .add("matrix_flops", sum.flops)
        .add("formula_flops", sum.formulaFlops);
    if (ranks.executor(local).hasPlace())
      addBytes(rank, ranks.executor(local).seat());
    rank.add("kept_bytes", sum.keptBytes);
    rank.add("store_bytes", sum.storeBytes);
    addTraffic(rank, sum.traffic);
    if (!sum.switches.empty())
      rank.add("switches", switchesJson(sum.switches));
    all.add(rank);
  }
  return JsonObject().add("ranks", JsonText::raw(all.text("\n  "))).text() +
         "\n";
}

} // namespace dyna
