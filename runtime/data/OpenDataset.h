//===- OpenDataset.h - Opens data sets by name ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     directory       every regular file below it, in byte order of the paths,
//                     is one document of byte tokens; hidden and empty ones are
//                     left out, and other entries are counted (`notes`)
//     lines of JSON   one object per line: {"text"}, or {"input","target"} with
//                     the loss on the target only, or {"messages"} with the
//                     loss on the assistant's part (LineFields.h); other keys
//                     are ignored. Recognized by their names (.jsonl, .ndjson,
//                     .json) or their first line
//     PREFIX, .idx    Megatron-LM's indexed format, PREFIX.idx and PREFIX.bin;
//                     two of them whose names differ in "inputs"/"targets" only
//                     are a pair with the loss on the targets only
//     synthetic:...   random tokens with given lengths, see Lengths.h
//     any other file  one document of byte tokens; packed files, tables and
//                     executables, UTF-16 and a few others are refused by their
//                     content (FileContent.h), and counted in a directory
//
// Several paths are read one after the other; "A,B" means the same as two
// paths.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_OPENDATASET_H
#define DYNA_RUNTIME_DATA_OPENDATASET_H

#include "runtime/data/Dataset.h"

namespace dyna {

/// Opens the data sets of `paths`, one after the other.
StatusOr<DatasetPointer> openDataset(const std::vector<std::string> &paths,
                                     const DataOptions &options);

/// Returns the existing files that `paths` name.
std::vector<std::string> dataFiles(const std::vector<std::string> &paths);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_OPENDATASET_H
