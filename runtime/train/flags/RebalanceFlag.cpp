//===- RebalanceFlag.cpp - Parses the value of --rebalance ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/RebalanceFlag.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace dyna {
namespace {

/// The policies of runs. Others need names of layers, or append layers anywhere.
constexpr std::array policiesOfRuns = {
    BalancePolicy::Time, BalancePolicy::Parameters, BalancePolicy::Diffusion};

constexpr int mostMeasuredSteps = 1000000;

Status refuse(const std::string &word, const std::string &expected) {
  return Status::invalidArgument(
      formatText("--rebalance: '%s': %s", word, expected));
}

Status readNumber(const std::string &word, const std::string &value, double low,
                  double high, double &number) {
  const char *end = value.data() + value.size();
  auto [last, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || last != end || !(number >= low && number <= high))
    return refuse(word, formatText("give a number from %g to %g", low, high));
  return Status::ok();
}

Status readPolicy(const std::string &word, BalancePolicy &policy) {
  std::string known;
  for (BalancePolicy one : policiesOfRuns) {
    if (word == rowOf(one).word) {
      policy = one;
      return Status::ok();
    }
    known += (known.empty() ? "" : ", ") + std::string(rowOf(one).word);
  }
  return refuse(word, formatText("begin with one of %s, as in "
                                 "time,every=10,margin=0.5",
                                 known));
}

Status readWord(const std::string &word, const std::string &key,
                const std::string &value, RebalanceFlag &flag) {
  if (key == "margin")
    return readNumber(word, value, -1, 1000, flag.test.margin);
  if (key == "least")
    return readNumber(word, value, 0, 1, flag.test.leastShare);
  if (key == "slower")
    return readNumber(word, value, 0, 1000, flag.options.slowerShare);
  if (key != "every")
    return refuse(word, "there are every, margin, least and slower, each with "
                        "= and a number");
  int &steps = flag.options.measuredSteps;
  const char *end = value.data() + value.size();
  auto [last, error] = std::from_chars(value.data(), end, steps);
  if (error != std::errc() || last != end || steps < 1 ||
      steps > mostMeasuredSteps)
    return refuse(word, formatText("give a number of steps from 1 to %d",
                                   mostMeasuredSteps));
  return Status::ok();
}

} // namespace

StatusOr<RebalanceFlag> parseRebalanceFlag(const std::string &text) {
  RebalanceFlag flag;
  size_t begin = std::min(text.find(','), text.size());
  DYNA_RETURN_IF_ERROR(readPolicy(text.substr(0, begin), flag.policy));
  std::set<std::string> given;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(',', begin + 1), text.size());
    const std::string word = text.substr(begin + 1, end - begin - 1);
    const size_t sign = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, sign);
    DYNA_RETURN_IF_ERROR(readWord(
        word, key, sign < word.size() ? word.substr(sign + 1) : "", flag));
    if (!given.insert(key).second)
      return refuse(word, formatText("%s is given twice", key));
    begin = end;
  }
  return flag;
}

} // namespace dyna
