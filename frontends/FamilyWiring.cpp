//===- FamilyWiring.cpp - Checks that layers compute what families do -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares a model with the model of its family. Both are numbered as one
// program each, through the calls of their layers. Values have one number if
// the same ops compute them from the same parameters and inputs. Then the
// losses have one number, or an op of the model has no equal in the family's
// model.
//
//===----------------------------------------------------------------------===//

#include "frontends/FamilyWiring.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/facts/Adapters.h"

#include <unordered_map>

using namespace mlir;
using namespace mlir::dyna;

namespace {

using Number = unsigned;

/// Numbers of both models: what is equal has one.
class Numbers {
public:
  Number of(std::vector<uintptr_t> key) {
    auto [entry, isNew] =
        known.try_emplace(std::move(key), Number(known.size()));
    return entry->second;
  }

private:
  struct Hash {
    size_t operator()(const std::vector<uintptr_t> &key) const {
      return llvm::hash_combine_range(key.begin(), key.end());
    }
  };
  std::unordered_map<std::vector<uintptr_t>, Number, Hash> known;
};

/// One op of one call.
struct Step {
  Operation *op;
  CallOp call;
  size_t layer; ///< number of the call
  Number result;
  SmallVector<Number, 4> operands;
};

/// Returns the name in files: `.weight` may be missing.
StringRef storedName(StringRef name) {
  name.consume_back(".weight");
  return name;
}

class NumberedProgram {
public:
  NumberedProgram(ModelOp model, Numbers &numbers,
                  SymbolTableCollection &symbols)
      : numbers(numbers), symbols(symbols) {
    run(model);
  }

  Number loss = 0;
  std::vector<Step> steps; ///< in execution order
  llvm::DenseMap<Number, const Step *> stepOf;
  /// Parameters and inputs, for people.
  llvm::DenseMap<Number, std::string> nameOf;
  /// By the names in files: who declares it and who takes it first.
  std::map<StringRef, std::pair<ParameterOp, CallOp>> parameters;
  /// A dropout of what another drops: their masks differ.
  const Step *secondDropout = nullptr;

private:
  void run(ModelOp model);
  Number runLayer(LayerOp layer, CallOp call, size_t number,
                  ArrayRef<Number> arguments);
  Number numberParameter(FlatSymbolRefAttr name, CallOp call);
  DictionaryAttr attributesOf(Operation *op);

  Numbers &numbers;
  SymbolTableCollection &symbols;
  llvm::DenseMap<Operation *, DictionaryAttr> attributes;
};

} // namespace

/// Returns the attributes that decide the function of an op, beside its
/// operands.
static DictionaryAttr decidingAttributes(Operation *op) {
  // These attributes may differ: the loss may leave out any target, and
  // dropouts may have any numbers. Places come with the memory phase.
  // `checkFamilyOps` compares the scale with the digits that people write.
  static constexpr StringLiteral free[] = {"ignore_index", "instance", "places",
                                           "scale"};
  auto all = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  if (!all)
    return DictionaryAttr::get(op->getContext());
  return DictionaryAttr::get(
      op->getContext(),
      llvm::filter_to_vector(all.getValue(), [](NamedAttribute attribute) {
        return !llvm::is_contained(free, attribute.getName().getValue());
      }));
}

DictionaryAttr NumberedProgram::attributesOf(Operation *op) {
  DictionaryAttr &entry = attributes[op];
  if (!entry)
    entry = decidingAttributes(op);
  return entry;
}

Number NumberedProgram::numberParameter(FlatSymbolRefAttr name, CallOp call) {
  auto parameter = symbols.lookupNearestSymbolFrom<ParameterOp>(call, name);
  StringRef stored = storedName(name.getValue());
  parameters.try_emplace(stored, parameter, call);
  auto key = StringAttr::get(call.getContext(), stored);
  Number number =
      numbers.of({0, reinterpret_cast<uintptr_t>(key.getAsOpaquePointer())});
  nameOf.try_emplace(number, "@" + name.getValue().str());
  return number;
}

void NumberedProgram::run(ModelOp model) {
  llvm::DenseMap<Value, Number> values;
  static constexpr StringLiteral inputs[] = {"the token ids", "the targets",
                                             "the segments"};
  for (auto [i, argument] : llvm::enumerate(model.getBody().getArguments())) {
    values[argument] = numbers.of({1, i});
    nameOf[values[argument]] = inputs[i];
  }
  for (auto [i, call] : llvm::enumerate(model.getBody().getOps<CallOp>())) {
    auto layer =
        symbols.lookupNearestSymbolFrom<LayerOp>(call, call.getCalleeAttr());
    SmallVector<Number> arguments;
    for (auto name : call.getParameters().getAsRange<FlatSymbolRefAttr>())
      arguments.push_back(numberParameter(name, call));
    for (Value input : call.getInputs())
      arguments.push_back(values.at(input));
    loss = values[call.getResult()] = runLayer(layer, call, i, arguments);
  }
  for (const Step &step : steps) {
    auto [entry, isNew] = stepOf.try_emplace(step.result, &step);
    if (!isNew && !secondDropout && isa<DropoutOp>(step.op))
      secondDropout = &step;
  }
}

/// Returns the name of the parameter that a call gives for a value of the
/// layer; empty if there is none.
static StringRef parameterName(Value value, CallOp call) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getArgNumber() >= call.getParameters().size())
    return {};
  return cast<FlatSymbolRefAttr>(call.getParameters()[argument.getArgNumber()])
      .getValue();
}

/// Returns the linear that `sum` adds an adapter to whose parameters have the names
/// of adapters of that linear; null if there is none.
static LinearOp baseOfAdapter(AddOp sum, CallOp call) {
  AdaptedLinear adapted = adaptedLinearOf(sum);
  if (!adapted.base)
    return {};
  std::string stem =
      storedName(parameterName(adapted.base.getWeight(), call)).str();
  bool isAdapter =
      parameterName(adapted.down.getWeight(), call) ==
          stem + ".lora_A.weight" &&
      parameterName(adapted.up.getWeight(), call) == stem + ".lora_B.weight";
  return isAdapter ? adapted.base : LinearOp();
}

Number NumberedProgram::runLayer(LayerOp layer, CallOp call, size_t number,
                                 ArrayRef<Number> arguments) {
  llvm::DenseMap<Value, Number> values;
  for (auto [argument, given] :
       llvm::zip_equal(layer.getBody().getArguments(), arguments))
    values[argument] = given;
  for (Operation &op : layer.getBody().front()) {
    if (auto end = dyn_cast<ReturnOp>(op))
      return values.at(end.getOperand(0));
    // Dropout with probability 0 folds to its operand.
    if (auto dropout = dyn_cast<DropoutOp>(op);
        dropout && dropout.getProbability().isZero()) {
      values[dropout.getResult()] = values.at(dropout.getX());
      continue;
    }
    // A linear with an adapter starts as the linear, and is saved under its
    // name.
    if (auto sum = dyn_cast<AddOp>(op))
      if (LinearOp base = baseOfAdapter(sum, call)) {
        values[sum.getResult()] = values.at(base.getResult());
        continue;
      }
    Step step{&op, call, number, 0, {}};
    for (Value operand : op.getOperands())
      step.operands.push_back(values.at(operand));
    if (op.hasTrait<mlir::OpTrait::IsCommutative>())
      llvm::sort(step.operands);
    std::vector<uintptr_t> key = {
        2, reinterpret_cast<uintptr_t>(op.getName().getAsOpaquePointer()),
        reinterpret_cast<uintptr_t>(attributesOf(&op).getAsOpaquePointer())};
    key.insert(key.end(), step.operands.begin(), step.operands.end());
    step.result = numbers.of(key);
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      values[result] = i == 0 ? step.result : numbers.of({3, step.result, i});
    steps.push_back(std::move(step));
  }
  llvm_unreachable("a layer ends in a return");
}

namespace {

/// Says where a program leaves the family's.
class Difference {
public:
  Difference(ModelOp model, const NumberedProgram &given,
             const NumberedProgram &family)
      : model(model), given(given), family(family),
        name(model.getFacts().getFamily()) {}

  LogicalResult checkParameters();
  LogicalResult report();

private:
  InFlightDiagnostic refuse() {
    return model.emitOpError()
           << "expects the fact 'family' to be custom, or the layers to "
              "compute what "
           << name << " does, but got \"" << name << "\", and ";
  }
  /// Returns the first op before the loss that the family's model does not
  /// have.
  const Step *findFirst() const;
  /// Returns the op of the family's model that is most similar to it.
  const Step *findNearest(const Step &step) const;
  std::string compare(const Step &step, const Step &nearest) const;
  /// Describes a contrast: "X where the family takes Y".
  std::string contrast(const Step &step, Number ours, const Step &nearest,
                       Number theirs) const;
  /// Describes a value for a reader of this call; without a call, through the
  /// layers.
  std::string describe(const NumberedProgram &program, Number number,
                       CallOp call, int depth = 2) const;

  ModelOp model;
  const NumberedProgram &given, &family;
  StringRef name;
};

} // namespace

LogicalResult Difference::checkParameters() {
  SmallVector<StringRef> known;
  for (auto [stored, owner] : family.parameters)
    known.push_back(owner.first.getSymName());
  for (const auto &[stored, owner] : given.parameters) {
    auto [parameter, call] = owner;
    auto entry = family.parameters.find(stored);
    if (entry == family.parameters.end()) {
      // Without the ops of adapters, no live op reads their parameters. The loss
      // of the last layer does not depend on exits.
      if (parameter.getAdded())
        continue;
      InFlightDiagnostic diagnostic = refuse();
      diagnostic << "\"" << call.getLayerName() << "\" takes @"
                 << parameter.getSymName() << ", which is no parameter of "
                 << name;
      StringRef nearest =
          nearestName(parameter.getSymName(), known, /*most=*/4);
      if (!nearest.empty())
        diagnostic << "; is @" << nearest << " meant?";
      diagnostic.attachNote(parameter.getLoc()) << "see this parameter";
      return diagnostic;
    }
    ParameterOp expected = entry->second.first;
    auto shapeOf = [](ParameterOp op) {
      return cast<RankedTensorType>(op.getType()).getShape();
    };
    if (shapeOf(parameter) == shapeOf(expected))
      continue;
    InFlightDiagnostic diagnostic = refuse();
    diagnostic << "@" << parameter.getSymName() << " is [" << shapeOf(parameter)
               << "] where that of " << name << " is [" << shapeOf(expected)
               << "]";
    diagnostic.attachNote(parameter.getLoc()) << "see this parameter";
    return diagnostic;
  }
  return success();
}

const Step *Difference::findFirst() const {
  // Values without users are not compared.
  llvm::DenseSet<Number> live = {given.loss};
  const Step *first = nullptr;
  for (const Step &step : llvm::reverse(given.steps)) {
    if (!live.contains(step.result))
      continue;
    live.insert(step.operands.begin(), step.operands.end());
    if (!family.stepOf.count(step.result))
      first = &step;
  }
  return first;
}

const Step *Difference::findNearest(const Step &step) const {
  const Step *nearest = nullptr;
  int most = -1;
  for (const Step &other : family.steps) {
    if (other.op->getName() != step.op->getName())
      continue;
    // Between equals, prefers the op of the same layer.
    int alike = other.layer == step.layer ? 2 : 0;
    for (auto [a, b] : llvm::zip(step.operands, other.operands))
      alike += a == b ? 8 : 0;
    for (Number operand : step.operands)
      alike += llvm::is_contained(other.operands, operand) ? 4 : 0;
    if (!given.stepOf.count(other.result))
      alike += 1;
    if (alike > most) {
      most = alike;
      nearest = &other;
    }
  }
  return nearest;
}

std::string Difference::describe(const NumberedProgram &program, Number number,
                                 CallOp call, int depth) const {
  if (auto found = program.nameOf.find(number); found != program.nameOf.end())
    return found->second;
  auto found = program.stepOf.find(number);
  if (found == program.stepOf.end())
    return "another result of an op";
  const Step &step = *found->second;
  CallOp maker = step.call;
  if (call && maker != call)
    return "the result of \"" + maker.getLayerName().str() + "\"";
  std::string text = "'" + step.op->getName().getStringRef().str() + "'";
  // The parameter tells which of several values it is.
  for (Number operand : step.operands)
    if (auto name = program.nameOf.find(operand);
        name != program.nameOf.end() && name->second.front() == '@')
      return "the " + text + " of " + name->second;
  if (depth == 0)
    return "a " + text;
  text = "the " + text + " of ";
  bool isFirst = true;
  for (Number operand : step.operands) {
    // All attentions use the segments, so these identify none.
    if (auto name = program.nameOf.find(operand);
        name != program.nameOf.end() && step.operands.size() > 1)
      continue;
    text +=
        (isFirst ? "" : " and ") + describe(program, operand, call, depth - 1);
    isFirst = false;
  }
  return text;
}

std::string Difference::contrast(const Step &step, Number ours,
                                 const Step &nearest, Number theirs) const {
  std::string own = describe(given, ours, step.call),
              other = describe(family, theirs, nearest.call);
  // If both are equal so far, name the ops that end the layers.
  if (own == other)
    return "takes " + own + ", which is " + describe(given, ours, CallOp()) +
           " where that of " + name.str() + " is " +
           describe(family, theirs, CallOp());
  return "takes " + own + " where " + name.str() + " takes " + other;
}

std::string Difference::compare(const Step &step, const Step &nearest) const {
  std::string text = "'" + step.op->getName().getStringRef().str() + "' ";
  if (step.op->hasTrait<mlir::OpTrait::IsCommutative>()) {
    SmallVector<Number> more = to_vector(step.operands), less;
    for (Number operand : nearest.operands)
      if (auto *found = llvm::find(more, operand); found != more.end())
        more.erase(found);
      else
        less.push_back(operand);
    if (!more.empty())
      return text + contrast(step, more.front(), nearest, less.front());
  }
  for (auto [a, b] : llvm::zip(step.operands, nearest.operands))
    if (a != b)
      return text + contrast(step, a, nearest, b);
  if (step.operands.size() != nearest.operands.size())
    return text + "takes " + Twine(step.operands.size()).str() +
           " operands where " + name.str() + " takes " +
           Twine(nearest.operands.size()).str();
  DictionaryAttr own = decidingAttributes(step.op),
                 other = decidingAttributes(nearest.op);
  auto print = [](Attribute attribute) {
    std::string text = "none";
    if (attribute) {
      text.clear();
      llvm::raw_string_ostream(text) << attribute;
    }
    return text;
  };
  for (DictionaryAttr all : {own, other})
    for (NamedAttribute attribute : all) {
      StringRef key = attribute.getName();
      if (own.get(key) != other.get(key))
        return text + "has '" + key.str() + "' = " + print(own.get(key)) +
               " where that of " + name.str() + " has " + print(other.get(key));
    }
  return text + "is not the same";
}

LogicalResult Difference::report() {
  const Step *first = findFirst();
  if (!first)
    first = given.secondDropout;
  CallOp call = first->call;
  InFlightDiagnostic diagnostic = refuse();
  diagnostic << "in \"" << call.getLayerName() << "\" ";
  if (first == given.secondDropout)
    diagnostic << "two 'dyna.dropout' drop the same value";
  else if (const Step *nearest = findNearest(*first))
    diagnostic << compare(*first, *nearest);
  else
    diagnostic << "there is '" << first->op->getName()
               << "', which these layers of " << name << " have not";
  diagnostic.attachNote(first->op->getLoc()) << "see this op";
  return diagnostic;
}

LogicalResult mlir::dyna::checkFamilyWiring(ModelOp model, const Family &family,
                                            const DerivedFacts &layers,
                                            SymbolTableCollection &symbols) {
  OwningOpRef<ModuleOp> written = family.writeLike(model.getContext(), layers);
  ModelOp expected = *written->getOps<ModelOp>().begin();
  Numbers numbers;
  SymbolTableCollection expectedSymbols;
  NumberedProgram given(model, numbers, symbols),
      theirs(expected, numbers, expectedSymbols);
  Difference difference(model, given, theirs);
  if (failed(difference.checkParameters()))
    return failure();
  if (given.loss == theirs.loss && !given.secondDropout)
    return success();
  return difference.report();
}
