//===- RandomModule.h - Valid dyna modules by chance ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models that nobody would write, but the compiler must get right: odd widths,
// heads of one feature, values used twice or never, parameters tied within and
// between layers, all orders of ops. The same seed gives the same module.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_RANDOMMODULE_H
#define DYNA_TEST_REFERENCE_RANDOMMODULE_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/reference/Evaluator.h"

namespace mlir::dyna::reference {

/// A stream of choices.
class Choices {
public:
  explicit Choices(uint64_t seed) : seed(seed) {}
  /// In [0, 1).
  double next();
  /// In [low, high].
  int64_t between(int64_t low, int64_t high);
  bool chance(double probability) { return next() < probability; }
  template <typename T> T oneOf(std::initializer_list<T> list) {
    return *(list.begin() + between(0, static_cast<int64_t>(list.size()) - 1));
  }

private:
  uint64_t seed;
  uint64_t count = 0;
};

/// Appends a random model named `prefix` with its layers and parameters, whose
/// names begin with `prefix`, so that several fit into one module. With
/// `smooth` every relu is squared: bf16 rounds values across its kink, and then
/// gradients of few tokens have nothing in common any more.
ModelOp addRandomModel(ModuleOp module, StringRef prefix, uint64_t seed,
                       bool smooth = false);

/// Tokens and targets for a model: ragged, sometimes empty, some targets
/// ignored. `number` tells the micro-batches of one seed apart.
Batch makeRandomBatch(ModelOp model, uint64_t seed, int64_t number);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_RANDOMMODULE_H
