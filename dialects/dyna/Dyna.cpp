//===- Dyna.cpp - Registers the dyna dialect --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/KnownAttributes.h"
#include "dialects/dyna/RowBytes.h"
#include "dialects/dyna/TargetName.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static bool isDynaFloat(Type type) {
  return type.isF64() || type.isF32() || type.isBF16();
}

/// Returns true if all sizes are positive and their product, in the widest
/// type, fits in 63 bits.
static bool areCountable(ArrayRef<int64_t> sizes) {
  int64_t bytes = sizeof(double);
  for (int64_t size : sizes)
    if (size <= 0 || llvm::MulOverflow(bytes, size, bytes))
      return false;
  return true;
}

bool mlir::dyna::isTokenMajor(Type type, int64_t rank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.getEncoding() && tensor.getRank() == rank &&
         tensor.isDynamicDim(0) && areCountable(tensor.getShape().drop_front());
}

bool mlir::dyna::isSized(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.getEncoding() && areCountable(tensor.getShape());
}

bool mlir::dyna::isActivation(Type type) {
  return isTokenMajor(type, 2) && isDynaFloat(getElementTypeOrSelf(type));
}

bool mlir::dyna::isIds(Type type) {
  return isTokenMajor(type, 1) &&
         getElementTypeOrSelf(type).isSignlessInteger(32);
}

bool mlir::dyna::isParameterType(Type type) {
  return isSized(type) && isDynaFloat(getElementTypeOrSelf(type));
}

bool mlir::dyna::isLoss(Type type) {
  return type ==
         RankedTensorType::get({1}, Float64Type::get(type.getContext()));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

LogicalResult mlir::dyna::check::verifyPlaces(Operation *op, ArrayAttr places) {
  if (!places)
    return success();
  // PLACES1
  size_t results = op->getNumResults();
  if (places.size() != results && places.size() != results + 1)
    return op->emitOpError()
           << "expects " << results << " places, one per result, or "
           << results + 1 << " with scratch, but got " << places.size();
  // PLACES2
  if (places.size() == results + 1) {
    auto scratch = dyn_cast<PlaceAttr>(places[results]);
    if (!scratch || scratch.getMemory() != Memory::Workspace)
      return op->emitOpError()
             << "expects the place of scratch, which follows those of the "
                "results, to be in workspace, but got "
             << places[results];
  }
  return success();
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                Memory memory, int64_t index, int64_t tq,
                                int64_t tkv, int64_t s, int64_t constant,
                                int64_t column, int64_t stride) {
  bool isArray = memory == Memory::Parameter || memory == Memory::Gradient ||
                 memory == Memory::Input || memory == Memory::Output;
  bool isBlock = !isArray && memory != Memory::Segments;
  // PLACE1
  if (index < 0 || (index != 0 && !isArray))
    return emitError() << "expects a place in '" << stringifyMemory(memory)
                       << "' to have "
                       << (isArray ? "an index that is not negative"
                                   : "no index")
                       << ", but got index = " << index;
  // PLACE2
  for (auto [name, offset] : {std::pair<StringRef, int64_t>("tq", tq),
                              {"tkv", tkv},
                              {"s", s},
                              {"constant", constant}})
    if (offset < 0 || (offset != 0 && !isBlock))
      return emitError() << "expects a place in '" << stringifyMemory(memory)
                         << "' to have "
                         << (isBlock ? "offsets that are not negative"
                                     : "no offset")
                         << ", but got " << name << " = " << offset;
  // PLACE3
  if (column < 0 || stride < 0 || ((column != 0 || stride != 0) && !isBlock) ||
      (column != 0 && stride == 0))
    return emitError() << "expects a place in '" << stringifyMemory(memory)
                       << "' to have "
                       << (isBlock ? "a column only with a stride, neither "
                                     "negative"
                                   : "neither column nor stride")
                       << ", but got column = " << column
                       << ", stride = " << stride;
  return success();
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t group, int64_t rows) {
  // SHARD1
  if (group < 0)
    return emitError() << "expects 'group', an index into the groups of the "
                          "context, not to be negative, but got "
                       << group;
  // SHARD2
  if (rows <= 0)
    return emitError() << "expects 'rows', those of the whole table, to be "
                          "positive, but got "
                       << rows;
  return success();
}

#include "dialects/dyna/DynaDialect.cpp.inc"
#include "dialects/dyna/DynaEnums.cpp.inc"
#include "dialects/dyna/DynaInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dyna/DynaTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dyna/DynaAttributes.cpp.inc"

static constexpr KnownAttribute attributes[] = {
    {kTarget.name, "modules", [](Operation *op) { return isa<ModuleOp>(op); },
     "\"cpu\" or \"cuda\"",
     [](Attribute value) {
       auto name = dyn_cast<StringAttr>(value);
       return name && symbolizeTargetName(name.getValue());
     }},
    // Compare names, because this dialect does not depend on the dialect of
    // kernels.
    {kRowBytes.name, "kernels",
     [](Operation *op) { return op->getName().getStringRef() == "llvm.func"; },
     "a positive number of bytes in i64",
     [](Attribute value) {
       auto bytes = dyn_cast<IntegerAttr>(value);
       return bytes && bytes.getType().isSignlessInteger(64) &&
              bytes.getInt() > 0;
     }},
};

void DynaDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dyna/DynaTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dyna/DynaAttributes.cpp.inc"
      >();
  StrictOps<
#define GET_OP_LIST
#include "dialects/dyna/Dyna.cpp.inc"
      >::addTo(*this);
  addInterface(std::make_unique<KnownAttributes>(this, attributes));
}

LogicalResult DynaDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  return getRegisteredInterface<KnownAttributes>()->verify(op, attribute);
}
