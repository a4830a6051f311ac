//===- FileContent.h - Recognizes the form of a data file -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_FILECONTENT_H
#define DYNA_RUNTIME_DATA_FILECONTENT_H

#include "runtime/data/Dataset.h"

#include <string>
#include <string_view>

namespace dyna {

struct FileContent {
  enum class Kind {
    Text,      ///< or bytes of no known form
    JsonLines, ///< objects with the members of a form (LineFields.h)
    Foreign,   ///< a form that is not read
  };
  Kind kind = Kind::Text;
  std::string name;   ///< of a foreign form: "gzip data"
  std::string advice; ///< how to fix it
};

/// Bytes of a file's beginning that show its form.
inline constexpr size_t contentBytes = 4096;

/// Classifies a file by its first `contentBytes`, whatever its name.
FileContent contentOf(std::string_view beginning,
                      const LineFields &fields = {});

/// Reads the beginning of a regular file, and classifies it.
StatusOr<FileContent> lookAtContent(const std::string &path,
                                    const LineFields &fields = {});

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_FILECONTENT_H
