//===- CostModel.cpp - Predicts the seconds of layer functions ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostModel.h"

#include "runtime/abi/Collectives.h"
#include "runtime/abi/Kernels.h"
#include "runtime/base/text/Text.h"
#include "runtime/cost/StoredScores.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/plan/model/HeadChunks.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace dyna {
namespace {

/// Returns the bytes of a tensor. Of rows that are dealt it has those of the first rank.
double bytesOf(const plan::TensorSpec &spec, const KindAt &at,
               const Load &load) {
  double bytes = static_cast<double>(elementBytes(spec.type()));
  for (int64_t size : spec.shape())
    bytes *= static_cast<double>(size);
  int64_t rows = wholeRows(spec, load);
  if (spec.rows() == plan::TensorSpec::TQ_PART)
    rows = dyna_part_size(rows, at.tp, 0);
  return bytes * static_cast<double>(rows);
}

/// Bytes that one call reads and writes, by their use.
struct CallBytes {
  double parameters = 0; ///< read by a pass
  double gradients = 0;  ///< of parameters that a pass adds to
  double allGradients = 0;
  double masters = 0;
  double copies = 0; ///< of masters in the compute type
  double input = 0, output = 0, products = 0, elementwise = 0, deferred = 0;
};

CallBytes callBytesOf(const plan::LayerKind &kind, const KindAt &at,
                      const Model &model, Load load) {
  CallBytes moved;
  for (int slot = 0; slot < kind.parameters_size(); ++slot) {
    const plan::TensorSpec &spec = kind.parameters(slot);
    double bytes = bytesOf(spec, at, load);
    double elements = bytes / static_cast<double>(elementBytes(spec.type()));
    auto as = [&](plan::ElementType type) {
      return elements * static_cast<double>(elementBytes(type));
    };
    moved.parameters += bytes;
    if (model.isFrozenSlot(at.kind, slot))
      continue;
    moved.allGradients += as(model.gradientType());
    moved.masters += as(model.masterType());
    moved.copies += spec.type() == model.masterType() ? 0 : bytes;
  }
  moved.gradients = moved.allGradients;
  moved.input = bytesOf(inputOf(kind), at, load);
  moved.output = bytesOf(outputOf(kind), at, load);
  if (kind.flops_per_token() == 0 && kind.flops_per_part_token() == 0 &&
      kind.flops_per_target() == 0) {
    // Layers without products look rows up, so they do not read all parameters.
    moved.parameters = std::min(moved.parameters, moved.output);
    moved.gradients = std::min(moved.gradients, moved.output);
  }
  // Costs depend on tokens and pairs, not on the number of samples.
  load.segments = 1;
  auto tier = [&](const plan::LinearBytes &bytes) {
    return static_cast<double>(linearBytes(bytes, load));
  };
  moved.products = tier(kind.tiers(DYNA_TIER_PRODUCTS));
  moved.elementwise = tier(kind.tiers(DYNA_TIER_ELEMENTWISE));
  moved.deferred = tier(kind.tiers(DYNA_TIER_DEFERRED));
  return moved;
}

double bytesMoved(const CallBytes &t, cost::Direction direction, bool hasLoss) {
  double saved = t.input + t.products + t.elementwise;
  switch (direction) {
  case cost::FORWARD:
    // Forward of the loss already adds to the gradients of its weights.
    return t.parameters + saved + t.output + (hasLoss ? 2 * t.gradients : 0);
  case cost::BACKWARD:
    return t.parameters + saved + t.output + t.input +
           (hasLoss ? 0 : 2 * t.gradients);
  case cost::BACKWARD_INPUT:
    return t.parameters + saved + t.output + t.input + t.deferred;
  case cost::BACKWARD_WEIGHT:
    return saved + t.deferred + 2 * t.gradients;
  case cost::RECOMPUTE_SELECTIVE:
    return t.input + t.products + t.elementwise;
  case cost::RECOMPUTE_FULL:
    return t.parameters + t.input + t.products + t.elementwise;
  case cost::UPDATE:
    // Gradient, master and two moments, each read and written.
    return 6 * t.masters + 2 * t.allGradients + t.copies;
  default:
    return 0;
  }
}

/// Returns the flops for weight gradients, of which frozen parameters have none.
double weightFlops(const plan::LayerKind &kind, const KindAt &at,
                   const Model &model, double all, const Load &load) {
  bool isAnyFrozen = false, learns = kind.parameters_size() == 0;
  for (int slot = 0; slot < kind.parameters_size(); ++slot) {
    isAnyFrozen |= model.isFrozenSlot(at.kind, slot);
    learns |= !model.isFrozenSlot(at.kind, slot);
  }
  if (!learns)
    return 0;
  const plan::LayerKind::Role &role = kind.roles(DYNA_ROLE_BACKWARD_WEIGHT);
  if (!isAnyFrozen || !role.present())
    return all;
  return static_cast<double>(role.flops_per_token()) *
             static_cast<double>(load.queries) +
         static_cast<double>(role.flops_per_part_token()) *
             static_cast<double>(dyna_part_size(load.queries, at.tp, 0));
}

/// Returns the flops of a backward that gives no gradient of its input: the products of
/// the function, and twice the flops of attention forward.
double backwardFlops(const plan::LayerKind &kind, const KindAt &at,
                     const Load &load) {
  const plan::LayerKind::Role &role = kind.roles(DYNA_ROLE_BACKWARD);
  return static_cast<double>(role.flops_per_token()) *
             static_cast<double>(load.queries) +
         static_cast<double>(role.flops_per_part_token()) *
             static_cast<double>(dyna_part_size(load.queries, at.tp, 0)) +
         2 * static_cast<double>(kind.attention_flops_per_pair()) *
             static_cast<double>(load.pairs);
}

/// Returns the flops of a call. Forward computes the loss together with its
/// gradients: three products, or two if the table is frozen. Split tokens are
/// counted as on the first rank.
double flopsOf(const plan::LayerKind &kind, const KindAt &at,
               const Model &model, cost::Direction direction,
               const Load &load) {
  const int64_t part = dyna_part_size(load.queries, at.tp, 0);
  double layer = static_cast<double>(kind.flops_per_token()) *
                     static_cast<double>(load.queries) +
                 static_cast<double>(kind.flops_per_part_token()) *
                     static_cast<double>(part) +
                 static_cast<double>(kind.attention_flops_per_pair()) *
                     static_cast<double>(load.pairs);
  double loss = static_cast<double>(kind.flops_per_target()) *
                static_cast<double>(load.targets);
  const int table = kind.target_table();
  const bool isTableFrozen =
      table < kind.parameters_size() && model.isFrozenSlot(at.kind, table);
  switch (direction) {
  case cost::FORWARD:
    return layer + (isTableFrozen ? 2 : 3) * loss;
  case cost::BACKWARD:
    return kind.stops_gradient()
               ? backwardFlops(kind, at, load)
               : layer + weightFlops(kind, at, model, layer, load);
  case cost::BACKWARD_WEIGHT:
    return weightFlops(kind, at, model, layer, load);
  case cost::BACKWARD_INPUT:
  case cost::RECOMPUTE_FULL:
    return layer;
  case cost::RECOMPUTE_SELECTIVE:
    // If scores are kept, they are element-wise results whose recomputation is
    // the whole product of scores.
    return kind.score_bytes_per_pair() > 0
               ? static_cast<double>(kind.attention_flops_per_pair()) *
                     static_cast<double>(load.pairs)
               : 0;
  default:
    return 0;
  }
}

/// Returns the bytes that a call reads and writes for the scores of one head
/// and pair.
double scoreBytes(const cost::StoredScores &scores, cost::Direction direction) {
  switch (direction) {
  case cost::FORWARD:
  case cost::RECOMPUTE_SELECTIVE:
  case cost::RECOMPUTE_FULL:
    return scores.forward_bytes();
  case cost::BACKWARD:
  case cost::BACKWARD_INPUT:
    return scores.backward_bytes();
  default:
    return 0; // attention has no weights
  }
}

double flopRate(const cost::Device &device, plan::ElementType type) {
  return type == plan::F64    ? device.f64_flops()
         : type == plan::BF16 ? device.bf16_flops()
                              : device.f32_flops();
}

/// By role; unknown: nothing is known of what it costs.
constexpr cost::Direction directions[] = {
    cost::FORWARD, // evaluates
    cost::FORWARD,
    cost::RECOMPUTE_SELECTIVE,
    cost::RECOMPUTE_FULL,
    cost::BACKWARD,
    cost::BACKWARD_INPUT,
    cost::BACKWARD_WEIGHT,
    cost::UPDATE,
    cost::GRAD_NORM,
    cost::DIRECTION_UNKNOWN, // casts
};
static_assert(std::size(directions) == DYNA_ROLE_COUNT,
              "say what a function of a new role costs");
static_assert(directions[DYNA_ROLE_RECOMPUTE_FULL] == cost::RECOMPUTE_FULL &&
              directions[DYNA_ROLE_BACKWARD_WEIGHT] == cost::BACKWARD_WEIGHT &&
              directions[DYNA_ROLE_UPDATE] == cost::UPDATE);

/// Returns the role of a direction. If training and evaluation have the same
/// direction, it is the role in training.
int roleOf(cost::Direction direction) {
  int role = DYNA_ROLE_COUNT - 1;
  while (role > 0 && directions[role] != direction)
    --role;
  return role;
}

/// Ranks of a group that layer functions of a tensor degree name.
int groupSize(const plan::Manifest &manifest, int tp, int group) {
  if (group == DYNA_GROUP_TP)
    return tp;
  int64_t ranks = 1;
  if (group >= DYNA_GROUP_COUNT)
    for (const plan::AxisPart &part :
         manifest.groups(group - DYNA_GROUP_COUNT).parts())
      ranks *= part.size();
  return static_cast<int>(ranks);
}

} // namespace

cost::Layer layerOf(const plan::LayerKind &kind) {
  cost::Layer layer;
  layer.set_kind(kind.name());
  int64_t parameters = 0;
  for (const plan::TensorSpec &spec : kind.parameters()) {
    int64_t elements = 1;
    for (int64_t size : spec.shape())
      elements *= size;
    parameters += elements;
  }
  layer.set_parameters(parameters);
  layer.set_flops_per_token(kind.flops_per_token());
  layer.set_flops_per_pair(kind.attention_flops_per_pair());
  layer.set_flops_per_target(kind.flops_per_target());
  return layer;
}

/// Fails if a kind that the table describes differs from the model's kind of
/// that name.
static Status checkLayers(const plan::Manifest &manifest,
                          const CostTable &table) {
  for (const plan::LayerKind &kind : manifest.kinds())
    for (const cost::Layer &there : table.message().layers()) {
      if (there.kind() != kind.name())
        continue;
      const cost::Layer here = layerOf(kind);
      const std::tuple<const char *, int64_t, int64_t> numbers[] = {
          {"parameters", there.parameters(), here.parameters()},
          {"flops a token", there.flops_per_token(), here.flops_per_token()},
          {"flops a pair", there.flops_per_pair(), here.flops_per_pair()},
          {"flops a target", there.flops_per_target(),
           here.flops_per_target()}};
      for (auto [what, measured, now] : numbers)
        if (measured != now)
          return Status::invalidArgument(formatText(
              "%s: is of another model: its layers '%s' have %d %s, those of "
              "this one %d; measure this model with --profile",
              table.name(), kind.name(), measured, what, now));
    }
  return Status::ok();
}

/// Fails if a slice of the table ends behind the longest sample.
static Status checkPositions(const plan::Manifest &manifest,
                             const CostTable &table) {
  const int64_t positions = manifest.facts().positions();
  if (positions == 0)
    return Status::ok();
  for (const cost::Entry &entry : table.message().entries())
    for (int i = 0; i < entry.points_size(); ++i) {
      const cost::Point &point = entry.points(i);
      if (point.context() > 0 && point.context() + point.tokens() > positions)
        return Status::invalidArgument(formatText(
            "%s: entry %s: point %d: a slice of %d tokens after %d ends behind "
            "the %d positions of this model; measure this model with --profile",
            table.name(),
            describeCostKey({entry.kind(), std::max(entry.tp(), 1), entry.sp(),
                             entry.direction()}),
            i + 1, point.tokens(), point.context(), positions));
    }
  return Status::ok();
}

StatusOr<CostModel> CostModel::create(const Model &model, CostTable table) {
  const auto &kinds = model.manifest().kinds();
  for (const auto &entry : table.curves()) {
    const CostKey &key = entry.first;
    auto isIt = [&](const plan::LayerKind &kind) {
      return kind.name() == key.kind;
    };
    if (std::any_of(kinds.begin(), kinds.end(), isIt))
      continue;
    std::string names;
    for (const plan::LayerKind &kind : kinds)
      names += (names.empty() ? "" : ", ") + kind.name();
    return Status::invalidArgument(
        formatText("%s: entry %s: the model has no kind of layer '%s', but %s",
                   table.name(), describeCostKey(key), key.kind, names));
  }
  DYNA_RETURN_IF_ERROR(checkLayers(model.manifest(), table));
  DYNA_RETURN_IF_ERROR(checkPositions(model.manifest(), table));
  if (table.scores().has_value() != keepsScores(model))
    return Status::invalidArgument(
        table.name() +
        (table.scores()
             ? ": has scores, of attention that is not fused, but the model "
               "keeps none: dyna-plan alone makes plans for them"
             : ": has no scores, but the model keeps them"));
  CostModel costs(model);
  costs.table_ = std::move(table);
  return costs;
}

StatusOr<CostModel> CostModel::open(const Model &model,
                                    const std::string &path) {
  if (path.empty())
    return CostModel(model);
  DYNA_ASSIGN_OR_RETURN(CostTable table, CostTable::read(path));
  return create(model, std::move(table));
}

CostKey CostModel::keyOf(const KindAt &at, cost::Direction direction) const {
  return {model_->manifest().kinds(at.kind).name(), at.tp, at.sp, direction};
}

bool CostModel::measuresSlices() const {
  return std::any_of(
      table_.curves().begin(), table_.curves().end(),
      [](const auto &entry) { return entry.second.hasContext(); });
}

std::string CostModel::otherComputeType() const {
  const std::string &measured = table_.message().compute_type();
  const bool isOther =
      !table_.curves().empty() &&
      measured != elementTypeName(model_->manifest().compute_type());
  return isOther ? measured : "";
}

std::string CostModel::describeOtherType() const {
  const std::string measured = otherComputeType();
  return measured.empty()
             ? ""
             : formatText("%s: costs were measured in %s, this program "
                          "computes in %s: measure again with --profile",
                          table_.name(), measured,
                          elementTypeName(model_->manifest().compute_type()));
}

double CostModel::peakFlopRate() const {
  return flopRate(table_.device(), model_->manifest().compute_type());
}

std::string CostModel::describeBasis() const {
  const cost::Device &device = table_.device();
  auto percent = [](double reach) {
    return formatText("%.4g %%", 100 * (reach > 0 ? reach : 1));
  };
  const std::string rates = formatText(
      "matrix products run at %s of %.4g TFLOP/s (%s), memory at %s of %.4g "
      "GB/s, both of device '%s'%s",
      percent(device.flops_reach()), peakFlopRate() * 1e-12,
      elementTypeName(model_->manifest().compute_type()),
      percent(device.bytes_reach()), device.bytes_per_second() * 1e-9,
      device.name(),
      device.source().empty() ? "" : " (" + device.source() + ")");
  const auto measured = static_cast<int64_t>(table_.curves().size());
  if (measured == 0)
    return "forecast: nothing is measured: " + rates;
  return formatText("forecast: %d functions are measured (%s); for the rest ",
                    measured, table_.name()) +
         rates;
}

cost::Direction directionOf(int role) {
  return role < 0 ? cost::DIRECTION_UNKNOWN : directions[role];
}

double CostModel::seconds(const KindAt &at, cost::Direction direction,
                          const Load &load) const {
  return at.state == 0 ? denseSeconds(at, direction, load)
                       : stateSeconds(at, direction,
                                      loadThatReaches(load, states_[at.state]));
}

double CostModel::denseSeconds(const KindAt &at, cost::Direction direction,
                               const Load &load) const {
  auto found = table_.curves().find(keyOf(at, direction));
  if (found == table_.curves().end())
    return estimate(at, direction, load);
  Load seen = load;
  seen.pairs = visiblePairs(model_->manifest().kinds(at.kind), load);
  return found->second.seconds(seen);
}

double CostModel::estimate(const KindAt &at, cost::Direction direction,
                           const Load &load) const {
  const plan::Manifest &manifest = model_->manifest();
  const plan::LayerKind &kind = compiledKind(manifest, at);
  const cost::Device &device = table_.device();
  // A norm takes a tenth of the update's time, so without measurements ignore
  // it.
  if (direction == cost::GRAD_NORM)
    return 0;
  const bool stores = kind.score_bytes_per_pair() > 0 && table_.scores();
  // Kernels that keep scores compute all pairs, masked ones too.
  Load done = load;
  if (!stores)
    done.pairs = visiblePairs(kind, load);
  double flops =
      flopsOf(kind, at, *model_, direction, done) /
      reached(flopRate(device, manifest.compute_type()), device.flops_reach());
  const double rate = reached(device.bytes_per_second(), device.bytes_reach());
  double bytes = bytesMoved(callBytesOf(kind, at, *model_, load), direction,
                            kind.flops_per_target() > 0) /
                 rate;
  double scores = stores ? static_cast<double>(headsOf(
                               manifest, manifest.kinds(at.kind), kind)) *
                               static_cast<double>(done.pairs) *
                               scoreBytes(*table_.scores(), direction) / rate
                         : 0;
  return std::max(flops, bytes) + scores + device.launch_seconds() +
         estimateExchanges(at, direction, load);
}

double CostModel::estimateExchanges(const KindAt &at, cost::Direction direction,
                                    const Load &load) const {
  const plan::Manifest &manifest = model_->manifest();
  const plan::LayerKind &kind = compiledKind(manifest, at);
  int role = roleOf(direction);
  if (at.tp == 1 || !hasRole(kind, role))
    return 0;
  double seconds = 0;
  for (const plan::LayerExchange &exchange : kind.roles(role).exchanges()) {
    // An exchange for each chunk of targets has the latency once for each
    // chunk.
    const int64_t chunk = headChunkRows(manifest.target());
    int64_t times =
        exchange.per_chunk() ? (load.targets + chunk - 1) / chunk : 1;
    int ranks = groupSize(manifest, at.tp, exchange.group());
    GroupShape shape{ranks,
                     at.perNode > 0 ? std::min(ranks, at.perNode) : ranks};
    for (const plan::LayerExchange::Tensor &tensor : exchange.tensors()) {
      double queries = static_cast<double>(exchange.per_chunk() ? load.targets
                                                                : load.queries);
      if (tensor.dealt_group() != 0)
        queries /= groupSize(manifest, at.tp, tensor.dealt_group());
      double rows = static_cast<double>(tensor.bytes().tq()) * queries;
      if (!exchange.per_chunk())
        rows += static_cast<double>(tensor.bytes().tkv() * load.keys +
                                    tensor.bytes().s() * load.segments);
      double bytes = times > 0
                         ? rows / static_cast<double>(times) +
                               static_cast<double>(tensor.bytes().constant())
                         : 0;
      seconds += static_cast<double>(times) *
                 cluster().exchangeSeconds(tensor.kind(), bytes, shape);
    }
  }
  return seconds;
}

} // namespace dyna
