//===- Reshard.cpp - Computes effects of steps of a reshard ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Reshard.h"

namespace dyna {

const char *reshardKindName(ReshardKind kind) {
  switch (kind) {
  case ReshardKind::AllReduce:
    return "all_reduce";
  case ReshardKind::AllGather:
    return "all_gather";
  case ReshardKind::ReduceScatter:
    return "reduce_scatter";
  case ReshardKind::Slice:
    return "slice";
  case ReshardKind::AllToAll:
    return "all_to_all";
  }
  return "?";
}

std::string describeStep(const Mesh &mesh, const ReshardStep &step) {
  std::string text = reshardKindName(step.kind);
  text += " " + describeParts(mesh, step.group);
  if (step.dim >= 0)
    text += " dim " + std::to_string(step.dim);
  if (step.toDim >= 0)
    text += " to " + std::to_string(step.toDim);
  return text + ": " + describeLayout(mesh, step.before) + " -> " +
         describeLayout(mesh, step.after);
}

//===----------------------------------------------------------------------===//
// Effect of a step on a layout
//===----------------------------------------------------------------------===//

/// Returns the end of a part, as a stride.
static int64_t endOf(const AxisPart &part) { return part.stride * part.size; }

/// Takes `group`, canonical, off the minor end of `parts`, splitting a part
/// where the group only names its minor factor.
static bool removeMinor(AxisParts &parts, AxisParts group) {
  while (!group.empty()) {
    if (parts.empty())
      return false;
    AxisPart &last = parts.back(), wanted = group.back();
    if (last.axis != wanted.axis || last.stride != wanted.stride ||
        endOf(last) % endOf(wanted) != 0)
      return false;
    last = {last.axis, endOf(wanted), last.size / wanted.size};
    if (last.size == 1)
      parts.pop_back();
    group.pop_back();
  }
  return true;
}

/// Takes `wanted` out of the partial parts, canonical, wherever it is.
static bool removePartial(AxisParts &partial, const AxisPart &wanted) {
  for (AxisPart &part : partial) {
    if (part.axis != wanted.axis || wanted.stride % part.stride != 0 ||
        endOf(part) % endOf(wanted) != 0)
      continue;
    AxisPart minor = {part.axis, part.stride, wanted.stride / part.stride};
    part = {part.axis, endOf(wanted), endOf(part) / endOf(wanted)};
    partial.push_back(minor);
    return true;
  }
  return false;
}

static Status checkDimensions(const ReshardStep &step) {
  int tensorRank = int(step.before.dims.size());
  bool isAllToAll = step.kind == ReshardKind::AllToAll;
  for (int dim : {step.dim, isAllToAll ? step.toDim : step.dim})
    if (dim < 0 || dim >= tensorRank)
      return Status::invalidArgument(
          std::string(reshardKindName(step.kind)) + " along dimension " +
          std::to_string(dim) + " of a tensor with " +
          std::to_string(tensorRank) + " dimensions");
  if (isAllToAll && step.dim == step.toDim)
    return Status::invalidArgument("all_to_all from dimension " +
                                   std::to_string(step.dim) +
                                   " to itself; the two must differ");
  return Status::ok();
}

/// Removes the group from where it is before the step.
static Status removeGroup(const Mesh &mesh, const ReshardStep &step,
                          const AxisParts &group, const Shape &shape,
                          Layout &layout) {
  auto refuse = [&](const std::string &reason) {
    return Status::invalidArgument(std::string(reshardKindName(step.kind)) +
                                   " over " + describeParts(mesh, group) +
                                   " of " + describeLayout(mesh, step.before) +
                                   ": " + reason);
  };
  bool reduces = step.kind == ReshardKind::AllReduce ||
                 step.kind == ReshardKind::ReduceScatter;
  if (reduces) {
    for (const AxisPart &part : group)
      if (!removePartial(layout.partial, part))
        return refuse("the value is not partial over " +
                      describePart(mesh, part));
  } else if (step.kind != ReshardKind::Slice) {
    AxisParts &parts = layout.dims[step.dim];
    if (!removeMinor(parts, group))
      return refuse("the parts of dimension " + std::to_string(step.dim) +
                    " do not end in them; only the minor end can be removed");
    return checkRefines(shape, step.dim, groupSize(parts), groupSize(group));
  }
  return Status::ok();
}

StatusOr<Layout> layoutAfter(const Mesh &mesh, const ReshardStep &step,
                             const Shape &shape) {
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, step.before, shape.size()));
  DYNA_RETURN_IF_ERROR(checkParts(mesh, step.group));
  bool keepsDimensions = step.kind == ReshardKind::AllReduce;
  if (!keepsDimensions)
    DYNA_RETURN_IF_ERROR(checkDimensions(step));
  AxisParts group = canonicalParts(step.group);
  Layout layout = canonicalLayout(step.before);
  DYNA_RETURN_IF_ERROR(removeGroup(mesh, step, group, shape, layout));
  if (!keepsDimensions && step.kind != ReshardKind::AllGather) {
    int dim = step.kind == ReshardKind::AllToAll ? step.toDim : step.dim;
    AxisParts &parts = layout.dims[dim];
    DYNA_RETURN_IF_ERROR(
        checkRefines(shape, dim, groupSize(parts), groupSize(group)));
    parts.insert(parts.end(), group.begin(), group.end());
  }
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, layout, shape.size()));
  return canonicalLayout(layout);
}

Status checkStep(const Mesh &mesh, const ReshardStep &step,
                 const Shape &shape) {
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, step.after, shape.size()));
  DYNA_ASSIGN_OR_RETURN(Layout after, layoutAfter(mesh, step, shape));
  if (after == canonicalLayout(step.after))
    return Status::ok();
  return Status::invalidArgument(describeStep(mesh, step) + ": leads to " +
                                 describeLayout(mesh, after));
}

//===----------------------------------------------------------------------===//
// Traffic of a step
//===----------------------------------------------------------------------===//

int64_t bytesSent(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
                  int64_t elementBytes, int64_t position) {
  int64_t ranks = groupSize(step.group);
  Box before = localBox(mesh, step.before, shape, position);
  Box after = localBox(mesh, step.after, shape, position);
  switch (step.kind) {
  case ReshardKind::AllReduce: {
    int64_t whole = before.volume();
    int64_t own = partSize(whole, ranks, mesh.indexIn(position, step.group));
    return (whole - own + (ranks - 1) * own) * elementBytes;
  }
  case ReshardKind::AllGather:
    return (ranks - 1) * before.volume() * elementBytes;
  case ReshardKind::ReduceScatter:
    return (before.volume() - after.volume()) * elementBytes;
  case ReshardKind::AllToAll:
    return (before.volume() - intersect(before, after).volume()) * elementBytes;
  case ReshardKind::Slice:
    return 0;
  }
  return 0;
}

} // namespace dyna
