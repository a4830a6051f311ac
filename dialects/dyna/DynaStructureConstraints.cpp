//===- DynaStructureConstraints.cpp - Verifies layers and models ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `verify` sees an op whose attributes and types are sound but whose region is
// not yet verified; `verifyRegions` runs after everything inside was.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// ParameterOp
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  // PARAM1
  if (!isParameterType(getType()))
    return emitOpError() << "expects a static tensor of f64, f32 or bf16 with "
                            "at least one element, but got "
                         << getType();
  // PARAM2
  if (!getNormal().isFinite() || getNormal().isNegative())
    return emitOpError()
           << "expects 'normal' to be finite and not negative, but got "
           << getNormal().convertToDouble();
  if (!getConstant().isFinite())
    return emitOpError() << "expects 'constant' to be finite, but got "
                         << getConstant().convertToDouble();
  // PARAM3
  auto type = cast<RankedTensorType>(getType());
  if (getStored() && getStored()->getTransposed() && type.getRank() != 2)
    return emitOpError()
           << "expects two dimensions, as it is stored transposed, but got "
           << type;
  // PARAM4
  if (getStored() && getStored()->getParts() > 1 && type.getRank() == 0)
    return emitOpError()
           << "expects a dimension, as it is stored as a part of a tensor, but "
              "got "
           << type;
  return success();
}

//===----------------------------------------------------------------------===//
// LayerOp
//===----------------------------------------------------------------------===//

LogicalResult LayerOp::verify() {
  ArrayRef<Type> arguments = getArgumentTypes();
  uint64_t parameters = getNumParameters();
  // LAYER1
  if (parameters >= arguments.size())
    return emitOpError() << "expects an input behind its " << parameters
                         << " parameters, but got " << arguments.size()
                         << " arguments in all";
  // LAYER2
  for (auto [index, type] : llvm::enumerate(arguments.take_front(parameters)))
    if (!isParameterType(type))
      return emitOpError() << "expects parameter #" << index
                           << " to be a static tensor of f64, f32 or bf16, "
                              "but got "
                           << type;
  // LAYER3
  ArrayRef<Type> inputs = arguments.drop_front(parameters);
  if (!isActivation(inputs.front()) && !isIds(inputs.front()))
    return emitOpError() << "expects input #0 to be an activation such as "
                            "tensor<?x96xf32> or token ids tensor<?xi32>, but "
                            "got "
                         << inputs.front();
  for (auto [index, type] : llvm::enumerate(inputs.drop_front()))
    if (!isIds(type) && !isa<SegmentsType>(type))
      return emitOpError() << "expects input #" << index + 1
                           << " to be ids tensor<?xi32> or !dyna.segments, "
                              "but got "
                           << type;
  // LAYER4
  if (getResultTypes().empty() || getResultTypes().size() > 2)
    return emitOpError() << "expects 1 or 2 results, but got "
                         << getResultTypes().size();
  Type result = getResultTypes().front();
  if (!isActivation(result) && !isLoss(result))
    return emitOpError() << "expects the result to be an activation such as "
                            "tensor<?x96xf32> or the loss tensor<1xf64>, but "
                            "got "
                         << result;
  if (getResultTypes().size() == 2 &&
      (!isActivation(result) || !isLoss(getResultTypes().back())))
    return emitOpError() << "expects an activation and then the loss "
                            "tensor<1xf64> as two results, but got "
                         << result << " and " << getResultTypes().back();
  // LAYER5
  Type expected;
  for (Type type : llvm::concat<const Type>(arguments, getResultTypes())) {
    if (isIds(type) || isa<SegmentsType>(type) || isLoss(type))
      continue;
    Type element = getElementTypeOrSelf(type);
    if (!expected)
      expected = element;
    if (element != expected)
      return emitOpError() << "expects one element type for parameters and "
                              "activations, but got "
                           << expected << " and " << element;
  }
  return success();
}

bool LayerOp::givesLoss() { return isLoss(getResultTypes().back()); }

bool LayerOp::givesActivation() {
  return isActivation(getResultTypes().front());
}

/// Returns true if the distribute phase made the layer, for one rank of a mesh.
/// The attribute is of `dist`, which this dialect does not depend on.
static bool isPart(LayerOp layer) { return layer->hasAttr("dist.mesh"); }

/// Checks the tables in `body`; messages call it `what`.
static LogicalResult verifyTablesAreWhole(Region &body, StringRef what) {
  WalkResult result = body.walk([&](TableOpInterface op) {
    ShardAttr shard = op.getShardAttr();
    if (!shard)
      return WalkResult::advance();
    op->emitOpError() << "expects no 'shard' in " << what
                      << " without 'dist.mesh', but got a part of "
                      << shard.getRows()
                      << " rows: write the whole table, --dyna-distribute "
                         "deals it to ranks";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult LayerOp::verifyRegions() {
  // LAYER7
  if (!isPart(*this) && failed(verifyTablesAreWhole(getBody(), "a layer")))
    return failure();
  // LAYER6
  llvm::DenseMap<int64_t, DropoutOp> seen;
  WalkResult result = getBody().walk([&](DropoutOp dropout) {
    int64_t instance = dropout.getInstance();
    auto [entry, isNew] = seen.try_emplace(instance, dropout);
    if (isNew)
      return WalkResult::advance();
    InFlightDiagnostic diagnostic =
        dropout.emitOpError()
        << "expects an 'instance' of its own within the layer, but got "
        << instance << " again";
    diagnostic.attachNote(entry->second.getLoc()) << "first used here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verify() {
  // MODEL1
  TypeRange arguments = getBody().getArgumentTypes();
  if (arguments.size() != 3 || !isIds(arguments[0]) || !isIds(arguments[1]) ||
      !isa<SegmentsType>(arguments[2])) {
    InFlightDiagnostic diagnostic = emitOpError();
    diagnostic << "expects the arguments (tensor<?xi32>, tensor<?xi32>, "
                  "!dyna.segments): token ids, target ids and segments, but "
                  "got (";
    llvm::interleaveComma(arguments, diagnostic);
    return diagnostic << ")";
  }
  // MODEL5
  FactsAttr facts = getFacts();
  if (facts.getVocabulary() <= 0)
    return emitOpError() << "expects the fact 'vocabulary' to be positive, "
                            "but got "
                         << facts.getVocabulary();
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>("positions", facts.getPositions()),
        {"width", facts.getWidth()},
        {"heads", facts.getHeads()},
        {"kv_heads", facts.getKvHeads()},
        {"head_dim", facts.getHeadDim()},
        {"feed_forward", facts.getFeedForward()}})
    if (value < 0)
      return emitOpError() << "expects the fact '" << name
                           << "' not to be negative, but got " << value;
  return success();
}

/// Verifies (MODEL2).
static LogicalResult collectCalls(ModelOp model,
                                  SmallVectorImpl<CallOp> &calls) {
  Block &body = model.getBody().front();
  // Not `without_terminator`: an unregistered op may end the block, too.
  for (Operation &op : llvm::drop_end(body.getOperations())) {
    auto call = dyn_cast<CallOp>(op);
    if (!call)
      return op.emitOpError() << "expects only 'dyna.call' ops in a "
                                 "'dyna.model'; put it into a 'dyna.layer'";
    calls.push_back(call);
  }
  if (!isa<ReturnOp>(body.back()))
    return model.emitOpError() << "expects to end with 'dyna.return', but got '"
                               << body.back().getName() << "'";
  if (calls.empty())
    return model.emitOpError() << "expects at least one 'dyna.call', but got 0";
  return success();
}

/// (MODEL3)
static LogicalResult verifyChain(ArrayRef<CallOp> calls, Value tokens) {
  Value expected = tokens;
  StringRef what = "the token ids";
  for (CallOp call : calls) {
    if (call.getInputs().empty() || call.getInputs().front() != expected)
      return call.emitOpError()
             << "expects " << what << " as its first operand, but got "
             << (call.getInputs().empty() ? "no operand" : "another value");
    expected = call.getResult();
    what = "the result of the call before it";
  }
  CallOp last = calls.back();
  if (last.getActivation())
    return last.emitOpError()
           << "expects the loss alone as the result of the last call, but got "
              "an activation, which no call takes";
  return success();
}

/// (MODEL4)
static LogicalResult verifyUses(ArrayRef<CallOp> calls) {
  Operation *end = CallOp(calls.front())->getBlock()->getTerminator();
  for (CallOp call : calls)
    for (Value result : call->getResults())
      for (Operation *user : result.getUsers()) {
        const bool isLoss = result == call.getLoss();
        if (user == (isLoss ? end : call->getNextNode()))
          continue;
        InFlightDiagnostic diagnostic =
            call.emitOpError()
            << "expects its "
            << (isLoss ? "loss to be used by the terminator"
                       : "result to be used by the next op")
            << " alone, but got another use by '" << user->getName() << "'";
        diagnostic.attachNote(user->getLoc()) << "used here";
        return diagnostic;
      }
  return success();
}

/// (MODEL2): what the terminator returns.
static LogicalResult verifyLosses(ArrayRef<CallOp> calls) {
  Operation *end = CallOp(calls.front())->getBlock()->getTerminator();
  SmallVector<Value> losses;
  for (CallOp call : calls)
    if (Value loss = call.getLoss())
      losses.push_back(loss);
  if (losses.size() == 1 && end->getOperands() != ValueRange(losses))
    return end->emitOpError()
           << "expects to return the result of the last call, but got another "
              "value";
  if (end->getOperands() != ValueRange(losses))
    return end->emitOpError()
           << "expects to return the losses of all calls, in their order: "
           << losses.size() << ", but got " << end->getNumOperands()
           << (end->getNumOperands() == losses.size() ? " in another order"
                                                      : "");
  return success();
}

LogicalResult ModelOp::verifyRegions() {
  SmallVector<CallOp> calls;
  if (failed(collectCalls(*this, calls)))
    return failure();

  if (failed(verifyChain(calls, getBody().getArgument(0))) ||
      failed(verifyUses(calls)) || failed(verifyLosses(calls)))
    return failure();
  // MODEL6
  llvm::StringMap<CallOp> names;
  for (CallOp call : calls) {
    StringRef name = call.getLayerName();
    if (name.empty())
      return call.emitOpError() << "expects a layer name, but got \"\"";
    auto [entry, isNew] = names.try_emplace(name, call);
    if (isNew)
      continue;
    InFlightDiagnostic diagnostic =
        call.emitOpError() << "expects a layer name of its own, but got \""
                           << name << "\" again";
    diagnostic.attachNote(entry->second.getLoc()) << "first used here";
    return diagnostic;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

/// Returns the `Op` that a symbol names; reports an error and returns null if
/// there is none.
template <typename Op>
static Op lookUp(Operation *from, SymbolTableCollection &symbols,
                 FlatSymbolRefAttr name, StringRef what) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(from, name);
  if (auto op = dyn_cast_or_null<Op>(symbol))
    return op;
  InFlightDiagnostic diagnostic =
      from->emitOpError() << "expects " << what << " " << name << " to name a '"
                          << Op::getOperationName() << "', but ";
  if (!symbol) {
    diagnostic << "there is no such symbol";
    return {};
  }
  diagnostic << "got a '" << symbol->getName() << "'";
  diagnostic.attachNote(symbol->getLoc()) << "defined here";
  return {};
}

/// Verifies (CALL2) and the parameters of (CALL3).
static LogicalResult verifyParameters(CallOp call, LayerOp layer,
                                      SymbolTableCollection &symbols) {
  // CALL2
  ArrayAttr names = call.getParameters();
  if (names.size() != layer.getNumParameters()) {
    InFlightDiagnostic diagnostic =
        call.emitOpError() << "expects " << layer.getNumParameters()
                           << " parameters, as " << call.getCalleeAttr()
                           << " takes, but got " << names.size();
    diagnostic.attachNote(layer.getLoc()) << "layer defined here";
    return diagnostic;
  }
  // CALL3
  for (auto [index, name] :
       llvm::enumerate(names.getAsRange<FlatSymbolRefAttr>())) {
    auto parameter = lookUp<ParameterOp>(call, symbols, name, "the parameter");
    if (!parameter)
      return failure();
    Type expected = layer.getArgumentTypes()[index];
    if (parameter.getType() == expected)
      continue;
    InFlightDiagnostic diagnostic = call.emitOpError()
                                    << "expects parameter #" << index
                                    << " to have type " << expected << ", as "
                                    << call.getCalleeAttr() << " takes, but "
                                    << name << " is " << parameter.getType();
    diagnostic.attachNote(parameter.getLoc()) << "parameter defined here";
    return diagnostic;
  }
  return success();
}

Value CallOp::getLoss() {
  return isLoss(getResult().getType()) ? Value(getResult())
                                       : Value(getExitLoss());
}

Value CallOp::getActivation() {
  return isLoss(getResult().getType()) ? Value() : Value(getResult());
}

LogicalResult CallOp::verify() {
  // CALL4
  APFloat weight = getWeight();
  if (!weight.isFinite() || weight.isNegative())
    return emitOpError() << "expects 'weight' to be finite and not negative, "
                            "but got "
                         << weight.convertToDouble();
  if (!getLoss() && !weight.isExactlyValue(1))
    return emitOpError() << "expects no 'weight' without a loss, but got "
                         << weight.convertToDouble();
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // CALL1
  auto layer = lookUp<LayerOp>(*this, symbols, getCalleeAttr(), "callee");
  if (!layer)
    return failure();
  if (isPart(layer))
    return emitOpError() << "expects callee " << getCalleeAttr()
                         << " to be a whole layer, but it has 'dist.mesh', "
                            "which --dyna-distribute alone writes, on parts";
  if (failed(verifyParameters(*this, layer, symbols)))
    return failure();
  // CALL3
  ArrayRef<Type> expected =
      layer.getArgumentTypes().drop_front(layer.getNumParameters());
  if (getInputs().size() != expected.size())
    return emitOpError() << "expects " << expected.size() << " operands, as "
                         << getCalleeAttr() << " takes, but got "
                         << getInputs().size();
  for (auto [index, type] : llvm::enumerate(expected))
    if (getInputs()[index].getType() != type)
      return emitOpError() << "expects operand #" << index << " to have type "
                           << type << ", as " << getCalleeAttr()
                           << " takes, but got "
                           << getInputs()[index].getType();
  ArrayRef<Type> results = layer.getResultTypes();
  if (getNumResults() != results.size())
    return emitOpError() << "expects " << results.size() << " results, as "
                         << getCalleeAttr() << " gives, but got "
                         << getNumResults();
  for (auto [result, type] : llvm::zip_equal(getResults(), results))
    if (result.getType() != type)
      return emitOpError() << "expects the result to have type " << type
                           << ", as " << getCalleeAttr() << " gives, but got "
                           << result.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ReturnOp
//===----------------------------------------------------------------------===//

LogicalResult ReturnOp::verify() {
  // RETURN1: the parent's own invariants hold already.
  Operation *parent = (*this)->getParentOp();
  SmallVector<Type> expected;
  if (auto function = dyn_cast<FunctionOpInterface>(parent))
    llvm::append_range(expected, function.getResultTypes());
  else // MODEL2 says how many there are.
    expected.assign(std::max(1u, getNumOperands()),
                    RankedTensorType::get({1}, Float64Type::get(getContext())));
  if (getNumOperands() != expected.size())
    return emitOpError() << "expects " << expected.size()
                         << " operands, the results of the enclosing '"
                         << parent->getName() << "', but got "
                         << getNumOperands();
  for (auto [index, type] : llvm::enumerate(expected))
    if (getOperand(index).getType() != type)
      return emitOpError() << "expects operand #" << index << " to have type "
                           << type << ", that of the result of the enclosing '"
                           << parent->getName() << "', but got "
                           << getOperand(index).getType();
  return success();
}

//===----------------------------------------------------------------------===//
// FunctionOp
//===----------------------------------------------------------------------===//

/// Verifies (FUNCTION3), (FUNCTION4), (FUNCTION5), and the places of
/// (FUNCTION6) for the arguments or the results of a function.
static LogicalResult verifyPlacedTypes(FunctionOp function, StringRef what,
                                       ArrayRef<Type> types, ArrayAttr places) {
  // FUNCTION3
  llvm::DenseMap<std::pair<int64_t, int64_t>, unsigned> entries;
  for (auto [index, place] : llvm::enumerate(places.getAsRange<PlaceAttr>())) {
    if (!place.isArrayEntry())
      continue;
    auto [entry, isNew] = entries.try_emplace(
        {static_cast<int64_t>(place.getMemory()), place.getIndex()}, index);
    if (!isNew)
      return function.emitOpError()
             << "expects " << what << " #" << index << " to have an array "
             << "entry of its own, but got " << place << ", that of " << what
             << " #" << entry->second;
  }
  for (auto [index, type] : llvm::enumerate(types)) {
    auto place = cast<PlaceAttr>(places[index]);
    // FUNCTION4
    if (isa<SegmentsType>(type) != (place.getMemory() == Memory::Segments))
      return function.emitOpError()
             << "expects segments, and nothing else, in the place 'segments', "
                "but got "
             << what << " #" << index << " of type " << type << " in " << place;
    // FUNCTION5
    if (!isa<SegmentsType>(type) && !isActivation(type) && !isIds(type) &&
        !isParameterType(type))
      return function.emitOpError()
             << "expects " << what << " #" << index
             << " to be segments, or a ranked tensor of ids, f64, f32 or "
                "bf16 whose sizes but the first are static, but got "
             << type;
    // FUNCTION6
    if (place.getMemory() == Memory::Workspace)
      return function.emitOpError()
             << "expects " << what << " #" << index
             << " to outlive the call, but got " << place;
  }
  return success();
}

LogicalResult FunctionOp::verify() {
  // FUNCTION1
  if (getArgPlaces().size() != getArgumentTypes().size())
    return emitOpError() << "expects " << getArgumentTypes().size()
                         << " places, one per argument, but got "
                         << getArgPlaces().size();
  if (getResultPlaces().size() != getResultTypes().size())
    return emitOpError() << "expects " << getResultTypes().size()
                         << " places, one per result, but got "
                         << getResultPlaces().size();
  if (failed(verifyPlacedTypes(*this, "argument", getArgumentTypes(),
                               getArgPlaces())) ||
      failed(verifyPlacedTypes(*this, "result", getResultTypes(),
                               getResultPlaces())))
    return failure();
  // FUNCTION6
  if (PlaceAttr workspace = getWorkspaceAttr())
    if (workspace.getMemory() != Memory::Workspace)
      return emitOpError() << "expects 'workspace' to be a place in "
                              "workspace, but got "
                           << workspace;
  return success();
}

LogicalResult FunctionOp::verifyRegions() {
  int64_t last = -1;
  for (int64_t entry : getSparseParameters()) {
    // FUNCTION8
    if (entry <= last)
      return emitOpError()
             << "expects 'sparse' to list rising entries, but got " << entry
             << " behind " << last;
    BlockArgument argument = findArgument(Memory::Parameter, entry);
    if (!argument || cast<RankedTensorType>(argument.getType()).getRank() != 2)
      return emitOpError() << "expects 'sparse' to list matrices among the "
                              "parameters, but got "
                           << entry;
    if (!hasProductsAlone(entry))
      return emitOpError() << "expects matrix products alone to use parameter "
                           << entry
                           << " and its gradient, since 'sparse' lists it";
    last = entry;
  }
  return success();
}

LogicalResult FunctionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // FUNCTION2
  auto layer = lookUp<LayerOp>(*this, symbols, getLayerAttr(), "layer");
  if (!layer)
    return failure();
  // FUNCTION7
  return success(isPart(layer) || succeeded(verifyTablesAreWhole(
                                      getBody(), "a function of a layer")));
}

//===----------------------------------------------------------------------===//
// RowsOp
//===----------------------------------------------------------------------===//

LogicalResult RowsOp::verifyRegions() {
  Block &body = getBody().front();
  // ROWS1
  for (Operation &op : body.without_terminator())
    if (!op.hasTrait<dyna::OpTrait::RowWise>())
      return op.emitOpError() << "expects only row-wise ops in 'dyna.rows'; "
                                 "each row of their results depends on the "
                                 "same row of their operands alone";
  // ROWS2
  TypeRange yielded = body.getTerminator()->getOperandTypes();
  if (yielded.size() != getNumResults())
    return emitOpError() << "expects " << getNumResults()
                         << " yielded values, one per result, but got "
                         << yielded.size();
  for (auto [index, type] : llvm::enumerate(yielded))
    if (type != getResult(index).getType())
      return emitOpError() << "expects yielded value #" << index
                           << " to have type " << getResult(index).getType()
                           << ", that of the result, but got " << type;
  return success();
}
