//===- Elements.cpp - Lowers sweeps over parameters -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/layers/Elements.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/abi/Abi.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::layers;

FailureOr<Elements> mlir::dyna::layers::elementsOf(FunctionLowering &function,
                                                   Operation *op,
                                                   ArrayRef<Value> tensors) {
  CodeBuilder &code = function.getCode();
  Elements elements;
  Value rows;
  for (Value tensor : tensors) {
    PlaceAttr place = function.placeOf(tensor);
    if (!place.isArrayEntry())
      return op->emitOpError("expects its tensors in arrays of the signature, "
                             "which say how many rows are given, but one lies "
                             "in ")
             << place;
    elements.pointers.push_back(function.address(place));
    Value given = function.rowsOf(place);
    if (rows) {
      Value isSame = code.equal(given, rows);
      elements.isValid = code.bitAnd(elements.isValid, isSame);
      continue;
    }
    rows = given;
    int64_t all = typeOf(tensor).getDimSize(0);
    elements.isValid = code.lessUnsigned(rows, code.i64(all + 1));
  }
  RankedTensorType type = typeOf(tensors.front());
  int64_t rowElements = type.getNumElements() / type.getDimSize(0);
  elements.count = code.mul(rows, code.i64(rowElements));
  return elements;
}

Value mlir::dyna::layers::isAbsent(CodeBuilder &code,
                                   const Elements &elements) {
  Value isAbsent = code.equal(elements.count, code.i64(0));
  for (Value pointer : elements.pointers)
    isAbsent = code.bitOr(isAbsent, code.isNull(pointer));
  return isAbsent;
}

void mlir::dyna::layers::unlessAbsent(FunctionLowering &function,
                                      const Elements &elements,
                                      function_ref<Value()> launch) {
  CodeBuilder &code = function.getCode();
  auto choose = [&](Value condition, function_ref<Value()> yes,
                    function_ref<Value()> no) -> Value {
    auto branch = scf::IfOp::create(code, TypeRange(code.i32Type()), condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(code, yes());
    code.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(code, no());
    return branch.getResult(0);
  };
  function.check(choose(
      isAbsent(code, elements), [&] { return code.i32(DYNA_OK); },
      [&] {
        return choose(elements.isValid, launch,
                      [&] { return code.i32(DYNA_INVALID_ARGUMENT); });
      }));
}

AdamwScalars mlir::dyna::layers::emitAdamwScalars(FunctionLowering &function,
                                                  bool decay) {
  CodeBuilder &code = function.getCode();
  auto field = [&](size_t offset, Type type = Type()) {
    return code.loadField(function.getContext(),
                          offsetof(dyna_context, optimizer) + offset,
                          type ? type : code.f64Type());
  };
  Value one = code.constant(code.f64Type(), 1.0);
  AdamwScalars scalars;
  Value rate = field(offsetof(dyna_optimizer, learning_rate));
  scalars.beta1 = field(offsetof(dyna_optimizer, beta1));
  scalars.rest1 = code.sub(one, scalars.beta1);
  scalars.beta2 = field(offsetof(dyna_optimizer, beta2));
  scalars.rest2 = code.sub(one, scalars.beta2);
  scalars.epsilon = field(offsetof(dyna_optimizer, epsilon));
  scalars.decay = one;
  if (decay)
    scalars.decay = code.sub(
        one, code.mul(rate, field(offsetof(dyna_optimizer, weight_decay))));
  scalars.stepSize =
      code.div(rate, field(offsetof(dyna_optimizer, correction1)));
  scalars.inverseRoot2 =
      code.div(one, code.sqrt(field(offsetof(dyna_optimizer, correction2))));
  scalars.gradientScale =
      field(offsetof(dyna_optimizer, gradient_scale), code.pointerType());
  return scalars;
}

AdamwState mlir::dyna::layers::emitAdamwStep(CodeBuilder &code,
                                             const AdamwScalars &scalars,
                                             AdamwState state, Value g) {
  auto [p, m, v] = state;
  int64_t width = cast<VectorType>(p.getType()).getNumElements();
  auto splat = [&](Value scalar) { return code.splat(scalar, width); };
  g = code.mul(g, splat(scalars.gradientScale));
  m = code.fma(m, splat(scalars.beta1), code.mul(g, splat(scalars.rest1)));
  v = code.fma(v, splat(scalars.beta2),
               code.mul(code.mul(g, g), splat(scalars.rest2)));
  Value root = code.fma(code.sqrt(v), splat(scalars.inverseRoot2),
                        splat(scalars.epsilon));
  Value step = code.div(code.mul(m, splat(scalars.stepSize)), root);
  p = code.sub(code.mul(p, splat(scalars.decay)), step);
  return {p, m, v};
}

CastOp mlir::dyna::layers::castOf(AdamwOp op) {
  for (Operation *user : op.getNewMaster().getUsers())
    if (auto cast = dyn_cast<CastOp>(user))
      if (cast->getBlock() == op->getBlock())
        return cast;
  return CastOp();
}

bool mlir::dyna::layers::isFusedCast(CastOp op) {
  auto adamw = op.getX().getDefiningOp<AdamwOp>();
  return adamw && castOf(adamw) == op;
}
