//===- RandomModule.cpp - Valid dyna modules by chance --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/RandomModule.h"

#include "mlir/IR/Builders.h"
#include "test/reference/Formulas.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

double Choices::next() { return uniform(seed, count++); }

int64_t Choices::between(int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(next() * static_cast<double>(high - low + 1));
}

namespace {

/// How the module-level parameter behind an argument of a layer is initialised.
struct ParameterPlan {
  RankedTensorType type;
  double constant = 0.0;
  double normal = 0.0;
  bool decay = false;
};

/// What all layers of a model share.
struct ModelSizes {
  int64_t width, vocabulary, positions, heads, kvHeads, headDim;
  bool smooth;
};

/// Writes the body of one layer, adding parameters as it needs them.
class LayerWriter {
public:
  LayerWriter(ModuleOp module, StringRef name, ArrayRef<Type> inputs,
              Choices &choices, const ModelSizes &sizes);

  Value input(unsigned index) {
    return layer.getBody().getArgument(numParameters() + index);
  }
  void finish(Value result);

  Value embeddingBody();
  Value blockBody();
  Value headBody();

  LayerOp layer;
  std::vector<ParameterPlan> parameters;

private:
  unsigned numParameters() const { return parameters.size(); }
  int64_t widthOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getDimSize(1);
  }
  Value segments() { return layer.getBody().getArguments().back(); }
  Value parameter(ArrayRef<int64_t> shape, double constant, double normal,
                  bool decay);
  Value vector(int64_t width, double constant) {
    return parameter({width}, constant, 0.2, choices.chance(0.3));
  }
  Value weight(int64_t out, int64_t in);

  Value linear(Value x, int64_t out);
  Value normalize(Value x);
  Value activate(Value x);
  Value rotate(Value x, int64_t headDim);
  Value drop(Value x);
  Value addPositions(Value x);
  Value attend(Value x);
  Value attentionBlock(Value x);
  Value feedForwardBlock(Value x);
  Value anyOp(std::vector<Value> &pool);
  Value chain(Value x);

  OpBuilder builder;
  Location location;
  Choices &choices;
  const ModelSizes &sizes;
  int64_t numDropouts = 0;
};

} // namespace

LayerWriter::LayerWriter(ModuleOp module, StringRef name, ArrayRef<Type> inputs,
                         Choices &choices, const ModelSizes &sizes)
    : builder(module.getBodyRegion()), location(module.getLoc()),
      choices(choices), sizes(sizes) {
  builder.setInsertionPointToEnd(module.getBody());
  OperationState state(location, LayerOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("function_type",
                     TypeAttr::get(builder.getFunctionType(inputs, {})));
  state.addAttribute("num_parameters", builder.getI64IntegerAttr(0));
  state.addRegion();
  layer = cast<LayerOp>(builder.create(state));
  Block *block = builder.createBlock(&layer.getBody());
  for (Type input : inputs)
    block->addArgument(input, location);
  builder.setInsertionPointToEnd(block);
}

void LayerWriter::finish(Value result) {
  ReturnOp::create(builder, location, ValueRange{result});
  SmallVector<Type> types(layer.getBody().getArgumentTypes());
  layer.setFunctionType(builder.getFunctionType(types, {result.getType()}));
  layer.setNumParameters(numParameters());
}

Value LayerWriter::parameter(ArrayRef<int64_t> shape, double constant,
                             double normal, bool decay) {
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  // Parameters stand before the inputs.
  Value argument =
      layer.getBody().front().insertArgument(numParameters(), type, location);
  parameters.push_back({type, constant, normal, decay});
  return argument;
}

/// Scaled so that activations stay near 1; sometimes one that is there already.
Value LayerWriter::weight(int64_t out, int64_t in) {
  if (choices.chance(0.1))
    for (BlockArgument argument :
         layer.getBody().getArguments().take_front(numParameters()))
      if (cast<RankedTensorType>(argument.getType()).getShape() ==
          ArrayRef<int64_t>{out, in})
        return argument;
  return parameter({out, in}, 0.0, 0.8 / std::sqrt(static_cast<double>(in)),
                   choices.chance(0.7));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value LayerWriter::linear(Value x, int64_t out) {
  Value w = weight(out, widthOf(x));
  Value b = choices.chance(0.5) ? vector(out, 0.0) : Value();
  return LinearOp::create(builder, location, x, w, b);
}

Value LayerWriter::normalize(Value x) {
  int64_t width = widthOf(x);
  auto epsilon = builder.getF64FloatAttr(choices.oneOf({1e-5, 1e-3, 1e-2}));
  if (choices.chance(0.5))
    return RmsNormOp::create(builder, location, x, vector(width, 1.0), epsilon);
  Value weight = vector(width, 1.0), bias = vector(width, 0.0);
  return LayerNormOp::create(builder, location, x, weight, bias, epsilon);
}

Value LayerWriter::activate(Value x) {
  switch (choices.between(0, 3)) {
  case 0:
    return GeluOp::create(builder, location, x, GeluForm::Tanh);
  case 1:
    return GeluOp::create(builder, location, x, GeluForm::Erf);
  case 2:
    return SiluOp::create(builder, location, x);
  default: {
    Value relu = ReluOp::create(builder, location, x);
    if (sizes.smooth)
      return MulOp::create(builder, location, relu, relu);
    return relu;
  }
  }
}

Value LayerWriter::rotate(Value x, int64_t headDim) {
  if (headDim % 2 != 0)
    return x;
  return RotaryOp::create(builder, location, x, segments(),
                          builder.getI64IntegerAttr(headDim),
                          builder.getF64FloatAttr(choices.oneOf({100.0, 1e4})),
                          /*inverse=*/nullptr, /*scaling=*/nullptr);
}

Value LayerWriter::drop(Value x) {
  return DropoutOp::create(
      builder, location, x, segments(),
      builder.getF64FloatAttr(choices.oneOf({0.1, 0.5, 0.25})),
      builder.getI64IntegerAttr(numDropouts++));
}

Value LayerWriter::addPositions(Value x) {
  Value table = parameter({sizes.positions, widthOf(x)}, 0.0, 0.5, true);
  Value rows = PositionsOp::create(builder, location, table, segments());
  return AddOp::create(builder, location, x, rows);
}

Value LayerWriter::attend(Value x) {
  int64_t headDim = sizes.headDim, heads = sizes.heads;
  Value q = linear(x, heads * headDim), k = linear(x, sizes.kvHeads * headDim);
  // Now and then values that are keys as well.
  Value v = choices.chance(0.2) ? k : linear(x, sizes.kvHeads * headDim);
  if (choices.chance(0.5)) {
    q = rotate(q, headDim);
    k = rotate(k, headDim);
  }
  UnitAttr causal = choices.chance(0.7) ? builder.getUnitAttr() : UnitAttr();
  double scale = 1.0 / std::sqrt(static_cast<double>(headDim));
  auto attention = AttentionOp::create(builder, location, q, k, v, segments(),
                                       builder.getI64IntegerAttr(heads),
                                       builder.getI64IntegerAttr(sizes.kvHeads),
                                       builder.getF64FloatAttr(scale), causal);
  return attention.getResult();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

Value LayerWriter::attentionBlock(Value x) {
  Value inner = choices.chance(0.8) ? normalize(x) : x;
  inner = linear(attend(inner), sizes.width);
  if (choices.chance(0.3))
    inner = drop(inner);
  return AddOp::create(builder, location, x, inner);
}

Value LayerWriter::feedForwardBlock(Value x) {
  Value inner = choices.chance(0.8) ? normalize(x) : x;
  int64_t hidden = choices.oneOf<int64_t>({3, 16, 31, 40});
  Value up = activate(linear(inner, hidden));
  if (choices.chance(0.5))
    up = MulOp::create(builder, location, up, linear(inner, hidden));
  Value down = linear(up, sizes.width);
  if (choices.chance(0.3))
    down = drop(down);
  return AddOp::create(builder, location, x, down);
}

/// One op on values from the pool.
Value LayerWriter::anyOp(std::vector<Value> &pool) {
  auto pick = [&] {
    return pool[static_cast<size_t>(
        choices.between(0, static_cast<int64_t>(pool.size()) - 1))];
  };
  Value x = pick();
  int64_t width = widthOf(x);
  switch (choices.between(0, 9)) {
  case 0:
    return linear(x, choices.oneOf<int64_t>({1, 2, 7, 16, 19, 32}));
  case 1:
    return width >= 5 ? normalize(x) : activate(x);
  case 2:
    return activate(x);
  case 3:
    return drop(x);
  case 4:
    return addPositions(x);
  case 5:
    return BiasOp::create(builder, location, x, vector(width, 0.1));
  case 6:
    return attend(x);
  case 7:
    return width % 2 == 0 ? rotate(x, width) : activate(x);
  default: {
    // A partner of the same width; x itself if chance finds none.
    Value y = x;
    for (int attempt = 0; attempt < 4 && y == x; ++attempt)
      if (Value other = pick(); widthOf(other) == width)
        y = other;
    if (width < 5 || choices.chance(0.5))
      return AddOp::create(builder, location, x, y);
    // One factor is a norm: squares of squares over several layers would leave
    // the range where numbers can be compared.
    Value factor = normalize(x);
    return MulOp::create(builder, location, factor,
                         x == y && choices.chance(0.5) ? factor : y);
  }
  }
}

/// A few ops in any order; what nobody used is brought back to `x` at the end,
/// most of the time.
Value LayerWriter::chain(Value x) {
  std::vector<Value> pool = {x};
  for (int64_t i = choices.between(1, 6); i > 0; --i)
    pool.push_back(anyOp(pool));
  Value result = x;
  for (Value value : pool) {
    if (value == x || !value.use_empty() || choices.chance(0.1))
      continue;
    Value back = widthOf(value) == sizes.width && choices.chance(0.5)
                     ? value
                     : linear(value, sizes.width);
    result = AddOp::create(builder, location, result, back);
  }
  return result;
}

Value LayerWriter::embeddingBody() {
  Value table =
      parameter({sizes.vocabulary, sizes.width}, 0.0, 0.7, /*decay=*/true);
  Value x = EmbeddingOp::create(builder, location, input(0), table);
  if (choices.chance(0.6))
    x = addPositions(x);
  if (choices.chance(0.2))
    x = drop(x);
  if (choices.chance(0.2))
    x = normalize(x);
  return x;
}

Value LayerWriter::blockBody() {
  Value x = input(0);
  switch (choices.between(0, 4)) {
  case 0:
    return feedForwardBlock(attentionBlock(x));
  case 1:
    return attentionBlock(x);
  case 2:
    return feedForwardBlock(x);
  default:
    return chain(x);
  }
}

Value LayerWriter::headBody() {
  Value x = input(0);
  if (choices.chance(0.7))
    x = normalize(x);
  if (choices.chance(0.2))
    x = activate(linear(x, sizes.width));
  // Tied with the table of the embedding or not: see addRandomModel.
  double normal = 1.0 / std::sqrt(static_cast<double>(sizes.width));
  Value w = parameter({sizes.vocabulary, sizes.width}, 0.0, normal,
                      /*decay=*/true);
  auto loss = LinearCrossEntropyOp::create(
      builder, location, RankedTensorType::get({1}, builder.getF64Type()), x, w,
      input(1),
      builder.getI64IntegerAttr(choices.oneOf<int64_t>({-1, -1, 0, -100})));
  return loss.getLoss();
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static ModelSizes chooseSizes(Choices &choices, bool smooth) {
  ModelSizes sizes;
  sizes.smooth = smooth;
  sizes.width = choices.oneOf<int64_t>({5, 8, 12, 16, 17, 24, 32, 33, 40});
  sizes.vocabulary = choices.oneOf<int64_t>({2, 11, 16, 37, 64, 100});
  sizes.positions = 24;
  sizes.headDim = choices.oneOf<int64_t>({1, 2, 3, 4, 6, 8, 16});
  sizes.kvHeads = choices.between(1, 3);
  sizes.heads = sizes.kvHeads * choices.between(1, 3);
  return sizes;
}

namespace {
/// Declares parameters and calls layers.
class ModelWriter {
public:
  ModelWriter(ModuleOp module, StringRef prefix, uint64_t seed, bool smooth)
      : module(module), prefix(prefix), choices(seed),
        sizes(chooseSizes(choices, smooth)), builder(module.getBodyRegion()) {}

  ModelOp write();

private:
  using Write = Value (LayerWriter::*)();
  LayerWriter writeLayer(StringRef kind, ArrayRef<Type> inputs, Write write);
  ArrayAttr declareParameters(StringRef call, const LayerWriter &layer);
  std::string named(StringRef name) { return (prefix + "." + name).str(); }

  ModuleOp module;
  StringRef prefix;
  Choices choices;
  ModelSizes sizes;
  OpBuilder builder;
  /// Parameters so far, for ties.
  std::vector<std::pair<ParameterPlan, FlatSymbolRefAttr>> declared;
};
} // namespace

LayerWriter ModelWriter::writeLayer(StringRef kind, ArrayRef<Type> inputs,
                                    Write write) {
  LayerWriter layer(module, named(kind), inputs, choices, sizes);
  layer.finish((layer.*write)());
  return layer;
}

/// One module-level parameter per argument of the layer, or one that another
/// call has: ties between calls of a kind, and of embedding and head.
ArrayAttr ModelWriter::declareParameters(StringRef call,
                                         const LayerWriter &layer) {
  SmallVector<Attribute> symbols;
  for (const ParameterPlan &plan : layer.parameters) {
    Attribute symbol;
    for (const auto &[other, name] : declared)
      if (!symbol && other.type == plan.type && other.decay == plan.decay &&
          !llvm::is_contained(symbols, name) &&
          choices.chance(plan.type.getRank() == 2 ? 0.2 : 0.05))
        symbol = name;
    if (!symbol) {
      std::string name = named((call + "." + Twine(symbols.size())).str());
      OperationState state(module.getLoc(), ParameterOp::getOperationName());
      state.addAttribute("sym_name", builder.getStringAttr(name));
      state.addAttribute("type", TypeAttr::get(plan.type));
      state.addAttribute("constant", builder.getF64FloatAttr(plan.constant));
      state.addAttribute("normal", builder.getF64FloatAttr(plan.normal));
      if (plan.decay)
        state.addAttribute("decay", builder.getUnitAttr());
      builder.create(state);
      auto reference = FlatSymbolRefAttr::get(builder.getContext(), name);
      declared.emplace_back(plan, reference);
      symbol = reference;
    }
    symbols.push_back(symbol);
  }
  return builder.getArrayAttr(symbols);
}

ModelOp ModelWriter::write() {
  MLIRContext *context = module.getContext();
  Location location = module.getLoc();
  Type ids =
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  Type activation = RankedTensorType::get({ShapedType::kDynamic, sizes.width},
                                          builder.getF32Type());
  Type segments = SegmentsType::get(context);
  Type loss = RankedTensorType::get({1}, builder.getF64Type());

  LayerWriter embed =
      writeLayer("embed", {ids, segments}, &LayerWriter::embeddingBody);
  std::vector<LayerWriter> kinds;
  for (int64_t i = 0, n = choices.between(1, 2); i < n; ++i)
    kinds.push_back(writeLayer(("block" + Twine(i)).str(),
                               {activation, segments},
                               &LayerWriter::blockBody));
  LayerWriter head =
      writeLayer("head", {activation, ids}, &LayerWriter::headBody);

  builder.setInsertionPointToEnd(module.getBody());
  auto facts = [&](bool attends) {
    return FactsAttr::get(context, "custom", sizes.vocabulary, sizes.positions,
                          sizes.width, attends ? sizes.heads : 0,
                          attends ? sizes.kvHeads : 0,
                          attends ? sizes.headDim : 0, 0, "{}", {}, {}, {});
  };
  OperationState state(location, ModelOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(prefix));
  state.addAttribute("facts", facts(false));
  state.addRegion();
  auto model = cast<ModelOp>(builder.create(state));
  OpBuilder calls(context);
  Block *block = calls.createBlock(&model.getBody());
  Value tokens = block->addArgument(ids, location);
  Value targets = block->addArgument(ids, location);
  Value segmentsValue = block->addArgument(segments, location);

  builder.setInsertionPoint(model);
  auto call = [&](Twine name, LayerWriter &layer, ValueRange inputs,
                  Type result) -> Value {
    std::string text = name.str();
    return CallOp::create(calls, location, result, /*exit_loss=*/Type(), text,
                          layer.layer.getSymName(),
                          declareParameters(text, layer), inputs,
                          /*weight=*/APFloat(1.0))
        .getResult();
  };
  Value x = call("embed", embed, {tokens, segmentsValue}, activation);
  bool attends = false;
  for (int64_t i = 0, n = choices.between(1, 3); i < n; ++i) {
    auto kind = static_cast<size_t>(i) % kinds.size();
    x = call("h." + Twine(i), kinds[kind], {x, segmentsValue}, activation);
    attends |=
        kinds[kind]
            .layer.walk([](AttentionOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
  }
  // Facts are about the layers that are called, not all that were written.
  model.setFactsAttr(facts(attends));
  Value result = call("head", head, {x, targets}, loss);
  ReturnOp::create(calls, location, ValueRange{result});
  return model;
}

ModelOp reference::addRandomModel(ModuleOp module, StringRef prefix,
                                  uint64_t seed, bool smooth) {
  return ModelWriter(module, prefix, seed, smooth).write();
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

static int64_t ignoreIndexOf(ModelOp model) {
  int64_t result = -1;
  auto module = model->getParentOfType<ModuleOp>();
  for (CallOp call : model.getBody().front().getOps<CallOp>())
    if (auto layer = module.lookupSymbol<LayerOp>(call.getCallee()))
      layer.walk(
          [&](LinearCrossEntropyOp op) { result = op.getIgnoreIndex(); });
  return result;
}

Batch reference::makeRandomBatch(ModelOp model, uint64_t seed, int64_t number) {
  // Far from the streams of the modules.
  Choices choices(seed * 1000003 + static_cast<uint64_t>(number) + 77);
  int64_t positions = model.getFacts().getPositions();
  std::vector<int64_t> lengths;
  int64_t count = choices.oneOf<int64_t>({0, 1, 1, 2, 3, 4, 6});
  if (choices.chance(0.05))
    count = 25;
  for (int64_t i = 0; i < count; ++i)
    lengths.push_back(choices.chance(0.3) ? 1 : choices.between(1, positions));
  Batch batch;
  batch.segments = Segments::ofLengths(lengths, choices.between(0, 1000));
  int64_t vocabulary = model.getFacts().getVocabulary();
  batch.ignored = ignoreIndexOf(model);
  bool allIgnored = choices.chance(0.05);
  for (int64_t t = 0; t < batch.segments.tokens(); ++t) {
    batch.ids.push_back(
        static_cast<int32_t>(choices.between(0, vocabulary - 1)));
    int64_t target = choices.between(0, vocabulary - 1);
    if (allIgnored || choices.chance(0.2))
      target = batch.ignored;
    batch.targets.push_back(static_cast<int32_t>(target));
  }
  return batch;
}
