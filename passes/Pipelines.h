//===- Pipelines.h - Builds the phases of the compiler ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// dynac and dyna-opt share these phases, each a list of passes. The comment of
// a phase says what it expects and what it guarantees. Its last pass verifies
// the guarantee.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PIPELINES_H
#define DYNA_PASSES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
}

namespace mlir::dyna {

struct ConvertPhaseOptions : PassPipelineOptions<ConvertPhaseOptions> {
  Option<std::string> type{
      *this, "type", llvm::cl::init(""),
      llvm::cl::desc("Compute type f64, f32 or bf16; empty: as written")};
};

struct DifferentiatePhaseOptions
    : PassPipelineOptions<DifferentiatePhaseOptions> {
  Option<std::string> gradients{
      *this, "gradients", llvm::cl::init(""),
      llvm::cl::desc(
          "In which gradients are added up: f32 or bf16; empty: f32, "
          "under f64 f64")};
  Option<bool> freezable{
      *this, "freezable", llvm::cl::init(false),
      llvm::cl::desc("Make the functions with which a run can freeze layers")};
};

struct DistributePhaseOptions : PassPipelineOptions<DistributePhaseOptions> {
  Option<std::string> strategy{
      *this, "strategy", llvm::cl::init(""),
      llvm::cl::desc("One strategy, such as dp=1,tp=2,pp=1, or several as "
                     "name: ...; name: ...")};
  Option<std::string> layer{
      *this, "layer", llvm::cl::init(""),
      llvm::cl::desc("Leave this layer alone, for reading; empty: all")};
  Option<std::string> role{
      *this, "role", llvm::cl::init(""),
      llvm::cl::desc("Leave functions of this role alone; empty: all")};
};

struct MemoryPhaseOptions : PassPipelineOptions<MemoryPhaseOptions> {
  Option<std::string> target{
      *this, "target", llvm::cl::init(""),
      llvm::cl::desc("What is planned for: cpu or cuda; empty: what the module "
                     "says, else cpu")};
  Option<bool> sparse{
      *this, "sparse", llvm::cl::init(false),
      llvm::cl::desc("Let weights of matrix products come in sparse form")};
};

/// Adds passes that convert parameters, layers and a model to one
/// floating-point type.
void buildConvertPhase(OpPassManager &manager,
                       const ConvertPhaseOptions &options);

/// Adds passes that derive the functions of every layer, by role. Afterwards
/// `dyna-verify-differentiated` holds.
void buildDifferentiatePhase(OpPassManager &manager,
                             const DifferentiatePhaseOptions &options = {});

/// Adds passes that make layers and layer functions for every tensor degree of
/// the strategies, with the types of one rank and collectives. The logical ones
/// stay as they are. Afterwards `dyna-verify-local` holds. If a layer or a role
/// is given, all others are erased at the end.
void buildDistributePhase(OpPassManager &manager,
                          const DistributePhaseOptions &options);

/// Adds passes that put row-wise ops into sweeps and give every value a place.
/// They also set the sizes of tiers and workspaces. Afterwards
/// `dyna-verify-memory` holds. A second run changes nothing. A module that was
/// planned for one target is refused for another.
void buildMemoryPhase(OpPassManager &manager,
                      const MemoryPhaseOptions &options = {});

/// Registers the passes of all phases and the pipeline `dyna-memory`.
void registerPhases();

} // namespace mlir::dyna

#endif // DYNA_PASSES_PIPELINES_H
