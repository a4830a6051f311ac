//===- Reshard.cpp - Facts about single steps of a reshard ----------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
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

Shape wholeShape(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
                 int64_t position) {
  Layout whole = step.before;
  bool gathers =
      step.kind == ReshardKind::AllGather || step.kind == ReshardKind::AllToAll;
  if (gathers)
    whole.dims[step.dim] = step.after.dims[step.dim];
  return localBox(mesh, whole, shape, position).size;
}

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
