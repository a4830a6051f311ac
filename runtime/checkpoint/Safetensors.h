//===- Safetensors.h - The safetensors format -------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes safetensors files: 8 bytes with the header's size N, a JSON
// header of N bytes that maps names to {"dtype", "shape", "data_offsets"}, and
// the tensors' bytes without gaps, little-endian and row-major.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/checkpoint/Tensor.h"
#include "runtime/data/Files.h"
#include "runtime/files/OutputFile.h"

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

  const std::string &name() const { return name_; }
  std::string_view bytes() const { return bytes_; }
  const Metadata &metadata() const { return metadata_; }
  /// In order of their place in the file.
  const std::vector<TensorView> &tensors() const { return tensors_; }
  /// The tensor of that name, or null.
  const TensorView *find(std::string_view name) const;

private:
  Status parseAll();
  Status parseHeader(std::string_view header, std::string_view buffer);

  std::string name_;
  MappedFile file_;
  std::string_view bytes_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::map<std::string, size_t, std::less<>> places_;
};

/// Writes `tensors` in the order of the reference writer: widest type first,
/// then by name. Does not close the file.
Status writeSafetensors(OutputFile &file,
                        const std::vector<TensorView> &tensors,
                        const Metadata &metadata = {});

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_SAFETENSORS_H
