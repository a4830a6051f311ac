//===- BalancePolicies.h - Balances layers by policies ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// BalancePolicies.def lists the policies. Each one deals the layers of a model to as many
// ranks as have some at present. Two are DeepSpeed's (`uniform`, and `type:regex` of
// PipelineModule). One is Algorithm 2 of DynPipe (appendix B.3) as it is printed:
//
//   - A layer goes from an overloaded rank to the rank with the least load, wherever that
//     is, and is appended there. So ranks run layers in another order than the model.
//   - The seconds that totals are computed from (line 3) never change. So each iteration
//     begins with the variance of the first one. A move has to beat only that, and can
//     raise the variance that has been reached.
//   - A rank can lose all its layers, and stays in the pipeline.
//
// A layer that has left a rank is not chosen there again; the paper does not
// mention this case.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_BALANCEPOLICIES_H
#define DYNA_RUNTIME_ELASTIC_BALANCEPOLICIES_H

#include "runtime/base/error/Status.h"
#include "runtime/elastic/balance/RankLayers.h"
#include "runtime/planner/graph/CutLayers.h"

#include <array>
#include <string>
#include <vector>

namespace dyna {

enum class BalancePolicy : uint8_t {
#define DYNA_BALANCE_POLICY(name, word, isExecuted, text) name,
#include "runtime/elastic/balance/BalancePolicies.def"
};

struct BalancePolicyRow {
  BalancePolicy policy;
  const char *word;
  bool isExecuted; ///< false: simulated alone
  const char *text;
};

/// The table of BalancePolicies.def.
constexpr std::array balancePolicies = {
#define DYNA_BALANCE_POLICY(name, word, isExecuted, text)                      \
  BalancePolicyRow{BalancePolicy::name, word, isExecuted, text},
#include "runtime/elastic/balance/BalancePolicies.def"
};

/// Returns the row of a policy.
const BalancePolicyRow &rowOf(BalancePolicy policy);

/// Reads words such as "time,diffusion". Fails with InvalidArgument for a word that is
/// unknown, given twice or empty, with those that there are.
StatusOr<std::vector<BalancePolicy>>
parseBalancePolicies(const std::string &text);

/// Facts of layers that policies ask for. Vectors are by layer.
struct BalanceProblem {
  std::vector<double> seconds;
  std::vector<double> parameters;
  std::vector<std::string> names; ///< for Regex
  std::string pattern;       ///< for Regex: POSIX, extended; case is ignored
  std::vector<double> waits; ///< by stage: StageLoads.h; empty: none. For Time
  std::vector<int> cut;      ///< at present: layers of each stage
  const LayerBytes *memory = nullptr; ///< null: any balance has room
  int maxIterations = 5; ///< of Algorithm2; the paper's experiments have 5
};

struct Balance {
  RankLayers layers;
  int64_t rounds = 0; ///< repetitions; 0 for policies without any
  int64_t moves = 0;  ///< moves of one layer; 0 without repetitions
};

/// Balances layers by a policy. Fails with ResourceExhausted if there is no room, and
/// with InvalidArgument for a pattern that is wrong, or matches no layer.
///
/// For n layers and p ranks, Time and Parameters take O(64 n + b t) (CutLayers.h). A round
/// of diffusion takes O(n), and an iteration of Algorithm 2 O(p (p + n)).
StatusOr<Balance> balanceLayers(BalancePolicy policy,
                                const BalanceProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_BALANCEPOLICIES_H
