//===- StoredTensors.cpp - Finds parameters in the tensors of files -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/StoredTensors.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace dyna;

namespace {

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

//===--- Names ------------------------------------------------------------===//

/// Returns where a parameter lies; under its own name if the model names no
/// place.
Placement placementOf(const StoredNames &names, size_t index,
                      const std::string &parameter) {
  if (index < names.parameters.size())
    return names.parameters[index];
  Placement own;
  own.name = parameter;
  return own;
}

/// Returns a name without the prefix that files may lack.
std::string bareName(const StoredNames &names, const std::string &name) {
  return startsWith(name, names.prefix) ? name.substr(names.prefix.size())
                                        : name;
}

//===--- Layout -----------------------------------------------------------===//

/// Parameters that share one stored tensor, in order of their parts.
struct Group {
  Placement placement;         ///< of the first
  std::vector<size_t> members; ///< indices of the parameters
  std::vector<int64_t> stored; ///< shape in the file
};

/// A parameter as this file's functions see it, on export and on import.
struct Shaped {
  const std::string *name;
  const std::vector<int64_t> *shape;
};

Status groupParameters(const StoredNames &names,
                       const std::vector<Shaped> &parameters,
                       std::vector<Group> &groups) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Placement placement = placementOf(names, i, *parameters[i].name);
    auto [at, isNew] = places.emplace(placement.name, groups.size());
    if (isNew)
      groups.push_back({placement, {}, {}});
    Group &group = groups[at->second];
    size_t size = parameters[i].shape->size();
    if (placement.isTransposed && size != 2)
      return Status::invalidArgument("parameter " + *parameters[i].name +
                                     " must have two dimensions, but is " +
                                     shapeText(*parameters[i].shape));
    group.members.push_back(i);
  }
  for (Group &group : groups) {
    auto placed = [&](size_t i) {
      return placementOf(names, i, *parameters[i].name);
    };
    auto partOf = [&](size_t i) { return placed(i).part; };
    std::sort(group.members.begin(), group.members.end(),
              [&](size_t a, size_t b) { return partOf(a) < partOf(b); });
    const Shaped &first = parameters[group.members[0]];
    bool isWhole = int(group.members.size()) == group.placement.parts &&
                   partOf(group.members[0]) == 0;
    group.stored = *first.shape;
    for (size_t m = 1; m < group.members.size(); ++m) {
      const std::vector<int64_t> &shape = *parameters[group.members[m]].shape;
      const Placement own = placed(group.members[m]);
      isWhole =
          isWhole && own.part == int(m) && !shape.empty() &&
          own.isTransposed == group.placement.isTransposed &&
          shape.size() == group.stored.size() &&
          std::equal(shape.begin() + 1, shape.end(), group.stored.begin() + 1);
      if (isWhole)
        group.stored[0] += shape[0];
    }
    if (!isWhole)
      return Status::invalidArgument(
          "parameter " + *first.name + " is stored in " +
          bareName(names, group.placement.name) +
          " together with others that are missing or do not fit it");
    if (group.placement.isTransposed)
      std::swap(group.stored[0], group.stored[1]);
  }
  return Status::ok();
}

/// to[c * toStride + r] = from[r * fromStride + c], in tiles that stay in
/// cache.
template <typename T>
void transposeAs(const unsigned char *from, int64_t fromStride,
                 unsigned char *to, int64_t toStride, int64_t rows,
                 int64_t columns) {
  constexpr int64_t tile = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += tile)
    for (int64_t c0 = 0; c0 < columns; c0 += tile)
      for (int64_t r = r0; r < std::min(rows, r0 + tile); ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + tile); ++c)
          std::memcpy(to + (c * toStride + r) * int64_t(sizeof(T)),
                      from + (r * fromStride + c) * int64_t(sizeof(T)),
                      sizeof(T));
}

void transpose(int64_t elementBytes, const void *from, int64_t fromStride,
               void *to, int64_t toStride, int64_t rows, int64_t columns) {
  auto *in = static_cast<const unsigned char *>(from);
  auto *out = static_cast<unsigned char *>(to);
  switch (elementBytes) {
  case 1:
    return transposeAs<uint8_t>(in, fromStride, out, toStride, rows, columns);
  case 2:
    return transposeAs<uint16_t>(in, fromStride, out, toStride, rows, columns);
  case 4:
    return transposeAs<uint32_t>(in, fromStride, out, toStride, rows, columns);
  default:
    return transposeAs<uint64_t>(in, fromStride, out, toStride, rows, columns);
  }
}

int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Outputs of one member that are handled at once.
int64_t rowsAtOnce(int64_t rowBytes) {
  constexpr int64_t bytes = int64_t(4) << 20;
  return std::max<int64_t>(1, bytes / std::max<int64_t>(rowBytes, 1));
}

int64_t rowElements(const std::vector<int64_t> &shape) {
  return shape.empty() || shape[0] == 0 ? 1 : elementsOf(shape) / shape[0];
}

/// Returns the rows of a shape; a scalar is one row.
int64_t rowsOf(const std::vector<int64_t> &shape) {
  return shape.empty() ? 1 : shape[0];
}

//===--- Import -----------------------------------------------------------===//

/// Inverts `placeRows`, for the member whose outputs begin at `offset`.
Status takeMember(const SafetensorsFile &file, const Group &group,
                  const TensorView &stored, const ParameterSlot &slot,
                  size_t index, int64_t offset, const TakeRows &take) {
  int64_t bytes = dtypeBytes(slot.type), from = dtypeBytes(stored.type);
  int64_t rows = rowsOf(slot.shape), width = rowElements(slot.shape);
  int64_t count = rowsAtOnce(width * bytes);
  auto *source = static_cast<const unsigned char *>(stored.data);
  std::vector<unsigned char> found, turned;
  for (int64_t begin = 0; begin < rows; begin += count) {
    int64_t end = std::min(rows, begin + count), outputs = end - begin;
    found.resize(static_cast<size_t>(outputs * width * bytes));
    if (!group.placement.isTransposed) {
      convertElements(stored.type, source + (offset + begin) * width * from,
                      slot.type, found.data(), outputs * width);
    } else {
      // Stored row i holds column i of every member.
      for (int64_t i = 0; i < width; ++i)
        convertElements(stored.type,
                        source + (i * group.stored[1] + offset + begin) * from,
                        slot.type, found.data() + i * outputs * bytes, outputs);
      turned.resize(found.size());
      transpose(bytes, found.data(), outputs, turned.data(), width, width,
                outputs);
    }
    file.dropPages();
    DYNA_RETURN_IF_ERROR(file.checkReadable());
    DYNA_RETURN_IF_ERROR(
        take(index, begin, end,
             group.placement.isTransposed ? turned.data() : found.data()));
  }
  return Status::ok();
}

Status takeGroup(const SafetensorsFile &file, const Group &group,
                 const TensorView &stored,
                 const std::vector<ParameterSlot> &slots,
                 const TakeRows &take) {
  int64_t offset = 0;
  for (size_t member : group.members) {
    DYNA_RETURN_IF_ERROR(
        takeMember(file, group, stored, slots[member], member, offset, take));
    offset += rowsOf(slots[member].shape);
  }
  return Status::ok();
}

/// Returns the prefixes of wrapped modules that all names in the file have:
/// torch.compile adds "_orig_mod.", data parallelism adds "module.".
std::string wrapperOf(const SafetensorsFile &file) {
  std::string wrapper;
  auto haveAll = [&](const std::string &prefix) {
    return !file.tensors().empty() &&
           std::all_of(file.tensors().begin(), file.tensors().end(),
                       [&](const TensorView &tensor) {
                         return tensor.name.compare(0, prefix.size(), prefix) ==
                                0;
                       });
  };
  for (bool isLonger = true; isLonger;) {
    isLonger = false;
    for (const char *prefix : {"_orig_mod.", "module."})
      if (haveAll(wrapper + prefix)) {
        wrapper += prefix;
        isLonger = true;
      }
  }
  return wrapper;
}

/// Returns the file's tensor of a stored name, with or without the prefixes of the
/// model and of wrapped modules.
const TensorView *findStored(const StoredNames &names,
                             const SafetensorsFile &file,
                             const std::string &wrapper,
                             const std::string &name) {
  const std::string bare = bareName(names, name);
  for (const std::string &outer : {std::string(), wrapper})
    for (const std::string &prefix : {std::string(), names.prefix})
      if (const TensorView *tensor = file.find(outer + prefix + bare))
        return tensor;
  return nullptr;
}

/// Returns what a file holds, for people: how many tensors, and the first ones.
std::string describeTensors(const SafetensorsFile &file) {
  constexpr size_t most = 3, mostLetters = 60;
  std::string text =
      " It holds " + std::to_string(file.tensors().size()) + " tensors";
  for (size_t i = 0; i < std::min(most, file.tensors().size()); ++i) {
    const TensorView &tensor = file.tensors()[i];
    text += (i > 0 ? ", " : ": ") + tensor.name.substr(0, mostLetters) +
            (tensor.name.size() > mostLetters ? "... " : " ") +
            shapeText(tensor.shape);
  }
  return text + (file.tensors().size() > most ? ", ..." : "");
}

Status checkStored(const StoredNames &names, const SafetensorsFile &file,
                   const TensorView *stored, const Group &group,
                   const std::vector<ParameterSlot> &slots) {
  const std::string anotherModel = "; is this a checkpoint of another model?";
  if (!stored)
    return Status::invalidArgument(file.name() + " has no tensor " +
                                   bareName(names, group.placement.name) +
                                   ", which this model needs with shape " +
                                   shapeText(group.stored) + anotherModel +
                                   describeTensors(file));
  if (stored->shape != group.stored)
    return Status::invalidArgument(file.name() + ": tensor " + stored->name +
                                   " has shape " + shapeText(stored->shape) +
                                   ", but this model needs " +
                                   shapeText(group.stored) + anotherModel);
  for (size_t member : group.members) {
    DType type = slots[member].type;
    if (stored->type != type && !(isFloat(stored->type) && isFloat(type)))
      return Status::invalidArgument(file.name() + ": tensor " + stored->name +
                                     " is of type " + dtypeName(stored->type) +
                                     ", but this model needs " +
                                     dtypeName(type));
  }
  return Status::ok();
}

/// Drops the groups of added parts that the file has nothing of. Returns these parts if the
/// file has others.
std::vector<std::string> dropMissing(const std::vector<ParameterSlot> &slots,
                                     std::vector<Group> &groups,
                                     std::vector<const TensorView *> &stored) {
  auto partOf = [&](const Group &group) -> const std::string & {
    return slots[group.members.front()].addedPart;
  };
  std::set<std::string> found;
  for (size_t i = 0; i < groups.size(); ++i)
    if (stored[i])
      found.insert(partOf(groups[i]));
  std::vector<std::string> missing;
  size_t kept = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string &part = partOf(groups[i]);
    if (!part.empty() && found.count(part) == 0) {
      if (std::find(missing.begin(), missing.end(), part) == missing.end())
        missing.push_back(part);
      continue;
    }
    if (kept != i) {
      groups[kept] = std::move(groups[i]);
      stored[kept] = stored[i];
    }
    ++kept;
  }
  groups.resize(kept);
  stored.resize(kept);
  found.erase("");
  return found.empty() ? std::vector<std::string>() : missing;
}

/// Returns true if a tensor repeats another one, which is used instead. A file of a tied
/// model may repeat the embedding as the head.
bool isCopy(const SafetensorsFile &file, const std::string &wrapper,
            const TensorView &tensor, const std::vector<Group> &groups,
            const std::vector<const TensorView *> &stored) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string &copy = groups[i].placement.copy;
    if (copy.empty() || tensor.name != wrapper + copy ||
        tensor.type != stored[i]->type || tensor.shape != stored[i]->shape)
      continue;
    int64_t bytes = *tensorBytes(tensor.type, tensor.shape);
    return bytes == 0 || std::memcmp(tensor.data, stored[i]->data,
                                     static_cast<size_t>(bytes)) == 0;
  }
  return false;
}

/// Checks that every tensor is used, or is known to be no parameter.
Status checkUnused(const StoredNames &names, const SafetensorsFile &file,
                   const std::string &wrapper, const std::vector<Group> &groups,
                   const std::vector<const TensorView *> &stored) {
  const std::set<const TensorView *> used(stored.begin(), stored.end());
  for (const TensorView &tensor : file.tensors()) {
    if (used.count(&tensor) ||
        std::any_of(names.buffers.begin(), names.buffers.end(),
                    [&](const std::string &end) {
                      return endsWith(tensor.name, end);
                    }) ||
        isCopy(file, wrapper, tensor, groups, stored))
      continue;
    return Status::invalidArgument(
        file.name() + " holds tensor " + tensor.name + " of shape " +
        shapeText(tensor.shape) +
        ", which this model does not have; is this a checkpoint of another "
        "model?");
  }
  return Status::ok();
}

} // namespace

StoredNames dyna::storedNames(const plan::Manifest &manifest) {
  StoredNames names;
  names.prefix = manifest.facts().stored_prefix();
  names.buffers.assign(manifest.facts().skipped_buffers().begin(),
                       manifest.facts().skipped_buffers().end());
  for (const plan::Parameter &parameter : manifest.parameters()) {
    const plan::Stored &stored = parameter.stored();
    Placement placement;
    placement.name = stored.name().empty() ? parameter.name() : stored.name();
    placement.part = stored.part();
    placement.parts = std::max(stored.parts(), 1);
    placement.isTransposed = stored.transposed();
    placement.copy = stored.copy();
    names.parameters.push_back(std::move(placement));
  }
  return names;
}

StatusOr<std::vector<StoredTensor>>
dyna::storedTensors(const StoredNames &names,
                    const std::vector<TensorView> &parameters) {
  std::vector<Shaped> shaped;
  for (const TensorView &parameter : parameters)
    shaped.push_back({&parameter.name, &parameter.shape});
  std::vector<Group> groups;
  DYNA_RETURN_IF_ERROR(groupParameters(names, shaped, groups));
  std::vector<StoredTensor> result;
  for (Group &group : groups) {
    DType type = parameters[group.members[0]].type;
    for (size_t member : group.members)
      if (parameters[member].type != type)
        return Status::internal("parameters of " + group.placement.name +
                                " have different types");
    if (!tensorBytes(type, group.stored))
      return Status::internal("tensor " + group.placement.name +
                              " is too large");
    StoredTensor stored;
    stored.view.name = group.placement.name;
    stored.view.type = type;
    stored.view.shape = group.stored;
    stored.members = std::move(group.members);
    stored.isTransposed = group.placement.isTransposed;
    result.push_back(std::move(stored));
  }
  return result;
}

void dyna::placeRows(const StoredTensor &stored,
                     const std::vector<TensorView> &parameters, size_t member,
                     int64_t begin, int64_t end, const void *rows,
                     void *target) {
  int64_t offset = begin;
  for (size_t before : stored.members) {
    if (before == member)
      break;
    offset += rowsOf(parameters[before].shape);
  }
  int64_t bytes = dtypeBytes(stored.view.type);
  int64_t width = rowElements(parameters[member].shape);
  auto *to = static_cast<unsigned char *>(target);
  if (stored.isTransposed)
    transpose(bytes, rows, width, to + offset * bytes, stored.view.shape[1],
              end - begin, width);
  else if (end > begin)
    std::memcpy(to + offset * width * bytes, rows,
                static_cast<size_t>((end - begin) * width * bytes));
}

Status dyna::importTensors(const StoredNames &names,
                           const SafetensorsFile &file,
                           const std::vector<ParameterSlot> &slots) {
  return importTensors(
      names, file, slots,
      [&](size_t slot, int64_t begin, int64_t end, const void *rows) {
        int64_t bytes =
            rowElements(slots[slot].shape) * dtypeBytes(slots[slot].type);
        std::memcpy(static_cast<char *>(slots[slot].data) + begin * bytes, rows,
                    static_cast<size_t>((end - begin) * bytes));
        return Status::ok();
      });
}

Status dyna::importRows(const SafetensorsFile &file, const TensorView &stored,
                        const std::vector<ParameterSlot> &slots, size_t slot,
                        const TakeRows &take) {
  Group alone;
  alone.stored = stored.shape;
  return takeMember(file, alone, stored, slots[slot], slot, 0, take);
}

Status dyna::importTensors(const StoredNames &names,
                           const SafetensorsFile &file,
                           const std::vector<ParameterSlot> &slots,
                           const TakeRows &take,
                           std::vector<std::string> *missing) {
  std::vector<Shaped> shaped;
  for (const ParameterSlot &slot : slots)
    shaped.push_back({&slot.name, &slot.shape});
  std::vector<Group> groups;
  DYNA_RETURN_IF_ERROR(groupParameters(names, shaped, groups));
  const std::string wrapper = wrapperOf(file);
  std::vector<const TensorView *> stored;
  for (const Group &group : groups)
    stored.push_back(findStored(names, file, wrapper, group.placement.name));
  std::vector<std::string> dropped = dropMissing(slots, groups, stored);
  if (missing)
    *missing = std::move(dropped);
  for (size_t i = 0; i < groups.size(); ++i)
    DYNA_RETURN_IF_ERROR(checkStored(names, file, stored[i], groups[i], slots));
  const Status unused = checkUnused(names, file, wrapper, groups, stored);
  DYNA_RETURN_IF_ERROR(file.checkReadable());
  DYNA_RETURN_IF_ERROR(unused);
  for (size_t i = 0; i < groups.size(); ++i)
    DYNA_RETURN_IF_ERROR(takeGroup(file, groups[i], *stored[i], slots, take));
  return Status::ok();
}
