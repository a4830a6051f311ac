//===- SelectFunctions.cpp - Selects functions by layer and role ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/SelectFunctions.h"
#include "passes/distribute/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_SELECTFUNCTIONS
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

/// Takes `part` and a dot, or the end, off the name.
static bool consumePart(StringRef &name, StringRef part) {
  StringRef rest = name;
  if (!rest.consume_front(part) || (!rest.empty() && !rest.consume_front(".")))
    return false;
  name = rest;
  return true;
}

/// Consumes `tp2` and `sp` in front of a role.
static void consumeDegree(StringRef &name) {
  StringRef digits = name.split('.').first;
  if (digits.consume_front("tp") && llvm::all_of(digits, llvm::isDigit))
    name = name.split('.').second;
  consumePart(name, "sp");
}

bool Selection::has(StringRef name) const {
  if (!layer.empty()) {
    if (!consumePart(name, layer))
      return false;
    consumeDegree(name);
    return role.empty() || (!name.empty() && consumePart(name, role));
  }
  // Names of layers may contain dots, names of roles do not.
  for (; !name.empty(); name = name.split('.').second)
    if (StringRef rest = name; consumePart(rest, role))
      return true;
  return role.empty();
}

static std::optional<StringRef> nameOf(Operation &op) {
  auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  if (!name || isa<ParameterOp, ModelOp>(op))
    return std::nullopt;
  return name.getValue();
}

LogicalResult mlir::dyna::checkSelection(ModuleOp module,
                                         const Selection &selection) {
  if (!selection.role.empty() && !symbolizeRole(selection.role)) {
    std::string roles;
    for (uint32_t role = 0; auto known = symbolizeRole(role); ++role)
      roles += (role ? ", " : "") + stringifyRole(*known).str();
    return module.emitError("expects a role of ")
           << roles << ", but got '" << selection.role << "'";
  }
  llvm::SetVector<StringRef> layers;
  for (Operation &op : *module.getBody()) {
    std::optional<StringRef> name = nameOf(op);
    if (name && selection.has(*name))
      return success();
    if (auto layer = dyn_cast<LayerOp>(op))
      layers.insert(layer.getSymName());
  }
  return module.emitError("has nothing of layer '")
         << selection.layer << "'"
         << (selection.role.empty() ? ""
                                    : " in the role '" + selection.role + "'")
         << "; its layers are: " << llvm::join(layers, ", ");
}

namespace {

struct SelectFunctions
    : mlir::dyna::impl::SelectFunctionsBase<SelectFunctions> {
  using Base::Base;

  void runOnOperation() override {
    Selection selection{layer, role};
    if (selection.isAll())
      return;
    ModuleOp module = getOperation();
    if (failed(checkSelection(module, selection)))
      return signalPassFailure();
    // Ops that these name stay too, such as the layer of a function or called
    // code.
    llvm::SetVector<Operation *> left;
    for (Operation &op : *module.getBody())
      if (std::optional<StringRef> name = nameOf(op);
          name && selection.has(*name))
        left.insert(&op);
    SymbolTable symbols(module);
    // The set grows while it is walked.
    for (size_t i = 0; i < left.size(); ++i)
      if (auto uses = SymbolTable::getSymbolUses(left[i]))
        for (const SymbolTable::SymbolUse &use : *uses)
          if (Operation *used =
                  symbols.lookup(use.getSymbolRef().getRootReference()))
            left.insert(used);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (!left.contains(&op))
        op.erase();
  }
};

} // namespace
