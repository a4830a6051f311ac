//===- SliceChoice.cpp - Declares how users choose slices -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/SliceChoice.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/model/Bytes.h"

#include <algorithm>

namespace dyna {

std::vector<int64_t> SliceChoice::cut(int64_t tokens) const {
  std::vector<int64_t> slices;
  if (!isFixed() || tokens <= 0)
    return {tokens};
  if (count > 1) {
    const int64_t parts = std::min(count, tokens);
    for (int64_t part = 0; part < parts; ++part)
      slices.push_back(tokens / parts + (part < tokens % parts ? 1 : 0));
    return slices;
  }
  for (size_t number = 0; tokens > 0; ++number) {
    const int64_t asked = lengths[std::min(number, lengths.size() - 1)];
    slices.push_back(std::min(asked, tokens));
    tokens -= slices.back();
  }
  return slices;
}

int64_t SliceChoice::slicesOf(int64_t tokens) const {
  const auto parts = [&](int64_t size) { return (tokens + size - 1) / size; };
  if (policy == SlicePolicy::Chunks)
    return number > 0 ? parts(number) : 1;
  const int64_t asked = policy == SlicePolicy::None ? count : number;
  if (lengths.empty())
    return std::clamp<int64_t>(asked, 1, std::max<int64_t>(tokens, 1));
  int64_t slices = 0;
  for (; tokens > 0 && slices + 1 < static_cast<int64_t>(lengths.size());
       ++slices)
    tokens -= lengths[slices];
  if (tokens > 0)
    slices += parts(lengths.back());
  return std::max<int64_t>(slices, 1);
}

int64_t SliceChoice::largest(int64_t tokens) const {
  if (!isFixed())
    return tokens;
  if (count > 1)
    return (tokens + count - 1) / count;
  return std::min(tokens, *std::max_element(lengths.begin(), lengths.end()));
}

Status SliceChoice::check(int64_t joined, int64_t longest) const {
  const bool countsSlices =
      policy == SlicePolicy::Uniform || policy == SlicePolicy::Work;
  const int64_t asked = countsSlices ? number : count;
  if (asked > longest)
    return Status::invalidArgument(
        formatText("--slices asks for %d slices, but a micro-batch has %d "
                   "tokens at most: ask for fewer",
                   asked, longest));
  if (policy == SlicePolicy::Chunks && number > joined)
    return Status::invalidArgument(formatText(
        "--slices asks for chunks of %d tokens, but micro-batches of several "
        "samples have %d at most: use smaller chunks or a larger "
        "--tokens-per-micro-batch",
        number, joined));
  int64_t listed = 0;
  for (size_t i = 0; i + 1 < lengths.size(); ++i)
    if ((listed += lengths[i]) >= longest)
      return Status::invalidArgument(formatText(
          "--slices lists %d slices, but the first%s %d tokens, and a "
          "micro-batch has %d at most: leave out slices, or use larger "
          "micro-batches",
          lengths.size(),
          i == 0 ? std::string(" has") : formatText(" %d have", i + 1), listed,
          longest));
  return Status::ok();
}

SliceChoice SliceChoice::within(int64_t joined, int64_t longest) const {
  SliceChoice choice = *this;
  choice.count = std::min(count, longest);
  if (policy != SlicePolicy::None)
    choice.number =
        std::min(number, policy == SlicePolicy::Chunks ? joined : longest);
  while (!choice.check(joined, longest).isOk())
    choice.lengths.pop_back();
  return choice;
}

/// Parses a whole number of tokens or slices; 0: it is none.
static int64_t parseCount(const std::string &text) {
  int64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || number > maxMicroBatchTokens)
      return 0;
    number = 10 * number + (c - '0');
  }
  return number <= maxMicroBatchTokens ? number : 0;
}

namespace {

struct PolicyName {
  const char *name;
  SlicePolicy policy;
  bool hasNumber;
};
constexpr PolicyName policies[] = {
    {"auto", SlicePolicy::Auto, false},
    {"exact", SlicePolicy::Exact, false},
    {"terapipe", SlicePolicy::TeraPipe, false},
    {"terapipe-code", SlicePolicy::TeraCode, false},
    {"uniform", SlicePolicy::Uniform, true},
    {"seq1f1b", SlicePolicy::Work, true},
    {"chunkflow", SlicePolicy::Chunks, true},
};

} // namespace

StatusOr<SliceChoice> parseSlices(const std::string &text) {
  SliceChoice choice;
  if (text == "none")
    return choice;
  const size_t colon = text.find(':');
  for (const PolicyName &row : policies)
    if (text.substr(0, colon) == row.name) {
      choice.policy = row.policy;
      if (colon == std::string::npos)
        return choice;
      choice.number = row.hasNumber ? parseCount(text.substr(colon + 1)) : 0;
      if (choice.number > 0)
        return choice;
    }
  const auto refuse = [&] {
    return Status::invalidArgument(formatText(
        "expects none, auto, exact, a number of equal slices from 1 to %d, "
        "tokens of slices as in 2048+1024+512, or the cut of a published "
        "system (terapipe, terapipe-code, uniform, uniform:8, seq1f1b, "
        "seq1f1b:8, chunkflow, chunkflow:2048), but got '%s'",
        maxMicroBatchTokens, text));
  };
  if (text.find('+') == std::string::npos) {
    choice.count = parseCount(text);
    return choice.count > 0 ? StatusOr<SliceChoice>(choice) : refuse();
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    choice.lengths.push_back(parseCount(text.substr(begin, end - begin)));
    if (choice.lengths.back() == 0)
      return refuse();
    begin = end + 1;
  }
  return choice;
}

std::string describeSlices(const SliceChoice &choice) {
  for (const PolicyName &row : policies)
    if (row.policy == choice.policy)
      return choice.number > 0 ? formatText("%s:%d", row.name, choice.number)
                               : std::string(row.name);
  if (choice.count > 1)
    return std::to_string(choice.count);
  std::string text;
  for (int64_t length : choice.lengths)
    text += (text.empty() ? "" : "+") + std::to_string(length);
  return choice.lengths.size() == 1 ? text + "+" + text : text;
}

} // namespace dyna
