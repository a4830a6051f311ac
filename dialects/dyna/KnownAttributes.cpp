//===- KnownAttributes.cpp - Refuses attributes that no code reads --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/KnownAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::dyna;

StringRef mlir::dyna::nearestName(StringRef name, ArrayRef<StringRef> names,
                                  unsigned most) {
  StringRef nearest;
  unsigned best = most + 1;
  for (StringRef candidate : names) {
    unsigned distance =
        name.edit_distance(candidate, /*AllowReplacements=*/true, best);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/// Returns true if the syntax of ops never has it among the attributes.
static bool isSpelledElsewhere(StringRef name) {
  return name == "sym_name" || name == "arg_attrs" || name == "res_attrs" ||
         name == "function_type" || name == "num_parameters" ||
         name.ends_with("SegmentSizes");
}

/// Reports that `name` is none of `known`: suggests the known name for a typing
/// error, else lists all.
static InFlightDiagnostic refuse(InFlightDiagnostic diagnostic, StringRef name,
                                 ArrayRef<StringRef> known) {
  diagnostic << "does not know the attribute '" << name << "'";
  SmallVector<StringRef> writable(llvm::make_filter_range(
      known, [](StringRef other) { return !isSpelledElsewhere(other); }));
  if (writable.empty())
    return std::move(diagnostic << ": it takes none");
  StringRef nearest =
      nearestName(name, writable, /*most=*/(name.size() + 2) / 3);
  if (!nearest.empty())
    return std::move(diagnostic << "; the nearest that it knows is '" << nearest
                                << "'");
  diagnostic << "; it knows ";
  llvm::interleaveComma(writable, diagnostic, [&](StringRef other) {
    diagnostic << "'" << other << "'";
  });
  return diagnostic;
}

/// Returns the attributes that the op's definition and the dialects declare for
/// it.
static SmallVector<StringRef> knownNames(Operation *op) {
  SmallVector<StringRef> names;
  if (std::optional<RegisteredOperationName> info = op->getRegisteredInfo())
    for (StringAttr name : info->getAttributeNames())
      names.push_back(name.getValue());
  // The loaded dialects are sorted by name.
  for (Dialect *dialect : op->getContext()->getLoadedDialects())
    if (auto *table = dialect->getRegisteredInterface<KnownAttributes>())
      for (const KnownAttribute &attribute : table->get())
        if (attribute.mayStandOn(op))
          names.push_back(attribute.name);
  return names;
}

LogicalResult KnownAttributes::verify(Operation *op,
                                      NamedAttribute attribute) const {
  StringRef name = attribute.getName().getValue();
  const auto *entry = llvm::find_if(
      known, [&](const KnownAttribute &entry) { return entry.name == name; });
  if (entry == known.end())
    return refuse(op->emitOpError(), name, knownNames(op));
  if (!entry->mayStandOn(op))
    return op->emitOpError() << "does not take the attribute '" << name
                             << "', which stands on " << entry->where;
  if (!entry->isKind(attribute.getValue()))
    return op->emitOpError() << "expects '" << name << "' to be " << entry->kind
                             << ", but got " << attribute.getValue();
  return success();
}

/// Arguments and results of layers and functions have no attributes.
static LogicalResult verifyBorders(FunctionOpInterface function) {
  for (auto [what, lists] :
       {std::pair<StringRef, ArrayAttr>("argument", function.getArgAttrsAttr()),
        {"result", function.getResAttrsAttr()}}) {
    if (!lists)
      continue;
    for (auto [index, list] :
         llvm::enumerate(lists.getAsRange<DictionaryAttr>()))
      if (!list.empty())
        return refuse(function->emitOpError()
                          << "in its " << what << " #" << index << " ",
                      list.begin()->getName(), {});
  }
  return success();
}

LogicalResult check::verifyKnownAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    // The dialect's table has already checked its attributes.
    Dialect *dialect = attribute.getNameDialect();
    if (!dialect || !dialect->getRegisteredInterface<KnownAttributes>())
      return refuse(op->emitOpError(), attribute.getName(), knownNames(op));
  }
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return verifyBorders(function);
  return success();
}

LogicalResult
check::verifyKnownProperties(ArrayRef<StringRef> names, Attribute properties,
                             function_ref<InFlightDiagnostic()> emitError) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(properties);
  if (!dictionary)
    return success();
  for (NamedAttribute property : dictionary)
    if (!llvm::is_contained(names, property.getName().getValue()))
      return refuse(emitError(), property.getName(), names);
  return success();
}
