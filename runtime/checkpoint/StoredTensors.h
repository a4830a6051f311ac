//===- StoredTensors.h - Finds parameters in the tensors of files ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model names every parameter on its own and keeps every weight as [out, in]. Files
// may have other names and layouts: the manifest says them, parameter by parameter.
// A model without any stores each parameter under its own name, as it is.
//
//   @h.0.attn.k.weight [out, in], part 1 of 3, transposed
//       ->  transformer.h.0.attn.c_attn.weight [in, 3 out], q then k then v
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_CHECKPOINT_STOREDTENSORS_H
#define DYNA_RUNTIME_CHECKPOINT_STOREDTENSORS_H

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/plan/Manifest.pb.h"

namespace dyna {

/// Position of a parameter in a file.
struct Placement {
  std::string name; ///< of the tensor
  /// The parameter is part `part` of `parts` that one tensor has side by side, along the
  /// outputs.
  int part = 0, parts = 1;
  bool isTransposed = false; ///< stored as [in, out]
  /// Files may repeat the tensor under this name; empty: they do not.
  std::string copy;
};

/// Names of a model's tensors in files.
struct StoredNames {
  std::vector<Placement> parameters; ///< empty: each under its own name
  /// Files that are read may lack it before all names.
  std::string prefix;
  std::vector<std::string> buffers; ///< ends of names that are no parameters
};

/// Returns what the manifest says of names, for its parameters in order.
StoredNames storedNames(const plan::Manifest &manifest);

/// A tensor of a file, and the parameters that it is made of.
struct StoredTensor {
  TensorView view;             ///< its data is null
  std::vector<size_t> members; ///< indices of parameters, side by side
  bool isTransposed = false;
  /// Returns true if it is one parameter, not transposed.
  bool isPlain() const { return members.size() == 1 && !isTransposed; }
};

/// Returns the tensors of a file with these parameters, which are all that `names` knows.
/// Data is not looked at. Fails if parts of a tensor are missing or do not fit.
StatusOr<std::vector<StoredTensor>>
storedTensors(const StoredNames &names,
              const std::vector<TensorView> &parameters);

/// Copies rows [begin, end) of a member parameter into `target`, the memory of
/// the whole stored tensor.
void placeRows(const StoredTensor &stored,
               const std::vector<TensorView> &parameters, size_t member,
               int64_t begin, int64_t end, const void *rows, void *target);

/// A parameter to be filled.
struct ParameterSlot {
  std::string name; ///< logical
  std::vector<int64_t> shape;
  DType type = DType::F32;
  void *data = nullptr; ///< null if rows are fetched instead
  /// Exit, or layer with adapters, that the parameter was added with; empty: none. Slots of one
  /// such part stay as they are if the file has no tensor of any of them.
  std::string addedPart;
};

/// Receives rows [begin, end) of the parameter of a slot, in the slot's type.
using TakeRows = std::function<Status(size_t slot, int64_t begin, int64_t end,
                                      const void *rows)>;

/// Fills every slot from `file`, and converts between floating-point types. Fails,
/// with nothing filled, at the first tensor that is missing, has another shape or
/// does not belong to the model. The buffers of `names` are skipped. Names may have the prefixes of wrapped modules,
/// "_orig_mod." and "module.", if all names in the file have them.
Status importTensors(const StoredNames &names, const SafetensorsFile &file,
                     const std::vector<ParameterSlot> &slots);
/// Does the same, but gives rows to `take`, a few megabytes at a time. Ends at the
/// first failure of `take`. `missing` gets the added parts that the file lacks, if the file
/// has others.
Status importTensors(const StoredNames &names, const SafetensorsFile &file,
                     const std::vector<ParameterSlot> &slots,
                     const TakeRows &take,
                     std::vector<std::string> *missing = nullptr);
/// Gives all rows of one tensor, which has the slot's shape, to `take`.
Status importRows(const SafetensorsFile &file, const TensorView &stored,
                  const std::vector<ParameterSlot> &slots, size_t slot,
                  const TakeRows &take);

} // namespace dyna

#endif // DYNA_RUNTIME_CHECKPOINT_STOREDTENSORS_H
