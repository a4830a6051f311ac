//===- ConfigReader.h - Reads a model configuration with good errors ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A HuggingFace config.json has some fields that decide what the model
// computes, and many that do not. The reader returns fields with a default and
// bounds, and remembers which were asked for. It reports faults at the place of
// the field. A value that no model can have is an error. An unknown field is a
// warning, because a misspelt field would otherwise silently get its default.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_CONFIGREADER_H
#define DYNA_FRONTENDS_CONFIGREADER_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <optional>

namespace mlir::dyna {

/// Formats a number as people write it: 0.1, 1e-30.
std::string printNumber(double number);

class ConfigReader {
public:
  /// Parses the text; `isValid` says whether it is a JSON object.
  ConfigReader(MLIRContext *context, llvm::MemoryBufferRef text);
  bool isValid() const { return object_.has_value() && !failed_; }

  bool has(StringRef field) const;
  /// Returns true if the field exists and is not null.
  bool hasValue(StringRef field) { return find(field) != nullptr; }
  /// Return the value of a field, or `fallback` if the field is absent or null.
  /// Without fallback that is an error. After an error the value is the
  /// fallback, or the lower bound.
  int64_t integer(StringRef field, std::optional<int64_t> fallback,
                  int64_t lowest = 1, int64_t highest = INT32_MAX);
  /// Returns a number in [lowest, highest).
  double number(StringRef field, double fallback, double lowest,
                double highest);
  bool boolean(StringRef field, bool fallback);
  std::string string(StringRef field, StringRef fallback);
  /// Reports an error unless the field is absent, null or `expected`.
  void require(StringRef field, bool expected, StringRef why);
  /// Returns an object inside, or null.
  const llvm::json::Object *object(StringRef field);
  /// Warns of keys of such an object that are not known.
  void checkKeys(StringRef field, const llvm::json::Object &object,
                 ArrayRef<StringRef> known);
  /// Marks fields as known that decide nothing here.
  void ignore(ArrayRef<StringRef> fields);

  /// Returns the location of the whole configuration.
  Location location() const { return locateOffset(0); }

  InFlightDiagnostic error(StringRef field);
  InFlightDiagnostic warning(StringRef field);
  /// Warns of fields that were not asked for. Returns false after any error.
  bool finish();

  /// Returns the configuration as written, without white space. Adds
  /// `model_type` and `architectures` if they are missing. A field that is null
  /// gets the value that was used for it, because other readers have other
  /// defaults.
  std::string compact(StringRef modelType, StringRef architecture) const;

private:
  const llvm::json::Value *find(StringRef field);
  /// Returns the location of `"field":`, or the beginning of the file.
  Location locate(StringRef field) const;
  Location locateOffset(size_t offset) const;
  void refuseDuplicates();

  MLIRContext *context_;
  llvm::MemoryBufferRef text_;
  std::optional<llvm::json::Object> object_;
  /// Notes what a field means that is there, but null. Returns `value`.
  template <typename T> T used(StringRef field, T value);
  std::string fillNulls(std::string text) const;

  llvm::StringSet<> known_;
  llvm::StringMap<std::string> nulls_; ///< the values used for null
  bool failed_ = false;
};

} // namespace mlir::dyna

#endif // DYNA_FRONTENDS_CONFIGREADER_H
