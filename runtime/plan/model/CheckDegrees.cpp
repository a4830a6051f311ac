//===- CheckDegrees.cpp - Checks tensor degrees ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Abi.h"
#include "runtime/base/load/TokenPartBytes.h"
#include "runtime/base/text/Text.h"
#include "runtime/layout/Layout.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/model/ManifestChecks.h"
#include "runtime/plan/model/Model.h"
#include "runtime/plan/model/Strategy.h"

#include <algorithm>
#include <set>

namespace dyna {

using manifest_checks::bad;

namespace {

constexpr int maxTensorDegree = 1 << 16;

std::string nameOf(int tp, bool sp) {
  return formatText("tp%d%s", tp, sp ? ".sp" : "");
}

template <typename Parts> AxisParts partsOf(const Parts &parts) {
  AxisParts result;
  for (const plan::AxisPart &part : parts)
    result.push_back({0, part.stride(), part.size()});
  return result;
}

Status checkSplit(const plan::ParameterSplit &split,
                  const plan::TensorSpec &whole, const plan::TensorSpec &local,
                  const Mesh &mesh, const std::string &where) {
  int rank = whole.shape_size();
  if (split.dim() < 0 || (split.dim() >= rank && split.dim() != 0) ||
      (split.parts_size() > 0 && split.dim() >= rank))
    return bad(formatText("%s is split along dimension %d of %d", where,
                          split.dim(), rank));
  Layout layout = Layout::replicated(static_cast<size_t>(rank));
  if (rank > 0)
    layout.dims[static_cast<size_t>(split.dim())] = partsOf(split.parts());
  layout.partial = partsOf(split.gradient_partial());
  Status status = checkLayout(mesh, layout, static_cast<size_t>(rank));
  if (!status.isOk())
    return bad(where + ": " + status.message());
  if (local.type() != whole.type() || local.rows() != whole.rows() ||
      local.shape_size() != rank)
    return bad(where + " has another type or another number of dimensions than "
                       "the whole");
  for (int dim = 0; dim < rank; ++dim) {
    int64_t parts =
        dim == split.dim() && rank > 0 ? groupSize(layout.dims[dim]) : 1;
    int64_t wanted = (whole.shape(dim) + parts - 1) / parts;
    if (local.shape(dim) != wanted)
      return bad(formatText("%s has size %d in dimension %d, but %d in %d "
                            "parts is %d",
                            where, local.shape(dim), dim, whole.shape(dim),
                            parts, wanted));
  }
  return Status::ok();
}

/// Checks an input or output: it is that of the whole; under sp, activations
/// have a part of the tokens.
Status checkBorder(const plan::TensorSpec &whole, const plan::TensorSpec &local,
                   bool sp, const std::string &where) {
  plan::TensorSpec wanted = whole;
  if (sp && whole.rows() == plan::TensorSpec::TQ && whole.type() != plan::I32)
    wanted.set_rows(plan::TensorSpec::TQ_PART);
  if (!manifest_checks::sameSpec(wanted, local))
    return bad(where + " has an input or output that does not fit the whole "
                       "kind's");
  return Status::ok();
}

/// Checks that the block of the layer's input holds this rank's part.
Status checkInputTier(const plan::LayerKind &kind,
                      const plan::TensorSpec &input, int tp,
                      const std::string &where) {
  int64_t row = elementBytes(input.type());
  for (int64_t size : input.shape())
    row *= size;
  if (input.rows() == plan::TensorSpec::TQ_PART)
    row = tokenPartBytes(row, tp);
  if (kind.tiers(DYNA_TIER_INPUT).tq() < row)
    return bad(formatText("%s: the input tier has %d bytes per token, its "
                          "input needs %d",
                          where, kind.tiers(DYNA_TIER_INPUT).tq(), row));
  return Status::ok();
}

/// Checks groups: layer functions exchange along the tensor-parallel axis of
/// their degree or a factor of it, and optimizer functions do not exchange.
Status checkExchangeGroups(const plan::Manifest &manifest,
                           const plan::LayerKind &kind, int tp) {
  auto isOfDegree = [&](int group) {
    int index = group - DYNA_GROUP_COUNT;
    return group == DYNA_GROUP_TP ||
           (index >= 0 && index < manifest.groups_size() &&
            manifest.groups(index).tp() == tp);
  };
  std::string where = "layer kind '" + kind.name() + "'";
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role) {
    bool steps = role == DYNA_ROLE_UPDATE || role == DYNA_ROLE_GRAD_NORM ||
                 role == DYNA_ROLE_CAST;
    if (steps && kind.roles(role).exchanges_size() > 0)
      return bad(where + ": a function of the optimizer exchanges something");
    for (const plan::LayerExchange &exchange : kind.roles(role).exchanges()) {
      bool fits = isOfDegree(exchange.group());
      for (const plan::LayerExchange::Tensor &tensor : exchange.tensors())
        fits &= tensor.dealt_group() == 0 || isOfDegree(tensor.dealt_group());
      if (!fits)
        return bad(formatText("%s exchanges over group %d, which is none of "
                              "tp=%d",
                              where, exchange.group(), tp));
    }
  }
  return Status::ok();
}

Status checkLocalKind(const plan::LayerKind &whole, const plan::LayerKind &kind,
                      const plan::TensorDegree &degree, const Mesh &mesh) {
  std::string where = "layer kind '" + kind.name() + "'";
  std::string name = whole.name() + "." + nameOf(degree.tp(), degree.sp());
  if (kind.name() != name)
    return bad(where + " stands where '" + name + "' is expected");
  if (kind.parameters_size() != whole.parameters_size() ||
      kind.splits_size() != whole.parameters_size() ||
      kind.inputs_size() != whole.inputs_size() ||
      kind.outputs_size() != whole.outputs_size())
    return bad(where +
               " has other numbers of parameters, splits, inputs or "
               "outputs than '" +
               whole.name() + "'");
  for (int slot = 0; slot < whole.parameters_size(); ++slot)
    DYNA_RETURN_IF_ERROR(checkSplit(
        kind.splits(slot), whole.parameters(slot), kind.parameters(slot), mesh,
        formatText("%s: parameter %d", where, slot)));
  for (int i = 0; i < whole.inputs_size(); ++i)
    DYNA_RETURN_IF_ERROR(
        checkBorder(whole.inputs(i), kind.inputs(i), degree.sp(), where));
  for (int i = 0; i < whole.outputs_size(); ++i)
    DYNA_RETURN_IF_ERROR(
        checkBorder(whole.outputs(i), kind.outputs(i), degree.sp(), where));
  DYNA_RETURN_IF_ERROR(checkInputTier(kind, inputOf(kind), degree.tp(), where));
  if (!std::equal(
          kind.sparse_parameters().begin(), kind.sparse_parameters().end(),
          whole.sparse_parameters().begin(), whole.sparse_parameters().end()))
    return bad(where + " accepts other parameters in sparse form than '" +
               whole.name() + "'");
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    if (kind.roles(role).present() != whole.roles(role).present())
      return bad(where + " has other roles than '" + whole.name() + "'");
  return Status::ok();
}

StatusOr<Mesh> meshOf(int tp, const std::string &where) {
  if (tp < 2 || tp > maxTensorDegree)
    return bad(formatText("%s has tp=%d: expects 2 to %d", where, tp,
                          maxTensorDegree));
  return Mesh::create({{"tp", tp}});
}

/// Checks that a parameter of several layers has one layout in all of them.
Status checkTies(const plan::Manifest &manifest,
                 const plan::TensorDegree &degree) {
  auto samePlace = [](const plan::ParameterSplit &a,
                      const plan::ParameterSplit &b) {
    return partsOf(a.parts()) == partsOf(b.parts()) &&
           (a.parts_size() == 0 || a.dim() == b.dim());
  };
  std::vector<const plan::ParameterSplit *> splits(
      static_cast<size_t>(manifest.parameters_size()));
  for (const plan::Layer &layer : manifest.layers())
    for (int slot = 0; slot < layer.parameters_size(); ++slot) {
      auto p = static_cast<size_t>(layer.parameters(slot));
      const plan::ParameterSplit &split =
          degree.kinds(layer.kind()).splits(slot);
      if (splits[p] && !samePlace(*splits[p], split))
        return bad("parameter '" +
                   manifest.parameters(layer.parameters(slot)).name() +
                   "' is split in two ways at degree " +
                   nameOf(degree.tp(), degree.sp()));
      splits[p] = &split;
    }
  return Status::ok();
}

Status checkGroups(const plan::Manifest &manifest, const std::set<int> &axes) {
  for (int g = 0; g < manifest.groups_size(); ++g) {
    const plan::TensorGroup &group = manifest.groups(g);
    std::string where = formatText("group %d", DYNA_GROUP_COUNT + g);
    StatusOr<Mesh> mesh = meshOf(group.tp(), where);
    DYNA_RETURN_IF_ERROR(mesh.status());
    if (!axes.count(group.tp()))
      return bad(formatText("%s is of tp=%d, which was not compiled", where,
                            group.tp()));
    Status status = checkParts(*mesh, partsOf(group.parts()));
    if (!status.isOk())
      return bad(where + ": " + status.message());
    if (group.parts_size() == 0)
      return bad(where + " is along nothing");
  }
  return Status::ok();
}

Status checkStrategies(const plan::Manifest &manifest,
                       const std::set<std::string> &degrees) {
  std::set<std::string> names;
  for (const std::string &text : manifest.strategies()) {
    StatusOr<Strategy> strategy = parseStrategy(text);
    if (!strategy.isOk())
      return bad(strategy.status().message());
    if (!names.insert(strategy->name).second)
      return bad("two strategies have the name '" + strategy->name + "'");
    if (strategy->tp > 1 && !degrees.count(nameOf(strategy->tp, strategy->sp)))
      return bad("strategy '" + text + "' needs the tensor degree " +
                 nameOf(strategy->tp, strategy->sp) +
                 ", which was not compiled");
  }
  return Status::ok();
}

} // namespace

Status manifest_checks::checkDegrees(const plan::Manifest &manifest) {
  std::set<std::string> names;
  std::set<int> axes;
  plan::ElementType master =
      manifest.compute_type() == plan::F64 ? plan::F64 : plan::F32;
  for (const plan::TensorDegree &degree : manifest.degrees()) {
    std::string name = nameOf(degree.tp(), degree.sp());
    StatusOr<Mesh> mesh = meshOf(degree.tp(), "a tensor degree");
    DYNA_RETURN_IF_ERROR(mesh.status());
    axes.insert(degree.tp());
    if (!names.insert(name).second)
      return bad("the tensor degree " + name + " is there twice");
    if (degree.kinds_size() != manifest.kinds_size())
      return bad(formatText("the tensor degree %s has %d kinds of layers, the "
                            "model has %d",
                            name, degree.kinds_size(), manifest.kinds_size()));
    for (int k = 0; k < degree.kinds_size(); ++k) {
      DYNA_RETURN_IF_ERROR(checkKind(degree.kinds(k), master));
      DYNA_RETURN_IF_ERROR(
          checkLocalKind(manifest.kinds(k), degree.kinds(k), degree, *mesh));
      DYNA_RETURN_IF_ERROR(
          checkExchangeGroups(manifest, degree.kinds(k), degree.tp()));
    }
    DYNA_RETURN_IF_ERROR(checkTies(manifest, degree));
  }
  DYNA_RETURN_IF_ERROR(checkGroups(manifest, axes));
  return checkStrategies(manifest, names);
}

} // namespace dyna
