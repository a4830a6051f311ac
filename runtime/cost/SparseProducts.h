//===- SparseProducts.h - Gives the cost of products by sparse weights ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Durations of products by CSR weights, as shares of dense ones, by sparsity:
//
//      share
//        |  x  .                 Below the first point, its share holds, and
//      1 +--------'x-----------  above the last point that one's. Between two
//        |           ' x .       points it is a line in the survivors.
//        +----------------x----  sparsity
//
// Products by masked weights cost as much as dense ones.
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
  /// Makes an empty table: there are no sparse products.
  SparseProducts() = default;
  /// Fails if a sparsity is outside [0, 1) or not above the one before it, or a share is
  /// not positive. The message names the point.
  static StatusOr<SparseProducts> create(const cost::SparseProducts &message);

  bool empty() const { return points_.empty(); }
  /// Returns the duration of a product in this form, divided by that of the dense one.
  /// There are points if the form is CSR. O(points).
  double share(Product product, WeightForm form, double sparsity) const;
  /// Returns the faster form over all products that a layer of this state runs.
  /// With equal times, it is the form that stays dense.
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
