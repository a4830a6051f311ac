//===- Counts.cpp - What every rank did, held and sent --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/Counts.h"

#include "runtime/base/Text.h"

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
    sum.traffic.add(result.traffic);
    sum.switches.resize(std::max(sum.switches.size(), result.switches.size()));
    for (size_t to = 0; to < result.switches.size(); ++to) {
      sum.switches[to].values += result.switches[to].values;
      sum.switches[to].gradients += result.switches[to].gradients;
    }
  }
}

static std::string bytesJson(const GraphSeat &rank) {
  static constexpr std::pair<const char *, ParameterPart> parts[] = {
      {"master", ParameterPart::Master},
      {"copy", ParameterPart::Copy},
      {"gradient", ParameterPart::Gradient},
      {"first_moment", ParameterPart::FirstMoment},
      {"second_moment", ParameterPart::SecondMoment}};
  std::string text;
  for (auto [name, part] : parts) {
    int64_t bytes = 0;
    for (int p = 0; p < rank.view().parameters(); ++p)
      bytes += rank.partBytes(p, part);
    text += formatText("\"%s_bytes\": %d, ", name, bytes);
  }
  return text;
}

static std::string trafficJson(const Traffic &traffic) {
  std::string text = formatText("\"messages\": {\"count\": %d, \"bytes\": "
                                "%d}",
                                traffic.messages, traffic.messageBytes);
  for (int kind = 0; kind < kCollectiveKinds; ++kind)
    text +=
        formatText(", \"%s\": {\"count\": %d, \"bytes\": %d}",
                   nameOf(static_cast<CollectiveKind>(kind)),
                   traffic.collectives[kind], traffic.collectiveBytes[kind]);
  text += formatText(", \"collective_calls\": %d", traffic.collectiveCalls);
  return text;
}

/// Bytes by the rank that they went to.
static std::string switchesJson(const std::vector<SwitchedBytes> &switches) {
  std::string values, gradients;
  for (const SwitchedBytes &to : switches) {
    values += formatText("%s%d", values.empty() ? "" : ", ", to.values);
    gradients +=
        formatText("%s%d", gradients.empty() ? "" : ", ", to.gradients);
  }
  return ", \"switches\": {\"values\": [" + values + "], \"gradients\": [" +
         gradients + "]}";
}

std::string RankCounts::toJson(RankTeam &ranks) const {
  std::string text = "{\"ranks\": [";
  for (size_t local = 0; local < sums_.size(); ++local) {
    const StepResult &sum = sums_[local];
    text += formatText("%s\n  {\"rank\": %d, \"matrix_flops\": %.17g, "
                       "\"formula_flops\": %.17g, ",
                       local ? "," : "", ranks.firstRank() + local, sum.flops,
                       sum.formulaFlops);
    if (ranks.executor(local).hasPlace())
      text += bytesJson(ranks.executor(local).seat());
    text += formatText("\"kept_bytes\": %d, ", sum.keptBytes);
    text += trafficJson(sum.traffic);
    if (!sum.switches.empty())
      text += switchesJson(sum.switches);
    text += "}";
  }
  return text + "]}\n";
}

} // namespace dyna
