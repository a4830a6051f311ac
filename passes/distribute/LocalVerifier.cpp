//===- LocalVerifier.cpp - Verifies local functions -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/LocalVerifier.h"
#include "passes/distribute/deduce/LayoutRules.h"
#include "passes/distribute/deduce/Splits.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::canonicalLayout;
using ::dyna::Layout;
using ::dyna::ReshardStep;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static bool countsTokens(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::CountsTokens>();
}

static bool countsFeatures(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::CountsFeatures>();
}

/// Sets the meaning of a value that is no argument, and checks its type.
LogicalResult LocalVerifier::set(Operation *op, Value value, int number,
                                 const Layout &layout) {
  meanings[value] = {number, layout};
  auto whole = cast<RankedTensorType>(expressions.typeOf(number));
  RankedTensorType wanted = localType(whole, layout);
  if (value.getType() == wanted)
    return success();
  return op->emitOpError() << "gives " << value.getType() << ", but "
                           << describeLayout(layer.mesh, layout) << " of "
                           << whole << " is " << wanted;
}

LogicalResult LocalVerifier::visitCollective(dist::CollectiveOpInterface op) {
  dist::GroupAttr group = op.getGroup();
  if (group.getMesh() != layer.meshAttr)
    return op->emitOpError() << "is over a group of " << group.getMesh()
                             << ", but the layer is on " << layer.meshAttr;
  if (groups.find(layer.meshAttr, group.getParts()) != group)
    return op->emitOpError() << "is over a group that is not in the module's '"
                             << dist::kGroups.name << "'";
  if (auto reduce = dyn_cast<dist::AllReduceOp>(*op); reduce && reduce.getMax())
    return op->emitOpError("takes a maximum, but what ranks hold are parts of "
                           "a sum");
  const Meaning meaning = meanings.lookup(op.getX());
  ReshardStep step = op.getStep();
  step.group = group.getParts();
  step.before = meaning.layout;
  auto after = ::dyna::layoutAfter(layer.mesh, step,
                                   ::dyna::Shape(typeOf(meaning).getShape()));
  if (!after.isOk())
    return op->emitOpError() << after.status().message();
  return set(op, op->getResult(0), meaning.number, *after);
}

/// Visits a body: that of fused collectives or, after the memory phase, of a
/// sweep.
LogicalResult LocalVerifier::visitBody(Operation *op) {
  Block &body = op->getRegion(0).front();
  for (Operation &inner : body.without_terminator())
    if (failed(visit(&inner)))
      return failure();
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), body.getTerminator()->getOperands()))
    meanings[result] = Meaning(meanings.lookup(value));
  return success();
}

LogicalResult LocalVerifier::visit(Operation *op) {
  if (placesOf(op) && !layer.local.getTiersAttr())
    return op->emitOpError("has places, but the memory phase was not here");
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::ReshardOp) {
        return op->emitOpError("is left over; run "
                               "dyna-materialize-collectives");
      })
      .Case([&](dist::CollectiveOpInterface collective) {
        return visitCollective(collective);
      })
      .Case<RowsOp, dist::ExchangeOp>(
          [&](Operation *op) { return visitBody(op); })
      .Default([&](Operation *) { return visitCompute(op); });
}

//===----------------------------------------------------------------------===//
// Attributes of an op about its part
//===----------------------------------------------------------------------===//

static LogicalResult expectAttribute(Operation *op, StringRef name,
                                     Attribute wanted, const Twine &why) {
  Attribute stated = op->getAttr(name);
  if (stated == wanted)
    return success();
  InFlightDiagnostic error = op->emitOpError() << "expects ";
  if (wanted)
    error << "'" << name << "' to be " << wanted;
  else
    error << "no '" << name << "'";
  error << ", as " << why << ", but got ";
  if (stated)
    return error << stated;
  return error << "none";
}

/// Checks a split table: it must be summed, or reduced, over all ranks with
/// parts.
LogicalResult LocalVerifier::checkShard(Operation *op, Value table) {
  const Meaning meaning = meanings.lookup(table);
  const AxisParts &parts = meaning.layout.dims[0];
  Attribute wanted;
  if (!parts.empty()) {
    dist::GroupAttr group = groups.find(layer.meshAttr, parts);
    if (!group)
      return op->emitOpError()
             << "has a part of a table, but its group is not in the module's '"
             << dist::kGroups.name << "'";
    wanted = ShardAttr::get(op->getContext(), group.getIndex(),
                            typeOf(meaning).getDimSize(0));
  }
  return expectAttribute(op, "shard", wanted,
                         "the table is laid out as " +
                             describeLayout(layer.mesh, meaning.layout));
}

/// Tokens are counted from the first of the micro-batch.
LogicalResult LocalVerifier::checkTokens(Operation *op,
                                         const AxisParts &parts) {
  Attribute wanted;
  if (!parts.empty())
    wanted = groups.find(layer.meshAttr, parts);
  return expectAttribute(op, dist::kTokens.name, wanted,
                         "its tokens are split over " +
                             describeParts(layer.mesh, parts));
}

/// Features are counted from the first of the row.
LogicalResult LocalVerifier::checkFeatures(Operation *op) {
  if (!countsFeatures(op))
    return success();
  const Layout layout = meanings.lookup(op->getOperand(0)).layout;
  Attribute wanted;
  if (!layout.dims[1].empty())
    wanted = groups.find(layer.meshAttr, layout.dims[1]);
  return expectAttribute(op, dist::kFeatures.name, wanted,
                         "its features are split over " +
                             describeParts(layer.mesh, layout.dims[1]));
}

LogicalResult LocalVerifier::checkParts(Operation *op) {
  if (failed(checkFeatures(op)))
    return failure();
  if (auto lookup = dyn_cast<TableOpInterface>(op))
    return checkShard(op, lookup.getTable());
  if (!countsTokens(op))
    return success();
  for (Value operand : op->getOperands())
    if (isActivation(operand.getType()))
      return checkTokens(op, meanings.lookup(operand).layout.dims[0]);
  // No operand has tokens, so the op may make those of this rank or all, as the
  // user of its result needs.
  return checkTokens(op, dist::kTokens.isOn(op) ? layer.tokens : AxisParts());
}

/// Returns the attributes of the logical op that the local one is a part of.
FailureOr<DictionaryAttr> LocalVerifier::globalAttributes(Operation *op) {
  NamedAttrList attributes = meaningOf(op);
  attributes.erase("shard"); // checkParts compares this and the next
  if (countsTokens(op))
    attributes.erase(dist::kTokens.name);
  if (countsFeatures(op))
    attributes.erase(dist::kFeatures.name);
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<AttentionOp, AttentionGradOp>([&](auto attention)
                                                  -> LogicalResult {
            auto partsOf = [&](Value value) {
              return ::dyna::groupSize(meanings.lookup(value).layout.dims[1]);
            };
            int64_t parts = partsOf(attention.getQuery());
            int64_t kvParts = partsOf(attention.getKey());
            int64_t kvHeads = attention.getKvHeads();
            if (parts != kvParts && kvHeads != 1)
              return op->emitOpError()
                     << "splits the query heads of one key/value head over "
                        "ranks and expects kv_heads = 1, but got "
                     << kvHeads;
            Builder builder(op->getContext());
            attributes.set("heads", builder.getI64IntegerAttr(
                                        int64_t(attention.getHeads()) * parts));
            attributes.set("kv_heads",
                           builder.getI64IntegerAttr(kvHeads * kvParts));
            return success();
          })
          .Default([](Operation *) { return success(); });
  if (failed(result))
    return failure();
  return attributes.getDictionary(op->getContext());
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

FailureOr<std::vector<Layout>>
LocalVerifier::inferLayouts(Operation *op, const dist::FactorRule &rule) {
  std::vector<Layout> operands;
  for (Value operand : op->getOperands())
    operands.push_back(meanings.lookup(operand).layout);
  // The sum is over the given elements, each of which is on one rank (Borders).
  if (auto squares = dyn_cast<SumSquaresOp>(op)) {
    const Layout &sum = operands[1];
    AxisParts all = {layer.mesh.wholeAxis(0)};
    if (!operands[0].partial.empty() || sum.partial != all)
      return op->emitOpError() << "expects whole gradients and a sum that is "
                                  "partial over all ranks";
    return std::vector<Layout>{sum};
  }
  AxisParts tokens;
  if (dist::kTokens.isOn(op))
    tokens = layer.tokens;
  auto results = inferResults(layer.mesh, rule, operands, tokens);
  if (!results.isOk())
    return op->emitOpError() << results.status().message();
  return *results;
}

/// Checks that all ranks have the same size if the kernel has only one size.
LogicalResult LocalVerifier::checkEvenParts(Operation *op,
                                            const dist::FactorRule &rule) {
  auto isEven = [&](Value value, const dist::TensorFactors &factors) {
    const Meaning meaning = meanings.lookup(value);
    for (auto [dim, list] : llvm::enumerate(factors)) {
      bool takesOneSize = llvm::all_of(list, [&](int factor) {
        return rule.factors[factor].kind != dist::Factor::Uneven;
      });
      int64_t size = typeOf(meaning).getDimSize(dim);
      if (takesOneSize && !ShapedType::isDynamic(size) &&
          size % ::dyna::groupSize(meaning.layout.dims[dim]) != 0)
        return false;
    }
    return true;
  };
  for (auto [value, factors] : llvm::zip(op->getOperands(), rule.operands))
    if (!factors.empty() && !isEven(value, factors))
      return op->emitOpError("expects parts of equal size of ")
             << typeOf(meanings.lookup(value));
  for (auto [value, factors] : llvm::zip(op->getResults(), rule.results))
    if (!factors.empty() && !isEven(value, factors))
      return op->emitOpError("expects parts of equal size of ")
             << typeOf(meanings.lookup(value));
  return success();
}

void LocalVerifier::noteGradients(Operation *op, const dist::FactorRule &rule) {
  for (auto [operand, result] : rule.tied) {
    if (operand >= int(op->getNumOperands()))
      continue;
    auto it = gradientOf.find(op->getOperand(operand));
    if (it == gradientOf.end())
      continue;
    int64_t parameter = it->second;
    layer.isAddedTo[parameter] = true;
    gradientOf[op->getResult(result)] = parameter;
  }
}

LogicalResult LocalVerifier::visitCompute(Operation *op) {
  FailureOr<dist::FactorRule> rule = getLayoutRule(op);
  if (failed(rule) || failed(checkParts(op)))
    return failure();
  FailureOr<std::vector<Layout>> layouts = inferLayouts(op, *rule);
  if (failed(layouts))
    return failure();
  FailureOr<DictionaryAttr> attributes = globalAttributes(op);
  if (failed(attributes))
    return failure();
  SmallVector<int> operands;
  for (Value operand : op->getOperands())
    operands.push_back(meanings.lookup(operand).number);
  std::optional<int> first = expressions.find(op, *attributes, operands);
  if (!first) {
    InFlightDiagnostic error = op->emitOpError()
                               << "computes what the logical function @"
                               << logical.getName() << " does not";
    if (DictionaryAttr others = expressions.attributesOn(op, operands))
      error << ": on these operands the op has the attributes " << others
            << " there, but here " << *attributes;
    return error;
  }
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    if (failed(set(op, result, *first + int(index), (*layouts)[index])))
      return failure();
  noteGradients(op, *rule);
  return checkEvenParts(op, *rule);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Attributes that are not those of the logical function; they are derived
/// (here and in VerifyLocal.cpp) or, after the memory phase, left to
/// dyna-verify-memory.
static bool isOwn(StringRef name) {
  return name == "sym_name" || name == "layer" || name == "function_type" ||
         name == "arg_places" || name == "result_places" ||
         name == "workspace" || name == "tiers" || name.starts_with("dist.");
}

/// Compares places. Before the memory phase they are those of the logical
/// function; afterwards offsets differ.
static bool areSamePlaces(ArrayAttr places, ArrayAttr logical,
                          bool hasOffsets) {
  if (!hasOffsets)
    return places == logical;
  return llvm::equal(
      places.getAsRange<PlaceAttr>(), logical.getAsRange<PlaceAttr>(),
      [](PlaceAttr a, PlaceAttr b) {
        return a.getMemory() == b.getMemory() && a.getIndex() == b.getIndex();
      });
}

/// Returns true if an attribute of the dialect `dist` has a meaning on this op.
/// Known ones are compared here.
static bool isKnown(Operation *op, StringRef name) {
  if (name == dist::kTokens.name)
    return countsTokens(op);
  if (name == dist::kFeatures.name)
    return countsFeatures(op);
  if (name == dist::kArguments.name || name == dist::kResults.name)
    return isa<LayerOp, FunctionOp>(op);
  return isa<LayerOp>(op) &&
         (name == dist::kGradients.name || name == dist::kMesh.name ||
          name == dist::kLogical.name || name == dist::kSequence.name);
}

LogicalResult LocalVerifier::checkAttributes() {
  auto shared = [](Operation *op) {
    NamedAttrList attributes = meaningOf(op);
    for (NamedAttribute attribute : op->getAttrs())
      if (isOwn(attribute.getName()))
        attributes.erase(attribute.getName());
    return attributes.getDictionary(op->getContext());
  };
  DictionaryAttr own = shared(function), others = shared(logical);
  if (own != others)
    return function->emitOpError()
           << "has the attributes " << own << ", but @" << logical.getName()
           << ", of which it is a part, has " << others;
  WalkResult known = function->walk([](Operation *op) {
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (attribute.getName().strref().starts_with("dist.") &&
          !isKnown(op, attribute.getName()))
        return WalkResult(op->emitOpError()
                          << "has '" << attribute.getName().strref()
                          << "', which says nothing here");
    return WalkResult::advance();
  });
  if (known.wasInterrupted())
    return failure();
  auto layerFunction = dyn_cast<FunctionOp>(function.getOperation());
  if (!layerFunction)
    return success();
  auto other = cast<FunctionOp>(logical.getOperation());
  bool hasOffsets = bool(layer.local.getTiersAttr());
  if (bool(layerFunction.getWorkspaceAttr()) != hasOffsets)
    return function->emitOpError("expects a 'workspace' if, and only if, the "
                                 "layer has 'tiers'; the memory phase sets "
                                 "both");
  if (areSamePlaces(layerFunction.getArgPlacesAttr(), other.getArgPlacesAttr(),
                    hasOffsets) &&
      areSamePlaces(layerFunction.getResultPlacesAttr(),
                    other.getResultPlacesAttr(), hasOffsets))
    return success();
  return function->emitOpError()
         << "has arguments or results in other places than @"
         << logical.getName();
}

static bool says(Attribute stated, dist::LayoutAttr layout) {
  auto attribute = dyn_cast<dist::LayoutAttr>(stated);
  return attribute && attribute.isEquivalentTo(layout);
}

LogicalResult LocalVerifier::checkArguments() {
  auto stated = dist::kArguments.of(function);
  ArrayRef<BlockArgument> arguments = function.getArguments();
  if (arguments.size() != logical.getNumArguments())
    return function->emitOpError()
           << "takes " << arguments.size() << " arguments, but @"
           << logical.getName() << " takes " << logical.getNumArguments();
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    int number = static_cast<int>(index); // counted as in the logical function
    auto whole = dyn_cast<RankedTensorType>(expressions.typeOf(number));
    meanings[argument] = {number, Layout()};
    if (!whole) {
      if (argument.getType() != expressions.typeOf(number) ||
          !isa<UnitAttr>(stated[index]))
        return function->emitOpError()
               << "expects argument " << index << " to be "
               << expressions.typeOf(number) << " without a layout";
      continue;
    }
    std::optional<Layout> layout = borders.ofArgument(index);
    if (!layout)
      return function->emitOpError()
             << "takes argument " << index << ", which nothing gives";
    if (!says(stated[index], dist::LayoutAttr::get(layer.meshAttr, *layout)))
      return function->emitOpError()
             << "states for argument " << index << " the layout "
             << stated[index] << ", but it is given as "
             << describeLayout(layer.mesh, *layout);
    meanings[argument].layout = *layout;
    RankedTensorType wanted = localType(whole, *layout);
    if (argument.getType() != wanted)
      return function->emitOpError()
             << "takes argument " << index << " of type " << argument.getType()
             << ", but " << describeLayout(layer.mesh, *layout) << " of "
             << whole << " is " << wanted;
    if (auto layerFunction = dyn_cast<FunctionOp>(function.getOperation())) {
      PlaceAttr place = layerFunction.getArgPlace(index);
      if (place.getMemory() == Memory::Gradient &&
          !isOptimizer(layerFunction.getRole()))
        gradientOf[argument] = place.getIndex();
    }
  }
  return success();
}

LogicalResult LocalVerifier::checkResult(Operation *terminator,
                                         unsigned index) {
  Value value = terminator->getOperand(index);
  const Meaning meaning = meanings.lookup(value);
  Operation *other = logical.getFunctionBody().front().getTerminator();
  if (meaning.number != expressions.numberOf(other->getOperand(index)))
    return terminator->emitOpError()
           << "returns as value " << index << " another one than @"
           << logical.getName();
  Attribute stated = dist::kResults.of(function)[index];
  if (!says(stated, dist::LayoutAttr::get(layer.meshAttr, meaning.layout)))
    return terminator->emitOpError()
           << "returns value " << index << " laid out as "
           << describeLayout(layer.mesh, meaning.layout) << ", but "
           << function.getName() << " promises " << stated;
  std::optional<Layout> wanted = borders.ofResult(index, meaning.layout);
  if (!wanted)
    return terminator->emitOpError()
           << "returns value " << index << ", which nothing takes";
  if (canonicalLayout(*wanted) != canonicalLayout(meaning.layout))
    return terminator->emitOpError()
           << "returns value " << index << " laid out as "
           << describeLayout(layer.mesh, meaning.layout)
           << ", but it is taken as " << describeLayout(layer.mesh, *wanted);
  return success();
}

LogicalResult LocalVerifier::checkResults() {
  Operation *terminator = function.getFunctionBody().front().getTerminator();
  Operation *other = logical.getFunctionBody().front().getTerminator();
  if (terminator->getNumOperands() != other->getNumOperands())
    return terminator->emitOpError()
           << "returns " << terminator->getNumOperands() << " values, but @"
           << logical.getName() << " returns " << other->getNumOperands();
  for (unsigned index = 0; index < terminator->getNumOperands(); ++index)
    if (failed(checkResult(terminator, index)))
      return failure();
  return success();
}

LogicalResult LocalVerifier::run() {
  for (auto [list, size] :
       {std::pair(dist::kArguments, function.getNumArguments()),
        std::pair(dist::kResults, function.getNumResults())}) {
    ArrayAttr layouts = list.of(function);
    if (!layouts || layouts.size() != size)
      return function->emitOpError()
             << "belongs to a layer of a tensor degree and needs '"
             << dist::kArguments.name << "' and '" << dist::kResults.name
             << "'";
  }
  if (failed(checkAttributes()) || failed(checkArguments()))
    return failure();
  for (Operation &op : function.getFunctionBody().front().without_terminator())
    if (failed(visit(&op)))
      return failure();
  return checkResults();
}
