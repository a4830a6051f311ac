//===- TensorDegree.cpp - Finds the tensor degrees of strategies ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/TensorDegree.h"

#include <algorithm>

using namespace mlir::dyna;
using ::dyna::StatusOr;

std::string TensorDegree::suffix() const {
  if (tp == 1)
    return "";
  return ".tp" + std::to_string(tp) + (sequence ? ".sp" : "");
}

::dyna::Mesh TensorDegree::mesh() const {
  return *::dyna::Mesh::create({{"tp", tp}});
}

StatusOr<std::vector<::dyna::Strategy>>
mlir::dyna::strategiesOf(const std::string &text) {
  if (text.find(';') != std::string::npos)
    return ::dyna::parseStrategies(text);
  DYNA_ASSIGN_OR_RETURN(auto strategy, ::dyna::parseStrategy(text));
  return std::vector<::dyna::Strategy>{strategy};
}

std::vector<TensorDegree>
mlir::dyna::tensorDegreesOf(const std::vector<::dyna::Strategy> &strategies) {
  std::vector<TensorDegree> degrees;
  for (const ::dyna::Strategy &strategy : strategies) {
    TensorDegree degree{strategy.tp, strategy.sp};
    if (degree.tp > 1 &&
        std::find(degrees.begin(), degrees.end(), degree) == degrees.end())
      degrees.push_back(degree);
  }
  return degrees;
}
