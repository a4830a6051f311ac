//===- ProfileFile.h - What a profile writes -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measured times become a file of costs, beside what stands in it already, and
// lines for people that say how good they are.
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

/// What was measured.
struct Profiled {
  Measurements grid;
  Measurements heldOut; ///< off it
  ProfilePasses passes;
  double flopRate = 0;         ///< flops per second of the fastest call
  std::vector<double> between; ///< seconds from one instruction to the next
  std::vector<double> around;  ///< of a step's seconds those in no instruction
  /// Says which samples in slices do not fit the memory; empty: all do.
  std::string unfitSlices;
};

/// The costs that stand in the file already.
struct CostsBefore {
  cost::Table table;
  std::vector<std::string> comments;
};

/// Fails where the file could not be written, or has no costs of this model in its
/// compute type.
StatusOr<CostsBefore> readCostsBefore(const std::string &path,
                                      const Model &model);

/// Writes --profile's file: entries of other tensor degrees stay in it. Says what
/// is in it, and how far its functions are from what was measured off the grid.
Status writeProfile(const Session &session, const Profiled &profiled,
                    const MeasuredLinks &links, const CostsBefore &before);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILEFILE_H
