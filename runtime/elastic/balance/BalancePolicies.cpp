//===- BalancePolicies.cpp - Balances layers by policies ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/BalancePolicies.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/balance/DiffuseLayers.h"

#include <algorithm>
#include <numeric>
#include <regex.h>

namespace dyna {

const BalancePolicyRow &rowOf(BalancePolicy policy) {
  return balancePolicies[static_cast<size_t>(policy)];
}

namespace {

std::string knownWords() {
  std::string words;
  for (const BalancePolicyRow &row : balancePolicies)
    words += (words.empty() ? "" : ", ") + std::string(row.word);
  return words;
}

StatusOr<BalancePolicy> parsePolicy(const std::string &word) {
  for (const BalancePolicyRow &row : balancePolicies)
    if (word == row.word)
      return row.policy;
  return Status::invalidArgument(formatText(
      "no policy '%s' balances layers: give some of %s", word, knownWords()));
}

using Found = StatusOr<Balance>;

Found ofCut(std::vector<int> cut) {
  Balance balance;
  balance.layers = RankLayers::ofCut(cut);
  return balance;
}

/// Returns bytes that fit everywhere.
LayerBytes anyMemory(size_t layers, int stages) {
  LayerBytes bytes;
  bytes.own.assign(layers, 0);
  bytes.kept.assign(layers, 0);
  bytes.inFlight.assign(stages, 0);
  bytes.limits.assign(stages, 0);
  return bytes;
}

Found partition(const std::vector<double> &costs,
                const BalanceProblem &problem) {
  const auto stages = static_cast<int>(problem.cut.size());
  if (!problem.memory)
    return ofCut(partitionLayers(costs, stages));
  DYNA_ASSIGN_OR_RETURN(std::vector<int> cut,
                        partitionLayersWithin(costs, stages, *problem.memory));
  return ofCut(std::move(cut));
}

Found diffuse(const std::vector<double> &costs, const BalanceProblem &problem) {
  DiffusedCut found = diffuseLayers(costs, problem.cut, problem.memory);
  Balance balance;
  balance.layers = RankLayers::ofCut(found.layers);
  balance.rounds = found.rounds;
  balance.moves = found.moves;
  return balance;
}

Found balanceByTime(const BalanceProblem &problem) {
  if (problem.waits.empty())
    return partition(problem.seconds, problem);
  const auto stages = static_cast<int>(problem.cut.size());
  DYNA_ASSIGN_OR_RETURN(
      std::vector<int> cut,
      partitionLayersWithin(problem.seconds, stages,
                            problem.memory
                                ? *problem.memory
                                : anyMemory(problem.seconds.size(), stages),
                            problem.waits));
  return ofCut(std::move(cut));
}

Found balanceByParameters(const BalanceProblem &problem) {
  return partition(problem.parameters, problem);
}

Found balanceByDiffusion(const BalanceProblem &problem) {
  return diffuse(problem.seconds, problem);
}

Found balanceByDiffusionParameters(const BalanceProblem &problem) {
  return diffuse(problem.parameters, problem);
}

Found balanceByUniform(const BalanceProblem &problem) {
  const size_t layers = problem.seconds.size(), stages = problem.cut.size();
  std::vector<int> cut;
  for (size_t s = 0; s < stages; ++s)
    cut.push_back(static_cast<int>(layers / stages + (s < layers % stages)));
  return ofCut(std::move(cut));
}

/// A compiled pattern.
class Pattern {
public:
  Pattern() = default;
  Pattern(const Pattern &) = delete;
  Pattern &operator=(const Pattern &) = delete;
  ~Pattern() {
    if (isCompiled_)
      regfree(&regex_);
  }

  Status compile(const std::string &text) {
    const int error =
        regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_ICASE | REG_NOSUB);
    isCompiled_ = error == 0;
    if (isCompiled_)
      return Status::ok();
    char reason[128];
    regerror(error, &regex_, reason, sizeof reason);
    return Status::invalidArgument(
        formatText("the pattern '%s' of layers is wrong: %s", text,
                   static_cast<const char *>(reason)));
  }

  bool matches(const std::string &name) const {
    return regexec(&regex_, name.c_str(), 0, nullptr, 0) == 0;
  }

private:
  regex_t regex_;
  bool isCompiled_ = false;
};

Found balanceByRegex(const BalanceProblem &problem) {
  Pattern pattern;
  DYNA_RETURN_IF_ERROR(pattern.compile(problem.pattern));
  std::vector<double> counted;
  for (const std::string &name : problem.names)
    counted.push_back(pattern.matches(name) ? 1 : 0);
  if (std::find(counted.begin(), counted.end(), 1) == counted.end())
    return Status::invalidArgument(
        formatText("no layer has a name that matches '%s': the first of %d is "
                   "'%s'",
                   problem.pattern, problem.names.size(),
                   problem.names.empty() ? "" : problem.names.front()));
  return ofCut(partitionLayers(counted, static_cast<int>(problem.cut.size())));
}

/// Algorithm 2. Line numbers are the paper's.
class PrintedDiffusion {
public:
  explicit PrintedDiffusion(const BalanceProblem &problem) : problem_(problem) {
    result_.layers = RankLayers::ofCut(problem.cut);
    loads_ = totals_ = result_.layers.sums(problem.seconds);
  }

  Balance run() {
    for (int i = 0; i < problem_.maxIterations; ++i, ++result_.rounds)
      iterate();
    return std::move(result_);
  }

private:
  void iterate() {
    // Lines 3 to 5 use the first totals, which no line changes.
    const double mean = std::accumulate(totals_.begin(), totals_.end(), 0.0) /
                        static_cast<double>(totals_.size());
    variance_ = varianceOf(totals_);
    std::vector<char> isOverloaded; // lines 6 and 7
    for (double load : loads_)
      isOverloaded.push_back(load > mean);
    for (size_t source = 0; source < loads_.size(); ++source)
      if (isOverloaded[source] && !result_.layers.ranks[source].empty())
        send(source);
  }

  void send(size_t source) {
    auto &layers = result_.layers.ranks;
    const size_t target = static_cast<size_t>(
        std::min_element(loads_.begin(), loads_.end()) - loads_.begin());
    const auto layer = std::min_element(
        layers[source].begin(), layers[source].end(), [this](int a, int b) {
          return problem_.seconds[a] < problem_.seconds[b];
        });
    std::vector<double> loads = loads_; // line 12
    loads[source] -= problem_.seconds[*layer];
    loads[target] += problem_.seconds[*layer];
    const double variance = varianceOf(loads);
    if (!(variance < variance_) || !hasRoom(target, *layer)) // line 17
      return;
    variance_ = variance;
    loads_ = std::move(loads);
    layers[target].push_back(*layer);
    layers[source].erase(layer);
    ++result_.moves;
  }

  bool hasRoom(size_t target, int layer) const {
    if (!problem_.memory)
      return true;
    const auto stage = static_cast<int>(target);
    int64_t held = problem_.memory->at(stage, layer);
    for (int other : result_.layers.ranks[target])
      held += problem_.memory->at(stage, other);
    return held <= problem_.memory->limits[target];
  }

  const BalanceProblem &problem_;
  Balance result_;
  std::vector<double> totals_; ///< of the first layers
  std::vector<double> loads_;
  double variance_ = 0;
};

Found balanceByAlgorithm2(const BalanceProblem &problem) {
  return PrintedDiffusion(problem).run();
}

} // namespace

StatusOr<std::vector<BalancePolicy>>
parseBalancePolicies(const std::string &text) {
  std::vector<BalancePolicy> policies;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    DYNA_ASSIGN_OR_RETURN(const BalancePolicy policy,
                          parsePolicy(text.substr(begin, end - begin)));
    if (std::find(policies.begin(), policies.end(), policy) != policies.end())
      return Status::invalidArgument(
          formatText("the policy '%s' is given twice", rowOf(policy).word));
    policies.push_back(policy);
    begin = end + 1;
  }
  return policies;
}

StatusOr<Balance> balanceLayers(BalancePolicy policy,
                                const BalanceProblem &problem) {
  switch (policy) {
#define DYNA_BALANCE_POLICY(name, word, isExecuted, text)                      \
  case BalancePolicy::name:                                                    \
    return balanceBy##name(problem);
#include "runtime/elastic/balance/BalancePolicies.def"
  }
  return Status::internal("no such policy");
}

} // namespace dyna
