//===- Configuration.h - Ways to compile a model in tests -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_CONFIGURATION_H
#define DYNA_TEST_REFERENCE_CONFIGURATION_H

#include "test/reference/CompiledModel.h"
#include "test/reference/Tolerances.h"

#include <ostream>

namespace mlir::dyna::reference {

/// A parameter of a test: how models are compiled, how near they come to the evaluator,
/// and the first of their seeds.
struct Configuration {
  const char *name;
  CompileOptions options;
  CompiledTolerances tolerances;
  uint64_t firstSeed;
};

/// Prints the name, which ctest lists; without it, it has the bytes of the structure.
inline void PrintTo(const Configuration &configuration, std::ostream *stream) {
  *stream << configuration.name;
}

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_CONFIGURATION_H
