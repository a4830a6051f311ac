//===- Emulation.h - Kernels of a GPU on the processor ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_EMULATION_H
#define DYNA_TEST_REFERENCE_EMULATION_H

#include <utility>
#include <vector>

namespace mlir::dyna::reference {

/// Names and addresses of what code for the emulated architecture calls and the
/// host's device lacks: launches of kernels, which have ended when the call
/// returns, each with another seed; products in f64, and what is described
/// behind others; and what kernels ask of a GPU.
std::vector<std::pair<const char *, void *>> emulationKernels();

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_EMULATION_H
