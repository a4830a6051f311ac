//===- Mesh.cpp - Arranges ranks along named axes -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Mesh.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace dyna {

/// Far above any machine; keeps every product of sizes in 64 bits.
static constexpr int64_t kMaxPositions = int64_t(1) << 20;

/// Names that the text of layouts can hold.
static bool isName(const std::string &name) {
  auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && std::isalpha((unsigned char)name[0]) &&
         std::all_of(name.begin(), name.end(), isWord);
}

static StatusOr<int64_t> countPositions(const std::vector<MeshAxis> &axes) {
  int64_t positions = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const MeshAxis &axis = axes[i];
    if (!isName(axis.name))
      return Status::invalidArgument(
          "mesh axis " + std::to_string(i) + " is named '" + axis.name +
          "'; expected a letter, then letters, digits or underscores");
    for (size_t j = 0; j < i; ++j)
      if (axes[j].name == axis.name)
        return Status::invalidArgument("mesh axis '" + axis.name +
                                       "' is named twice; names must differ");
    if (axis.size < 1)
      return Status::invalidArgument("mesh axis '" + axis.name + "' has size " +
                                     std::to_string(axis.size) +
                                     "; expected at least 1");
    if (axis.size > kMaxPositions / positions)
      return Status::invalidArgument("mesh of more than " +
                                     std::to_string(kMaxPositions) +
                                     " positions at axis '" + axis.name + "'");
    positions *= axis.size;
  }
  return positions;
}

static Status checkRanks(const std::vector<int64_t> &ranks, int64_t positions) {
  if (int64_t(ranks.size()) != positions)
    return Status::invalidArgument(
        "mesh lists " + std::to_string(ranks.size()) +
        " ranks; its axes have " + std::to_string(positions) + " positions");
  std::vector<int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0)
    return Status::invalidArgument("mesh lists rank " +
                                   std::to_string(sorted.front()) +
                                   "; ranks start at 0");
  auto doubled = std::adjacent_find(sorted.begin(), sorted.end());
  if (doubled != sorted.end())
    return Status::invalidArgument("mesh lists rank " +
                                   std::to_string(*doubled) +
                                   " twice; each position needs its own");
  return Status::ok();
}

StatusOr<Mesh> Mesh::create(std::vector<MeshAxis> axes,
                            std::vector<int64_t> ranks) {
  DYNA_ASSIGN_OR_RETURN(int64_t positions, countPositions(axes));
  if (ranks.empty()) {
    ranks.resize(positions);
    std::iota(ranks.begin(), ranks.end(), int64_t(0));
  }
  DYNA_RETURN_IF_ERROR(checkRanks(ranks, positions));

  Mesh mesh;
  mesh.axes_ = std::move(axes);
  mesh.ranks_ = std::move(ranks);
  mesh.strides_.assign(mesh.axes_.size(), 1);
  for (size_t i = mesh.axes_.size(); i-- > 1;)
    mesh.strides_[i - 1] = mesh.strides_[i] * mesh.axes_[i].size;
  return mesh;
}

std::optional<int> Mesh::findAxis(const std::string &name) const {
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name)
      return int(i);
  return std::nullopt;
}

std::optional<int64_t> Mesh::positionOf(int64_t rank) const {
  auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end())
    return std::nullopt;
  return found - ranks_.begin();
}

int64_t Mesh::positionStride(const AxisPart &part) const {
  return strides_[part.axis] * part.stride;
}

int64_t Mesh::coordinate(int64_t position, const AxisPart &part) const {
  return position / positionStride(part) % part.size;
}

int64_t Mesh::indexIn(int64_t position, const AxisParts &parts) const {
  int64_t index = 0;
  for (const AxisPart &part : parts)
    index = index * part.size + coordinate(position, part);
  return index;
}

std::vector<int64_t> Mesh::groupPositions(int64_t position,
                                          const AxisParts &parts) const {
  int64_t origin = position;
  for (const AxisPart &part : parts)
    origin -= coordinate(position, part) * positionStride(part);
  std::vector<int64_t> positions = {origin};
  for (const AxisPart &part : parts) {
    std::vector<int64_t> finer;
    for (int64_t start : positions)
      for (int64_t i = 0; i < part.size; ++i)
        finer.push_back(start + i * positionStride(part));
    positions = std::move(finer);
  }
  return positions;
}

std::vector<int64_t> Mesh::groupRanks(int64_t position,
                                      const AxisParts &parts) const {
  std::vector<int64_t> members = groupPositions(position, parts);
  for (int64_t &member : members)
    member = ranks_[member];
  return members;
}

std::string Mesh::describe() const {
  std::string text;
  for (const MeshAxis &axis : axes_)
    text +=
        (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  bool inOrder = true;
  std::string list;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    inOrder &= ranks_[i] == int64_t(i);
    list += (i == 0 ? "" : ",") + std::to_string(ranks_[i]);
  }
  return inOrder ? text : text + " ranks [" + list + "]";
}

bool Mesh::operator==(const Mesh &other) const {
  auto sameAxis = [](const MeshAxis &a, const MeshAxis &b) {
    return a.name == b.name && a.size == b.size;
  };
  return ranks_ == other.ranks_ &&
         std::equal(axes_.begin(), axes_.end(), other.axes_.begin(),
                    other.axes_.end(), sameAxis);
}

int64_t groupSize(const AxisParts &parts) {
  int64_t size = 1;
  for (const AxisPart &part : parts)
    size *= part.size;
  return size;
}

} // namespace dyna
