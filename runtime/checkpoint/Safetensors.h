//===- Safetensors.h - Reads and writes the safetensors format --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A safetensors file has three parts: 8 bytes with the header's size N, a JSON
// header of N bytes, and the bytes of the tensors. The header maps names to
// {"dtype", "shape", "data_offsets"}. The bytes have no gaps, are little-endian
// and row-major.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/base/file/Files.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/checkpoint/Tensor.h"

#include <functional>
#include <map>

namespace dyna {

using Metadata = std::map<std::string, std::string>;

/// A checked file. Its contents lie in the mapping, and are valid as long as it
/// is.
class SafetensorsFile {
public:
  /// Maps and checks the file.
  static StatusOr<SafetensorsFile> open(const std::string &path);
  /// Checks bytes that outlive the result; `name` stands for them in messages.
  static StatusOr<SafetensorsFile> parse(std::string_view bytes,
                                         const std::string &name);

  /// Joins files whose tensors have different names; `name` stands for them in
  /// messages. The result has no `bytes`.
  static StatusOr<SafetensorsFile> join(std::vector<SafetensorsFile> parts,
                                        const std::string &name);

  const std::string &name() const { return name_; }
  std::string_view bytes() const { return bytes_; }
  /// Returns the files that were joined; none for a file that was read alone.
  const std::vector<SafetensorsFile> &parts() const { return parts_; }
  const Metadata &metadata() const { return metadata_; }
  /// Returns the checksum of all bytes, and releases the memory of the pages
  /// that it has read.
  uint64_t checksum() const;
  /// Fails if an earlier read could not get all bytes; those bytes are then
  /// zeros. Call it after reading.
  Status checkReadable() const;
  /// Releases the memory of pages that were read; they are read again when
  /// needed.
  void dropPages() const;
  /// Returns the tensors in the order of the file; those of joined files one
  /// file after another.
  const std::vector<TensorView> &tensors() const { return tensors_; }
  /// Returns the tensor of that name, or null.
  const TensorView *find(std::string_view name) const;

private:
  Status parseAll();
  Status parseHeader(std::string_view header, std::string_view buffer);
  Status sortNames();

  std::string name_;
  MappedFile file_;
  std::string_view bytes_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<size_t> byName_;         ///< indices of `tensors_`
  std::vector<SafetensorsFile> parts_; ///< files that were joined
};

/// Receives the bytes of a tensor, front to back.
using TakeBytes = std::function<Status(const void *data, size_t size)>;
/// Gives all bytes of a tensor whose view has no data, in pieces of any size.
/// Stops at the first failure.
using GiveTensor = std::function<Status(const TensorView &, const TakeBytes &)>;

/// Sorts as the reference writer does: widest type first, then by name.
void sortAsInFiles(std::vector<TensorView> &tensors);

/// Writes `tensors` in that order. Does not close the file.
Status writeSafetensors(OutputFile &file, std::vector<TensorView> tensors,
                        const Metadata &metadata = {},
                        const GiveTensor &give = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
