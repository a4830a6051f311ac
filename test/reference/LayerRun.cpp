//===- LayerRun.cpp - Runs a layer's functions in the evaluator -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/LayerRun.h"

#include "test/reference/Formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

static bool isBackward(Role role) {
  return role == Role::Backward || role == Role::BackwardInput ||
         role == Role::BackwardWeight;
}

static bool isTier(Memory memory) {
  return memory == Memory::Products || memory == Memory::Elementwise ||
         memory == Memory::Deferred;
}

Datum LayerRun::argument(FunctionOp function, PlaceAttr place,
                         size_t indexInTier) {
  size_t index = static_cast<size_t>(place.getIndex());
  switch (place.getMemory()) {
  case Memory::Parameter:
    return parameters.at(index);
  case Memory::Gradient:
    return accumulators.at(index);
  case Memory::Input:
    if (function.getRole() == Role::Update || function.getRole() == Role::Cast)
      return optimizerState.at(index);
    if (isBackward(function.getRole()))
      return outputGradients.at(index);
    return inputs.at(index);
  case Memory::Output:
    return outputs.at(index);
  case Memory::SavedInput:
    return inputs.at(0);
  case Memory::Segments:
    return segments;
  default:
    return tiers.at(place.getMemory()).at(indexInTier);
  }
}

template <typename T>
static void put(std::vector<T> &list, size_t index, T value) {
  if (list.size() <= index)
    list.resize(index + 1);
  list[index] = std::move(value);
}

void LayerRun::setResult(FunctionOp function, PlaceAttr place,
                         size_t indexInTier, Datum datum) {
  size_t index = static_cast<size_t>(place.getIndex());
  if (isTier(place.getMemory()))
    return put(tiers[place.getMemory()], indexInTier, std::move(datum));
  Tensor &tensor = std::get<Tensor>(datum);
  switch (place.getMemory()) {
  case Memory::Gradient:
    return put(accumulators, index, std::move(tensor));
  case Memory::Input:
    return put(optimizerState, index, std::move(tensor));
  case Memory::Parameter:
    return put(parameters, index, std::move(tensor));
  default:
    return put(isBackward(function.getRole()) ? inputGradients : outputs, index,
               std::move(tensor));
  }
}

std::vector<Datum> LayerRun::collectArguments(FunctionOp function) {
  std::map<Memory, size_t> counts;
  std::vector<Datum> args;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    PlaceAttr place = function.getArgPlace(i);
    args.push_back(argument(function, place, counts[place.getMemory()]++));
  }
  return args;
}

void LayerRun::setResults(FunctionOp function, std::vector<Datum> results) {
  std::map<Memory, size_t> counts;
  for (auto [i, datum] : llvm::enumerate(results)) {
    PlaceAttr place = function.getResultPlace(i);
    setResult(function, place, counts[place.getMemory()]++, std::move(datum));
  }
}

LogicalResult LayerRun::run(FunctionOp function, const Context &context) {
  FailureOr<std::vector<Datum>> results =
      evaluateFunction(function, collectArguments(function), context);
  if (failed(results))
    return failure();
  setResults(function, std::move(*results));
  return success();
}

FunctionOp reference::findFunction(ModuleOp module, LayerOp layer, Role role) {
  for (FunctionOp function : module.getOps<FunctionOp>())
    if (function.getLayer() == layer.getSymName() && function.getRole() == role)
      return function;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Random runs
//===----------------------------------------------------------------------===//

static Tensor randomTensor(ArrayRef<int64_t> shape, int64_t tokens,
                           uint64_t seed) {
  std::vector<int64_t> sizes;
  for (int64_t size : shape)
    sizes.push_back(ShapedType::isDynamic(size) ? tokens : size);
  Tensor tensor(sizes);
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = 2 * uniform(seed, i) - 1;
  return tensor;
}

/// Ids below this are rows of every table that they choose from.
static int64_t smallestTable(LayerOp layer) {
  int64_t rows = std::numeric_limits<int64_t>::max();
  layer.walk([&](EmbeddingOp op) {
    rows = std::min(rows, op.getTable().getType().getDimSize(0));
  });
  layer.walk([&](LinearCrossEntropyOp op) {
    rows = std::min(rows, op.getWeight().getType().getDimSize(0));
  });
  return rows;
}

static Ids randomIds(LayerOp layer, bool targets, int64_t tokens,
                     uint64_t seed) {
  int64_t ignore = -1, rows = smallestTable(layer);
  layer.walk([&](LinearCrossEntropyOp op) { ignore = op.getIgnoreIndex(); });
  Ids ids;
  for (int64_t t = 0; t < tokens; ++t) {
    double choice = uniform(seed, static_cast<uint64_t>(t));
    bool ignored = targets && t % 5 == 3;
    ids.push_back(static_cast<int32_t>(
        ignored ? ignore
                : static_cast<int64_t>(choice * static_cast<double>(rows))));
  }
  return ids;
}

LayerRun reference::makeRandomRun(LayerOp layer, const Segments &segments,
                                  uint64_t seed) {
  LayerRun run;
  run.segments = segments;
  int64_t tokens = segments.tokens();
  for (BlockArgument argument : layer.getParameterArguments()) {
    auto shape = cast<RankedTensorType>(argument.getType()).getShape();
    run.parameters.push_back(randomTensor(shape, tokens, ++seed));
    run.accumulators.push_back(randomTensor(shape, tokens, ++seed));
  }
  for (BlockArgument argument : layer.getInputArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    if (type.getElementType().isInteger())
      run.inputs.push_back(
          randomIds(layer, /*targets=*/!run.inputs.empty(), tokens, ++seed));
    else
      run.inputs.push_back(randomTensor(type.getShape(), tokens, ++seed));
  }
  auto result = cast<RankedTensorType>(layer.getResultTypes().front());
  run.outputGradients.push_back(
      randomTensor(result.getShape(), tokens, ++seed));
  return run;
}

double reference::distance(const Tensor &a, const Tensor &b, double floor) {
  if (a.shape != b.shape)
    return std::numeric_limits<double>::infinity();
  double largest = floor, difference = 0.0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    largest = std::max(largest, std::abs(b.values[i]));
    double d = std::abs(a.values[i] - b.values[i]);
    // Poisoned memory is not a number: no bound may let it pass.
    if (std::isnan(d))
      return std::numeric_limits<double>::infinity();
    difference = std::max(difference, d);
  }
  return difference / largest;
}
