//===- ModelEvaluator.cpp - Models and their gradients, naively -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Evaluator.h"
#include "test/reference/Formulas.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

//===----------------------------------------------------------------------===//
// Reverse mode over one layer
//===----------------------------------------------------------------------===//

namespace {
/// Gradients of all values of a layer, with the values that forward gave.
class Tape {
public:
  Tape(const Environment &values, const Context &context)
      : values(values), context(context) {}

  const Tensor &tensor(Value value) const {
    return std::get<Tensor>(values.at(value));
  }
  const Ids &ids(Value value) const { return std::get<Ids>(values.at(value)); }
  const Segments &segments(Value value) const {
    return std::get<Segments>(values.at(value));
  }
  const Context &getContext() const { return context; }

  bool hasGradient(Value value) const { return gradients.count(value); }
  /// The gradient of a value, zero if nothing added to it.
  Tensor &gradient(Value value) {
    auto it = gradients.find(value);
    if (it == gradients.end())
      it = gradients.try_emplace(value, Tensor(tensor(value).shape)).first;
    return it->second;
  }
  void add(Value value, const Tensor &contribution) {
    Tensor &sum = gradient(value);
    sum = reference::add(sum, contribution);
  }

private:
  const Environment &values;
  const Context &context;
  llvm::DenseMap<Value, Tensor> gradients;
};
} // namespace

static double number(const llvm::APFloat &value) {
  return value.convertToDouble();
}

static void reverse(EmbeddingOp op, const Tensor &dy, Tape &tape) {
  addEmbeddingGrad(tape.gradient(op.getTable()), dy, tape.ids(op.getIds()));
}
static void reverse(PositionsOp op, const Tensor &dy, Tape &tape) {
  addPositionsGrad(tape.gradient(op.getTable()), dy,
                   tape.segments(op.getSegments()));
}
static void reverse(LinearOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), linearGradInput(dy, tape.tensor(op.getWeight())));
  addLinearGradWeight(tape.gradient(op.getWeight()), dy,
                      tape.tensor(op.getX()));
  if (op.getBias())
    addBiasGrad(tape.gradient(op.getBias()), dy);
}
static void reverse(BiasOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), dy);
  addBiasGrad(tape.gradient(op.getBias()), dy);
}
static void reverse(AddOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getLhs(), dy);
  tape.add(op.getRhs(), dy);
}
static void reverse(MulOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getLhs(), mul(dy, tape.tensor(op.getRhs())));
  tape.add(op.getRhs(), mul(dy, tape.tensor(op.getLhs())));
}
static void reverse(LayerNormOp op, const Tensor &dy, Tape &tape) {
  const Tensor &x = tape.tensor(op.getX());
  double epsilon = number(op.getEpsilon());
  tape.add(op.getX(),
           layerNormGradInput(x, tape.tensor(op.getWeight()), dy, epsilon));
  // One parameter may stand for both: then each adds to the same tensor.
  Tensor dWeight(tape.tensor(op.getWeight()).shape), dBias = dWeight;
  addLayerNormGradWeight(dWeight, dBias, x, dy, epsilon);
  tape.add(op.getWeight(), dWeight);
  tape.add(op.getBias(), dBias);
}
static void reverse(RmsNormOp op, const Tensor &dy, Tape &tape) {
  const Tensor &x = tape.tensor(op.getX());
  double epsilon = number(op.getEpsilon());
  tape.add(op.getX(),
           rmsNormGradInput(x, tape.tensor(op.getWeight()), dy, epsilon));
  addRmsNormGradWeight(tape.gradient(op.getWeight()), x, dy, epsilon);
}
static void reverse(RotaryOp op, const Tensor &dy, Tape &tape) {
  // A rotation's transpose is its inverse.
  tape.add(op.getX(),
           rotary(dy, tape.segments(op.getSegments()),
                  static_cast<int64_t>(op.getHeadDim()), number(op.getTheta()),
                  !op.getInverse(), scalingOf(op)));
}
static void reverse(GeluOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), geluGrad(tape.tensor(op.getX()), dy,
                               op.getForm() == GeluForm::Tanh));
}
static void reverse(SiluOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), siluGrad(tape.tensor(op.getX()), dy));
}
static void reverse(ReluOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), reluGrad(tape.tensor(op.getX()), dy));
}
static void reverse(ScaleOp op, const Tensor &dy, Tape &tape) {
  Tensor gradient = dy;
  for (double &value : gradient.values)
    value *= number(op.getFactor());
  tape.add(op.getX(), gradient);
}
static void reverse(DropoutOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(),
           dropout(dy, tape.segments(op.getSegments()),
                   number(op.getProbability()),
                   static_cast<uint64_t>(op.getInstance()), tape.getContext()));
}
static void reverse(AttentionOp op, const Tensor &dy, Tape &tape) {
  AttentionShape shape{static_cast<int64_t>(op.getHeads()),
                       static_cast<int64_t>(op.getKvHeads()),
                       number(op.getScale()), op.getCausal()};
  AttentionResult forward{tape.tensor(op.getResult()),
                          tape.tensor(op.getLse())};
  AttentionGradients gradients =
      attentionGrad(tape.tensor(op.getQuery()), tape.tensor(op.getKey()),
                    tape.tensor(op.getValue()), forward, dy,
                    tape.segments(op.getSegments()), shape);
  tape.add(op.getQuery(), gradients.query);
  tape.add(op.getKey(), gradients.key);
  tape.add(op.getValue(), gradients.value);
}
static void reverse(LinearCrossEntropyOp op, const Tensor &dy, Tape &tape) {
  tape.add(op.getX(), linearCrossEntropyGrad(tape.gradient(op.getWeight()),
                                             tape.tensor(op.getX()),
                                             tape.tensor(op.getWeight()),
                                             tape.ids(op.getTargets()),
                                             op.getIgnoreIndex(), dy[0]));
}

template <typename... Ops>
static LogicalResult reverseOneOf(Operation *op, const Tensor &dy, Tape &tape) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<Ops...>([&](auto known) {
        reverse(known, dy, tape);
        return success();
      })
      .Default([](Operation *unknown) {
        return unknown->emitOpError(
            "has no gradient in the reference evaluator");
      });
}

FailureOr<LayerGradients>
reference::differentiateLayer(LayerOp layer, const std::vector<Datum> &args,
                              const std::vector<Tensor> &dResults,
                              const Context &context) {
  Environment values;
  FailureOr<Datum> result = evaluateLayer(layer, args, context, &values);
  if (failed(result))
    return failure();

  Tape tape(values, context);
  Block &body = layer.getBody().front();
  for (auto [value, dResult] :
       llvm::zip_equal(body.getTerminator()->getOperands(), dResults))
    tape.add(value, dResult);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (!tape.hasGradient(op.getResult(0)))
      continue;
    // A copy: operands may be added to the same map.
    Tensor dy = tape.gradient(op.getResult(0));
    if (failed(reverseOneOf<EmbeddingOp, PositionsOp, LinearOp, BiasOp, AddOp,
                            MulOp, LayerNormOp, RmsNormOp, RotaryOp, GeluOp,
                            SiluOp, ReluOp, DropoutOp, ScaleOp, AttentionOp,
                            LinearCrossEntropyOp>(&op, dy, tape)))
      return failure();
  }

  LayerGradients gradients;
  gradients.result = *result;
  for (BlockArgument parameter : layer.getParameterArguments())
    gradients.parameters.push_back(tape.gradient(parameter));
  BlockArgument input = layer.getInputArguments().front();
  if (std::holds_alternative<Tensor>(values.at(input)))
    gradients.input = tape.gradient(input);
  return gradients;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// The callee and its arguments, the results of earlier calls in `values`.
static FailureOr<std::pair<LayerOp, std::vector<Datum>>>
prepareCall(CallOp call, const NamedTensors &parameters,
            const Environment &values) {
  auto module = call->getParentOfType<ModuleOp>();
  auto layer = module.lookupSymbol<LayerOp>(call.getCallee());
  if (!layer)
    return call.emitOpError("calls an unknown layer ") << call.getCalleeAttr();
  std::vector<Datum> args;
  for (auto symbol : call.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    auto it = parameters.find(symbol.getValue().str());
    if (it == parameters.end())
      return call.emitOpError("has no value for parameter ") << symbol;
    args.push_back(it->second);
  }
  for (Value input : call.getInputs())
    args.push_back(values.at(input));
  return std::make_pair(layer, std::move(args));
}

/// Puts the results of a call into `values`. Returns its loss without its weight, if
/// it gives one.
static FailureOr<std::optional<double>> runCall(CallOp call, LayerOp layer,
                                                const std::vector<Datum> &args,
                                                const Context &context,
                                                Environment &values) {
  FailureOr<std::vector<Datum>> results = evaluateResults(layer, args, context);
  if (failed(results))
    return failure();
  for (auto [value, result] : llvm::zip_equal(call.getResults(), *results))
    values[value] = std::move(result);
  if (Value loss = call.getLoss())
    return std::optional(std::get<Tensor>(values[loss])[0]);
  return std::optional<double>();
}

static double weightOf(CallOp call) {
  return call.getWeight().convertToDouble();
}

static Environment modelArguments(ModelOp model, const Batch &batch) {
  Block &body = model.getBody().front();
  Environment values;
  values[body.getArgument(0)] = batch.ids;
  values[body.getArgument(1)] = batch.targets;
  values[body.getArgument(2)] = batch.segments;
  return values;
}

FailureOr<double> reference::evaluateModel(ModelOp model,
                                           const NamedTensors &parameters,
                                           const Batch &batch,
                                           Context context) {
  Environment values = modelArguments(model, batch);
  context.layer = 0;
  double loss = 0.0;
  for (CallOp call : model.getBody().front().getOps<CallOp>()) {
    auto prepared = prepareCall(call, parameters, values);
    if (failed(prepared))
      return failure();
    FailureOr<std::optional<double>> own =
        runCall(call, prepared->first, prepared->second, context, values);
    if (failed(own))
      return failure();
    if (*own)
      loss += weightOf(call) * **own;
    ++context.layer;
  }
  return loss;
}

FailureOr<ModelGradients>
reference::differentiateModel(ModelOp model, const NamedTensors &parameters,
                              const Batch &batch, Context context) {
  ModelGradients gradients;
  for (const auto &[name, tensor] : parameters)
    gradients.parameters[name] = Tensor(tensor.shape);

  // Forward first: differentiateLayer runs each layer again, from its inputs.
  Environment values = modelArguments(model, batch);
  std::vector<CallOp> calls;
  context.layer = 0;
  for (CallOp call : model.getBody().front().getOps<CallOp>()) {
    auto prepared = prepareCall(call, parameters, values);
    if (failed(prepared))
      return failure();
    FailureOr<std::optional<double>> own =
        runCall(call, prepared->first, prepared->second, context, values);
    if (failed(own))
      return failure();
    if (*own) {
      gradients.losses.push_back(**own);
      gradients.loss += weightOf(call) * **own;
    }
    gradients.activations.push_back(std::get<Tensor>(values[call.getResult()]));
    calls.push_back(call);
    ++context.layer;
  }

  Tensor dResult;
  for (CallOp call : llvm::reverse(calls)) {
    --context.layer;
    auto prepared = prepareCall(call, parameters, values);
    std::vector<Tensor> dResults;
    if (call.getActivation())
      dResults.push_back(dResult);
    if (call.getLoss())
      dResults.push_back(Tensor({1}, weightOf(call) * context.inverseTargets));
    FailureOr<LayerGradients> layer = differentiateLayer(
        prepared->first, prepared->second, dResults, context);
    if (failed(layer))
      return failure();
    for (auto [symbol, gradient] :
         llvm::zip_equal(call.getParameters().getAsRange<FlatSymbolRefAttr>(),
                         layer->parameters)) {
      Tensor &sum = gradients.parameters[symbol.getValue().str()];
      sum = add(sum, gradient);
    }
    dResult = std::move(layer->input);
  }
  return gradients;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void reference::roundTo(Type element, Tensor &tensor) {
  for (double &value : tensor.values) {
    if (element.isF32())
      value = roundToFloat(value);
    else if (element.isBF16())
      value = roundToBfloat16(value);
  }
}

NamedTensors reference::initialParameters(ModuleOp module, uint64_t seed) {
  NamedTensors parameters;
  for (ParameterOp op : module.getOps<ParameterOp>()) {
    auto type = cast<RankedTensorType>(op.getType());
    Tensor value = initialParameter(
        op.getSymName().str(), type.getShape().vec(), number(op.getConstant()),
        number(op.getNormal()), seed);
    roundTo(type.getElementType(), value);
    parameters[op.getSymName().str()] = std::move(value);
  }
  return parameters;
}
