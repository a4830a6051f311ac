//===- Splits.cpp - Finds the cheapest split of an op ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/Splits.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace mlir::dist;
using ::dyna::AxisPart;
using ::dyna::AxisParts;
using ::dyna::Layout;
using ::dyna::Mesh;
using ::dyna::Shape;
using ::dyna::Status;
using ::dyna::StatusOr;

namespace {
/// The parts of every factor, and what passes through.
struct Splits {
  std::vector<AxisParts> factors;
  AxisParts passed;   ///< partial before and after
  int linearSet = -1; ///< of the rule; -1: nothing passes
};

struct OpLayouts {
  std::vector<Layout> operands, results;
};
} // namespace

static bool areDisjoint(const AxisParts &a, const AxisParts &b) {
  return llvm::all_of(a, [&](const AxisPart &x) {
    return llvm::all_of(
        b, [&](const AxisPart &y) { return ::dyna::areIndependent(x, y); });
  });
}

static void append(AxisParts &parts, const AxisParts &more) {
  parts.insert(parts.end(), more.begin(), more.end());
}

/// Returns the rest of `parts` after `prefix`, both canonical; nothing if
/// `parts` does not begin with it. For example, `tp` begins with `tp:2/2`,
/// followed by `tp:2/1`.
static std::optional<AxisParts> removePrefix(AxisParts parts,
                                             AxisParts prefix) {
  while (!prefix.empty()) {
    if (parts.empty() || parts.front().axis != prefix.front().axis)
      return std::nullopt;
    AxisPart &head = parts.front();
    const AxisPart first = prefix.front();
    if (first.size <= 0 || head.size % first.size != 0 ||
        first.stride != head.stride * (head.size / first.size))
      return std::nullopt;
    head.size /= first.size;
    if (head.size == 1)
      parts.erase(parts.begin());
    prefix.erase(prefix.begin());
  }
  return ::dyna::canonicalParts(parts);
}

//===----------------------------------------------------------------------===//
// From splits to layouts
//===----------------------------------------------------------------------===//

/// Returns true if the parts of two factors never use one rank twice.
static bool useEachRankOnce(const Splits &splits) {
  AxisParts used = splits.passed;
  for (const AxisParts &parts : splits.factors) {
    if (!areDisjoint(parts, used))
      return false;
    append(used, parts);
  }
  return true;
}

/// Returns true if sizes allow the splits. Parts must be even. A minor factor
/// of a dimension is split only if the major ones are split completely.
static bool fitSizes(const FactorRule &rule, const Splits &splits) {
  for (auto [factor, parts] : llvm::zip_equal(rule.factors, splits.factors))
    if (factor.kind == Factor::Even &&
        factor.size % ::dyna::groupSize(parts) != 0)
      return false;
  auto fits = [&](const TensorFactors &tensor) {
    for (const auto &dim : tensor)
      for (size_t i = 1; i < dim.size(); ++i)
        if (!splits.factors[dim[i]].empty() &&
            rule.factors[dim[i - 1]].size !=
                ::dyna::groupSize(splits.factors[dim[i - 1]]))
          return false;
    return true;
  };
  return llvm::all_of(rule.operands, fits) && llvm::all_of(rule.results, fits);
}

static Layout splitTensor(const TensorFactors &tensor, const Splits &splits) {
  Layout layout;
  for (const auto &dim : tensor) {
    AxisParts parts;
    for (int factor : dim)
      append(parts, splits.factors[factor]);
    layout.dims.push_back(::dyna::canonicalParts(parts));
  }
  return layout;
}

static bool runsOver(const TensorFactors &tensor, int factor) {
  return llvm::any_of(
      tensor, [&](const auto &dim) { return llvm::is_contained(dim, factor); });
}

static OpLayouts layoutsOf(const FactorRule &rule, const Splits &splits) {
  OpLayouts layouts;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    Layout layout = splitTensor(tensor, splits);
    if (splits.linearSet >= 0 &&
        llvm::is_contained(rule.linearIn[splits.linearSet], int(index)))
      layout.partial = splits.passed;
    layouts.operands.push_back(::dyna::canonicalLayout(layout));
  }
  for (auto [index, tensor] : llvm::enumerate(rule.results)) {
    Layout layout = splitTensor(tensor, splits);
    layout.partial = splits.passed;
    if (!llvm::is_contained(rule.reducedByOp, int(index)))
      for (auto [factor, parts] : llvm::enumerate(splits.factors))
        if (!runsOver(tensor, factor))
          append(layout.partial, parts);
    layouts.results.push_back(::dyna::canonicalLayout(layout));
  }
  for (auto [operand, result] : rule.tied)
    if (!rule.operands[operand].empty())
      layouts.operands[operand] = layouts.results[result];
  return layouts;
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

static bool isTied(const FactorRule &rule, int operand) {
  return llvm::any_of(rule.tied,
                      [&](auto pair) { return pair.first == operand; });
}

/// Returns the factors of a dimension that may be split.
static llvm::SmallVector<int, 3> splittable(const FactorRule &rule,
                                            llvm::ArrayRef<int> dim) {
  llvm::SmallVector<int, 3> factors;
  for (int factor : dim)
    if (rule.factors[factor].kind != Factor::Whole)
      factors.push_back(factor);
  return factors;
}

static Status misfit(const Mesh &mesh, int operand, const Layout &layout,
                     const std::string &wanted) {
  return Status::invalidArgument(
      "operand " + std::to_string(operand) + " has the layout " +
      describeLayout(mesh, layout) + ", but " + wanted);
}

/// Reads the parts of factors off the operands: first where a dimension runs
/// over one factor that may be split, then over two.
static Status readSplits(const Mesh &mesh, const FactorRule &rule,
                         const std::vector<Layout> &operands,
                         std::vector<std::optional<AxisParts>> &splits) {
  for (size_t count : {size_t(1), size_t(2)})
    for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
      for (auto [dim, list] : llvm::enumerate(tensor)) {
        llvm::SmallVector<int, 3> factors = splittable(rule, list);
        AxisParts parts = ::dyna::canonicalParts(operands[index].dims[dim]);
        if (factors.size() != count)
          continue;
        std::optional<AxisParts> &last = splits[factors.back()];
        if (count == 2) {
          auto rest = removePrefix(
              parts, splits[factors.front()].value_or(AxisParts()));
          if (!rest)
            return misfit(mesh, index, operands[index],
                          "its dimension " + std::to_string(dim) +
                              " is expected to be split as other operands "
                              "are");
          parts = *rest;
        }
        if (!last)
          last = parts;
      }
    }
  return Status::ok();
}

/// Finds the partial operands, and the set of them in which the op is linear.
static Status readPartial(const Mesh &mesh, const FactorRule &rule,
                          const std::vector<Layout> &operands, Splits &splits) {
  llvm::SmallVector<int, 2> partial;
  for (auto [index, layout] : llvm::enumerate(operands))
    if (!layout.partial.empty() && !isTied(rule, index))
      partial.push_back(index);
  if (partial.empty())
    return Status::ok();
  for (auto [set, members] : llvm::enumerate(rule.linearIn)) {
    llvm::SmallVector<int, 2> untied;
    for (int member : members)
      if (!isTied(rule, member))
        untied.push_back(member);
    if (untied == partial)
      splits.linearSet = set;
  }
  int first = partial.front();
  if (splits.linearSet < 0)
    return misfit(mesh, first, operands[first],
                  "the op needs the sum: reduce it first");
  splits.passed = ::dyna::canonicalLayout(operands[first]).partial;
  return Status::ok();
}

StatusOr<std::vector<Layout>>
mlir::dyna::inferResults(const Mesh &mesh, const FactorRule &rule,
                         const std::vector<Layout> &operands,
                         const AxisParts &tokens) {
  std::vector<std::optional<AxisParts>> read(rule.factors.size());
  DYNA_RETURN_IF_ERROR(readSplits(mesh, rule, operands, read));
  Splits splits;
  for (auto [index, parts] : llvm::enumerate(read)) {
    bool isToken = rule.factors[index].kind == Factor::Uneven &&
                   rule.factors[index].size == ::dyna::kDynamicSize;
    splits.factors.push_back(parts.value_or(isToken ? tokens : AxisParts()));
  }
  DYNA_RETURN_IF_ERROR(readPartial(mesh, rule, operands, splits));
  if (!useEachRankOnce(splits))
    return Status::invalidArgument(
        "the operands are split over the same ranks in different dimensions");
  OpLayouts layouts = layoutsOf(rule, splits);
  for (auto [index, wanted] : llvm::enumerate(layouts.operands))
    if (!rule.operands[index].empty() &&
        wanted != ::dyna::canonicalLayout(operands[index]))
      return misfit(mesh, index, operands[index],
                    "the op expects " + describeLayout(mesh, wanted));
  return layouts.results;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

StatusOr<mlir::dyna::ReshardCost>
mlir::dyna::costOfReshard(const Mesh &mesh, const Layout &from,
                          const Layout &to, const Shape &shape,
                          int64_t elementBytes) {
  ReshardCost cost;
  if (::dyna::canonicalLayout(from) == ::dyna::canonicalLayout(to))
    return cost;
  DYNA_ASSIGN_OR_RETURN(auto plan, ::dyna::planReshard(mesh, from, to, shape));
  Shape nominal = shape;
  for (int64_t &size : nominal)
    size = size == ::dyna::kDynamicSize ? kNominalTokens : size;
  for (const ::dyna::ReshardStep &step : plan)
    cost.bytes += ::dyna::bytesSent(mesh, step, nominal, elementBytes, 0);
  cost.steps = plan.size();
  return cost;
}

namespace {
/// Goes through the candidates of one op.
class Chooser {
public:
  Chooser(const Mesh &mesh, const FactorRule &rule,
          const std::vector<mlir::dyna::OperandState> &operands)
      : mesh_(mesh), rule_(rule), operands_(operands),
        options_(rule.factors.size(), {AxisParts()}) {}

  void collectOptions(const AxisParts &tokens);
  StatusOr<mlir::dyna::SplitChoice> choose();

private:
  void addOption(int factor, const AxisParts &parts);
  void tryPassing(Splits &splits);
  void tryAll(Splits &splits, size_t factor);
  void tryOne(const Splits &splits);
  bool bringOperand(size_t index, const Layout &wanted,
                    mlir::dyna::SplitChoice &choice);

  const Mesh &mesh_;
  const FactorRule &rule_;
  const std::vector<mlir::dyna::OperandState> &operands_;
  std::vector<std::vector<AxisParts>> options_;
  using Rank = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  std::optional<std::pair<Rank, mlir::dyna::SplitChoice>> best_;
};
} // namespace

void Chooser::addOption(int factor, const AxisParts &parts) {
  if (!llvm::is_contained(options_[factor], parts))
    options_[factor].push_back(parts);
}

void Chooser::collectOptions(const AxisParts &tokens) {
  for (auto [index, factor] : llvm::enumerate(rule_.factors))
    if (factor.kind == Factor::Uneven && factor.size == ::dyna::kDynamicSize)
      addOption(index, ::dyna::canonicalParts(tokens));
  for (size_t count : {size_t(1), size_t(2)})
    for (auto [tensor, state] : llvm::zip_equal(rule_.operands, operands_))
      for (const Layout &version : state.versions)
        for (auto [dim, list] : llvm::enumerate(tensor)) {
          llvm::SmallVector<int, 3> factors = splittable(rule_, list);
          AxisParts parts = ::dyna::canonicalParts(version.dims[dim]);
          if (factors.size() != count)
            continue;
          addOption(factors.front(), parts);
          if (count == 2)
            for (const AxisParts &prefix :
                 std::vector<AxisParts>(options_[factors.front()]))
              if (auto rest = removePrefix(parts, prefix))
                addOption(factors.back(), *rest);
        }
}

/// Finds the cheapest resharding to `wanted`; returns false if there is none.
bool Chooser::bringOperand(size_t index, const Layout &wanted,
                           mlir::dyna::SplitChoice &choice) {
  const mlir::dyna::OperandState &state = operands_[index];
  choice.operands[index] = wanted;
  if (state.isFixed) {
    Layout fixed = ::dyna::canonicalLayout(state.versions.front());
    if (state.takesAnyPartial)
      fixed.partial = wanted.partial;
    choice.sources[index] = 0;
    return fixed == wanted;
  }
  std::optional<mlir::dyna::ReshardCost> least;
  for (auto [source, version] : llvm::enumerate(state.versions)) {
    auto cost = mlir::dyna::costOfReshard(mesh_, version, wanted, state.shape,
                                          state.elementBytes);
    if (!cost.isOk() || (least && !(*cost < *least)))
      continue;
    least = *cost;
    choice.sources[index] = source;
  }
  if (!least)
    return false;
  choice.bytes += least->bytes;
  choice.steps += least->steps;
  return true;
}

void Chooser::tryOne(const Splits &splits) {
  if (!useEachRankOnce(splits) || !fitSizes(rule_, splits))
    return;
  OpLayouts layouts = layoutsOf(rule_, splits);
  mlir::dyna::SplitChoice choice;
  choice.results = layouts.results;
  choice.operands.resize(operands_.size());
  choice.sources.assign(operands_.size(), -1);
  for (size_t index = 0; index < operands_.size(); ++index)
    if (!operands_[index].versions.empty() &&
        !bringOperand(index, layouts.operands[index], choice))
      return;
  int64_t partial = 0, ranks = 1;
  for (const Layout &result : choice.results)
    partial += !result.partial.empty();
  for (const AxisParts &parts : splits.factors)
    ranks *= ::dyna::groupSize(parts);
  Rank rank{choice.bytes, choice.steps, partial, -ranks};
  if (!best_ || rank < best_->first)
    best_ = {rank, std::move(choice)};
}

/// Tries to pass on nothing partial, or what all members of a set are partial
/// over.
void Chooser::tryPassing(Splits &splits) {
  tryOne(splits);
  for (auto [set, members] : llvm::enumerate(rule_.linearIn))
    for (const Layout &version : operands_[members.front()].versions) {
      splits.passed = ::dyna::canonicalLayout(version).partial;
      splits.linearSet = set;
      if (!splits.passed.empty())
        tryOne(splits);
    }
  splits.passed.clear();
  splits.linearSet = -1;
}

void Chooser::tryAll(Splits &splits, size_t factor) {
  if (factor == options_.size())
    return tryPassing(splits);
  for (const AxisParts &parts : options_[factor]) {
    splits.factors[factor] = parts;
    tryAll(splits, factor + 1);
  }
}

StatusOr<mlir::dyna::SplitChoice> Chooser::choose() {
  Splits splits;
  splits.factors.resize(rule_.factors.size());
  tryAll(splits, 0);
  if (best_)
    return std::move(best_->second);
  std::string text;
  for (auto [index, state] : llvm::enumerate(operands_))
    if (!state.versions.empty())
      text += (text.empty() ? "" : ", ") + std::to_string(index) + ": " +
              describeLayout(mesh_, state.versions.front());
  return Status::invalidArgument("no split of the op fits its operands (" +
                                 text + ")");
}

StatusOr<mlir::dyna::SplitChoice>
mlir::dyna::chooseSplit(const Mesh &mesh, const FactorRule &rule,
                        const std::vector<OperandState> &operands,
                        const AxisParts &tokens) {
  Chooser chooser(mesh, rule, operands);
  chooser.collectOptions(tokens);
  return chooser.choose();
}
