//===- DescribeData.h - What a run is given, for people ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H
#define DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H

#include "runtime/train/session/Session.h"

namespace dyna {

/// The data by name, with documents and tokens: in the table of every result.
std::string nameData(const Session &session);

/// How many documents were longer than samples may be, what became of them, and
/// the longest of them by its name; empty: none was.
std::string describeLongDocuments(const Session &session);

/// Documents, tokens, lengths of samples, samples of a step; a line each for
/// the data, and for what is held out.
std::vector<std::string> describeData(const Session &session);

/// Of --ranges: each with its strategy and how many samples there are; none where
/// there is one strategy.
std::vector<std::string> describeRanges(const Session &session);

/// Documents that became shorter samples, or none: one note for each reason.
std::vector<std::string> lengthNotes(const Session &session);

/// What the run does not train on, or reads otherwise than was meant: said in
/// any case.
std::vector<std::string> dataNotes(const Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_DESCRIBEDATA_H
