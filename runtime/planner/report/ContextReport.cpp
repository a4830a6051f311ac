//===- ContextReport.cpp - Reports how well slices are predicted ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/ContextReport.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/slice/FitContext.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dyna {
namespace {

using Points = std::vector<MeasuredPoint>;

/// Both predictions, from the same points.
class Predictions {
public:
  explicit Predictions(const Points &points) : curve_(points) {
    std::vector<ContextPoint> added;
    for (const MeasuredPoint &point : points)
      if (const Load &load = point.load; load.context > 0)
        added.push_back(
            {load.queries, load.context, point.seconds - alone(load.queries)});
    fit_ = fitContext(added);
  }

  const StatusOr<ContextFit> &fit() const { return fit_; }

  /// Adds the errors for a slice to sums and maxima.
  void compare(const MeasuredPoint &slice, ContextErrors &errors) const {
    if (!fit_.isOk() || slice.seconds <= 0)
      return;
    const Load &load = slice.load;
    const double fitted =
        alone(load.queries) + fit_->seconds(load.queries, load.context);
    const double ofTable = std::abs(curve_.seconds(load) / slice.seconds - 1),
                 ofFit = std::abs(fitted / slice.seconds - 1);
    ++errors.points;
    errors.tableMean += ofTable;
    errors.fitMean += ofFit;
    errors.tableLargest = std::max(errors.tableLargest, ofTable);
    errors.fitLargest = std::max(errors.fitLargest, ofFit);
  }

private:
  /// Returns t(i, 0).
  double alone(int64_t tokens) const {
    return curve_.wholeSeconds(sliceLoad(tokens, 0));
  }

  CostCurve curve_;
  StatusOr<ContextFit> fit_ = Status::invalidArgument("no points");
};

/// Returns the points of all functions that have points with context.
std::map<CostKey, Points> pointsOf(const CostTable &table) {
  std::map<CostKey, Points> all;
  for (const cost::Entry &entry : table.message().entries()) {
    const CostKey key{entry.kind(), std::max(entry.tp(), 1), entry.sp(),
                      entry.direction()};
    const auto curve = table.curves().find(key);
    if (curve == table.curves().end() || !curve->second.hasContext())
      continue;
    for (const cost::Point &point : entry.points()) {
      Load load = callLoad(point.tokens(), point.pairs(), point.targets());
      load.context = point.context();
      all[key].push_back({load, point.seconds()});
    }
  }
  return all;
}

/// Divides sums by their number. Adds to `all` what predicted something.
void finish(ContextErrors errors, const Predictions &predictions,
            std::vector<ContextErrors> &all) {
  if (errors.points == 0 || !predictions.fit().isOk())
    return;
  errors.tableMean /= errors.points;
  errors.fitMean /= errors.points;
  errors.numbers = predictions.fit()->numbers;
  all.push_back(std::move(errors));
}

} // namespace

std::vector<ContextErrors> contextErrors(const CostTable &table) {
  std::vector<ContextErrors> all;
  for (const auto &[function, points] : pointsOf(table)) {
    ContextErrors errors;
    errors.function = function;
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].load.context == 0)
        continue;
      Points others = points;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      Predictions(others).compare(points[i], errors);
    }
    finish(std::move(errors), Predictions(points), all);
  }
  return all;
}

std::vector<ContextErrors>
contextErrors(const CostTable &table,
              const std::vector<MeasuredSlice> &heldOut) {
  std::vector<ContextErrors> all;
  for (const auto &[function, points] : pointsOf(table)) {
    const Predictions predictions(points);
    ContextErrors errors;
    errors.function = function;
    for (const MeasuredSlice &slice : heldOut)
      if (!(slice.function < function) && !(function < slice.function) &&
          slice.point.load.context > 0)
        predictions.compare(slice.point, errors);
    finish(std::move(errors), predictions, all);
  }
  return all;
}

JsonArray contextJson(const std::vector<ContextErrors> &errors) {
  JsonArray all;
  for (const ContextErrors &one : errors) {
    JsonArray numbers;
    for (double number : one.numbers)
      numbers.add(jsonRounded(number, 9));
    all.add(JsonObject()
                .add("function", describeCostKey(one.function))
                .add("points", one.points)
                .add("table_mean_error", jsonRounded(one.tableMean, 6))
                .add("table_largest_error", jsonRounded(one.tableLargest, 6))
                .add("fit_mean_error", jsonRounded(one.fitMean, 6))
                .add("fit_largest_error", jsonRounded(one.fitLargest, 6))
                .add("fit", numbers));
  }
  return all;
}

std::string describeContext(const ContextErrors &errors) {
  return formatText(
      "error of slices: %s: mean %.1f %%, largest %.1f %%, over %d points; "
      "TeraPipe's fit: mean %.1f %%, largest %.1f %%",
      describeCostKey(errors.function), 100 * errors.tableMean,
      100 * errors.tableLargest, errors.points, 100 * errors.fitMean,
      100 * errors.fitLargest);
}

} // namespace dyna
