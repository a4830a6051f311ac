//===- ConvertComputeType.cpp - Implements dyna-convert-compute-type ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/differentiate/Passes.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_CONVERTCOMPUTETYPE
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

class ConvertComputeType
    : public mlir::dyna::impl::ConvertComputeTypeBase<ConvertComputeType> {
public:
  using ConvertComputeTypeBase::ConvertComputeTypeBase;
  void runOnOperation() override;

private:
  LogicalResult parseType();
  void convertLayer(LayerOp layer);

  /// Returns `old` with the compute type as element type, if it is a tensor of
  /// floats.
  Type convert(Type old) const;
  /// Converts the type of a layer's result. The type of a loss stays.
  Type convertResult(Type old) const;

  Type element;
};

} // namespace

LogicalResult ConvertComputeType::parseType() {
  MLIRContext *context = &getContext();
  if (type == "f64")
    element = Float64Type::get(context);
  else if (type == "f32")
    element = Float32Type::get(context);
  else if (type == "bf16")
    element = BFloat16Type::get(context);
  else
    return getOperation().emitError(
               "expects the compute type f64, f32 or bf16, but got '")
           << type << "'";
  return success();
}

Type ConvertComputeType::convert(Type old) const {
  auto tensor = dyn_cast<RankedTensorType>(old);
  return tensor && isa<FloatType>(tensor.getElementType())
             ? tensor.clone(element)
             : old;
}

Type ConvertComputeType::convertResult(Type old) const {
  return isLoss(old) ? old : convert(old);
}

void ConvertComputeType::convertLayer(LayerOp layer) {
  for (BlockArgument argument : layer.getBody().getArguments())
    argument.setType(convert(argument.getType()));
  layer.setFunctionType(FunctionType::get(
      &getContext(), layer.getBody().getArgumentTypes(),
      llvm::map_to_vector(layer.getResultTypes(),
                          [&](Type old) { return convertResult(old); })));

  layer.getBody().walk([&](Operation *op) {
    if (isa<LinearCrossEntropyOp>(op))
      return;
    for (Value result : op->getResults())
      result.setType(convert(result.getType()));
    // Statistics have the type in which sums are kept.
    if (auto attention = dyn_cast<AttentionOp>(op))
      attention.getLse().setType(
          attention.getLse().getType().clone(getAccumulatorType(element)));
  });
}

void ConvertComputeType::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(parseType()))
    return signalPassFailure();
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    function.emitOpError("is there already, in its own compute type; convert "
                         "before differentiating");
    return signalPassFailure();
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    parameter.setType(convert(parameter.getType()));
  for (LayerOp layer : module.getOps<LayerOp>())
    convertLayer(layer);
  for (ModelOp model : module.getOps<ModelOp>())
    for (CallOp call : model.getBody().getOps<CallOp>())
      for (Value result : call.getResults())
        result.setType(convertResult(result.getType()));
}
