//===- ModelBuilder.h - Builds dyna models layer by layer -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model is a chain of layers of a few kinds. `LayerBuilder` makes a kind. It
// declares parameters when they are used, so a layer's list of parameters is in
// the order of use. `ModelBuilder` puts the kinds into a module and calls them.
// Each call declares the parameters that do not exist yet. So two calls with
// one name share their parameters.
//
//     ModelBuilder model(UnknownLoc::get(context));
//     LayerBuilder b = model.beginLayer("embed", {{"tokens", model.ids()}});
//     Value x = EmbeddingOp::create(b, b.input(0), b.parameter(...),
//                                   ShardAttr());
//     LayerTemplate embed = model.endLayer(b, x);
//     model.begin("gpt", facts);
//     model.call("embed", embed, "", {Input::Tokens});
//     ...
//     OwningOpRef<ModuleOp> module = model.finish();
//
// Everything is built in f32; a pass chooses the compute type later.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_MODELBUILDER_H
#define DYNA_FRONTENDS_MODELBUILDER_H

#include "frontends/CheckpointFormat.h"
#include "frontends/Exits.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace mlir::dyna {

/// The initial value of a parameter, and its properties.
struct Initial {
  double constant = 0;
  double normal = 0;
  bool decay = false;  ///< weight decay applies
  bool frozen = false; ///< keeps its value
  bool added = false;  ///< of an adapter or an exit

  static Initial zeros() { return {}; }
  static Initial ones() {
    Initial initial;
    initial.constant = 1;
    return initial;
  }
  /// Returns the initial values of a matrix, to which weight decay applies.
  static Initial matrix(double normal) {
    Initial initial;
    initial.normal = normal;
    initial.decay = true;
    return initial;
  }
  /// Returns the initial values of a matrix of an adapter.
  static Initial adapter(double normal) {
    Initial initial = matrix(normal);
    initial.added = true;
    return initial;
  }
};

/// A parameter of a layer kind; its name lacks the prefix of the layer.
struct ParameterSpec {
  std::string name;
  RankedTensorType type;
  Initial initial;
  bool isShared =
      false; ///< all calls have the same one; its name has no prefix
};

/// Form of a head: the model's, or that of exits.
struct HeadForm {
  StringRef name = "head";
  bool isExit = false;
  bool hasOwnTable = false; ///< an exit that shares no table with the head
};

/// An input of a layer kind; the name is for readers of the IR.
using NamedInput = std::pair<StringRef, Type>;

/// A layer kind as it was built, with the parameters that each call of it has.
struct LayerTemplate {
  LayerOp op;
  SmallVector<ParameterSpec> parameters;
};

/// The activations that GPT-2 and LLaMA configurations can ask for.
enum class Activation { GeluTanh, GeluErf, Silu, Relu };

class LayerBuilder : public ImplicitLocOpBuilder {
public:
  /// `lora` must outlive the builder.
  LayerBuilder(LayerOp op, ArrayRef<NamedInput> inputs, LoraTargets &lora);

  Value input(unsigned index);
  Value parameter(const Twine &name, ArrayRef<int64_t> shape,
                  const Initial &initial);

  /// Builds a linear with the parameters `name.weight` of `[out, width of x]`
  /// and, if wanted, `name.bias`. With adapters it also has
  /// `name.lora_A.weight` and `name.lora_B.weight`. The first is `[rank, width
  /// of x]`, normal with standard deviation 1 / rank. The second is `[out,
  /// rank]`, zero.
  Value linear(Value x, const Twine &name, int64_t out, bool hasBias,
               double normal);
  /// The table that a head scores targets with. The model's is named `name`.
  Value headTable(StringRef name, ArrayRef<int64_t> shape,
                  const Initial &initial, const HeadForm &form);
  Value layerNorm(Value x, const Twine &name, double epsilon);
  Value rmsNorm(Value x, const Twine &name, double epsilon);
  /// Builds causal attention with scale 1/sqrt(headDim).
  Value attention(Value query, Value key, Value value, Value segments,
                  int64_t heads, int64_t kvHeads, int64_t headDim);
  Value activation(Value x, Activation form);
  /// Builds a dropout, or nothing if the probability is 0. Instances are
  /// numbered.
  Value dropout(Value x, Value segments, double probability);

private:
  friend class ModelBuilder;
  Value adapter(Value x, const Twine &name, int64_t out);

  LoraTargets &lora_;
  LayerTemplate kind_;
  int64_t dropouts_ = 0;
};

/// Inputs of a call; `Previous` is the result of the call before it.
enum class Input { Tokens, Previous, Targets, Segments };

class ModelBuilder {
public:
  /// `location` is that of all ops, where the model is described.
  explicit ModelBuilder(Location location);
  MLIRContext *context() { return builder_.getContext(); }
  /// Linears of layers that begin from here on have these adapters.
  void setLora(LoraOptions lora) { lora_.options = std::move(lora); }
  /// Fails, with a diagnostic, if adapters were asked for that no linear can have.
  LogicalResult checkLora() { return lora_.check(location_); }
  void setExits(ExitOptions exits) { exits_ = std::move(exits); }
  /// Builds the kinds of exits that were asked for with the function that builds the
  /// model's head. Calls of blocks then have their exits behind them.
  void buildExits(llvm::function_ref<LayerTemplate(const HeadForm &)> build);
  /// Fails, with a diagnostic, if an exit is not behind one of the called blocks.
  LogicalResult checkExits();
  /// Checkpoints have this format, which outlives the builder; `isTied` if the head
  /// reads the table of tokens.
  void setFormat(const CheckpointFormat &format, bool isTied) {
    format_ = &format;
    isTied_ = isTied;
  }

  Type ids();
  Type segments();
  Type activation(int64_t width);

  LayerBuilder beginLayer(StringRef name, ArrayRef<NamedInput> inputs);
  LayerTemplate endLayer(LayerBuilder &layer, ValueRange results);
  /// Ends a head. An exit passes its first input on.
  LayerTemplate endHead(LayerBuilder &layer, const HeadForm &form, Value loss);

  /// Ends the layers and begins the calls.
  void begin(StringRef name, FactsAttr facts);
  /// Parameters are named `prefix + name`.
  void call(StringRef layerName, const LayerTemplate &kind, const Twine &prefix,
            ArrayRef<Input> inputs);
  /// Calls a block, which takes the result before it and the segments. Then calls
  /// the exit after this block, if the options ask for one.
  void callBlock(const std::string &name, const LayerTemplate &kind);
  /// Ends the calls. The last call gives the loss.
  void end();
  /// Returns the verified module; null after a diagnostic.
  OwningOpRef<ModuleOp> finish();
  /// Returns the module without verification.
  OwningOpRef<ModuleOp> take() { return std::move(module_); }

private:
  void declare(StringRef name, const ParameterSpec &spec);

  Location location_;
  LoraTargets lora_;
  const CheckpointFormat *format_ = nullptr;
  bool isTied_ = false;
  OwningOpRef<ModuleOp> module_;
  ImplicitLocOpBuilder builder_;
  SymbolTable symbols_;
  ModelOp model_;
  Value previous_;
  SmallVector<Value> losses_;
  double nextWeight_ = 1; ///< of the loss of the next call
  ExitOptions exits_;
  std::optional<LayerTemplate> exit_, ownExit_;
  SmallVector<std::string> blocks_;
  /// Parameters stand before the layers.
  Operation *firstLayer_ = nullptr;
};

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_MODELBUILDER_H
