//===- Safetensors.h - The safetensors format -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads and writes safetensors files: 8 bytes with the header's size N, a JSON
// header of N bytes that maps names to {"dtype", "shape", "data_offsets"}, and
// the tensors' bytes without gaps, little-endian and row-major.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/base/Files.h"
#include "runtime/base/OutputFile.h"
#include "runtime/checkpoint/Tensor.h"

#include <functional>
#include <map>

namespace dyna {

using Metadata = std::map<std::string, std::string>;

/// A checked file. Everything in it lies in the mapping and ends with it.
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
  /// The files that were joined; none in a file that was read alone.
  const std::vector<SafetensorsFile> &parts() const { return parts_; }
  const Metadata &metadata() const { return metadata_; }
  /// Of all bytes; gives back the memory of those that it has read.
  uint64_t checksum() const;
  /// Fails if bytes that were read could not be, and are zeros. Called behind
  /// what reads them.
  Status checkReadable() const;
  /// Gives back the memory of what was read: it is read again when needed.
  void dropPages() const;
  /// In order of their place in the file; those of joined files one after another.
  const std::vector<TensorView> &tensors() const { return tensors_; }
  /// The tensor of that name, or null.
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

/// Takes bytes of a tensor, front to back.
using TakeBytes = std::function<Status(const void *data, size_t size)>;
/// Gives all bytes of a tensor whose view has no data, in as many pieces as it
/// likes, until one is not taken.
using GiveTensor = std::function<Status(const TensorView &, const TakeBytes &)>;

/// The order of the reference writer: widest type first, then by name.
void sortAsInFiles(std::vector<TensorView> &tensors);

/// Writes `tensors` in that order. Does not close the file.
Status writeSafetensors(OutputFile &file, std::vector<TensorView> tensors,
                        const Metadata &metadata = {},
                        const GiveTensor &give = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
