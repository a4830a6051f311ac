//===- Evaluator.cpp - Interprets the ops of layers and layer functions ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Evaluator.h"

#include "test/reference/Formulas.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

RotaryScaling mlir::dyna::reference::scalingOf(RotaryOp op) {
  RotaryScaling scaling;
  RopeScalingAttr given = op.getScalingAttr();
  if (!given)
    return scaling;
  scaling.factor = given.getFactor().getValueAsDouble();
  scaling.positions = static_cast<double>(given.getOriginalPositions());
  if (given.getLowFreqFactor()) {
    scaling.low = given.getLowFreqFactor().getValueAsDouble();
    scaling.high = given.getHighFreqFactor().getValueAsDouble();
  }
  return scaling;
}

namespace {
/// The values of one op: operands in, results out.
class Frame {
public:
  Frame(Environment &environment, const Context &context)
      : environment(environment), context(context) {}

  const Tensor &tensor(Value value) const { return get<Tensor>(value); }
  const Ids &ids(Value value) const { return get<Ids>(value); }
  const Segments &segments(Value value) const { return get<Segments>(value); }
  void set(Value result, Datum datum) {
    environment[result] = std::move(datum);
  }
  const Context &getContext() const { return context; }
  Environment &getEnvironment() { return environment; }

private:
  template <typename T> const T &get(Value value) const {
    auto it = environment.find(value);
    assert(it != environment.end() && "operands are checked before");
    return std::get<T>(it->second);
  }

  Environment &environment;
  const Context &context;
};
} // namespace

static double number(const llvm::APFloat &value) {
  return value.convertToDouble();
}

static Tensor scalar(double value) { return Tensor({1}, value); }

template <typename AttentionLike>
static AttentionShape shapeOf(AttentionLike op) {
  return {static_cast<int64_t>(op.getHeads()),
          static_cast<int64_t>(op.getKvHeads()), number(op.getScale()),
          op.getCausal()};
}

//===----------------------------------------------------------------------===//
// Model ops
//===----------------------------------------------------------------------===//

static void run(EmbeddingOp op, Frame &f) {
  f.set(op.getResult(), embedding(f.ids(op.getIds()), f.tensor(op.getTable())));
}
static void run(PositionsOp op, Frame &f) {
  f.set(op.getResult(),
        positions(f.tensor(op.getTable()), f.segments(op.getSegments())));
}
static void run(LinearOp op, Frame &f) {
  const Tensor *b = op.getBias() ? &f.tensor(op.getBias()) : nullptr;
  f.set(op.getResult(),
        linear(f.tensor(op.getX()), f.tensor(op.getWeight()), b));
}
static void run(BiasOp op, Frame &f) {
  f.set(op.getResult(), bias(f.tensor(op.getX()), f.tensor(op.getBias())));
}
static void run(AddOp op, Frame &f) {
  f.set(op.getResult(), add(f.tensor(op.getLhs()), f.tensor(op.getRhs())));
}
static void run(MulOp op, Frame &f) {
  f.set(op.getResult(), mul(f.tensor(op.getLhs()), f.tensor(op.getRhs())));
}
static void run(LayerNormOp op, Frame &f) {
  f.set(op.getResult(),
        layerNorm(f.tensor(op.getX()), f.tensor(op.getWeight()),
                  f.tensor(op.getBias()), number(op.getEpsilon())));
}
static void run(RmsNormOp op, Frame &f) {
  f.set(op.getResult(), rmsNorm(f.tensor(op.getX()), f.tensor(op.getWeight()),
                                number(op.getEpsilon())));
}
static void run(RotaryOp op, Frame &f) {
  f.set(op.getResult(),
        rotary(f.tensor(op.getX()), f.segments(op.getSegments()),
               static_cast<int64_t>(op.getHeadDim()), number(op.getTheta()),
               op.getInverse(), scalingOf(op)));
}
static void run(GeluOp op, Frame &f) {
  f.set(op.getResult(),
        gelu(f.tensor(op.getX()), op.getForm() == GeluForm::Tanh));
}
static void run(SiluOp op, Frame &f) {
  f.set(op.getResult(), silu(f.tensor(op.getX())));
}
static void run(ReluOp op, Frame &f) {
  f.set(op.getResult(), relu(f.tensor(op.getX())));
}
static void run(ScaleOp op, Frame &f) {
  Tensor result = f.tensor(op.getX());
  for (double &value : result.values)
    value *= number(op.getFactor());
  f.set(op.getResult(), std::move(result));
}
static void run(DropoutOp op, Frame &f) {
  f.set(op.getResult(),
        dropout(f.tensor(op.getX()), f.segments(op.getSegments()),
                number(op.getProbability()),
                static_cast<uint64_t>(op.getInstance()), f.getContext()));
}
static void run(AttentionOp op, Frame &f) {
  AttentionResult result = attention(
      f.tensor(op.getQuery()), f.tensor(op.getKey()), f.tensor(op.getValue()),
      f.segments(op.getSegments()), shapeOf(op));
  f.set(op.getResult(), std::move(result.result));
  f.set(op.getLse(), std::move(result.lse));
}
static void run(LinearCrossEntropyOp op, Frame &f) {
  f.set(op.getLoss(), scalar(linearCrossEntropy(
                          f.tensor(op.getX()), f.tensor(op.getWeight()),
                          f.ids(op.getTargets()), op.getIgnoreIndex())));
}

//===----------------------------------------------------------------------===//
// Gradient ops
//===----------------------------------------------------------------------===//

static void run(EmbeddingGradOp op, Frame &f) {
  Tensor sum = f.tensor(op.getAccumulator());
  addEmbeddingGrad(sum, f.tensor(op.getDy()), f.ids(op.getIds()));
  f.set(op.getResult(), std::move(sum));
}
static void run(PositionsGradOp op, Frame &f) {
  Tensor sum = f.tensor(op.getAccumulator());
  addPositionsGrad(sum, f.tensor(op.getDy()), f.segments(op.getSegments()));
  f.set(op.getResult(), std::move(sum));
}
static void run(LinearGradInputOp op, Frame &f) {
  Tensor dx = linearGradInput(f.tensor(op.getDy()), f.tensor(op.getWeight()));
  if (op.getAccumulator())
    dx = add(dx, f.tensor(op.getAccumulator()));
  f.set(op.getResult(), std::move(dx));
}
static void run(LinearGradWeightOp op, Frame &f) {
  Tensor sum = f.tensor(op.getAccumulator());
  addLinearGradWeight(sum, f.tensor(op.getDy()), f.tensor(op.getX()));
  f.set(op.getResult(), std::move(sum));
}
static void run(BiasGradOp op, Frame &f) {
  Tensor sum = f.tensor(op.getAccumulator());
  addBiasGrad(sum, f.tensor(op.getDy()));
  f.set(op.getResult(), std::move(sum));
}
static void run(AttentionGradOp op, Frame &f) {
  AttentionResult forward{f.tensor(op.getResult()), f.tensor(op.getLse())};
  AttentionGradients gradients =
      attentionGrad(f.tensor(op.getQuery()), f.tensor(op.getKey()),
                    f.tensor(op.getValue()), forward, f.tensor(op.getDResult()),
                    f.segments(op.getSegments()), shapeOf(op));
  f.set(op.getDQuery(), std::move(gradients.query));
  f.set(op.getDKey(), std::move(gradients.key));
  f.set(op.getDValue(), std::move(gradients.value));
}
static void run(GeluGradOp op, Frame &f) {
  f.set(op.getResult(), geluGrad(f.tensor(op.getX()), f.tensor(op.getDy()),
                                 op.getForm() == GeluForm::Tanh));
}
static void run(SiluGradOp op, Frame &f) {
  f.set(op.getResult(), siluGrad(f.tensor(op.getX()), f.tensor(op.getDy())));
}
static void run(ReluGradOp op, Frame &f) {
  f.set(op.getResult(), reluGrad(f.tensor(op.getX()), f.tensor(op.getDy())));
}
static void run(LayerNormGradInputOp op, Frame &f) {
  f.set(op.getResult(),
        layerNormGradInput(f.tensor(op.getX()), f.tensor(op.getWeight()),
                           f.tensor(op.getDy()), number(op.getEpsilon())));
}
static void run(LayerNormGradWeightOp op, Frame &f) {
  Tensor weight = f.tensor(op.getWeightAccumulator());
  Tensor bias = f.tensor(op.getBiasAccumulator());
  addLayerNormGradWeight(weight, bias, f.tensor(op.getX()),
                         f.tensor(op.getDy()), number(op.getEpsilon()));
  f.set(op.getWeightResult(), std::move(weight));
  f.set(op.getBiasResult(), std::move(bias));
}
static void run(RmsNormGradInputOp op, Frame &f) {
  f.set(op.getResult(),
        rmsNormGradInput(f.tensor(op.getX()), f.tensor(op.getWeight()),
                         f.tensor(op.getDy()), number(op.getEpsilon())));
}
static void run(RmsNormGradWeightOp op, Frame &f) {
  Tensor weight = f.tensor(op.getAccumulator());
  addRmsNormGradWeight(weight, f.tensor(op.getX()), f.tensor(op.getDy()),
                       number(op.getEpsilon()));
  f.set(op.getResult(), std::move(weight));
}
static void run(LinearCrossEntropyTrainOp op, Frame &f) {
  const Tensor &x = f.tensor(op.getX()), &weight = f.tensor(op.getWeight());
  const Ids &targets = f.ids(op.getTargets());
  int64_t ignore = op.getIgnoreIndex();
  Tensor sum = f.tensor(op.getAccumulator());
  double loss = linearCrossEntropy(x, weight, targets, ignore);
  Tensor dx = linearCrossEntropyGrad(sum, x, weight, targets, ignore,
                                     f.getContext().inverseTargets);
  f.set(op.getLoss(), scalar(loss));
  f.set(op.getDX(), std::move(dx));
  f.set(op.getResult(), std::move(sum));
}
static void run(LinearCrossEntropyInputOp op, Frame &f) {
  const Tensor &x = f.tensor(op.getX()), &weight = f.tensor(op.getWeight());
  const Ids &targets = f.ids(op.getTargets());
  int64_t ignore = op.getIgnoreIndex();
  Tensor unused(weight.shape);
  Tensor dx = linearCrossEntropyGrad(unused, x, weight, targets, ignore,
                                     f.getContext().inverseTargets);
  f.set(op.getLoss(), scalar(linearCrossEntropy(x, weight, targets, ignore)));
  f.set(op.getDX(), std::move(dx));
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

static void run(AdamwOp op, Frame &f) {
  Tensor master = f.tensor(op.getMaster()), g = f.tensor(op.getGradient());
  Tensor m = f.tensor(op.getM()), v = f.tensor(op.getV());
  adamw(master, g, m, v, op.getDecay(), f.getContext().optimizer);
  f.set(op.getNewMaster(), std::move(master));
  f.set(op.getNewGradient(), std::move(g));
  f.set(op.getNewM(), std::move(m));
  f.set(op.getNewV(), std::move(v));
}
static void run(SumSquaresOp op, Frame &f) {
  f.set(op.getResult(), scalar(f.tensor(op.getAccumulator())[0] +
                               sumSquares(f.tensor(op.getX()))));
}
static void run(CastOp op, Frame &f) {
  Tensor result = f.tensor(op.getX());
  roundTo(op.getResult().getType().getElementType(), result);
  f.set(op.getResult(), std::move(result));
}

static LogicalResult runRows(RowsOp rows, Frame &f) {
  for (Operation &op : rows.getBody().front().without_terminator())
    if (failed(evaluateOperation(&op, f.getEnvironment(), f.getContext())))
      return failure();
  Operation *yield = rows.getBody().front().getTerminator();
  for (auto [result, value] :
       llvm::zip_equal(rows.getResults(), yield->getOperands())) {
    Datum datum = f.getEnvironment().at(value);
    f.set(result, std::move(datum));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult runOne(Op op, Frame &frame) {
  run(op, frame);
  return success();
}

template <typename... Ops>
static LogicalResult dispatch(Operation *op, Frame &frame) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<Ops...>([&](auto known) { return runOne(known, frame); })
      .Case([&](RowsOp rows) { return runRows(rows, frame); })
      .Default([](Operation *unknown) {
        return unknown->emitOpError(
            "is not known to the reference evaluator; give it a formula in "
            "test/reference");
      });
}

LogicalResult reference::evaluateOperation(Operation *op,
                                           Environment &environment,
                                           const Context &context) {
  for (Value operand : op->getOperands())
    if (!environment.count(operand))
      return op->emitOpError("has an operand without a value");
  if (Attribute shard = op->getAttr("shard"))
    return op->emitOpError("works on one rank's part of a table, ")
           << shard
           << "; the reference evaluator has no other ranks: give it the layer "
              "as it was before it was distributed";
  Frame frame(environment, context);
  return dispatch<EmbeddingOp, PositionsOp, LinearOp, BiasOp, AddOp, MulOp,
                  LayerNormOp, RmsNormOp, RotaryOp, GeluOp, SiluOp, ReluOp,
                  DropoutOp, ScaleOp, AttentionOp, LinearCrossEntropyOp,
                  EmbeddingGradOp, PositionsGradOp, LinearGradInputOp,
                  LinearGradWeightOp, BiasGradOp, AttentionGradOp, GeluGradOp,
                  SiluGradOp, ReluGradOp, LayerNormGradInputOp,
                  LayerNormGradWeightOp, RmsNormGradInputOp,
                  RmsNormGradWeightOp, LinearCrossEntropyTrainOp,
                  LinearCrossEntropyInputOp, AdamwOp, SumSquaresOp, CastOp>(
      op, frame);
}

/// Whether `datum` can stand for a value of `type`.
static bool fits(Type type, const Datum &datum) {
  if (isa<SegmentsType>(type))
    return std::holds_alternative<Segments>(datum);
  auto tensorType = dyn_cast<RankedTensorType>(type);
  if (!tensorType)
    return false;
  if (tensorType.getElementType().isInteger(32))
    return std::holds_alternative<Ids>(datum);
  const Tensor *tensor = std::get_if<Tensor>(&datum);
  if (!tensor ||
      static_cast<int64_t>(tensor->shape.size()) != tensorType.getRank())
    return false;
  for (auto [given, wanted] : llvm::zip(tensor->shape, tensorType.getShape()))
    if (!ShapedType::isDynamic(wanted) && given != wanted)
      return false;
  return tensor->values.size() == Tensor::countElements(tensor->shape);
}

/// Runs the one block of `owner` and returns what its terminator gives back.
static FailureOr<std::vector<Datum>>
evaluateBody(Operation *owner, Block &body, const std::vector<Datum> &args,
             Environment &environment, const Context &context) {
  if (args.size() != body.getNumArguments())
    return owner->emitOpError("takes ")
           << body.getNumArguments() << " arguments, but got " << args.size();
  for (auto [argument, datum] : llvm::zip(body.getArguments(), args)) {
    if (!fits(argument.getType(), datum))
      return owner->emitOpError("got a value that does not fit argument ")
             << argument.getArgNumber() << " of type " << argument.getType();
    environment[argument] = datum;
  }
  for (Operation &op : body.without_terminator())
    if (failed(evaluateOperation(&op, environment, context)))
      return failure();
  std::vector<Datum> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(environment.at(value));
  return results;
}

FailureOr<std::vector<Datum>>
reference::evaluateFunction(FunctionOp function, const std::vector<Datum> &args,
                            const Context &context) {
  Environment environment;
  return evaluateBody(function, function.getBody().front(), args, environment,
                      context);
}

FailureOr<std::vector<Datum>>
reference::evaluateResults(LayerOp layer, const std::vector<Datum> &args,
                           const Context &context, Environment *environment) {
  Environment own;
  return evaluateBody(layer, layer.getBody().front(), args,
                      environment ? *environment : own, context);
}

FailureOr<Datum> reference::evaluateLayer(LayerOp layer,
                                          const std::vector<Datum> &args,
                                          const Context &context,
                                          Environment *environment) {
  FailureOr<std::vector<Datum>> results =
      evaluateResults(layer, args, context, environment);
  if (failed(results))
    return failure();
  return results->front();
}
