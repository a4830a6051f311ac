//===- TokenParts.cpp - Finds which tokens a rank has of a value ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/TokenParts.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/load/TokenPartBytes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;

static bool countsTokens(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.isDynamicDim(0);
}

/// Returns the group over which a layout splits tokens.
static dist::GroupAttr groupOf(FunctionOpInterface function,
                               Attribute attribute) {
  auto layout = dyn_cast<dist::LayoutAttr>(attribute);
  if (!layout || layout.getLayout().dims.empty())
    return {};
  ::dyna::AxisParts parts =
      ::dyna::canonicalParts(layout.getLayout().dims.front());
  if (parts.empty())
    return {};
  dist::MeshAttr mesh = layout.getMesh();
  if (auto index = dist::GroupAttr::getAxisIndex(mesh.getMesh(), parts))
    return dist::GroupAttr::get(*index, mesh, parts);
  auto module = function->getParentOfType<ModuleOp>();
  if (auto known = dist::kGroups.of(module))
    for (auto group : known.getAsRange<dist::GroupAttr>())
      if (group.getMesh() == mesh && group.getParts() == parts)
        return group;
  return {};
}

TokenParts::TokenParts(FunctionOpInterface function) {
  auto layouts = dist::kArguments.of(function);
  if (!layouts)
    return;
  for (auto [argument, layout] :
       llvm::zip(function.getFunctionBody().front().getArguments(), layouts))
    if (countsTokens(argument))
      set(argument, groupOf(function, layout));
  for (Operation &op : function.getFunctionBody().front())
    visit(&op);
}

void TokenParts::set(Value value, dist::GroupAttr group) {
  if (group)
    groups[value] = group;
}

void TokenParts::visit(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<RowsOp, dist::ExchangeOp>([&](auto op) {
        Block &body = op.getBody().front();
        for (Operation &inner : body.without_terminator())
          visit(&inner);
        for (auto [result, value] : llvm::zip_equal(
                 op.getResults(), body.getTerminator()->getOperands()))
          set(result, of(value));
      })
      .Case([&](dist::AllGatherOp gather) {
        if (gather.getDim() != 0)
          set(gather.getResult(), of(gather.getX()));
      })
      .Case<dist::ReduceScatterOp, dist::SliceOp>([&](auto cut) {
        set(cut.getResult(),
            cut.getDim() == 0 ? cut.getGroup() : of(cut.getX()));
      })
      .Case([&](dist::AllToAllOp exchange) {
        if (exchange.getTo() == 0)
          set(exchange.getResult(), exchange.getGroup());
        else if (exchange.getDim() != 0)
          set(exchange.getResult(), of(exchange.getX()));
      })
      .Default([&](Operation *op) {
        for (Value result : op->getResults())
          if (countsTokens(result))
            set(result, ofRows(op));
      });
}

dist::GroupAttr TokenParts::ofRows(Operation *op) const {
  if (auto group = dist::kTokens.of(op))
    return group;
  if (auto rows = dyn_cast<RowsOp>(op))
    return rows.getBody().front().empty()
               ? dist::GroupAttr()
               : ofRows(&rows.getBody().front().front());
  for (Value operand : op->getOperands())
    if (countsTokens(operand))
      return of(operand);
  return {};
}

LinearBytes TokenParts::bytesOf(Value value) const {
  LinearBytes bytes = mlir::dyna::bytesOf(value.getType());
  dist::GroupAttr group = of(value);
  if (!group)
    return bytes;
  bytes.tq = ::dyna::tokenPartBytes(bytes.tq, group.getSize());
  return bytes;
}
