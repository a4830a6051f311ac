//===- Strategy.cpp - Parses degrees of parallelism and the layer cut -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/Strategy.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace dyna {
namespace {

/// No degree and no product of degrees is larger.
constexpr int64_t maxRanks = 1 << 20;

const char *const recomputeNames[] = {"none", "selective", "full"};

std::string trim(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

/// Returns the pieces between separators, without blanks at their ends.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + 1)
    pieces.push_back(trim(text.substr(begin, end - begin)));
  pieces.push_back(trim(text.substr(begin)));
  return pieces;
}

/// Parses a whole number from `low` to `high`.
bool parseNumber(const std::string &text, int64_t low, int64_t high,
                 int &number) {
  bool digits = !text.empty() && text.size() <= 9 &&
                std::all_of(text.begin(), text.end(),
                            [](unsigned char c) { return std::isdigit(c); });
  if (!digits)
    return false;
  int64_t value = std::stoll(text);
  number = static_cast<int>(value);
  return low <= value && value <= high;
}

class Parser {
public:
  explicit Parser(const std::string &text) : text_(trim(text)) {}

  StatusOr<Strategy> parse() {
    if (text_.find(';') != std::string::npos)
      return bad("holds several, where one was expected");
    std::string settings = text_;
    if (size_t colon = text_.find(':'); colon != std::string::npos) {
      DYNA_RETURN_IF_ERROR(setName(trim(text_.substr(0, colon))));
      settings = trim(text_.substr(colon + 1));
    }
    if (settings.empty())
      return bad("says nothing: write, for instance, dp=2,tp=2");
    for (const std::string &setting : split(settings, ','))
      DYNA_RETURN_IF_ERROR(set(setting));
    DYNA_RETURN_IF_ERROR(checkWhole());
    return strategy_;
  }

private:
  Status bad(const std::string &what) const {
    return Status::invalidArgument("strategy '" + text_ + "' " + what);
  }

  Status setName(const std::string &name) {
    bool valid = !name.empty() &&
                 std::all_of(name.begin(), name.end(), [](unsigned char c) {
                   return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                 });
    if (!valid)
      return bad("has the name '" + name +
                 "': letters, digits, '_', '-' and '.' make a name");
    if (name == "search" || name == "home")
      return bad("is named " + name +
                 ", which means something else to --strategy and --ranges: "
                 "choose another name");
    strategy_.name = name;
    return Status::ok();
  }

  Status set(const std::string &setting) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return bad("has '" + setting + "', where key=value was expected");
    std::string key = trim(setting.substr(0, equals));
    std::string value = trim(setting.substr(equals + 1));
    if (!seen_.insert(key).second)
      return bad("says '" + key + "' twice");
    if (key == "dp")
      return setNumber(key, value, 1, maxRanks, strategy_.dp);
    if (key == "tp")
      return setNumber(key, value, 1, maxRanks, strategy_.tp);
    if (key == "pp")
      return setNumber(key, value, 1, maxRanks, strategy_.pp);
    if (key == "zero")
      return setSwitch(key, value, strategy_.zero);
    if (key == "sp")
      return setSwitch(key, value, strategy_.sp);
    if (key == "mirror")
      return setSwitch(key, value, strategy_.mirror);
    if (key == "recompute")
      return setRecompute(value);
    if (key == "layers")
      return setLayers(value);
    if (key == "order")
      return setOrder(value);
    return bad("has the key '" + key +
               "': expects dp, tp, pp, zero, sp, mirror, recompute, layers or "
               "order");
  }

  Status setNumber(const std::string &key, const std::string &value,
                   int64_t low, int64_t high, int &number) {
    if (parseNumber(value, low, high, number))
      return Status::ok();
    return bad(formatText("has %s=%s: expects a whole number from %d to %d",
                          key, value, low, high));
  }

  Status setSwitch(const std::string &key, const std::string &value,
                   bool &flag) {
    int number = 0;
    DYNA_RETURN_IF_ERROR(setNumber(key, value, 0, 1, number));
    flag = number == 1;
    return Status::ok();
  }

  Status setRecompute(const std::string &value) {
    for (int mode = 0; mode < 3; ++mode)
      if (value == recomputeNames[mode]) {
        strategy_.recompute = static_cast<plan::Recompute>(mode);
        return Status::ok();
      }
    return bad("has recompute=" + value + ": expects none, selective or full");
  }

  Status setLayers(const std::string &value) {
    for (const std::string &count : split(value, '+')) {
      int number = 0;
      DYNA_RETURN_IF_ERROR(setNumber("layers", count, 1, maxRanks, number));
      strategy_.layers.push_back(number);
    }
    return Status::ok();
  }

  Status setOrder(const std::string &value) {
    std::vector<std::string> axes = split(value, '+');
    auto &order = strategy_.order;
    if (axes.size() != order.size() ||
        !std::is_permutation(axes.begin(), axes.end(), order.begin()))
      return bad("has order=" + value +
                 ": expects dp, pp and tp, each once, major to minor, such as "
                 "pp+dp+tp");
    std::copy(axes.begin(), axes.end(), order.begin());
    return Status::ok();
  }

  Status checkWhole() const {
    const Strategy &s = strategy_;
    if (int64_t(s.dp) * s.tp > maxRanks ||
        int64_t(s.dp) * s.tp * s.pp > maxRanks)
      return bad(formatText("needs more than %d ranks", maxRanks));
    if (s.sp && s.tp == 1)
      return bad("has sp=1, which needs tp of 2 or more");
    if (s.mirror && s.pp % 2 != 0)
      return bad(
          formatText("has mirror=1, which needs an even pp, but pp=%d", s.pp));
    if (s.mirror && s.dp % 2 != 0)
      return bad(formatText("has mirror=1, which pairs replicas and needs an "
                            "even dp, but dp=%d",
                            s.dp));
    if (!s.layers.empty() && s.layers.size() != static_cast<size_t>(s.pp))
      return bad(formatText("gives layers for %d stages, but has pp=%d",
                            s.layers.size(), s.pp));
    return Status::ok();
  }

  const std::string text_;
  Strategy strategy_;
  std::set<std::string> seen_;
};

} // namespace

StatusOr<Strategy> parseStrategy(const std::string &text) {
  return Parser(text).parse();
}

StatusOr<std::vector<Strategy>> parseStrategies(const std::string &text) {
  std::vector<Strategy> strategies;
  std::set<std::string> names;
  for (const std::string &piece : split(text, ';')) {
    if (piece.empty())
      continue;
    DYNA_ASSIGN_OR_RETURN(Strategy strategy, parseStrategy(piece));
    if (strategy.name.empty())
      return Status::invalidArgument("strategy '" + piece +
                                     "' has no name: write name: " + piece);
    if (!names.insert(strategy.name).second)
      return Status::invalidArgument("two strategies are named '" +
                                     strategy.name + "'");
    strategies.push_back(std::move(strategy));
  }
  if (strategies.empty())
    return Status::invalidArgument(
        "no strategy given: write, for instance, \"a: dp=2,tp=2\"");
  return strategies;
}

StatusOr<Strategy> findStrategy(const std::string &nameOrText,
                                const std::vector<std::string> &known) {
  if (nameOrText.find('=') != std::string::npos)
    return parseStrategy(nameOrText);
  std::string names;
  for (const std::string &text : known) {
    StatusOr<Strategy> strategy = parseStrategy(text);
    if (!strategy.isOk() || strategy->name == nameOrText)
      return strategy;
    names += (names.empty() ? "" : ", ") + strategy->name;
  }
  return Status::invalidArgument("no strategy is named '" + nameOrText + "': " +
                                 (names.empty()
                                      ? "this binary was compiled without names"
                                      : "this binary knows " + names) +
                                 "; or write one, such as dp=2,pp=2");
}

std::vector<Strategy> joinStrategies(std::vector<Strategy> first,
                                     const std::vector<Strategy> &rest) {
  for (const Strategy &strategy : rest)
    if (std::none_of(first.begin(), first.end(), [&](const Strategy &known) {
          return known.name == strategy.name;
        }))
      first.push_back(strategy);
  return first;
}

std::string describeStrategies(const std::vector<Strategy> &strategies) {
  std::string text;
  for (const Strategy &strategy : strategies)
    text += (text.empty() ? "" : "; ") + describeStrategy(strategy);
  return text;
}

StatusOr<Strategy> mirrorReplicas(Strategy strategy) {
  if (strategy.mirror)
    return strategy;
  if (strategy.pp % 2 != 0)
    return Status::invalidArgument(formatText(
        "chimera runs two pipelines in opposite directions, so pp must be "
        "even, but strategy '%s' has pp=%d: give an even pp, or another "
        "schedule",
        describeStrategy(strategy), strategy.pp));
  strategy.dp *= 2;
  strategy.mirror = true;
  if (strategy.ranks() > maxRanks)
    return Status::invalidArgument(
        formatText("strategy '%s' needs more than %d ranks",
                   describeStrategy(strategy), maxRanks));
  return strategy;
}

std::string describeStrategy(const Strategy &s) {
  std::string text = s.name.empty() ? "" : s.name + ": ";
  text += formatText("dp=%d,tp=%d,pp=%d", s.dp, s.tp, s.pp);
  if (s.zero)
    text += ",zero=1";
  if (s.sp)
    text += ",sp=1";
  if (s.mirror)
    text += ",mirror=1";
  if (s.recompute)
    text += std::string(",recompute=") + recomputeNames[*s.recompute];
  for (size_t stage = 0; stage < s.layers.size(); ++stage)
    text += formatText("%s%d", stage ? "+" : ",layers=", s.layers[stage]);
  if (s.order != Strategy().order)
    text += ",order=" + s.order[0] + "+" + s.order[1] + "+" + s.order[2];
  return text;
}

} // namespace dyna
