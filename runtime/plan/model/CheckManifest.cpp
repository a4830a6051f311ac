//===- CheckManifest.cpp - Checks a manifest ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/plan/model/ManifestChecks.h"
#include "runtime/plan/model/Model.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dyna {

using manifest_checks::bad;
using manifest_checks::checkKind;
using manifest_checks::sameSpec;

namespace {

constexpr int64_t maxDimension = INT64_C(1) << 31;
constexpr int64_t maxElements = INT64_C(1) << 40;

/// Returns the product of `shape`; -1 if a size or the product is out of range.
template <typename Shape> int64_t boundedProduct(const Shape &shape) {
  int64_t product = 1;
  for (int64_t size : shape) {
    if (size <= 0 || size > maxDimension || product > maxElements / size)
      return -1;
    product *= size;
  }
  return product;
}

/// Models have one stream of tokens today.
Status checkStream(int32_t stream, const std::string &where) {
  if (stream == 0)
    return Status::ok();
  return bad(
      formatText("%s: has rows of stream %d, but a model has stream 0 alone",
                 where, stream));
}

Status checkFormula(const plan::LinearBytes &formula,
                    const std::string &where) {
  DYNA_RETURN_IF_ERROR(checkStream(formula.stream(), where));
  for (int64_t perRow : {formula.tq(), formula.tkv(), formula.s()})
    if (perRow < 0 || perRow > maxBytesPerRow)
      return bad(
          formatText("%s: %d bytes per row are out of range", where, perRow));
  if (formula.constant() < 0 || formula.constant() > maxConstantBytes)
    return bad(formatText("%s: %d constant bytes are out of range", where,
                          formula.constant()));
  return Status::ok();
}

Status checkSpec(const plan::TensorSpec &spec, const std::string &where) {
  if (elementBytes(spec.type()) == 0)
    return bad(where + ": unknown element type " + std::to_string(spec.type()));
  if (spec.rows() < plan::TensorSpec::FIXED ||
      spec.rows() > plan::TensorSpec::TQ_PART)
    return bad(where + ": unknown row kind " + std::to_string(spec.rows()));
  DYNA_RETURN_IF_ERROR(checkStream(spec.stream(), where));
  if (spec.shape_size() > 4 || boundedProduct(spec.shape()) < 0)
    return bad(where + ": the shape is empty, too large or of too many "
                       "dimensions");
  return Status::ok();
}

Status checkParameters(const plan::Manifest &manifest) {
  std::set<std::string> names;
  int64_t total = 0;
  for (const plan::Parameter &parameter : manifest.parameters()) {
    std::string where = "parameter '" + parameter.name() + "'";
    if (parameter.name().empty())
      return bad("a parameter has no name");
    if (!names.insert(parameter.name()).second)
      return bad(where + " is there twice");
    int64_t elements = boundedProduct(parameter.shape());
    if (parameter.shape_size() > 4 || elements < 0)
      return bad(where + ": the shape is empty, too large or of too many "
                         "dimensions");
    total += elements;
    if (total > maxElements)
      return bad("more than 2^40 parameter elements in all");
    if (!std::isfinite(parameter.constant()) ||
        !std::isfinite(parameter.normal_std()) || parameter.normal_std() < 0)
      return bad(where + ": the initial value is not finite");
    const plan::Stored &stored = parameter.stored();
    if (stored.part() < 0 || stored.part() >= std::max(stored.parts(), 1))
      return bad(formatText("%s: is stored as part %d of %d", where,
                            stored.part(), stored.parts()));
    if (stored.transposed() && parameter.shape_size() != 2)
      return bad(formatText("%s: is stored transposed, but has %d dimensions",
                            where, parameter.shape_size()));
  }
  return Status::ok();
}

bool isTokenIds(const plan::TensorSpec &spec) {
  return spec.type() == plan::I32 && spec.rows() == plan::TensorSpec::TQ &&
         spec.shape_size() == 0;
}

bool isLoss(const plan::TensorSpec &spec) {
  return spec.type() == plan::F64 && spec.rows() == plan::TensorSpec::FIXED &&
         boundedProduct(spec.shape()) == 1;
}

/// `learns`: a layer of the kind has a parameter that is not frozen.
Status checkRoles(const plan::LayerKind &kind, bool learns, bool cast) {
  auto has = [&](int role) { return kind.roles(role).present(); };
  std::string where = "layer kind '" + kind.name() + "' has no ";
  if (!has(DYNA_ROLE_FORWARD))
    return bad(where + "forward function");
  if (!has(DYNA_ROLE_EVALUATE))
    return bad(where + "evaluate function");
  const bool needsBackward =
      learns || (!isTokenIds(inputOf(kind)) && !kind.stops_gradient());
  if (!has(DYNA_ROLE_BACKWARD) &&
      !(has(DYNA_ROLE_BACKWARD_INPUT) && has(DYNA_ROLE_BACKWARD_WEIGHT)) &&
      (needsBackward || hasBackward(kind)))
    return bad(where + "backward function");
  if (learns && kind.frozen())
    return bad("layer kind '" + kind.name() +
               "' adds to no gradient, but a layer of it has trained "
               "parameters");
  if (learns && !has(DYNA_ROLE_UPDATE))
    return bad(where + "update function, but trained parameters");
  if (learns && !has(DYNA_ROLE_GRAD_NORM))
    return bad(where + "grad_norm function, but trained parameters");
  if (cast && !has(DYNA_ROLE_CAST))
    return bad(where + "cast function, but parameters in two types");
  return Status::ok();
}

/// Checks that the parameters of layer `l` exist, with the same shapes and
/// compute type in all uses.
Status checkLayerParameters(const plan::Manifest &manifest, int l,
                            std::vector<plan::ElementType> &types) {
  const plan::Layer &layer = manifest.layers(l);
  const plan::LayerKind &kind = manifest.kinds(layer.kind());
  std::string where = formatText("layer %d '%s'", l, layer.name());
  if (layer.parameters_size() != kind.parameters_size())
    return bad(formatText("%s lists %d parameters, but its kind takes %d",
                          where, layer.parameters_size(),
                          kind.parameters_size()));
  for (int slot = 0; slot < layer.parameters_size(); ++slot) {
    int p = layer.parameters(slot);
    if (p < 0 || p >= manifest.parameters_size())
      return bad(formatText("%s uses parameter %d of %d", where, p,
                            manifest.parameters_size()));
    const plan::Parameter &parameter = manifest.parameters(p);
    const plan::TensorSpec &spec = kind.parameters(slot);
    if (!std::equal(spec.shape().begin(), spec.shape().end(),
                    parameter.shape().begin(), parameter.shape().end()))
      return bad(where + ": the shape of parameter '" + parameter.name() +
                 "' is not the one its kind takes");
    if (types[p] != plan::ELEMENT_UNKNOWN && types[p] != spec.type())
      return bad(where + ": parameter '" + parameter.name() +
                 "' is used in two compute types");
    types[p] = spec.type();
  }
  return Status::ok();
}

/// Checks the outputs of a layer. The last layer gives a loss alone. All others give an
/// activation, and may give a loss beside it. Layers with a loss take target ids.
Status checkLoss(const plan::LayerKind &kind, bool isLast,
                 const std::string &where) {
  if (isLast != isLoss(outputOf(kind)))
    return bad(where + (isLast
                            ? ": the last layer gives the loss (f64, one) alone"
                            : ": only the last layer gives a loss alone"));
  const bool hasLoss = givesLoss(kind);
  if (kind.outputs_size() == 2 && (isLast || !hasLoss))
    return bad(where + ": its second output is not the loss of an exit");
  if (kind.inputs_size() == 2 && (!hasLoss || !isTokenIds(kind.inputs(1))))
    return bad(where + ": only layers that give a loss take target ids");
  if (hasLoss && kind.inputs_size() != 2)
    return bad(where + ": it gives a loss, but takes no target ids");
  return Status::ok();
}

/// Inputs and outputs along the chain: ids first, then activations that fit.
Status checkChainLink(const plan::Manifest &manifest, int l) {
  int last = manifest.layers_size() - 1;
  const auto &producers = manifest.layers(l).producers();
  if (l == 0 ? !producers.empty()
             : producers.size() != 1 || producers.Get(0) != l - 1)
    return bad(formatText("layer %d '%s' does not take the output of the layer "
                          "before it alone: a model is a chain of layers",
                          l, manifest.layers(l).name()));
  const plan::LayerKind &kind = manifest.kinds(manifest.layers(l).kind());
  std::string where = formatText("layer %d '%s'", l, manifest.layers(l).name());
  const plan::TensorSpec &input = inputOf(kind);
  if (l == 0 && !isTokenIds(input))
    return bad(where +
               ": the first layer takes token ids (i32, one per token)");
  if (l > 0 && !sameSpec(outputOf(manifest.kinds(
                             manifest.layers(producers.Get(0)).kind())),
                         input))
    return bad(where + ": its input is not what the layer before gives");
  if (l > 0 &&
      (input.rows() != plan::TensorSpec::TQ || input.type() == plan::I32))
    return bad(where + ": its input is not an activation");
  if (l > 0 && kind.stops_gradient() ==
                   hasBackward(manifest.kinds(manifest.layers(l - 1).kind())))
    return bad(where + (kind.stops_gradient()
                            ? ": its kind gives no gradient of its input, but "
                              "the layer before has a backward"
                            : ": its kind gives a gradient of its input, but "
                              "the layer before has no backward"));
  DYNA_RETURN_IF_ERROR(checkLoss(kind, l == last, where));
  int64_t row = elementBytes(input.type()) * boundedProduct(input.shape());
  if (row > maxBytesPerRow || kind.tiers(DYNA_TIER_INPUT).tq() < row)
    return bad(formatText("%s: the input tier has %d bytes per token, its "
                          "input needs %d",
                          where, kind.tiers(DYNA_TIER_INPUT).tq(), row));
  return Status::ok();
}

/// Layers of one kind share its functions, so they freeze the same places; and some
/// parameter is trained.
Status checkFrozen(const plan::Manifest &manifest) {
  std::vector<int> first(manifest.kinds_size(), -1);
  for (int l = 0; l < manifest.layers_size(); ++l) {
    const plan::Layer &layer = manifest.layers(l);
    int &known = first[layer.kind()];
    known = known < 0 ? l : known;
    const plan::Layer &other = manifest.layers(known);
    for (int slot = 0; slot < layer.parameters_size(); ++slot)
      if (manifest.parameters(layer.parameters(slot)).frozen() !=
          manifest.parameters(other.parameters(slot)).frozen())
        return bad(formatText(
            "layers %d and %d are of one kind, but of '%s' and '%s' only one "
            "is frozen",
            known, l, manifest.parameters(other.parameters(slot)).name(),
            manifest.parameters(layer.parameters(slot)).name()));
  }
  for (const plan::Parameter &parameter : manifest.parameters())
    if (!parameter.frozen())
      return Status::ok();
  return manifest.parameters().empty()
             ? Status::ok()
             : bad("all parameters are frozen, so that nothing is trained");
}

/// None, or one for each layer that gives a loss.
Status checkLossWeights(const plan::Manifest &manifest) {
  const auto &weights = manifest.facts().loss_weights();
  const auto losses =
      std::count_if(manifest.layers().begin(), manifest.layers().end(),
                    [&](const plan::Layer &layer) {
                      return givesLoss(manifest.kinds(layer.kind()));
                    });
  if (!weights.empty() && weights.size() != losses)
    return bad(formatText("%d weights of losses, but %d layers give one",
                          weights.size(), losses));
  for (double weight : weights)
    if (!std::isfinite(weight) || weight < 0)
      return bad("the weight " + std::to_string(weight) +
                 " of a loss is not finite, or is negative");
  return Status::ok();
}

Status checkLayers(const plan::Manifest &manifest) {
  if (manifest.layers_size() < 2)
    return bad("a model has at least two layers, but this one has " +
               std::to_string(manifest.layers_size()));
  std::vector<plan::ElementType> types(manifest.parameters_size(),
                                       plan::ELEMENT_UNKNOWN);
  bool masters64 = manifest.compute_type() == plan::F64;
  for (int l = 0; l < manifest.layers_size(); ++l) {
    int kind = manifest.layers(l).kind();
    if (kind < 0 || kind >= manifest.kinds_size())
      return bad(formatText("layer %d is of kind %d of %d", l, kind,
                            manifest.kinds_size()));
    DYNA_RETURN_IF_ERROR(checkLayerParameters(manifest, l, types));
    DYNA_RETURN_IF_ERROR(checkChainLink(manifest, l));
    bool learns = false, copies = false;
    for (int slot = 0; slot < manifest.layers(l).parameters_size(); ++slot) {
      if (manifest.parameters(manifest.layers(l).parameters(slot)).frozen())
        continue;
      learns = true;
      copies |= manifest.kinds(kind).parameters(slot).type() !=
                (masters64 ? plan::F64 : plan::F32);
    }
    DYNA_RETURN_IF_ERROR(checkRoles(manifest.kinds(kind), learns, copies));
  }
  for (int p = 0; p < manifest.parameters_size(); ++p)
    if (types[p] == plan::ELEMENT_UNKNOWN)
      return bad("parameter '" + manifest.parameters(p).name() +
                 "' is not used by any layer");
  DYNA_RETURN_IF_ERROR(checkLossWeights(manifest));
  return checkFrozen(manifest);
}

} // namespace

Status manifest_checks::bad(const std::string &what) {
  return Status::invalidArgument("manifest: " + what);
}

/// Checks exchanges. Groups depend on the degree, so checkDegrees checks them.
static Status checkExchanges(const plan::LayerKind::Role &role,
                             const std::string &where) {
  if (role.exchanges_size() > 0 && !role.present())
    return bad(where + ": a function that is not there exchanges something");
  for (const plan::LayerExchange &exchange : role.exchanges()) {
    if (exchange.tensors_size() == 0)
      return bad(where + ": an exchange of nothing");
    for (const plan::LayerExchange::Tensor &tensor : exchange.tensors()) {
      if (!plan::LayerExchange::Kind_IsValid(tensor.kind()))
        return bad(where + ": unknown kind of exchange " +
                   std::to_string(tensor.kind()));
      DYNA_RETURN_IF_ERROR(checkFormula(tensor.bytes(), where + ", exchange"));
    }
  }
  return Status::ok();
}

/// Checks that these are matrices, each once and in order.
static Status checkSparseParameters(const plan::LayerKind &kind,
                                    const std::string &where) {
  int last = -1;
  for (int slot : kind.sparse_parameters()) {
    if (slot <= last || slot >= kind.parameters_size())
      return bad(formatText("%s: sparse parameter %d behind %d, of %d: expects "
                            "rising numbers of parameters",
                            where, slot, last, kind.parameters_size()));
    if (kind.parameters(slot).shape_size() != 2)
      return bad(
          formatText("%s: sparse parameter %d is no matrix", where, slot));
    last = slot;
  }
  return Status::ok();
}

/// Checks that groups divide their matrices, and that each matrix is in one list of a kind.
static Status checkWeightGroups(const plan::LayerKind &kind,
                                const std::string &where) {
  std::set<std::pair<int, int>> seen;
  for (const plan::WeightGroups &groups : kind.weight_groups()) {
    if (!plan::WeightGroups::Kind_IsValid(groups.kind()) ||
        groups.count() < 1 || groups.parts_size() == 0)
      return bad(formatText("%s: %d groups of weights of kind %d, with %d "
                            "parts: expects at least one of a known kind",
                            where, groups.count(), groups.kind(),
                            groups.parts_size()));
    for (const plan::WeightGroups::Part &part : groups.parts()) {
      const int slot = part.parameter(), dimension = part.dimension();
      if (slot < 0 || slot >= kind.parameters_size() ||
          kind.parameters(slot).shape_size() != 2 || dimension < 0 ||
          dimension > 1 ||
          kind.parameters(slot).shape(dimension) % groups.count() != 0)
        return bad(formatText("%s: %d groups along dimension %d of parameter "
                              "%d: expects a matrix that they divide",
                              where, groups.count(), dimension, slot));
      if (!seen.insert({groups.kind(), slot}).second)
        return bad(formatText("%s: parameter %d is in two lists of groups",
                              where, slot));
    }
  }
  return Status::ok();
}

Status manifest_checks::checkKind(const plan::LayerKind &kind,
                                  plan::ElementType master) {
  std::string where = "layer kind '" + kind.name() + "'";
  if (kind.name().empty())
    return bad("a layer kind has no name");
  DYNA_RETURN_IF_ERROR(checkStream(kind.stream(), where));
  DYNA_RETURN_IF_ERROR(checkStream(kind.key_stream(), where + ", keys"));
  for (const plan::TensorSpec &spec : kind.parameters()) {
    DYNA_RETURN_IF_ERROR(checkSpec(spec, where + ", parameter"));
    if (spec.rows() != plan::TensorSpec::FIXED || spec.type() == plan::I32)
      return bad(where + ": parameters have a fixed shape of floats");
    if (spec.type() == plan::F64 && master != plan::F64)
      return bad(where + ": an f64 parameter under f32 masters");
  }
  for (const plan::TensorSpec &spec : kind.inputs())
    DYNA_RETURN_IF_ERROR(checkSpec(spec, where + ", input"));
  for (const plan::TensorSpec &spec : kind.outputs())
    DYNA_RETURN_IF_ERROR(checkSpec(spec, where + ", output"));
  if (kind.inputs_size() < 1 || kind.inputs_size() > 2 ||
      kind.outputs_size() < 1 || kind.outputs_size() > 2)
    return bad(formatText("%s: expects 1 or 2 inputs and outputs, but has %d "
                          "and %d",
                          where, kind.inputs_size(), kind.outputs_size()));
  if (kind.tiers_size() != DYNA_TIER_COUNT)
    return bad(formatText("%s has %d tiers, but there are %d", where,
                          kind.tiers_size(), DYNA_TIER_COUNT));
  for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier)
    DYNA_RETURN_IF_ERROR(checkFormula(
        kind.tiers(tier), formatText("%s, %s tier", where, tierName(tier))));
  if (kind.roles_size() != DYNA_ROLE_COUNT)
    return bad(formatText("%s: expects %d roles, but has %d", where,
                          DYNA_ROLE_COUNT, kind.roles_size()));
  for (const plan::LayerKind::Role &role : kind.roles()) {
    DYNA_RETURN_IF_ERROR(checkFormula(role.workspace(), where + ", workspace"));
    DYNA_RETURN_IF_ERROR(checkExchanges(role, where));
    for (int64_t flops : {role.flops_per_token(), role.flops_per_target(),
                          role.flops_per_pair(), role.flops_per_causal_pair(),
                          role.flops_per_part_token()})
      if (flops < 0)
        return bad(where + ": negative flops of a role");
  }
  for (int64_t flops :
       {kind.flops_per_token(), kind.flops_per_target(),
        kind.attention_flops_per_pair(), kind.flops_per_part_token()})
    if (flops < 0)
      return bad(where + ": negative flops");
  if (kind.score_bytes_per_pair() < 0 ||
      kind.score_bytes_per_pair() > maxBytesPerPair)
    return bad(formatText("%s: %d bytes per pair are out of range", where,
                          kind.score_bytes_per_pair()));
  for (int64_t perRow : {kind.key_bytes(), kind.key_gradient_bytes()})
    if (perRow < 0 || perRow > maxBytesPerRow)
      return bad(formatText("%s: %d bytes of a token's keys are out of range",
                            where, perRow));
  if (kind.target_table() < 0 || kind.target_table() > kind.parameters_size())
    return bad(formatText("%s: target table %d of %d parameters", where,
                          kind.target_table(), kind.parameters_size()));
  DYNA_RETURN_IF_ERROR(checkWeightGroups(kind, where));
  return checkSparseParameters(kind, where);
}

bool manifest_checks::sameSpec(const plan::TensorSpec &a,
                               const plan::TensorSpec &b) {
  return a.type() == b.type() && a.rows() == b.rows() &&
         a.stream() == b.stream() &&
         std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(),
                    b.shape().end());
}

Status checkManifest(const plan::Manifest &manifest) {
  if (manifest.format() != 1)
    return bad("format " + std::to_string(manifest.format()) +
               " is not known, expects 1");
  plan::ElementType type = manifest.compute_type();
  if (type != plan::F64 && type != plan::F32 && type != plan::BF16)
    return bad("the compute type is none of f64, f32, bf16");
  plan::ElementType gradient = manifest.gradient_type();
  plan::ElementType master = type == plan::F64 ? plan::F64 : plan::F32;
  if (gradient != plan::ELEMENT_UNKNOWN && gradient != master &&
      (gradient != plan::BF16 || type != plan::BF16))
    return bad("the gradient type is neither that of masters nor, where the "
               "compute type is bf16, bf16");
  const plan::ModelFacts &facts = manifest.facts();
  if (facts.vocabulary() <= 0 || facts.vocabulary() >= maxDimension)
    return bad("vocabulary " + std::to_string(facts.vocabulary()) +
               " is out of range");
  if (facts.positions() < 0 || facts.positions() > maxMicroBatchTokens)
    return bad("positions " + std::to_string(facts.positions()) +
               " are out of range");
  if (manifest.batch_tables() & ~uint32_t(DYNA_BATCH_TABLES))
    return bad(formatText("tables %d of micro-batches are not known, expects "
                          "bits of %d",
                          manifest.batch_tables(), DYNA_BATCH_TABLES));
  DYNA_RETURN_IF_ERROR(checkParameters(manifest));
  for (const plan::LayerKind &kind : manifest.kinds()) {
    DYNA_RETURN_IF_ERROR(checkKind(kind, master));
    for (const plan::LayerKind::Role &role : kind.roles())
      if (role.exchanges_size() > 0)
        return bad("layer kind '" + kind.name() +
                   "' exchanges something, but is that of one rank");
  }
  DYNA_RETURN_IF_ERROR(checkLayers(manifest));
  return manifest_checks::checkDegrees(manifest);
}

} // namespace dyna
