//===- Expressions.h - What a value is, whatever computes it ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Numbers the values of a logical body, so that a local body can be held
// against it op by op: equal ops on equal values have equal numbers, in
// whatever order they stand. What phases write in two ways is one here:
//
//     linear x, w, b                      bias (linear x, w), b
//     linear_grad_input dy, w add z       add (linear_grad_input dy, w), z
//     add x, y                            add y, x
//
// and sweeps are the ops that they hold.
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
  /// The values of all arguments and ops of a body without exchanges.
  explicit Expressions(Block &body);

  /// The number of a value of the body.
  int numberOf(Value value) const { return numbers.lookup(value); }
  Type typeOf(int number) const { return types[number]; }

  /// The number of the first result of an op with these attributes on these
  /// operands; the other results follow. Nothing if the body has no such op.
  std::optional<int> find(Operation *op, DictionaryAttr attributes,
                          ArrayRef<int> operands) const;
  /// The attributes of an op of that name on these operands; null if there is
  /// none.
  DictionaryAttr attributesOn(Operation *op, ArrayRef<int> operands) const;

private:
  using Key = std::vector<uintptr_t>;
  int add(OperationName name, DictionaryAttr attributes, ArrayRef<int> operands,
          TypeRange results);
  void visit(Operation *op);

  std::map<Key, int> firstResults;
  /// The same without attributes.
  std::map<Key, DictionaryAttr> attributesOfOps;
  llvm::DenseMap<Value, int> numbers;
  SmallVector<Type> types;
};

/// The attributes that say what an op computes: not where its results lie, nor
/// those of dialects that are not ours.
NamedAttrList meaningOf(Operation *op);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_EXPRESSIONS_H
