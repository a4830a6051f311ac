//===- Driver.h - The phases of dynac ------------------------- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In: a file with one `dyna.model`. Out: a training binary, or the module as it
// is after a phase. Phases, each ending in its verifier:
//
//   parse          the file itself, in the compute type asked for
//   (search)       the strategies to compile, where they are not given
//   differentiate  layer functions with gradients
//   distribute     also at the tensor degrees of the strategies
//   memory         every value has a place
//   plan           graphs and plans of the strategies, for lengths that are
//                  given; only to be looked at
//   lower          the LLVM dialect
//   llvm           LLVM IR
//   (objects, link)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_DRIVER_H
#define DYNA_CODEGEN_AOT_DRIVER_H

#include "codegen/aot/Linker.h"

#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
}

namespace mlir::dyna {

struct DriverOptions {
  /// What is above this library and has a word on modules.
  void (*extend)(DialectRegistry &) = nullptr;
  std::string input;
  std::string output; ///< empty: the input's stem
  std::string computeType = "f32";
  std::string gradients; ///< f32 or bf16; empty: f32, under f64 f64
  /// As runtime/plan/Strategy.h reads them; or search: those with which steps of
  /// `lengths` are shortest on `ranks` devices of `cluster`, or of `costs`.
  std::string strategies;
  /// Lengths that each has in a step, in plans and where a run is told nothing
  /// else; empty: apart.
  std::string ranges;
  std::string costs; ///< file that cuts them into stages; empty: each run does
  std::string cluster;          ///< described devices, to search for
  int64_t ranks = 0;            ///< to search for; 0: all devices
  int64_t tokensPerBatch = 0;   ///< of a step, to search for; 0: as a run's
  std::vector<int64_t> lengths; ///< of the samples to plan or search for
  std::string lengthsFile;      ///< they are from; empty: from no file
  std::string microBatches; ///< what these plans are made of; empty: as a run
  std::string stopAfter;
  std::string dumpDirectory;
  bool timePasses = false;
  std::vector<std::string> instructionSets; ///< empty: all
  std::string matmul = "library";
  unsigned optimizationLevel = 2;
  bool keepObjects = false;
  LinkOptions link;
};

/// Runs the driver; diagnostics go to stderr. Returns the process's exit code:
/// 0; 2 when an option, a file or the module cannot be used; 1 when a module
/// that is fine does not become code, which is a fault of the compiler.
int runDriver(const DriverOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_DRIVER_H
