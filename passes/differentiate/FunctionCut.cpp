//===- FunctionCut.cpp - Cuts one function out of a block -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/FunctionCut.h"

using namespace mlir;
using namespace mlir::dyna;

std::string mlir::dyna::getFunctionName(LayerOp layer, Role role) {
  return (layer.getSymName() + "." + stringifyRole(role)).str();
}

void FunctionCut::take(Value value, Memory memory, int64_t index) {
  arguments.push_back(value);
  argumentPlaces.push_back(PlaceAttr::get(layer.getContext(), memory, index));
}

void FunctionCut::give(Value value, Memory memory, int64_t index) {
  results.push_back(value);
  resultPlaces.push_back(PlaceAttr::get(layer.getContext(), memory, index));
}

void FunctionCut::takeTier(ArrayRef<Value> values, Memory memory) {
  for (Value value : values)
    take(value, memory);
}

void FunctionCut::giveTier(ArrayRef<Value> values, Memory memory) {
  for (Value value : values)
    give(value, memory);
}

void FunctionCut::takeArray(ValueRange values, Memory memory) {
  for (auto [index, value] : llvm::enumerate(values))
    take(value, memory, index);
}

void FunctionCut::giveArray(ValueRange values, Memory memory) {
  for (auto [index, value] : llvm::enumerate(values))
    give(value, memory, index);
}

LogicalResult FunctionCut::reportMissing(const BlockSlice &slice) {
  if (slice.missing.empty())
    return success();
  auto [argument, user] = slice.missing.front();
  InFlightDiagnostic diagnostic =
      emitError(user ? user->getLoc() : layer.getLoc());
  if (user)
    diagnostic << "'" << user->getName() << "'";
  else
    diagnostic << "layer @" << layer.getSymName();
  return diagnostic << " needs input "
                    << argument.getArgNumber() - layer.getNumParameters()
                    << " of the layer in role '" << stringifyRole(role)
                    << "', but only its first input and its segments are kept "
                       "after forward";
}

FunctionOp FunctionCut::createFunction(OpBuilder &builder) {
  auto function = FunctionOp::create(
      builder, layer.getLoc(), getFunctionName(layer, role), layer.getSymName(),
      role,
      builder.getFunctionType(ValueRange(arguments).getTypes(),
                              ValueRange(results).getTypes()),
      builder.getArrayAttr(argumentPlaces), builder.getArrayAttr(resultPlaces));
  Block &body = function.getBody().emplaceBlock();
  for (Value argument : arguments)
    body.addArgument(argument.getType(), argument.getLoc());
  return function;
}

void FunctionCut::sinkOps(IRMapping &mapping) {
  for (Value value : sunk) {
    Value copy = mapping.lookupOrNull(value);
    if (!copy || !copy.getDefiningOp() || copy.use_empty())
      continue;
    Operation *first = *copy.user_begin();
    for (Operation *user : copy.getUsers())
      if (user->isBeforeInBlock(first))
        first = user;
    copy.getDefiningOp()->moveBefore(first);
  }
}

LogicalResult FunctionCut::build(OpBuilder &builder) {
  llvm::DenseSet<Value> available(arguments.begin(), arguments.end());
  BlockSlice slice = computeSlice(
      block, results, [&](Value value) { return available.contains(value); });
  if (failed(reportMissing(slice)))
    return failure();

  FunctionOp function = createFunction(builder);
  Block &body = function.getBody().front();
  IRMapping given;
  given.map(arguments, body.getArguments());
  IRMapping mapping = given;
  OpBuilder bodyBuilder = OpBuilder::atBlockEnd(&body);
  for (Operation *op : slice.ops) {
    bodyBuilder.clone(*op, mapping);
    // Some results of an op may be given as arguments, so keep these.
    for (Value result : op->getResults())
      if (available.contains(result))
        mapping.map(result, given.lookup(result));
  }
  ReturnOp::create(bodyBuilder, layer.getLoc(),
                   llvm::map_to_vector(results, [&](Value value) {
                     return mapping.lookup(value);
                   }));
  sinkOps(mapping);
  return success();
}
