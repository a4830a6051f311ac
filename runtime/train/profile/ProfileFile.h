//===- ProfileFile.h - Writes measured times to a file of costs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Merges measured times into the costs of the file, and writes lines for people
// that say how exact they are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROFILEFILE_H
#define DYNA_RUNTIME_TRAIN_PROFILEFILE_H

#include "runtime/plan/model/Model.h"
#include "runtime/train/profile/ProfileGrid.h"

#include <string>
#include <vector>

namespace dyna {

struct MeasuredLinks;
struct Session;

/// Results of a profile.
struct Profiled {
  Measurements grid;
  Measurements heldOut; ///< shapes off the grid
  ProfilePasses passes;
  double flopRate = 0;         ///< flops per second of the fastest call
  std::vector<double> between; ///< seconds between two consecutive instructions
  std::vector<double> around; ///< seconds of a step outside of all instructions
  /// Says which samples in slices do not fit the memory; empty: all do.
  std::string unfitSlices;
};

/// The costs of an existing file.
struct CostsBefore {
  cost::Table table;
  std::vector<std::string> comments;
};

/// Reads the existing costs. Fails if the file cannot be written, or has no
/// costs of this model in its compute type.
StatusOr<CostsBefore> readCostsBefore(const std::string &path,
                                      const Model &model);

/// Writes --profile's file. Entries of other tensor degrees stay in it. Tells
/// what was measured, and how much its predictions differ from the measurements
/// off the grid.
Status writeProfile(const Session &session, const Profiled &profiled,
                    const MeasuredLinks &links, const CostsBefore &before);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILEFILE_H
