//===- ModelBuilder.cpp - Builds dyna models layer by layer -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/ModelBuilder.h"
#include "dialects/dyna/facts/Adapters.h"
#include "mlir/IR/Verifier.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// LayerBuilder
//===----------------------------------------------------------------------===//

/// Names a location: the printer of layers names an argument by it.
static Location named(Location location, const Twine &name) {
  return NameLoc::get(StringAttr::get(location.getContext(), name), location);
}

LayerBuilder::LayerBuilder(LayerOp op, ArrayRef<NamedInput> inputs,
                           LoraTargets &lora)
    : ImplicitLocOpBuilder(op.getLoc(), op.getContext()), lora_(lora) {
  kind_.op = op;
  Block &body = op.getBody().emplaceBlock();
  for (const auto &[name, type] : inputs)
    body.addArgument(type, named(op.getLoc(), name));
  setInsertionPointToEnd(&body);
}

Value LayerBuilder::input(unsigned index) {
  return kind_.op.getBody().getArgument(kind_.parameters.size() + index);
}

Value LayerBuilder::parameter(const Twine &name, ArrayRef<int64_t> shape,
                              const Initial &initial) {
  auto type = RankedTensorType::get(shape, getF32Type());
  unsigned index = kind_.parameters.size();
  ParameterSpec &spec =
      kind_.parameters.emplace_back(ParameterSpec{name.str(), type, initial});
  spec.initial.frozen = lora_.options.isAsked() && !initial.added;
  return kind_.op.getBody().front().insertArgument(index, type,
                                                   named(getLoc(), name));
}

static int64_t widthOf(Value x) {
  return cast<RankedTensorType>(x.getType()).getDimSize(1);
}

Value LayerBuilder::linear(Value x, const Twine &name, int64_t out,
                           bool hasBias, double normal) {
  Value weight =
      parameter(name + ".weight", {out, widthOf(x)}, Initial::matrix(normal));
  Value bias;
  if (hasBias)
    bias = parameter(name + ".bias", {out}, Initial::zeros());
  Value y = LinearOp::create(*this, x, weight, bias);
  return lora_.add(name.str(), out, widthOf(x))
             ? AddOp::create(*this, y, adapter(x, name, out)).getResult()
             : y;
}

Value LayerBuilder::adapter(Value x, const Twine &name, int64_t out) {
  const auto rank = static_cast<double>(lora_.options.rank);
  Value down =
      parameter(name + ".lora_A.weight", {lora_.options.rank, widthOf(x)},
                Initial::adapter(1 / rank));
  Value up = parameter(name + ".lora_B.weight", {out, lora_.options.rank},
                       Initial::adapter(0));
  Value small = LinearOp::create(*this, x, down, Value());
  Value added = LinearOp::create(*this, small, up, Value());
  return ScaleOp::create(*this, added, APFloat(lora_.options.alpha / rank));
}

Value LayerBuilder::headTable(StringRef name, ArrayRef<int64_t> shape,
                              const Initial &initial, const HeadForm &form) {
  Value table =
      parameter(form.hasOwnTable ? "lm_head.weight" : name, shape, initial);
  kind_.parameters.back().isShared = !form.hasOwnTable;
  return table;
}

Value LayerBuilder::layerNorm(Value x, const Twine &name, double epsilon) {
  Value weight = parameter(name + ".weight", {widthOf(x)}, Initial::ones());
  Value bias = parameter(name + ".bias", {widthOf(x)}, Initial::zeros());
  return LayerNormOp::create(*this, x, weight, bias, APFloat(epsilon));
}

Value LayerBuilder::rmsNorm(Value x, const Twine &name, double epsilon) {
  Value weight = parameter(name + ".weight", {widthOf(x)}, Initial::ones());
  return RmsNormOp::create(*this, x, weight, APFloat(epsilon));
}

Value LayerBuilder::attention(Value query, Value key, Value value,
                              Value segments, int64_t heads, int64_t kvHeads,
                              int64_t headDim) {
  APFloat scale(1 / std::sqrt(static_cast<double>(headDim)));
  return AttentionOp::create(*this, query, key, value, segments, heads, kvHeads,
                             scale, /*causal=*/true)
      .getResult();
}

Value LayerBuilder::activation(Value x, Activation form) {
  switch (form) {
  case Activation::GeluTanh:
    return GeluOp::create(*this, x, GeluForm::Tanh);
  case Activation::GeluErf:
    return GeluOp::create(*this, x, GeluForm::Erf);
  case Activation::Silu:
    return SiluOp::create(*this, x);
  case Activation::Relu:
    return ReluOp::create(*this, x);
  }
  llvm_unreachable("no such activation");
}

Value LayerBuilder::dropout(Value x, Value segments, double probability) {
  if (probability == 0)
    return x;
  return DropoutOp::create(*this, x, segments, APFloat(probability),
                           dropouts_++);
}

//===----------------------------------------------------------------------===//
// ModelBuilder
//===----------------------------------------------------------------------===//

ModelBuilder::ModelBuilder(Location location)
    : location_(location), module_(ModuleOp::create(location)),
      builder_(location, location.getContext()), symbols_(*module_) {
  context()->getOrLoadDialect<DynaDialect>();
  builder_.setInsertionPointToEnd(module_->getBody());
}

Type ModelBuilder::ids() {
  return RankedTensorType::get({ShapedType::kDynamic}, builder_.getI32Type());
}

Type ModelBuilder::segments() {
  return SegmentsType::get(builder_.getContext());
}

Type ModelBuilder::activation(int64_t width) {
  return RankedTensorType::get({ShapedType::kDynamic, width},
                               builder_.getF32Type());
}

LayerBuilder ModelBuilder::beginLayer(StringRef name,
                                      ArrayRef<NamedInput> inputs) {
  // The type is known when the layer ends.
  auto op = LayerOp::create(builder_, name, builder_.getFunctionType({}, {}),
                            /*numParameters=*/0);
  if (!firstLayer_)
    firstLayer_ = op;
  return LayerBuilder(op, inputs, lora_);
}

LayerTemplate ModelBuilder::endLayer(LayerBuilder &layer, ValueRange results) {
  ReturnOp::create(layer, results);
  LayerOp op = layer.kind_.op;
  op.setFunctionType(builder_.getFunctionType(op.getBody().getArgumentTypes(),
                                              results.getTypes()));
  op.setNumParameters(layer.kind_.parameters.size());
  return std::move(layer.kind_);
}

LayerTemplate ModelBuilder::endHead(LayerBuilder &layer, const HeadForm &form,
                                    Value loss) {
  // Adapters freeze the model that they are added to, which has no exits.
  if (form.isExit)
    for (ParameterSpec &spec : layer.kind_.parameters) {
      spec.initial.frozen &= spec.isShared;
      spec.initial.added = !spec.isShared;
    }
  return form.isExit ? endLayer(layer, {layer.input(0), loss})
                     : endLayer(layer, loss);
}

void ModelBuilder::buildExits(
    llvm::function_ref<LayerTemplate(const HeadForm &)> build) {
  for (const Exit &exit : exits_.exits) {
    std::optional<LayerTemplate> &kind = exit.hasOwnTable ? ownExit_ : exit_;
    if (!kind)
      kind = build({exit.hasOwnTable ? "own_exit" : "exit", /*isExit=*/true,
                    exit.hasOwnTable});
  }
}

LogicalResult ModelBuilder::checkExits() {
  return mlir::dyna::checkExits(location_, exits_, blocks_);
}

void ModelBuilder::begin(StringRef name, FactsAttr facts) {
  model_ = ModelOp::create(builder_, name,
                           format_ ? withFormat(facts, *format_) : facts);
  Block &body = model_.getBody().emplaceBlock();
  for (const auto &[argument, type] :
       {NamedInput("tokens", ids()), NamedInput("targets", ids()),
        NamedInput("segments", segments())})
    body.addArgument(type, named(location_, argument));
  builder_.setInsertionPointToEnd(&body);
}

void ModelBuilder::declare(StringRef name, const ParameterSpec &spec) {
  if (symbols_.lookup(name))
    return;
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPoint(firstLayer_);
  auto op = ParameterOp::create(
      builder_, name, spec.type, APFloat(spec.initial.constant),
      APFloat(spec.initial.normal), spec.initial.decay, spec.initial.frozen,
      format_ ? storedAs(context(), *format_, name, isTied_) : StoredAttr(),
      spec.initial.added);
  symbols_.insert(op);
}

void ModelBuilder::call(StringRef layerName, const LayerTemplate &kind,
                        const Twine &prefix, ArrayRef<Input> inputs) {
  SmallVector<Attribute> parameters;
  for (const ParameterSpec &spec : kind.parameters) {
    std::string name = spec.isShared ? spec.name : (prefix + spec.name).str();
    declare(name, spec);
    parameters.push_back(FlatSymbolRefAttr::get(builder_.getContext(), name));
  }
  SmallVector<Value> operands;
  for (Input input : inputs) {
    switch (input) {
    case Input::Tokens:
      operands.push_back(model_.getBody().getArgument(0));
      break;
    case Input::Targets:
      operands.push_back(model_.getBody().getArgument(1));
      break;
    case Input::Segments:
      operands.push_back(model_.getBody().getArgument(2));
      break;
    case Input::Previous:
      operands.push_back(previous_);
      break;
    }
  }
  LayerOp layer = kind.op;
  ArrayRef<Type> results = layer.getResultTypes();
  auto call = CallOp::create(
      builder_, results.front(), results.size() > 1 ? results.back() : Type(),
      layerName, layer.getSymName(), builder_.getArrayAttr(parameters),
      operands, APFloat(std::exchange(nextWeight_, 1)));
  previous_ = call.getActivation();
  if (Value loss = call.getLoss())
    losses_.push_back(loss);
}

void ModelBuilder::callBlock(const std::string &name,
                             const LayerTemplate &kind) {
  call(name, kind, name + ".", {Input::Previous, Input::Segments});
  blocks_.push_back(name);
  const Exit *exit = exits_.find(name);
  if (!exit)
    return;
  nextWeight_ = exit->weight;
  call(name + ".exit", exit->hasOwnTable ? *ownExit_ : *exit_, name + ".exit.",
       {Input::Previous, Input::Targets});
}

void ModelBuilder::end() { ReturnOp::create(builder_, losses_); }

OwningOpRef<ModuleOp> ModelBuilder::finish() {
  if (failed(verify(*module_)))
    return {};
  return std::move(module_);
}
