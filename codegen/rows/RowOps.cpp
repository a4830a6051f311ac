//===- RowOps.cpp - Emits the arithmetic of row-wise ops ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/RowOps.h"

#include "codegen/rows/VectorMath.h"
#include "runtime/abi/Random.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::rows;

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

static Value emit(RowPiece &row, BiasOp op) {
  return row.code().add(row.get(op.getX()), row.getVector(op.getBias()));
}

static Value emit(RowPiece &row, AddOp op) {
  return row.code().add(row.get(op.getLhs()), row.get(op.getRhs()));
}

static Value emit(RowPiece &row, MulOp op) {
  return row.code().mul(row.get(op.getLhs()), row.get(op.getRhs()));
}

static Value emit(RowPiece &row, ScaleOp op) {
  return row.code().mul(row.get(op.getX()), op.getFactor().convertToDouble());
}

static Value emit(RowPiece &row, PositionsOp op) { return row.getTableRow(op); }

/// Emits x if it is positive or NaN, else 0.
static Value emit(RowPiece &row, ReluOp op) {
  CodeBuilder &code = row.code();
  Value x = row.get(op.getX()), zero = code.like(x, 0.0);
  return code.select(code.less(x, zero), zero, x);
}

static Value emit(RowPiece &row, ReluGradOp op) {
  CodeBuilder &code = row.code();
  Value dy = row.get(op.getDy()), zero = code.like(dy, 0.0);
  return code.select(code.less(zero, row.get(op.getX())), dy, zero);
}

static Value emit(RowPiece &row, SiluOp op) {
  Value x = row.get(op.getX());
  return row.code().mul(x, emitSigmoid(row.code(), x));
}

/// Emits dy s (1 + x (1 - s)) with s = sigmoid(x).
static Value emit(RowPiece &row, SiluGradOp op) {
  CodeBuilder &code = row.code();
  Value x = row.get(op.getX()), s = emitSigmoid(code, x);
  Value slope = code.fma(x, code.sub(code.like(s, 1.0), s), 1.0);
  return code.mul(row.get(op.getDy()), code.mul(s, slope));
}

// (1 + tanh u) / 2 = sigmoid(2 u) does not cancel for very negative x.
static constexpr double geluScale = 1.5957691216057308; // 2 sqrt(2 / pi)
static constexpr double geluCubic = 0.044715;

/// Emits sigmoid(2 u) for u = sqrt(2 / pi) (x + 0.044715 x^3).
static Value geluSigmoid(CodeBuilder &code, Value x, Value square) {
  constexpr double scale = -M_LOG2E * geluScale;
  Value factor = code.fma(square, scale * geluCubic, scale);
  return emitLogistic2(code, code.mul(x, factor));
}

static Value emit(RowPiece &row, GeluOp op) {
  CodeBuilder &code = row.code();
  Value x = row.get(op.getX());
  if (op.getForm() == GeluForm::Erf)
    return code.mul(x, emitNormalCdf(code, x));
  return code.mul(x, geluSigmoid(code, x, code.mul(x, x)));
}

static Value emit(RowPiece &row, GeluGradOp op) {
  CodeBuilder &code = row.code();
  Value x = row.get(op.getX()), square = code.mul(x, x), slope;
  if (op.getForm() == GeluForm::Erf) {
    // Phi(x) + x phi(x).
    Value density = code.mul(emitExp(code, code.mul(square, -0.5)),
                             0.5 * M_2_SQRTPI * M_SQRT1_2);
    slope = code.fma(x, density, emitNormalCdf(code, x));
  } else {
    // s + x s (1 - s) (2 u)'.
    Value s = geluSigmoid(code, x, square);
    Value inner = code.fma(square, 3.0 * geluScale * geluCubic, geluScale);
    Value rest = code.sub(code.like(s, 1.0), s);
    slope = code.fma(code.mul(x, s), code.mul(rest, inner), s);
  }
  return code.mul(row.get(op.getDy()), slope);
}

static Value emit(RowPiece &row, DropoutOp op) {
  CodeBuilder &code = row.code();
  Value x = row.get(op.getX());
  double probability = op.getProbability().convertToDouble();
  Value feature = row.piece().column;
  if (Value first = row.getFirstFeature(op))
    feature = code.add(first, feature);
  Value bits = emitRandomElements(code, row.getRandomKey(op), feature,
                                  row.piece().width);
  int64_t threshold = dyna_dropout_threshold(probability);
  Value dropped =
      code.lessUnsigned(bits, code.constant(bits.getType(), threshold));
  return code.select(dropped, code.like(x, 0.0),
                     code.mul(x, 1.0 / (1.0 - probability)));
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

template <typename Op> static double epsilonOf(Op op) {
  return op.getEpsilon().convertToDouble();
}

/// Emits (x - mean) / sqrt(variance + epsilon).
static Value normalized(RowPiece &row, Value x, double epsilon) {
  CodeBuilder &code = row.code();
  Value centered = code.sub(row.get(x), row.get({Statistic::Mean, x}));
  return code.mul(centered, row.get({Statistic::Deviation, x, epsilon}));
}

static Value emit(RowPiece &row, LayerNormOp op) {
  return row.code().fma(normalized(row, op.getX(), epsilonOf(op)),
                        row.getVector(op.getWeight()),
                        row.getVector(op.getBias()));
}

static Value emit(RowPiece &row, RmsNormOp op) {
  CodeBuilder &code = row.code();
  Value scale = row.get({Statistic::RootMean, op.getX(), epsilonOf(op)});
  return code.mul(code.mul(row.get(op.getX()), scale),
                  row.getVector(op.getWeight()));
}

/// Emits r (w dy - mean(w dy) - (x - mean) r^2 mean(w dy (x - mean))).
static Value emit(RowPiece &row, LayerNormGradInputOp op) {
  CodeBuilder &code = row.code();
  Value x = op.getX(), weight = op.getWeight(), dy = op.getDy();
  Value r = row.get({Statistic::Deviation, x, epsilonOf(op)});
  Value centered = code.sub(row.get(x), row.get({Statistic::Mean, x}));
  Value dot = row.get({Statistic::CenteredDot, x, 0.0, weight, dy});
  Value factor = code.mul(code.mul(r, r), dot);
  Value gradient =
      code.sub(code.mul(row.getVector(weight), row.get(dy)),
               row.get({Statistic::Gradient, Value(), 0.0, weight, dy}));
  return code.mul(r, code.fma(code.neg(factor), centered, gradient));
}

/// Emits r (w dy - x r^2 mean(w dy x)).
static Value emit(RowPiece &row, RmsNormGradInputOp op) {
  CodeBuilder &code = row.code();
  Value x = op.getX(), weight = op.getWeight(), dy = op.getDy();
  Value r = row.get({Statistic::RootMean, x, epsilonOf(op)});
  Value dot = row.get({Statistic::Dot, x, 0.0, weight, dy});
  Value factor = code.mul(code.mul(r, r), dot);
  Value gradient = code.mul(row.getVector(weight), row.get(dy));
  return code.mul(r, code.fma(code.neg(factor), row.get(x), gradient));
}

Value mlir::dyna::rows::emitRowOp(RowPiece &row, Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<BiasOp, AddOp, MulOp, ScaleOp, PositionsOp, ReluOp, ReluGradOp,
            SiluOp, SiluGradOp, GeluOp, GeluGradOp, DropoutOp, LayerNormOp,
            RmsNormOp, LayerNormGradInputOp, RmsNormGradInputOp>(
          [&](auto op) { return emit(row, op); });
}

//===----------------------------------------------------------------------===//
// Sums over rows and over columns
//===----------------------------------------------------------------------===//

Value mlir::dyna::rows::emitContribution(RowPiece &row, OpResult result) {
  CodeBuilder &code = row.code();
  return llvm::TypeSwitch<Operation *, Value>(result.getOwner())
      .Case([&](BiasGradOp op) { return row.get(op.getDy()); })
      .Case([&](LayerNormGradWeightOp op) -> Value {
        Value dy = row.get(op.getDy());
        if (result == op.getBiasResult())
          return dy;
        return code.mul(dy, normalized(row, op.getX(), epsilonOf(op)));
      })
      .Case([&](RmsNormGradWeightOp op) {
        Value r = row.get({Statistic::RootMean, op.getX(), epsilonOf(op)});
        return code.mul(row.get(op.getDy()), code.mul(row.get(op.getX()), r));
      });
}

Value mlir::dyna::rows::emitTerm(RowPiece &row, const Statistic &statistic) {
  CodeBuilder &code = row.code();
  auto weighted = [&] {
    return code.mul(row.getVector(statistic.weight), row.get(statistic.dy));
  };
  auto centered = [&] {
    return code.sub(row.get(statistic.x),
                    row.get({Statistic::Mean, statistic.x}));
  };
  switch (statistic.kind) {
  case Statistic::Mean:
    return row.get(statistic.x);
  case Statistic::Deviation: {
    Value difference = centered();
    return code.mul(difference, difference);
  }
  case Statistic::RootMean: {
    Value x = row.get(statistic.x);
    return code.mul(x, x);
  }
  case Statistic::Gradient:
    return weighted();
  case Statistic::CenteredDot:
    return code.mul(weighted(), centered());
  case Statistic::Dot:
    return code.mul(weighted(), row.get(statistic.x));
  }
  llvm_unreachable("unknown statistic");
}

Value mlir::dyna::rows::emitStatistic(CodeBuilder &code,
                                      const Statistic &statistic, Value sum,
                                      int64_t width) {
  Value mean = code.mul(sum, 1.0 / static_cast<double>(width));
  if (statistic.kind != Statistic::Deviation &&
      statistic.kind != Statistic::RootMean)
    return mean;
  Value root = code.sqrt(code.add(mean, code.like(mean, statistic.epsilon)));
  return code.div(code.like(mean, 1.0), root);
}
