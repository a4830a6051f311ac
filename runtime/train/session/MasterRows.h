//===- MasterRows.h - Reads and writes rows of parameters -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Initial values and checkpoints have f32 (f64 under f64) for every parameter.
// A rank keeps a frozen parameter in the compute type alone. So rows are
// rounded when they are written, as a cast rounds. They are widened when they
// are read, which is exact.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SESSION_MASTERROWS_H
#define DYNA_RUNTIME_TRAIN_SESSION_MASTERROWS_H

#include "runtime/checkpoint/Tensor.h"
#include "runtime/executor/run/RankTeam.h"

namespace dyna {

/// Returns the type of parameters in files: f64 under f64, f32 otherwise.
DType masterDType(const Model &model);

/// Write and read rows of the logical tensor of a parameter in `masterDType`.
/// All processes call them together, as RankTeam::writeRows and readRows.
Status writeMasterRows(RankTeam &ranks, int parameter, RowRange rows,
                       const void *source);
Status readMasterRows(RankTeam &ranks, int parameter, RowRange rows,
                      void *target);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SESSION_MASTERROWS_H
