//===- StoredTensors.cpp - Verifies the tensors of parameters in files ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/StoredTensors.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace mlir::dyna;

LogicalResult StoredAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, int64_t part, int64_t parts,
                                 bool, StringAttr copy) {
  // STORED1
  if (name.empty())
    return emitError() << "expects 'name', that of a tensor, but got none";
  if (copy && (copy.getValue().empty() || copy.getValue() == name))
    return emitError() << "expects 'copy' to be another name than \"" << name
                       << "\", but got " << copy;
  // STORED2
  if (part < 0 || part >= parts)
    return emitError() << "expects 'part' to be one of the 'parts' = " << parts
                       << " from 0, but got " << part;
  return success();
}

LogicalResult FactsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef, int64_t, int64_t, int64_t, int64_t,
                                int64_t, int64_t, int64_t, StringRef,
                                StringAttr, ArrayAttr buffers, StringAttr) {
  // FACTS1
  if (buffers)
    for (Attribute buffer : buffers)
      if (auto end = dyn_cast<StringAttr>(buffer); !end || end.empty())
        return emitError() << "expects 'buffers' to be ends of names, but got "
                           << buffer;
  return success();
}

StoredAttr mlir::dyna::storedOf(ParameterOp parameter) {
  return parameter.getStored().value_or(StoredAttr::get(
      parameter.getContext(), parameter.getSymName(), 0, 1, false, {}));
}

SmallVector<ParameterOp>
mlir::dyna::parametersOf(ModelOp model, SymbolTableCollection &symbols) {
  llvm::SetVector<Operation *> found;
  for (CallOp call : model.getBody().getOps<CallOp>())
    for (auto name : call.getParameters().getAsRange<FlatSymbolRefAttr>())
      found.insert(symbols.lookupNearestSymbolFrom<ParameterOp>(call, name));
  return llvm::map_to_vector(
      found, [](Operation *op) { return cast<ParameterOp>(op); });
}

namespace {

/// The parameters that one tensor of a checkpoint holds, by their parts.
struct Tensor {
  ParameterOp first;
  std::map<int64_t, ParameterOp> parts;
};

/// Compares the parameters of a model with the tensors that they are stored in.
class StoredVerifier {
public:
  explicit StoredVerifier(ModelOp model) {
    if (StringAttr given = model.getFacts().getPrefix())
      prefix = given.getValue();
  }

  LogicalResult add(ParameterOp parameter);
  LogicalResult checkTensors();

private:
  /// Returns the name of a tensor in files that lack the prefix.
  StringRef bare(StringRef name) const {
    name.consume_front(prefix);
    return name;
  }
  LogicalResult checkParts(ParameterOp first, ParameterOp other);
  LogicalResult checkCopy(ParameterOp parameter);

  StringRef prefix;
  llvm::MapVector<StringRef, Tensor> tensors;
};

} // namespace

/// Ends a diagnostic with a note at the parameter that it conflicts with.
static LogicalResult refuse(InFlightDiagnostic &&diagnostic,
                            ParameterOp other) {
  diagnostic.attachNote(other.getLoc()) << "see @" << other.getSymName();
  return std::move(diagnostic);
}

LogicalResult StoredVerifier::checkParts(ParameterOp first, ParameterOp other) {
  const StoredAttr ours = storedOf(other), theirs = storedOf(first);
  // MODEL12
  if (ours.getName() != theirs.getName() ||
      ours.getParts() != theirs.getParts() ||
      ours.getTransposed() != theirs.getTransposed() ||
      ours.getCopy() != theirs.getCopy())
    return refuse(other.emitOpError()
                      << "expects to say of the tensor \"" << theirs.getName()
                      << "\" what @" << first.getSymName() << " says, "
                      << theirs << ", but got " << ours,
                  first);
  auto rest = [](ParameterOp op) {
    return cast<RankedTensorType>(op.getType()).getShape().drop_front();
  };
  if (rest(first) != rest(other))
    return refuse(other.emitOpError()
                      << "expects all dimensions but the first to be those of "
                         "@"
                      << first.getSymName() << ", the other part of \""
                      << theirs.getName() << "\", " << first.getType()
                      << ", but got " << other.getType(),
                  first);
  return success();
}

LogicalResult StoredVerifier::add(ParameterOp parameter) {
  const StoredAttr stored = storedOf(parameter);
  Tensor &tensor = tensors[bare(stored.getName())];
  if (!tensor.first)
    tensor.first = parameter;
  const bool isAlone =
      stored.getParts() == 1 || storedOf(tensor.first).getParts() == 1;
  auto [entry, isNew] = tensor.parts.insert({stored.getPart(), parameter});
  ParameterOp other = isNew ? tensor.first : entry->second;
  if (other == parameter)
    return success();
  // MODEL11
  if (!isNew || isAlone)
    return refuse(parameter.emitOpError()
                      << "expects to be stored where no other parameter is, "
                         "but got part "
                      << stored.getPart() << " of the tensor \""
                      << stored.getName() << "\", as @" << other.getSymName()
                      << " is",
                  other);
  return checkParts(tensor.first, parameter);
}

LogicalResult StoredVerifier::checkCopy(ParameterOp parameter) {
  const StoredAttr stored = storedOf(parameter);
  if (!stored.getCopy())
    return success();
  // MODEL13
  auto *there = tensors.find(bare(stored.getCopy().getValue()));
  if (there == tensors.end())
    return success();
  return refuse(parameter.emitOpError()
                    << "expects 'copy' to name no tensor of the model, but got "
                    << stored.getCopy(),
                there->second.first);
}

LogicalResult StoredVerifier::checkTensors() {
  for (auto &[name, tensor] : tensors) {
    ParameterOp first = tensor.first;
    const StoredAttr stored = storedOf(first);
    int64_t missing = 0;
    for (const auto &[part, parameter] : tensor.parts)
      missing += part == missing;
    // MODEL11
    if (missing < stored.getParts())
      return first.emitOpError()
             << "expects all " << stored.getParts() << " parts of the tensor \""
             << stored.getName() << "\" to be parameters of the model, but got "
             << "none for part " << missing;
    if (failed(checkCopy(first)))
      return failure();
  }
  return success();
}

LogicalResult mlir::dyna::checkStored(ModelOp model,
                                      SymbolTableCollection &symbols) {
  StoredVerifier verifier(model);
  for (ParameterOp parameter : parametersOf(model, symbols))
    if (failed(verifier.add(parameter)))
      return failure();
  return verifier.checkTensors();
}
