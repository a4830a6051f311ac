//===- Expressions.cpp - Numbers values by what they compute --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/Expressions.h"

using namespace mlir;
using namespace mlir::dyna;

NamedAttrList mlir::dyna::meaningOf(Operation *op) {
  NamedAttrList attributes;
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    StringRef name = attribute.getName();
    bool isForeign = name.contains('.') && !name.starts_with("dist.") &&
                     !name.starts_with("dyna.");
    if (name != "places" && !isForeign)
      attributes.append(attribute);
  }
  return attributes;
}

/// Splits an op into the parts of its normal form. `get` is called with each
/// part, and returns the number of its first result. Returns the number of the
/// last part, which is that of the op.
template <typename Get>
static std::optional<int> normalForm(Operation *op, DictionaryAttr attributes,
                                     ArrayRef<int> operands, Get get) {
  TypeRange types = op->getResultTypes();
  MLIRContext *context = op->getContext();
  StringRef rest;
  if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias())
    rest = BiasOp::getOperationName();
  if (auto grad = dyn_cast<LinearGradInputOp>(op);
      grad && grad.getAccumulator())
    rest = AddOp::getOperationName();
  SmallVector<int> given(operands);
  if (rest.empty()) {
    if (op->hasTrait<mlir::OpTrait::IsCommutative>())
      llvm::sort(given);
    return get(op->getName(), attributes, given, types);
  }
  std::optional<int> product =
      get(op->getName(), attributes, operands.drop_back(), types);
  if (!product)
    return std::nullopt;
  given = {*product, operands.back()};
  OperationName name(rest, context);
  if (name.hasTrait<mlir::OpTrait::IsCommutative>())
    llvm::sort(given);
  return get(name, DictionaryAttr::get(context), given, types);
}

static std::vector<uintptr_t> keyOf(OperationName name,
                                    ArrayRef<int> operands) {
  std::vector<uintptr_t> key(operands.begin(), operands.end());
  key.push_back(reinterpret_cast<uintptr_t>(name.getAsOpaquePointer()));
  return key;
}

static std::vector<uintptr_t> keyOf(OperationName name, ArrayRef<int> operands,
                                    DictionaryAttr attributes) {
  std::vector<uintptr_t> key = keyOf(name, operands);
  key.push_back(reinterpret_cast<uintptr_t>(attributes.getAsOpaquePointer()));
  return key;
}

int Expressions::add(OperationName name, DictionaryAttr attributes,
                     ArrayRef<int> operands, TypeRange results) {
  attributesOfOps.try_emplace(keyOf(name, operands), attributes);
  auto [it, isNew] = firstResults.try_emplace(keyOf(name, operands, attributes),
                                              static_cast<int>(types.size()));
  if (isNew)
    llvm::append_range(types, results);
  return it->second;
}

void Expressions::visit(Operation *op) {
  if (auto rows = dyn_cast<RowsOp>(op)) {
    Block &body = rows.getBody().front();
    for (Operation &inner : body.without_terminator())
      visit(&inner);
    for (auto [result, value] : llvm::zip_equal(
             rows.getResults(), body.getTerminator()->getOperands()))
      numbers[result] = numberOf(value);
    return;
  }
  SmallVector<int> operands;
  for (Value operand : op->getOperands())
    operands.push_back(numberOf(operand));
  DictionaryAttr attributes = meaningOf(op).getDictionary(op->getContext());
  std::optional<int> first = normalForm(
      op, attributes, operands,
      [&](OperationName name, DictionaryAttr attributes, ArrayRef<int> operands,
          TypeRange results) -> std::optional<int> {
        return add(name, attributes, operands, results);
      });
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    numbers[result] = *first + static_cast<int>(index);
}

Expressions::Expressions(Block &body) {
  for (BlockArgument argument : body.getArguments()) {
    numbers[argument] = static_cast<int>(types.size());
    types.push_back(argument.getType());
  }
  for (Operation &op : body.without_terminator())
    visit(&op);
}

std::optional<int> Expressions::find(Operation *op, DictionaryAttr attributes,
                                     ArrayRef<int> operands) const {
  return normalForm(
      op, attributes, operands,
      [&](OperationName name, DictionaryAttr attributes, ArrayRef<int> operands,
          TypeRange) -> std::optional<int> {
        auto it = firstResults.find(keyOf(name, operands, attributes));
        if (it == firstResults.end())
          return std::nullopt;
        return it->second;
      });
}

DictionaryAttr Expressions::attributesOn(Operation *op,
                                         ArrayRef<int> operands) const {
  SmallVector<int> given(operands);
  if (op->hasTrait<mlir::OpTrait::IsCommutative>())
    llvm::sort(given);
  auto it = attributesOfOps.find(keyOf(op->getName(), given));
  return it == attributesOfOps.end() ? DictionaryAttr() : it->second;
}
