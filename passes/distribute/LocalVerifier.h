//===- LocalVerifier.h - Verifies a local function against the logical one ===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A local function is right if every value in it is a known value of the
// logical function in a known layout. The verifier follows both from the
// arguments:
//
//     %0 = dyna.linear %h, %w     [24, 24] of [48, 24]   [[], []] partial [tp]
//     %1 = dist.all_reduce %0     the same value         [[], []]
//     %2 = dyna.gelu %1           gelu of that value     [[], []]
//
// An op stands for the logical op of its name and attributes, on the values
// that its operands stand for (Expressions.h). A collective stands for its
// operand. Layouts follow from the layer's own: those of its parameters, of
// their gradients, and of the activations at its borders. Nothing else is
// trusted. Each attribute of the local function has one correct value, which
// the verifier compares.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_LOCALVERIFIER_H
#define DYNA_PASSES_DISTRIBUTE_LOCALVERIFIER_H

#include "dialects/dist/FactorRule.h"
#include "passes/distribute/Expressions.h"
#include "passes/distribute/LocalTypes.h"
#include "passes/distribute/deduce/Borders.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::dyna {

/// The groups of a module, and the subset that some op needs.
struct NeededGroups {
  GroupTable table;
  llvm::DenseSet<Attribute> needed;

  dist::GroupAttr find(dist::MeshAttr mesh, const ::dyna::AxisParts &parts) {
    dist::GroupAttr group = table.find(mesh, parts);
    if (group)
      needed.insert(group);
    return group;
  }
};

/// Follows values and layouts through one layer or layer function.
class LocalVerifier {
public:
  LocalVerifier(LocalLayer &layer, NeededGroups &groups,
                FunctionOpInterface function, FunctionOpInterface logical)
      : layer(layer), groups(groups), function(function), logical(logical),
        borders(layer, function),
        expressions(logical.getFunctionBody().front()) {}
  LogicalResult run();

private:
  /// The logical value that a local value stands for, and its layout.
  struct Meaning {
    int number = 0;
    ::dyna::Layout layout;
  };

  LogicalResult checkAttributes();
  LogicalResult checkArguments();
  LogicalResult checkResults();
  LogicalResult checkResult(Operation *terminator, unsigned index);
  LogicalResult visit(Operation *op);
  LogicalResult visitBody(Operation *op);
  LogicalResult visitCollective(dist::CollectiveOpInterface op);
  LogicalResult visitCompute(Operation *op);
  FailureOr<std::vector<::dyna::Layout>>
  inferLayouts(Operation *op, const dist::FactorRule &rule);
  LogicalResult checkEvenParts(Operation *op, const dist::FactorRule &rule);
  LogicalResult checkShard(Operation *op, Value table);
  LogicalResult checkTokens(Operation *op, const ::dyna::AxisParts &parts);
  LogicalResult checkFeatures(Operation *op);
  LogicalResult checkParts(Operation *op);
  FailureOr<DictionaryAttr> globalAttributes(Operation *op);
  LogicalResult set(Operation *op, Value value, int number,
                    const ::dyna::Layout &layout);
  void noteGradients(Operation *op, const dist::FactorRule &rule);

  RankedTensorType typeOf(const Meaning &meaning) const {
    return cast<RankedTensorType>(expressions.typeOf(meaning.number));
  }

  LocalLayer &layer;
  NeededGroups &groups;
  FunctionOpInterface function, logical;
  Borders borders;
  Expressions expressions;
  llvm::DenseMap<Value, Meaning> meanings;
  /// Accumulators, each with the parameter whose gradient it is.
  llvm::DenseMap<Value, int64_t> gradientOf;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_LOCALVERIFIER_H
