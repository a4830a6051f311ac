//===- Exec.h - Defines the exec dialect: graphs and plans ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executable graphs and plans in a form that people can read, verify and test.
// PlanTranslation.h translates them to and from the messages of runtime/plan.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXEC_H
#define DYNA_DIALECTS_EXEC_EXEC_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/exec/ExecDialect.h.inc"
#include "dialects/exec/ExecEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/Exec.h.inc"

#endif // DYNA_DIALECTS_EXEC_EXEC_H
