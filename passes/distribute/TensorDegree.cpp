//===- TensorDegree.cpp - What a strategy asks of the compiler ------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/TensorDegree.h"

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

StatusOr<std::vector<TensorDegree>>
mlir::dyna::tensorDegreesOf(const std::string &strategies) {
  std::vector<::dyna::Strategy> list;
  if (strategies.find(';') != std::string::npos) {
    auto parsed = ::dyna::parseStrategies(strategies);
    if (!parsed.isOk())
      return parsed.status();
    list = *parsed;
  } else {
    auto parsed = ::dyna::parseStrategy(strategies);
    if (!parsed.isOk())
      return parsed.status();
    list = {*parsed};
  }
  std::vector<TensorDegree> degrees;
  for (const ::dyna::Strategy &strategy : list) {
    TensorDegree degree{strategy.tp, strategy.sp};
    if (degree.tp > 1 &&
        std::find(degrees.begin(), degrees.end(), degree) == degrees.end())
      degrees.push_back(degree);
  }
  return degrees;
}
