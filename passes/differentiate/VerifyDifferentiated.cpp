//===- VerifyDifferentiated.cpp - Verifies the differentiate phase --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "passes/differentiate/CompareFunctions.h"
#include "passes/differentiate/DeriveLayer.h"
#include "passes/differentiate/FunctionCut.h"
#include "passes/differentiate/LayerFunctions.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/SpecializeLayers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYDIFFERENTIATED
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// One argument or result of a function.
struct Slot {
  Value value;
  PlaceAttr place;
  bool isResult;
  unsigned position;

  /// Describes the value: "argument 3" or "result 0".
  std::string describe() const {
    return (isResult ? "result " : "argument ") + std::to_string(position);
  }
};

/// Checks the functions of one layer.
class LayerVerifier {
public:
  /// `gradientElement` is that of all layers; null: the accumulator type.
  /// `frozen[i]`: parameter i has no gradient.
  LayerVerifier(LayerOp layer, ArrayRef<FunctionOp> functions,
                SmallVector<bool> frozen, Type gradientElement)
      : layer(layer), functions(functions), frozen(std::move(frozen)),
        gradientElement(gradientElement) {}

  LogicalResult verify();

private:
  LogicalResult verifyRoles();
  LogicalResult verifySlots(FunctionOp function);
  LogicalResult verifyAccumulators(FunctionOp function);
  LogicalResult verifyChain(FunctionOp function, const Slot &from,
                            const Slot &to);
  LogicalResult verifyTiers();
  LogicalResult verifySameTier(Memory tier, Role writer, Role other,
                               bool otherWrites);
  LogicalResult verifyBody(FunctionOp function);

  FunctionOp lookup(Role role) const;
  Type getEntryType(Role role, Memory memory, int64_t index) const;
  Type getMasterType(int64_t index) const;
  Type getInputEntryType(Role role, int64_t index) const;
  Type getOutputEntryType(Role role, int64_t index) const;
  SmallVector<Type> getInputTypes() const;

  LayerOp layer;
  ArrayRef<FunctionOp> functions;
  SmallVector<bool> frozen;
  Type gradientElement;
};

} // namespace

FunctionOp LayerVerifier::lookup(Role role) const {
  const auto *it = llvm::find_if(functions, [&](FunctionOp function) {
    return function.getRole() == role;
  });
  return it == functions.end() ? FunctionOp() : *it;
}

static SmallVector<Slot> getSlots(FunctionOp function) {
  SmallVector<Slot> slots;
  Block &body = function.getBody().front();
  for (auto [i, value] : llvm::enumerate(body.getArguments()))
    slots.push_back({value, function.getArgPlace(i), /*isResult=*/false,
                     static_cast<unsigned>(i)});
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    slots.push_back({value, function.getResultPlace(i), /*isResult=*/true,
                     static_cast<unsigned>(i)});
  return slots;
}

//===----------------------------------------------------------------------===//
// DIFF1: roles
//===----------------------------------------------------------------------===//

LogicalResult LayerVerifier::verifyRoles() {
  for (unsigned i = 0; i <= getMaxEnumValForRole(); ++i) {
    auto role = static_cast<Role>(i);
    bool expected = hasRole(layer, role, frozen);
    unsigned count = llvm::count_if(functions, [&](FunctionOp function) {
      return function.getRole() == role;
    });
    if (count != expected) // DIFF1
      return layer.emitOpError("expects ")
             << (expected ? "one function" : "no function") << " in role '"
             << stringifyRole(role) << "', but got " << count;
    FunctionOp function = lookup(role);
    if (function && function.getSymName() != getFunctionName(layer, role))
      return function.emitOpError("expects the name @") // DIFF1
             << getFunctionName(layer, role);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DIFF2: places
//===----------------------------------------------------------------------===//

template <typename... Memories>
static constexpr unsigned maskOf(Memories... m) {
  return (0u | ... | (1u << static_cast<unsigned>(m)));
}

/// Returns the legal memories of the arguments, or of the results, of a role.
static unsigned getMemories(Role role, bool isResult) {
  using M = Memory;
  constexpr unsigned layer = maskOf(M::Parameter, M::Segments);
  constexpr unsigned saved =
      layer | maskOf(M::SavedInput, M::Products, M::Elementwise);
  auto pick = [&](unsigned arguments, unsigned results) {
    return isResult ? results : arguments;
  };
  switch (role) {
  case Role::Evaluate:
    return pick(layer | maskOf(M::Input), maskOf(M::Output));
  case Role::Forward:
    return pick(layer | maskOf(M::Gradient, M::Input),
                maskOf(M::Output, M::Gradient, M::Products, M::Elementwise));
  case Role::RecomputeSelective:
    return pick(layer | maskOf(M::SavedInput, M::Products),
                maskOf(M::Elementwise));
  case Role::RecomputeFull:
    return pick(layer | maskOf(M::SavedInput),
                maskOf(M::Products, M::Elementwise));
  case Role::Backward:
    return pick(saved | maskOf(M::Gradient, M::Input),
                maskOf(M::Output, M::Gradient));
  case Role::BackwardInput:
    return pick(saved | maskOf(M::Input), maskOf(M::Output, M::Deferred));
  case Role::BackwardWeight:
    return pick(saved | maskOf(M::Gradient, M::Deferred), maskOf(M::Gradient));
  case Role::Update:
    return pick(maskOf(M::Gradient, M::Input),
                maskOf(M::Gradient, M::Input, M::Parameter));
  case Role::GradNorm:
    return pick(maskOf(M::Gradient, M::Output), maskOf(M::Output));
  case Role::Cast:
    return pick(maskOf(M::Input), maskOf(M::Parameter));
  }
  llvm_unreachable("a role without memories");
}

SmallVector<Type> LayerVerifier::getInputTypes() const {
  SmallVector<Type> types;
  for (BlockArgument input : LayerOp(layer).getInputArguments())
    if (!isa<SegmentsType>(input.getType()))
      types.push_back(input.getType());
  return types;
}

/// Returns the type of a parameter's master; null if there is no such
/// parameter.
Type LayerVerifier::getMasterType(int64_t index) const {
  LayerOp op = layer;
  return index < static_cast<int64_t>(op.getNumParameters())
             ? getAccumulatorTensorType(op.getArgumentTypes()[index])
             : Type();
}

/// Returns the type of an entry of `in`; null if there is no such entry.
Type LayerVerifier::getInputEntryType(Role role, int64_t index) const {
  switch (role) {
  case Role::Update:
    return getMasterType(index / 3);
  case Role::Cast:
    return getMasterType(index);
  case Role::Backward:
  case Role::BackwardInput:
    return index == 0 && LayerOp(layer).givesActivation()
               ? LayerOp(layer).getResultTypes()[0]
               : Type();
  default:
    SmallVector<Type> inputs = getInputTypes();
    return index < static_cast<int64_t>(inputs.size()) ? inputs[index] : Type();
  }
}

/// Returns the type of an entry of `out`; null if there is no such entry.
Type LayerVerifier::getOutputEntryType(Role role, int64_t index) const {
  ArrayRef<Type> results = LayerOp(layer).getResultTypes();
  switch (role) {
  case Role::GradNorm:
    return index == 0 ? RankedTensorType::get(
                            {1}, Float64Type::get(layer->getContext()))
                      : Type();
  case Role::Backward:
  case Role::BackwardInput: {
    if (index != 0)
      return Type();
    auto input = cast<RankedTensorType>(getInputTypes().front());
    return givesInputGradient(layer) ? Type(input) : Type();
  }
  default:
    return index < static_cast<int64_t>(results.size()) ? results[index]
                                                        : Type();
  }
}

/// Returns the type of an entry of the signature; null if there is no such
/// entry.
Type LayerVerifier::getEntryType(Role role, Memory memory,
                                 int64_t index) const {
  LayerOp op = layer;
  bool isParameter = index < static_cast<int64_t>(op.getNumParameters());
  switch (memory) {
  case Memory::Parameter:
    return isParameter ? op.getArgumentTypes()[index] : Type();
  case Memory::Gradient:
    return isParameter ? getGradientTensorType(op.getArgumentTypes()[index],
                                               gradientElement)
                       : Type();
  case Memory::Input:
    return getInputEntryType(role, index);
  case Memory::Output:
    return getOutputEntryType(role, index);
  case Memory::SavedInput:
    return getInputTypes().front();
  case Memory::Segments:
    return SegmentsType::get(op.getContext());
  default:
    return {};
  }
}

static bool isTier(Memory memory) {
  return memory == Memory::Products || memory == Memory::Elementwise ||
         memory == Memory::Deferred;
}

LogicalResult LayerVerifier::verifySlots(FunctionOp function) {
  Role role = function.getRole();
  for (const Slot &slot : getSlots(function)) {
    Memory memory = slot.place.getMemory();
    unsigned memories = getMemories(role, slot.isResult);
    if (!(memories & maskOf(memory))) // DIFF2
      return function.emitOpError("has ")
             << slot.describe() << " in '" << stringifyMemory(memory)
             << "', where this role has none";
    if (isTier(memory))
      continue;
    Type expected = getEntryType(role, memory, slot.place.getIndex());
    if (!expected) // DIFF2
      return function.emitOpError("has ")
             << slot.describe() << " in '" << stringifyMemory(memory)
             << "' at index " << slot.place.getIndex()
             << ", which this role does not have";
    if (slot.value.getType() != expected) // DIFF2
      return function.emitOpError("expects ")
             << slot.describe() << " of type " << expected << ", but got "
             << slot.value.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DIFF3: accumulators
//===----------------------------------------------------------------------===//

/// Returns the result of `op` that is `accumulator` plus another value; null if
/// `op` uses it in another form.
static Value getAccumulated(Operation *op, Value accumulator) {
  for (auto [operand, result] : accumulationsOf(op))
    if (operand == accumulator)
      return result;
  return Value();
}

LogicalResult LayerVerifier::verifyChain(FunctionOp function, const Slot &from,
                                         const Slot &to) {
  Value value = from.value;
  while (value != to.value) {
    // A second user could see the accumulator before or after the first user
    // adds.
    Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
    Value next = user ? getAccumulated(user, value) : Value();
    if (!next) // DIFF3
      return function.emitOpError("expects the accumulator in ")
             << from.describe() << " to pass from op to op, one use each, to "
             << to.describe();
    value = next;
  }
  if (!value.hasOneUse()) // DIFF3
    return function.emitOpError("uses the accumulator that ")
           << to.describe() << " returns";
  return success();
}

LogicalResult LayerVerifier::verifyAccumulators(FunctionOp function) {
  Role role = function.getRole();
  bool takesAll = role == Role::Backward || role == Role::BackwardWeight ||
                  role == Role::Update || role == Role::GradNorm;
  SmallVector<Slot> slots = getSlots(function);
  for (unsigned i = 0; i < layer.getNumParameters(); ++i) {
    SmallVector<Slot> given, returned;
    for (const Slot &slot : slots)
      if (slot.place.getMemory() == Memory::Gradient &&
          slot.place.getIndex() == static_cast<int64_t>(i))
        (slot.isResult ? returned : given).push_back(slot);
    if (frozen[i] && !given.empty()) // DIFF3
      return function.emitOpError("takes the accumulator of parameter ")
             << i << ", which is frozen and has no gradient";
    if (takesAll && !frozen[i] && given.size() != 1) // DIFF3
      return function.emitOpError("expects the accumulator of parameter ")
             << i << " as one argument, but got " << given.size();
    if (role == Role::GradNorm)
      continue;
    if (given.size() > 1 || returned.size() != given.size()) // DIFF3
      return function.emitOpError("takes the accumulator of parameter ")
             << i << " " << given.size() << " times, but returns it "
             << returned.size() << " times";
    if (!given.empty() &&
        failed(verifyChain(function, given.front(), returned.front())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DIFF4: saved tiers
//===----------------------------------------------------------------------===//

static SmallVector<Slot> getTier(FunctionOp function, Memory tier,
                                 bool results) {
  SmallVector<Slot> slots = getSlots(function);
  llvm::erase_if(slots, [&](const Slot &slot) {
    return slot.isResult != results || slot.place.getMemory() != tier;
  });
  return slots;
}

LogicalResult LayerVerifier::verifySameTier(Memory tier, Role writer,
                                            Role other, bool otherWrites) {
  FunctionOp function = lookup(other);
  if (!function)
    return success();
  auto typesOf = [](ArrayRef<Slot> slots) {
    return llvm::map_to_vector(
        slots, [](const Slot &slot) { return slot.value.getType(); });
  };
  SmallVector<Type> expected =
      typesOf(getTier(lookup(writer), tier, /*results=*/true));
  SmallVector<Slot> slots = getTier(function, tier, otherWrites);
  SmallVector<Type> got = typesOf(slots);
  if (expected != got) { // DIFF4
    InFlightDiagnostic diagnostic = function.emitOpError();
    diagnostic << (otherWrites ? "writes" : "reads") << " tier '"
               << stringifyMemory(tier) << "' as [" << got << "], but '"
               << stringifyRole(writer) << "' writes [" << expected << "]";
    return diagnostic;
  }
  bool readsAll = other == Role::Backward || other == Role::BackwardWeight;
  if (!readsAll || (other == Role::BackwardWeight && tier != Memory::Deferred))
    return success();
  for (const Slot &slot : slots)
    if (slot.value.use_empty()) // DIFF4
      return function.emitOpError("is given ")
             << slot.describe() << " in tier '" << stringifyMemory(tier)
             << "', but does not use it";
  return success();
}

LogicalResult LayerVerifier::verifyTiers() {
  using M = Memory;
  struct Reader {
    Memory tier;
    Role writer, other;
    bool writes;
  };
  constexpr Reader readers[] = {
      {M::Products, Role::Forward, Role::Backward, false},
      {M::Products, Role::Forward, Role::BackwardInput, false},
      {M::Products, Role::Forward, Role::BackwardWeight, false},
      {M::Products, Role::Forward, Role::RecomputeSelective, false},
      {M::Products, Role::Forward, Role::RecomputeFull, true},
      {M::Elementwise, Role::Forward, Role::Backward, false},
      {M::Elementwise, Role::Forward, Role::BackwardInput, false},
      {M::Elementwise, Role::Forward, Role::BackwardWeight, false},
      {M::Elementwise, Role::Forward, Role::RecomputeSelective, true},
      {M::Elementwise, Role::Forward, Role::RecomputeFull, true},
      {M::Deferred, Role::BackwardInput, Role::BackwardWeight, false},
  };
  for (const Reader &reader : readers)
    if (failed(verifySameTier(reader.tier, reader.writer, reader.other,
                              reader.writes)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// DIFF5 and DIFF6: bodies
//===----------------------------------------------------------------------===//

LogicalResult LayerVerifier::verifyBody(FunctionOp function) {
  Role role = function.getRole();
  for (Operation &op : function.getBody().front()) {
    if (role == Role::Evaluate && isa<DropoutOp>(op)) // DIFF5
      return op.emitOpError("stands in a function that evaluates");
    if (role == Role::RecomputeSelective && isProduct(&op)) // DIFF5
      return op.emitOpError("stands in a function that recomputes what follows "
                            "from matrix products and attention");
    if (isOpTriviallyDead(&op)) // DIFF6
      return op.emitOpError("computes what function @")
             << function.getSymName() << " does not need";
  }
  return success();
}

LogicalResult LayerVerifier::verify() {
  if (failed(verifyRoles()))
    return failure();
  for (FunctionOp function : functions)
    if (failed(verifySlots(function)) || failed(verifyAccumulators(function)) ||
        failed(verifyBody(function)))
      return failure();
  return verifyTiers();
}

/// Returns bf16 if the module keeps its gradients in it and the layer may; else
/// null.
static Type getNarrowGradients(LayerOp layer, Type gradients) {
  bool mayBeNarrow =
      gradients && gradients.isBF16() &&
      llvm::all_of(layer.getParameterArguments(), [](BlockArgument parameter) {
        return getElementTypeOrSelf(parameter.getType()).isBF16();
      });
  return mayBeNarrow ? gradients : Type();
}

LogicalResult
mlir::dyna::verifyDifferentiated(ModuleOp module,
                                 function_ref<bool(LayerOp)> isMeant) {
  llvm::MapVector<StringAttr, SmallVector<FunctionOp>> functionsOf;
  Type gradients;
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    functionsOf[function.getLayerAttr().getAttr()].push_back(function);
    if (!gradients)
      gradients = function.getGradientElementType();
  }
  CallsOfLayers calls = callsOfLayers(module);
  for (LayerOp layer : module.getOps<LayerOp>())
    if (isMeant(layer) &&
        failed(LayerVerifier(layer, functionsOf[layer.getSymNameAttr()],
                             frozenOf(layer, calls[getBaseName(layer)]),
                             getNarrowGradients(layer, gradients))
                   .verify()))
      return failure();
  return verifyVariants(module);
}

//===----------------------------------------------------------------------===//
// DIFF7: what is derived again
//===----------------------------------------------------------------------===//

/// Derives the functions of every layer once more and compares.
static LogicalResult verifyDerived(ModuleOp module) {
  llvm::StringMap<FunctionOp> functions;
  Type gradientElement;
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    functions[function.getSymName()] = function;
    if (!gradientElement)
      gradientElement = function.getGradientElementType();
  }
  CallsOfLayers calls = callsOfLayers(module);
  for (LayerOp layer : module.getOps<LayerOp>()) {
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(module.getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(scratch->getBody());
    if (failed(deriveLayer(builder, layer, calls[getBaseName(layer)],
                           getNarrowGradients(layer, gradientElement))))
      return failure();
    for (FunctionOp derived : scratch->getOps<FunctionOp>())
      if (failed(compareFunctions(functions.at(derived.getSymName()), // DIFF1
                                  derived)))                          // DIFF7
        return failure();
  }
  return success();
}

namespace {

class VerifyDifferentiated
    : public mlir::dyna::impl::VerifyDifferentiatedBase<VerifyDifferentiated> {
public:
  void runOnOperation() override {
    if (getOperation().getOps<LayerOp>().empty())
      warnOfNothing(getOperation(), getArgument(), "dyna.layer");
    if (failed(verifyDifferentiated(getOperation())) ||
        failed(verifyDerived(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
