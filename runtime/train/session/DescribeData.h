//===- DescribeData.h - Describes the data of a run for people --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H
#define DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H

#include "runtime/train/session/Session.h"

namespace dyna {

/// Returns the name of the data, with documents and tokens, for the table of
/// results.
std::string nameData(const Session &session);

/// Describes the documents that were longer than samples may be: their number,
/// their treatment, and the name of the longest. Empty if there are none.
std::string describeLongDocuments(const Session &session);

/// Describes documents, tokens, lengths of samples, and samples of a step. One
/// line for the data, and one for the held-out data.
std::vector<std::string> describeData(const Session &session);

/// Describes --ranges: each range with its strategy and number of samples.
/// Empty without ranges.
std::vector<std::string> describeRanges(const Session &session);

/// Returns a note for each reason for which documents became shorter samples,
/// or none.
std::vector<std::string> lengthNotes(const Session &session);

/// Returns warnings about data that the run does not train on, or reads in an
/// unexpected form. They are always shown.
std::vector<std::string> dataNotes(const Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H
