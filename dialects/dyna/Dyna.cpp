//===- Dyna.cpp - The dyna dialect -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;

#include "dialects/dyna/DynaDialect.cpp.inc"
#include "dialects/dyna/DynaEnums.cpp.inc"
#include "dialects/dyna/DynaInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dyna/DynaTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dyna/DynaAttributes.cpp.inc"

void DynaDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dyna/DynaTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dyna/DynaAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dyna/Dyna.cpp.inc"
      >();
}
