//===- ManifestBuilder.cpp - Builds the manifest of a module --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/ManifestBuilder.h"

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/facts/LayerVariants.h"
#include "passes/memory/place/KeyStore.h"
#include "passes/memory/value/Target.h"
#include "passes/memory/value/TokenParts.h"
#include "passes/memory/value/WeightGroups.h"
#include "passes/plan/LayerExchanges.h"
#include "runtime/abi/Kernels.h"
#include "runtime/plan/model/Model.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;

// The roles of the dialect and those of the ABI must have the same numbers.
static_assert(static_cast<int>(Role::Evaluate) == DYNA_ROLE_EVALUATE &&
              static_cast<int>(Role::Cast) == DYNA_ROLE_CAST &&
              DYNA_ROLE_CAST + 1 == DYNA_ROLE_COUNT);

namespace {

class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, ArrayRef<std::string> strategies)
      : module(module), strategies(strategies), callsOf(callsOfLayers(module)) {
  }

  FailureOr<plan::Manifest> build() {
    auto models = llvm::to_vector(module.getOps<ModelOp>());
    if (models.size() != 1)
      return module.emitError("expects exactly one dyna.model, but got ")
             << models.size();
    ModelOp model = models.front();
    addFacts(model);
    addLossWeights(model);
    addParameters();
    addGradients();
    for (CallOp call : model.getBody().getOps<CallOp>())
      if (failed(addLayer(call)))
        return failure();
    if (failed(addVariants()) || failed(checkParametersAreUsed()) ||
        failed(checkIgnoredTargets()))
      return failure();
    if (failed(addDegrees()))
      return failure();
    addBatchTables();
    for (const std::string &strategy : strategies)
      manifest.add_strategies(strategy);
    manifest.set_format(1);
    // The manifest leaves out the default target.
    if (TargetName target = targetOf(module).name; target != TargetName::Cpu)
      manifest.set_target(stringifyTargetName(target).str());
    manifest.set_producer("dynac " DYNA_VERSION);
    manifest.set_hash(::dyna::manifestHash(manifest));
    return manifest;
  }

private:
  void addFacts(ModelOp model);
  void addLossWeights(ModelOp model);
  void addParameters();
  void addGradients();
  LogicalResult addLayer(CallOp call);
  LogicalResult addVariants();
  LogicalResult checkParametersAreUsed();
  LogicalResult checkIgnoredTargets();
  FailureOr<int> addKind(LayerOp layer);
  LogicalResult setKind(plan::LayerKind *kind, LayerOp layer);
  LogicalResult addDegrees();
  LogicalResult addLocalKind(plan::TensorDegree *degree, LayerOp layer);
  void addGroups();
  void addBatchTables();

  ModuleOp module;
  ArrayRef<std::string> strategies;
  plan::Manifest manifest;
  llvm::MapVector<StringAttr, int> parameterIndex;
  llvm::MapVector<StringAttr, int> kindIndex;
  CallsOfLayers callsOf;
  llvm::DenseMap<Value, int> layerIndex; ///< of the model's activations
};

} // namespace

static plan::ElementType elementType(Type type) {
  if (type.isF64())
    return plan::F64;
  if (type.isF32())
    return plan::F32;
  if (type.isBF16())
    return plan::BF16;
  if (type.isInteger(32))
    return plan::I32;
  return plan::ELEMENT_UNKNOWN;
}

/// Returns the parts over which a layout splits each dimension; nothing without
/// a layout.
static SmallVector<::dyna::AxisParts> splitsOf(Attribute layout) {
  auto attribute = dyn_cast_or_null<dist::LayoutAttr>(layout);
  if (!attribute)
    return {};
  std::vector<::dyna::AxisParts> dims = attribute.getLayout().dims;
  return SmallVector<::dyna::AxisParts>(dims.begin(), dims.end());
}

/// `layout` is that of the tensor, if it has one.
static void setSpec(plan::TensorSpec *spec, Type type, Attribute layout) {
  auto tensor = cast<RankedTensorType>(type);
  spec->set_type(elementType(tensor.getElementType()));
  bool dynamic = tensor.getRank() > 0 && tensor.isDynamicDim(0);
  // Every activation of a decoder has a row for each query of stream 0.
  SmallVector<::dyna::AxisParts> splits = splitsOf(layout);
  bool isPart = dynamic && !splits.empty() && !splits.front().empty();
  spec->set_rows(isPart    ? plan::TensorSpec::TQ_PART
                 : dynamic ? plan::TensorSpec::TQ
                           : plan::TensorSpec::FIXED);
  for (int64_t size : tensor.getShape().drop_front(dynamic ? 1 : 0))
    spec->add_shape(size);
}

static void setBytes(plan::LinearBytes *bytes, PlaceAttr place) {
  const ::dyna::LinearBytes size = place.getOffset();
  bytes->set_tq(size.tq);
  bytes->set_tkv(size.tkv);
  bytes->set_s(size.s);
  bytes->set_constant(size.constant);
}

void ManifestBuilder::addFacts(ModelOp model) {
  FactsAttr facts = model.getFacts();
  manifest.set_model(model.getSymName().str());
  plan::ModelFacts *out = manifest.mutable_facts();
  out->set_family(facts.getFamily().str());
  out->set_vocabulary(facts.getVocabulary());
  out->set_positions(facts.getPositions());
  out->set_width(facts.getWidth());
  out->set_heads(facts.getHeads());
  out->set_kv_heads(facts.getKvHeads());
  out->set_head_dim(facts.getHeadDim());
  out->set_feed_forward(facts.getFeedForward());
  out->set_config_json(facts.getConfig().str());
  if (StringAttr prefix = facts.getPrefix())
    out->set_stored_prefix(prefix.str());
  if (ArrayAttr buffers = facts.getBuffers())
    for (StringAttr end : buffers.getAsRange<StringAttr>())
      out->add_skipped_buffers(end.str());
  if (StringAttr defaults = facts.getDefaults())
    out->set_config_defaults(defaults.str());
}

/// Adds the weights of losses, unless each is 1.
void ManifestBuilder::addLossWeights(ModelOp model) {
  SmallVector<double> weights;
  for (CallOp call : model.getBody().getOps<CallOp>())
    if (call.getLoss())
      weights.push_back(call.getWeight().convertToDouble());
  if (llvm::any_of(weights, [](double weight) { return weight != 1; }))
    manifest.mutable_facts()->mutable_loss_weights()->Add(weights.begin(),
                                                          weights.end());
}

static void setStored(plan::Stored *out, StoredAttr stored) {
  out->set_name(stored.getName().str());
  out->set_part(static_cast<int32_t>(stored.getPart()));
  out->set_parts(static_cast<int32_t>(stored.getParts()));
  out->set_transposed(stored.getTransposed());
  if (StringAttr copy = stored.getCopy())
    out->set_copy(copy.str());
}

void ManifestBuilder::addParameters() {
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    auto type = cast<RankedTensorType>(parameter.getType());
    parameterIndex[parameter.getSymNameAttr()] = manifest.parameters_size();
    manifest.set_compute_type(elementType(type.getElementType()));
    plan::Parameter *out = manifest.add_parameters();
    out->set_name(parameter.getSymName().str());
    for (int64_t size : type.getShape())
      out->add_shape(size);
    out->set_constant(parameter.getConstant().convertToDouble());
    out->set_normal_std(parameter.getNormal().convertToDouble());
    out->set_decay(parameter.getDecay());
    out->set_frozen(parameter.getFrozen());
    out->set_added(parameter.getAdded());
    if (std::optional<StoredAttr> stored = parameter.getStored())
      setStored(out->mutable_stored(), *stored);
  }
}

/// Adds gradients. All functions agree (`dyna-verify-differentiated`), so the
/// first with gradients gives their type.
void ManifestBuilder::addGradients() {
  for (FunctionOp function : module.getOps<FunctionOp>())
    if (Type type = function.getGradientElementType())
      return manifest.set_gradient_type(elementType(type));
}

LogicalResult ManifestBuilder::addLayer(CallOp call) {
  auto layer =
      SymbolTable::lookupNearestSymbolFrom<LayerOp>(call, call.getCalleeAttr());
  if (!layer)
    return call.emitOpError("expects '")
           << call.getCallee() << "' to be a dyna.layer";
  FailureOr<int> kind = addKind(layer);
  if (failed(kind))
    return failure();
  plan::Layer *out = manifest.add_layers();
  int index = manifest.layers_size() - 1;
  // List inputs from other calls; other inputs are the model's arguments.
  for (Value input : call.getInputs())
    if (auto producer = layerIndex.find(input); producer != layerIndex.end())
      out->add_producers(producer->second);
  if (Value activation = call.getActivation())
    layerIndex[activation] = index;
  out->set_name(call.getLayerName().str());
  out->set_kind(*kind);
  for (auto parameter : call.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    auto found = parameterIndex.find(parameter.getAttr());
    if (found == parameterIndex.end())
      return call.emitOpError("names parameter ")
             << parameter << ", which the module does not declare";
    out->add_parameters(found->second);
  }
  return success();
}

/// Adds the kinds of layers that only a run that freezes layers calls.
LogicalResult ManifestBuilder::addVariants() {
  for (LayerOp layer : module.getOps<LayerOp>())
    if (layer.getVariantOf() && !dist::kMesh.isOn(layer) &&
        failed(addKind(layer)))
      return failure();
  return success();
}

/// Checks that every parameter is used. No run would start with one that no
/// layer updates.
LogicalResult ManifestBuilder::checkParametersAreUsed() {
  llvm::DenseSet<int> used;
  for (const plan::Layer &layer : manifest.layers())
    used.insert_range(layer.parameters());
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (!used.contains(parameterIndex.lookup(parameter.getSymNameAttr())))
      return parameter.emitOpError()
             << "@" << parameter.getSymName()
             << " is a parameter of no layer that the model calls; remove it, "
                "or call one with it";
  return success();
}

/// Checks ignored targets. The runtime marks rows outside of the loss with one
/// value; a head that ignores another value would look this one up in its
/// table.
LogicalResult ManifestBuilder::checkIgnoredTargets() {
  WalkResult result = module.walk([&](LinearCrossEntropyOp head) {
    constexpr int64_t mark = DYNA_NO_TARGET;
    const auto ignored = static_cast<int64_t>(head.getIgnoreIndex());
    if (ignored == mark)
      return WalkResult::advance();
    head.emitOpError() << "has ignore_index = " << ignored
                       << ", but a training binary marks targets outside of "
                          "the loss with "
                       << mark << ": write ignore_index = " << mark
                       << ", or leave it out";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

// Ops and kernels must count the same work.
static_assert(DYNA_ATTENTION_PRODUCTS == kAttentionProducts &&
              DYNA_ATTENTION_GRAD_PRODUCTS == kAttentionGradProducts);

namespace {
/// Work of a layer or a layer function. Products on all tokens of a micro-batch
/// are separate from those on this rank's part.
struct RankWork {
  Work all, part;
};
} // namespace

static RankWork workOfRank(FunctionOpInterface function) {
  TokenParts tokens(function);
  RankWork work;
  function.walk([&](ProductOpInterface product) {
    (tokens.ofRows(product) ? work.part : work.all) += product.getWork();
  });
  return work;
}

/// Targets and pairs are never dealt: a head and attention take all tokens. Tokens
/// are dealt to all ranks of the tensor-parallel axis, which is what those who use
/// the numbers divide them by.
static LogicalResult checkPart(FunctionOpInterface function, const Work &part) {
  bool isOfAxis = true;
  TokenParts tokens(function);
  function.walk([&](ProductOpInterface product) {
    if (dist::GroupAttr group = tokens.ofRows(product))
      isOfAxis &= group.getIndex() == DYNA_GROUP_TP;
  });
  if (isOfAxis && part.perTarget + part.perPair + part.perCausalPair == 0)
    return success();
  return function->emitOpError(
      "has matrix products on a part of the tokens whose work the manifest "
      "cannot state: it states work for each token that is dealt to all "
      "tensor-parallel ranks");
}

/// Sets the matrix-product flops of a layer's logical form, and the table in
/// which its targets are looked up.
static LogicalResult setFlops(plan::LayerKind *kind, LayerOp layer) {
  const auto [work, part] = workOfRank(layer);
  if (failed(checkPart(layer, part)))
    return failure();
  kind->set_flops_per_token(work.perToken);
  kind->set_flops_per_part_token(part.perToken);
  kind->set_flops_per_target(work.perTarget);
  kind->set_attention_flops_per_pair(work.perPair + work.perCausalPair);
  kind->set_causal(work.perCausalPair > 0 && work.perPair == 0);
  kind->set_target_table(kind->parameters_size());
  layer.walk([&](LinearCrossEntropyOp loss) {
    auto table = dyn_cast<BlockArgument>(loss.getWeight());
    if (table && llvm::is_contained(layer.getParameterArguments(), table))
      kind->set_target_table(table.getArgNumber());
  });
  return success();
}

/// Sets the matrix-product flops of a call of a function, from its products.
static LogicalResult setFlops(plan::LayerKind::Role *role,
                              FunctionOp function) {
  const auto [work, part] = workOfRank(function);
  if (failed(checkPart(function, part)))
    return failure();
  role->set_flops_per_token(work.perToken);
  role->set_flops_per_part_token(part.perToken);
  role->set_flops_per_target(work.perTarget);
  role->set_flops_per_pair(work.perPair);
  role->set_flops_per_causal_pair(work.perCausalPair);
  return success();
}

static void addWeightGroups(plan::LayerKind *kind, LayerOp layer) {
  for (const WeightGroups &groups : weightGroupsOf(layer)) {
    plan::WeightGroups *added = kind->add_weight_groups();
    added->set_kind(groups.areHeads ? plan::WeightGroups::HEAD
                                    : plan::WeightGroups::CHANNEL);
    added->set_count(groups.count);
    for (const WeightGroups::Part &part : groups.parts) {
      plan::WeightGroups::Part *out = added->add_parts();
      out->set_parameter(static_cast<int32_t>(part.parameter));
      out->set_dimension(part.dimension);
    }
  }
}

FailureOr<int> ManifestBuilder::addKind(LayerOp layer) {
  auto [entry, isNew] =
      kindIndex.insert({layer.getSymNameAttr(), manifest.kinds_size()});
  if (!isNew)
    return entry->second;
  plan::LayerKind *kind = manifest.add_kinds();
  if (failed(setKind(kind, layer)))
    return failure();
  addWeightGroups(kind, layer);
  return entry->second;
}

/// Writes which gradients the functions of a layer lack. A layer of a tensor degree lacks
/// those of the whole layer. `callsOf` are the calls of the module.
static void setVariant(plan::LayerKind *kind, LayerOp layer,
                       const CallsOfLayers &callsOf) {
  if (std::optional<FlatSymbolRefAttr> base = layer.getVariantOf())
    kind->set_variant_of(base->getValue().str());
  LayerOp whole = layer;
  if (auto logical = dist::kLogical.of(layer))
    whole = SymbolTable::lookupNearestSymbolFrom<LayerOp>(layer, logical);
  SmallVector<bool> frozen =
      frozenOf(whole, callsOf.lookup(getBaseName(whole)));
  kind->set_frozen(!frozen.empty() &&
                   !llvm::is_contained(frozen, /*trained*/ false));
  kind->set_stops_gradient(layer.getStopsGradient());
}

LogicalResult ManifestBuilder::setKind(plan::LayerKind *kind, LayerOp layer) {
  std::optional<ArrayAttr> tiers = layer.getTiers();
  if (!tiers || tiers->size() != DYNA_TIER_COUNT)
    return layer.emitOpError(
        "has no tier sizes; run the memory phase (--dyna-memory) first");

  auto layoutOf = [&](dist::PhaseAttribute<ArrayAttr> list, unsigned index) {
    ArrayAttr layouts = list.of(layer);
    return layouts ? layouts[index] : Attribute();
  };
  kind->set_name(layer.getSymName().str());
  setVariant(kind, layer, callsOf);
  for (BlockArgument argument : layer.getParameterArguments())
    setSpec(kind->add_parameters(), argument.getType(), Attribute());
  for (BlockArgument argument : layer.getInputArguments())
    if (!isa<SegmentsType>(argument.getType()))
      setSpec(kind->add_inputs(), argument.getType(),
              layoutOf(dist::kArguments, argument.getArgNumber()));
  for (auto [index, type] :
       llvm::enumerate(layer.getFunctionType().getResults()))
    setSpec(kind->add_outputs(), type, layoutOf(dist::kResults, index));
  for (auto tier : tiers->getAsRange<PlaceAttr>())
    setBytes(kind->add_tiers(), tier);
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    kind->add_roles();
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    if (function.getLayer() != layer.getSymName())
      continue;
    plan::LayerKind::Role *role =
        kind->mutable_roles(static_cast<int>(function.getRole()));
    role->set_present(true);
    if (PlaceAttr workspace = function.getWorkspaceAttr())
      setBytes(role->mutable_workspace(), workspace);
    if (failed(setFlops(role, function)))
      return failure();
    listExchanges(function, role);
    // All functions that compute have the same list (dyna-verify-memory).
    if (function.getRole() == Role::Forward)
      for (int64_t slot : function.getSparseParameters())
        kind->add_sparse_parameters(static_cast<int32_t>(slot));
  }
  FailureOr<KeyStore> store = KeyStore::create(module, layer.getSymName());
  if (failed(store))
    return failure();
  kind->set_key_bytes(store->getRowBytes());
  kind->set_key_gradient_bytes(store->getGradientRowBytes());
  return setFlops(kind, layer);
}

//===----------------------------------------------------------------------===//
// Tensor degrees
//===----------------------------------------------------------------------===//

template <typename Parts>
static void addParts(Parts *parts, const ::dyna::AxisParts &list) {
  for (const ::dyna::AxisPart &part : list) {
    plan::AxisPart *out = parts->Add();
    out->set_stride(part.stride);
    out->set_size(part.size);
  }
}

/// Adds a layer's form at a degree, with what it has beyond other kinds.
LogicalResult ManifestBuilder::addLocalKind(plan::TensorDegree *degree,
                                            LayerOp layer) {
  plan::LayerKind *kind = degree->add_kinds();
  if (failed(setKind(kind, layer)))
    return failure();
  auto arguments = dist::kArguments.of(layer);
  auto gradients = dist::kGradients.of(layer);
  if (!arguments || !gradients || gradients.size() < layer.getNumParameters())
    return layer.emitOpError(
        "has a mesh, but not the layouts of its parameters "
        "and their gradients; run the distribute phase "
        "(--dyna-distribute)");
  for (unsigned slot = 0; slot < layer.getNumParameters(); ++slot) {
    plan::ParameterSplit *split = kind->add_splits();
    for (auto [dim, parts] : llvm::enumerate(splitsOf(arguments[slot]))) {
      if (parts.empty())
        continue;
      if (split->parts_size() > 0)
        return layer.emitOpError("splits parameter ")
               << slot << " along two dimensions: " << arguments[slot];
      split->set_dim(dim);
      addParts(split->mutable_parts(), ::dyna::canonicalParts(parts));
    }
    if (auto layout = dyn_cast<dist::LayoutAttr>(gradients[slot]))
      addParts(split->mutable_gradient_partial(),
               ::dyna::canonicalParts(layout.getLayout().partial));
  }
  return success();
}

LogicalResult ManifestBuilder::addDegrees() {
  using Degree = std::pair<int64_t, int>; // tp, sp
  llvm::MapVector<Degree, llvm::DenseMap<Attribute, LayerOp>> degrees;
  for (LayerOp layer : module.getOps<LayerOp>()) {
    auto mesh = dist::kMesh.of(layer);
    auto logical = dist::kLogical.of(layer);
    if (mesh && logical)
      degrees[{mesh.getMesh().size(), dist::kSequence.isOn(layer)}]
             [logical.getAttr()] = layer;
  }
  for (auto &[degree, layers] : degrees) {
    plan::TensorDegree *out = manifest.add_degrees();
    out->set_tp(degree.first);
    out->set_sp(degree.second);
    for (auto &[name, index] : kindIndex) {
      LayerOp layer = layers.lookup(name);
      if (!layer)
        return module.emitError("has no layer ")
               << name << " for tp=" << degree.first
               << (degree.second ? ",sp=1" : "");
      if (failed(addLocalKind(out, layer)))
        return failure();
    }
  }
  addGroups();
  return success();
}

void ManifestBuilder::addGroups() {
  auto groups = dist::kGroups.of(module);
  if (!groups)
    return;
  for (auto group : groups.getAsRange<dist::GroupAttr>()) {
    plan::TensorGroup *out = manifest.add_groups();
    out->set_tp(group.getMesh().getMesh().size());
    addParts(out->mutable_parts(), group.getParts());
  }
}

static constexpr uint32_t maskOf(BatchTable table) {
  return 1u << static_cast<unsigned>(table);
}
static_assert(maskOf(BatchTable::Offsets) == DYNA_BATCH_OFFSETS &&
              maskOf(BatchTable::TokenRuns) == DYNA_BATCH_TOKEN_RUNS &&
              maskOf(BatchTable::PositionRuns) == DYNA_BATCH_POSITION_RUNS &&
              maskOf(BatchTable::TargetRows) == DYNA_BATCH_TARGET_ROWS);

/// Adds the batch tables that the target's code reads for the module's ops.
void ManifestBuilder::addBatchTables() {
  uint32_t read = 0;
  for (FunctionOp function : module.getOps<FunctionOp>())
    function.walk(
        [&](BatchTableOpInterface op) { read |= maskOf(op.getBatchTable()); });
  manifest.set_batch_tables(read & targetOf(module).batchTables);
}

FailureOr<plan::Manifest>
mlir::dyna::buildManifest(ModuleOp module, ArrayRef<std::string> strategies) {
  return ManifestBuilder(module, strategies).build();
}
