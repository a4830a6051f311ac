//===- SparseProducts.cpp - Gives the cost of products by sparse weights --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/SparseProducts.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dyna {
namespace {

constexpr double leastShare = 1e-6, mostShare = 1e6;

bool isShare(double value) {
  return std::isfinite(value) && value >= leastShare && value <= mostShare;
}

} // namespace

StatusOr<SparseProducts>
SparseProducts::create(const cost::SparseProducts &message) {
  SparseProducts products;
  for (const cost::SparsePoint &point : message.points()) {
    auto refuse = [&](const std::string &what) {
      return Status::invalidArgument(formatText(
          "sparse: point %d: %s", products.points_.size() + 1, what));
    };
    if (!(point.sparsity() >= 0 && point.sparsity() < 1))
      return refuse(
          formatText("sparsity expects 0 or more and less than 1, but got %g",
                     point.sparsity()));
    if (!products.points_.empty() &&
        point.sparsity() <= products.points_.back().sparsity)
      return refuse(formatText(
          "sparsity %g follows %g: give the points in ascending order, each "
          "once",
          point.sparsity(), products.points_.back().sparsity));
    Point own{point.sparsity(), {point.forward(), 0, 0}};
    const std::pair<const char *, double> others[] = {
        {"input_gradient", point.input_gradient()},
        {"weight_gradient", point.weight_gradient()}};
    if (!isShare(own.shares[0]))
      return refuse(formatText(
          "forward expects the duration of a dense product as 1, from %g to "
          "%g, but got %g",
          leastShare, mostShare, own.shares[0]));
    for (size_t i = 0; i < std::size(others); ++i) {
      const auto [field, value] = others[i];
      own.shares[i + 1] = value == 0 ? own.shares[0] : value;
      if (!isShare(own.shares[i + 1]))
        return refuse(
            formatText("%s expects 0, as forward, or a number from %g to %g, "
                       "but got %g",
                       field, leastShare, mostShare, value));
    }
    products.points_.push_back(own);
  }
  return products;
}

double SparseProducts::share(Product product, WeightForm form,
                             double sparsity) const {
  if (form != WeightForm::Csr || points_.empty())
    return 1;
  const auto number = static_cast<size_t>(product);
  const auto above = std::upper_bound(
      points_.begin(), points_.end(), sparsity,
      [](double value, const Point &point) { return value < point.sparsity; });
  if (above == points_.begin())
    return points_.front().shares[number];
  const Point &left = *std::prev(above);
  if (above == points_.end())
    return left.shares[number];
  const double part =
      (sparsity - left.sparsity) / (above->sparsity - left.sparsity);
  return left.shares[number] +
         part * (above->shares[number] - left.shares[number]);
}

WeightForm SparseProducts::fastest(const LayerState &state) const {
  if (state.sparsity <= 0)
    return WeightForm::Dense;
  double sparse = 0, masked = 0;
  for (Product product : allProducts) {
    if (product == Product::InputGradient && state.prefix)
      continue;
    if (product == Product::WeightGradient && state.frozen)
      continue;
    sparse += share(product, WeightForm::Csr, state.sparsity);
    masked += 1;
  }
  return !empty() && sparse < masked ? WeightForm::Csr : WeightForm::Masked;
}

} // namespace dyna
