//===- DriverOptions.h - Lists the options of dynac -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_DRIVEROPTIONS_H
#define DYNA_CODEGEN_AOT_DRIVEROPTIONS_H

#include "codegen/aot/Linker.h"
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class OpPassManager;
}

namespace mlir::dyna {

struct DriverOptions {
  /// Adds passes of libraries above this one, which run on modules as they are read.
  void (*prepare)(OpPassManager &) = nullptr;
  std::string input;
  std::string output; ///< empty: the input's stem
  std::string computeType = "f32";
  std::string gradients; ///< f32 or bf16; empty: f32, under f64 f64
  /// Strategies as runtime/plan/model/Strategy.h reads them, or `search`. A
  /// search finds those with the shortest steps of `lengths` on `ranks` devices
  /// of `cluster`, or of `costs`.
  std::string strategies;
  /// Lengths of the samples of each strategy in a step. Plans use them, and so
  /// does a run without `--ranges`; empty: strategies are not combined.
  std::string ranges;
  /// File of costs, by which `strategies` are cut into stages; empty: each run
  /// cuts them.
  std::string costs;
  std::string cluster;          ///< devices as `--cluster` describes them
  int64_t ranks = 0;            ///< devices to search for; 0: all of `cluster`
  int64_t tokensPerBatch = 0;   ///< of a step, for a search; 0: default
  std::vector<int64_t> lengths; ///< of the samples to plan or search for
  /// File that `lengths` were read from; empty: none.
  std::string lengthsFile;
  /// Planning words that were given, by name, with their texts.
  std::vector<std::pair<std::string, std::string>> planWords;
  std::string stopAfter;
  std::string dumpDirectory;
  bool timePasses = false;
  std::string target = "cpu"; ///< or cuda
  bool sparse = false;        ///< weights may come in sparse form
  bool freezable = false;     ///< a run may freeze layers
  /// Architectures for target cuda, as `--dyna-embed-kernels` reads them.
  std::string architectures;
  std::vector<std::string> instructionSets; ///< empty: all
  std::string matmul = "library";
  unsigned optimizationLevel = 2;
  bool keepObjects = false;
  LinkOptions link;
};

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_DRIVEROPTIONS_H
