//===- Expressions.h - Numbers values by what they compute ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Numbers the values of a logical body, so that a local body can be compared
// with it op by op. Equal ops on equal values have equal numbers, in any order
// of the ops. Forms that phases write in two ways are one expression here:
//
//     linear x, w, b                      bias (linear x, w), b
//     linear_grad_input dy, w add z       add (linear_grad_input dy, w), z
//     add x, y                            add y, x
//
// Sweeps count as the ops that they contain.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_EXPRESSIONS_H
#define DYNA_PASSES_DISTRIBUTE_EXPRESSIONS_H

#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

namespace mlir::dyna {

class Expressions {
public:
  /// Numbers the values of all arguments and ops of a body without exchanges.
  explicit Expressions(Block &body);

  /// Returns the number of a value of the body.
  int numberOf(Value value) const { return numbers.lookup(value); }
  Type typeOf(int number) const { return types[number]; }

  /// Returns the number of the first result of an op with these attributes on
  /// these operands; the other results follow. Returns nothing if the body has
  /// no such op.
  std::optional<int> find(Operation *op, DictionaryAttr attributes,
                          ArrayRef<int> operands) const;
  /// Returns the attributes of an op of that name on these operands; null if
  /// there is none.
  DictionaryAttr attributesOn(Operation *op, ArrayRef<int> operands) const;

private:
  using Key = std::vector<uintptr_t>;
  int add(OperationName name, DictionaryAttr attributes, ArrayRef<int> operands,
          TypeRange results);
  void visit(Operation *op);

  std::map<Key, int> firstResults;
  /// Attributes by the keys without attributes.
  std::map<Key, DictionaryAttr> attributesOfOps;
  llvm::DenseMap<Value, int> numbers;
  SmallVector<Type> types;
};

/// Returns the attributes that say what an op computes. Places of its results
/// and attributes of other dialects are left out.
NamedAttrList meaningOf(Operation *op);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_EXPRESSIONS_H
