//===- SparseProducts.h - How much sparse products take -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Durations of products by CSR weights, as shares of dense ones, by the sparsity:
//
//      share
//        |  x  .                 Below the first point, the first one holds, and above
//      1 +--------'x-----------  the last the last. In between it is a line, as the
//        |           ' x .       survivors are.
//        +----------------x----  sparsity
//
// Masked weights take what dense ones take.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_SPARSEPRODUCTS_H
#define DYNA_RUNTIME_COST_SPARSEPRODUCTS_H

#include "runtime/base/error/Status.h"
#include "runtime/cost/Costs.pb.h"
#include "runtime/plan/model/LayerState.h"

#include <array>
#include <vector>

namespace dyna {

/// The products of a linear layer: its output, the gradient of its input, and that of
/// its weights.
enum class Product { Forward, InputGradient, WeightGradient };
constexpr std::array<Product, 3> allProducts = {
    Product::Forward, Product::InputGradient, Product::WeightGradient};

class SparseProducts {
public:
  /// Without points: there are no sparse products.
  SparseProducts() = default;
  /// Fails if a sparsity is outside [0, 1) or not above the one before it, or a share is
  /// not positive. The message names the point.
  static StatusOr<SparseProducts> create(const cost::SparseProducts &message);

  bool empty() const { return points_.empty(); }
  /// Returns the duration of a product in this form, divided by that of the dense one.
  /// There are points if the form is CSR. O(points).
  double share(Product product, WeightForm form, double sparsity) const;
  /// Returns the form that takes less time, over all products that a layer of such a
  /// state runs. With equal times, it is the one that stays dense.
  WeightForm fastest(const LayerState &state) const;

private:
  struct Point {
    double sparsity = 0;
    std::array<double, 3> shares{}; ///< by product
  };
  std::vector<Point> points_; ///< by sparsity, ascending
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_SPARSEPRODUCTS_H
