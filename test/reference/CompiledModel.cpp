//===- CompiledModel.cpp - Trains one step with compiled code -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/CompiledModel.h"

#include "runtime/abi/Kernels.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

//===----------------------------------------------------------------------===//
// Slabs
//===----------------------------------------------------------------------===//

static constexpr size_t guardBytes = 512;
static constexpr unsigned char guardByte = 0xA5;

Slab::Slab(int64_t bytes) : bytes(bytes) {
  storage.assign(static_cast<size_t>(bytes) + 2 * guardBytes +
                     DYNA_BLOCK_ALIGNMENT,
                 guardByte);
  auto address = reinterpret_cast<uintptr_t>(storage.data()) + guardBytes;
  start = guardBytes + (DYNA_BLOCK_ALIGNMENT - address % DYNA_BLOCK_ALIGNMENT) %
                           DYNA_BLOCK_ALIGNMENT;
  poison();
}

void Slab::poison() {
  if (bytes)
    std::memset(data(), 0xFF, static_cast<size_t>(bytes));
}

void Slab::clear() {
  if (bytes)
    std::memset(data(), 0, static_cast<size_t>(bytes));
}

bool Slab::guardsAreIntact() const {
  size_t end = start + static_cast<size_t>(bytes);
  for (size_t i = 0; i < storage.size(); ++i)
    if ((i < start || i >= end) && storage[i] != guardByte)
      return false;
  return true;
}

static int64_t bytesOfElement(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

void reference::store(const Tensor &tensor, Type element, Slab &block) {
  auto *bytes = static_cast<char *>(block.data());
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (element.isF64()) {
      std::memcpy(bytes + 8 * i, &tensor.values[i], 8);
      continue;
    }
    auto single = static_cast<float>(tensor.values[i]);
    if (element.isF32()) {
      std::memcpy(bytes + 4 * i, &single, 4);
      continue;
    }
    // Values that are stored are bf16 numbers already.
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    auto half = static_cast<uint16_t>(bits >> 16);
    std::memcpy(bytes + 2 * i, &half, 2);
  }
}

Tensor reference::load(std::vector<int64_t> shape, Type element,
                       const Slab &block) {
  Tensor tensor(std::move(shape));
  const auto *bytes = static_cast<const char *>(block.data());
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (element.isF64()) {
      std::memcpy(&tensor.values[i], bytes + 8 * i, 8);
      continue;
    }
    uint32_t bits = 0;
    if (element.isF32()) {
      std::memcpy(&bits, bytes + 4 * i, 4);
    } else {
      uint16_t half;
      std::memcpy(&half, bytes + 2 * i, 2);
      bits = static_cast<uint32_t>(half) << 16;
    }
    float single;
    std::memcpy(&single, &bits, 4);
    tensor.values[i] = single;
  }
  return tensor;
}

static Slab storeIds(const Ids &ids) {
  Slab block(static_cast<int64_t>(4 * ids.size()));
  if (!ids.empty())
    std::memcpy(block.data(), ids.data(), 4 * ids.size());
  return block;
}

//===----------------------------------------------------------------------===//
// Persistent memory
//===----------------------------------------------------------------------===//

CompiledModel::CompiledModel(const CompiledProgram &program, ModelOp model,
                             Type element, dyna_context &context,
                             const std::string &degree)
    : program(program), element(element),
      accumulator(getAccumulatorType(element)), context(context),
      degree(degree) {
  auto module = model->getParentOfType<ModuleOp>();
  Value targets = model.getBody().front().getArgument(1);
  for (CallOp op : model.getBody().front().getOps<CallOp>()) {
    Call call;
    call.kind = op.getCallee().str() + degree;
    auto layer = module.lookupSymbol<LayerOp>(call.kind);
    for (auto [slot, symbol] :
         llvm::enumerate(op.getParameters().getAsRange<FlatSymbolRefAttr>())) {
      call.parameters.push_back(symbol.getValue().str());
      auto type = cast<RankedTensorType>(layer.getArgumentTypes()[slot]);
      State &state = states[call.parameters.back()];
      if (!state.shape.empty())
        continue;
      state.shape = type.getShape().vec();
      int64_t count = type.getNumElements();
      state.parameter = Slab(count * bytesOfElement(element));
      state.gradient = Slab(count * bytesOfElement(program.gradientElement()));
      state.gradient.clear();
      state.m = Slab(count * bytesOfElement(accumulator));
      state.v = Slab(count * bytesOfElement(accumulator));
      if (needsCast())
        state.master = Slab(count * bytesOfElement(accumulator));
    }
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      if (i > 0 && !isa<SegmentsType>(input.getType()))
        call.inputsAreTargets.push_back(input == targets);
    auto first = cast<RankedTensorType>(op.getInputs()[0].getType());
    call.takesIds = first.getElementType().isInteger();
    auto result = cast<RankedTensorType>(op.getResult().getType());
    if (result.getRank() == 2)
      call.outputWidth = result.getDimSize(1);
    calls.push_back(std::move(call));
  }
}

void CompiledModel::setMasters(const NamedTensors &masters) {
  for (auto &[name, state] : states)
    store(masters.at(name), accumulator, masterBlock(state));
  if (!needsCast())
    return;
  for (size_t i = 0; i < calls.size(); ++i)
    if (!calls[i].parameters.empty())
      call(i, Role::Cast, nullptr, tensors(calls[i], &State::parameter), {},
           tensors(calls[i], &State::master), {});
}

void CompiledModel::setMoments(const NamedTensors &m, const NamedTensors &v) {
  for (auto &[name, state] : states) {
    store(m.at(name), accumulator, state.m);
    store(v.at(name), accumulator, state.v);
  }
}

NamedTensors CompiledModel::loadAll(Slab State::*block, Type type) const {
  NamedTensors result;
  for (const auto &[name, state] : states)
    result[name] = load(state.shape, type, state.*block);
  return result;
}

NamedTensors CompiledModel::masters() const {
  return loadAll(needsCast() ? &State::master : &State::parameter, accumulator);
}

std::vector<dyna_tensor>
CompiledModel::tensors(const Call &call, Slab State::*block,
                       const std::vector<bool> *present) {
  std::vector<dyna_tensor> result;
  for (size_t i = 0; i < call.parameters.size(); ++i) {
    State &state = states.at(call.parameters[i]);
    if (present && !(*present)[i])
      result.push_back({nullptr, 0});
    else
      result.push_back({(state.*block).data(), state.shape[0]});
  }
  return result;
}

std::vector<bool> CompiledModel::ownedBy(size_t index) const {
  std::set<std::string> earlier;
  for (size_t i = 0; i < index; ++i)
    earlier.insert(calls[i].parameters.begin(), calls[i].parameters.end());
  std::vector<bool> owned;
  for (const std::string &name : calls[index].parameters)
    owned.push_back(earlier.count(name) == 0);
  return owned;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void CompiledModel::call(size_t index, Role role, MicroBatch *micro,
                         const std::vector<dyna_tensor> &params,
                         const std::vector<dyna_tensor> &grads,
                         const std::vector<dyna_tensor> &in,
                         const std::vector<dyna_tensor> &out) {
  std::string where = calls[index].kind + "." + stringifyRole(role).str();
  if (!failure.empty())
    return;
  const CompiledLayer &layer = program.layer(calls[index].kind);
  auto it = layer.functions.find(role);
  if (it == layer.functions.end()) {
    failure = where + " does not exist";
    return;
  }
  dyna_segments segments = {};
  dyna_saved saved = {};
  if (micro) {
    auto tokens = static_cast<int64_t>(micro->samples.size());
    int64_t longest = 0, longestKey = 0, pairs = 0, causalPairs = 0;
    for (const dyna_segment &segment : micro->segments) {
      longest = std::max(longest, segment.q_len);
      longestKey = std::max(longestKey, segment.kv_len);
      pairs += dyna_visible_pairs(&segment, 0);
      causalPairs += dyna_visible_pairs(&segment, 1);
    }
    const Batch &batch = *micro->batch;
    segments = {
        micro->segments.data(),
        static_cast<int64_t>(micro->segments.size()),
        tokens,
        tokens,
        micro->samples.data(),
        micro->positions.data(),
        longest,
        longestKey,
        llvm::count_if(batch.targets,
                       [&](int32_t target) { return target != batch.ignored; }),
        pairs,
        causalPairs,
        /*keys_are_queries=*/batch.stored == 0,
        batch.stored,
        nullptr,
        {},
        {},
        nullptr};
    if (program.batchTables() & DYNA_BATCH_TOKEN_RUNS)
      segments.token_runs = micro->tokenRuns.get();
    if (program.batchTables() & DYNA_BATCH_POSITION_RUNS)
      segments.position_runs = micro->positionRuns.get();
    if (program.batchTables() & DYNA_BATCH_TARGET_ROWS)
      segments.target_rows = micro->targetRows.data();
    if (!micro->saved.empty()) {
      Saved &blocks = micro->saved[index];
      saved = {blocks.input.data(),
               blocks.products.data(),
               blocks.elementwise.data(),
               blocks.deferred.data(),
               nullptr,
               nullptr};
    }
    if (batch.stored > 0) {
      saved.keys = stores[index].keys.data();
      saved.key_gradients = stores[index].gradients.data();
    }
  }
  Slab workspace(
      it->second.workspace.at({segments.tq, segments.tkv, segments.count}));
  context.layer = static_cast<int64_t>(index);
  dyna_status status =
      it->second.function(&context, params.data(), grads.data(), &saved,
                          workspace.data(), &segments, in.data(), out.data());
  if (status != DYNA_OK)
    failure =
        where + " returned " + std::to_string(status) + ": " + context.message;
  else if (!workspace.guardsAreIntact())
    failure = where + " wrote outside of its workspace";
  else if (micro)
    checkGuards(*micro, where);
}

void CompiledModel::checkGuards(const MicroBatch &micro,
                                const std::string &where) {
  for (const Saved &saved : micro.saved)
    for (const Slab *block :
         {&saved.input, &saved.products, &saved.elementwise, &saved.deferred})
      if (!block->guardsAreIntact())
        failure = where + " wrote outside of its saved tiers";
  for (const Store &store : stores)
    if (!store.keys.guardsAreIntact() || !store.gradients.guardsAreIntact())
      failure = where + " wrote outside of the store";
  for (const auto &[name, state] : states)
    for (const Slab *block :
         {&state.parameter, &state.gradient, &state.master, &state.m, &state.v})
      if (!block->guardsAreIntact())
        failure = where + " wrote outside of " + name;
}

template <typename Key>
void CompiledModel::Runs::fill(const std::vector<Key> &keys) {
  std::map<Key, std::vector<int32_t>> rowsOf;
  for (size_t row = 0; row < keys.size(); ++row)
    rowsOf[keys[row]].push_back(static_cast<int32_t>(row));
  starts = {0};
  for (const auto &[key, run] : rowsOf) {
    rows.insert(rows.end(), run.begin(), run.end());
    starts.push_back(static_cast<int32_t>(rows.size()));
  }
}

dyna_row_runs CompiledModel::Runs::get() const {
  return {rows.data(), starts.data(), static_cast<int64_t>(starts.size()) - 1};
}

void CompiledModel::prepare(MicroBatch &micro, const Batch &batch, bool saves) {
  micro.batch = &batch;
  for (const Segment &s : batch.segments.list)
    micro.segments.push_back({s.sample, s.queryBegin, s.queryLength, s.keyBegin,
                              s.keyLength, s.position});
  micro.samples = batch.segments.rowSamples();
  micro.positions = batch.segments.rowPositions();
  micro.targets = storeIds(batch.targets);
  micro.tokenRuns.fill(batch.ids);
  micro.positionRuns.fill(micro.positions);
  for (size_t row = 0; row < batch.targets.size(); ++row)
    if (batch.targets[row] != batch.ignored)
      micro.targetRows.push_back(static_cast<int32_t>(row));
  micro.loss = Slab(8);
  auto tokens = static_cast<int64_t>(micro.samples.size());
  auto count = static_cast<int64_t>(micro.segments.size());
  for (const Call &call : calls) {
    const LinearBytes *tiers = program.layer(call.kind).tiers;
    auto size = [&](int i) {
      return i > 0 && !saves ? 0 : tiers[i].at({tokens, tokens, count});
    };
    micro.saved.push_back(
        {Slab(size(0)), Slab(size(1)), Slab(size(2)), Slab(size(3))});
  }
  if (!batch.ids.empty())
    std::memcpy(micro.saved[0].input.data(), batch.ids.data(),
                4 * batch.ids.size());
}

/// Forward or evaluate: every layer writes where the next one saves its input.
double CompiledModel::runForward(MicroBatch &micro, Role role) {
  auto tokens = static_cast<int64_t>(micro.samples.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    std::vector<dyna_tensor> in = {{micro.saved[i].input.data(), tokens}};
    for (bool isTargets : calls[i].inputsAreTargets)
      in.push_back(
          {isTargets ? micro.targets.data() : micro.saved[0].input.data(),
           tokens});
    bool last = i + 1 == calls.size();
    dyna_tensor out =
        last ? dyna_tensor{micro.loss.data(), 1}
             : dyna_tensor{micro.saved[i + 1].input.data(), tokens};
    call(i, role, &micro, tensors(calls[i], &State::parameter),
         tensors(calls[i], &State::gradient), in, {out});
  }
  double loss;
  std::memcpy(&loss, micro.loss.data(), sizeof(loss));
  return loss;
}

double CompiledModel::evaluate(const std::vector<Batch> &batches) {
  takeStores(batches);
  double loss = 0;
  for (const Batch &batch : batches) {
    MicroBatch micro;
    prepare(micro, batch, /*saves=*/false);
    loss += runForward(micro, Role::Evaluate);
  }
  return loss;
}

/// Rows that no slice has written hold no numbers. Sums begin with zeros.
void CompiledModel::takeStores(const std::vector<Batch> &batches) {
  int64_t rows = 0;
  for (const Batch &batch : batches)
    rows = std::max(rows, batch.stored);
  stores.clear();
  for (const Call &call : calls) {
    if (rows == 0)
      return;
    const CompiledLayer &layer = program.layer(call.kind);
    stores.push_back(
        {Slab(rows * layer.keyRowBytes), Slab(rows * layer.gradientRowBytes)});
    stores.back().gradients.clear();
  }
}

std::vector<std::string> CompiledModel::storedKeys() const {
  std::vector<std::string> all;
  for (const Store &store : stores)
    all.emplace_back(static_cast<const char *>(store.keys.data()),
                     static_cast<size_t>(store.keys.size()));
  return all;
}

void CompiledModel::forget(Carry carry) {
  const bool isGradient =
      carry == Carry::KeyGradients || carry == Carry::ValueGradients;
  for (size_t i = 0; i < stores.size(); ++i) {
    const CompiledLayer &layer = program.layer(calls[i].kind);
    auto parts = layer.carries.find(carry);
    if (parts == layer.carries.end())
      continue;
    Slab &block = isGradient ? stores[i].gradients : stores[i].keys;
    const int64_t row = isGradient ? layer.gradientRowBytes : layer.keyRowBytes;
    auto *data = static_cast<char *>(block.data());
    for (int64_t begin = 0; begin < block.size(); begin += row)
      for (const auto &[first, size] : parts->second)
        std::memset(data + begin + first, 0, static_cast<size_t>(size));
  }
}

/// Fills again what this mode does not keep.
void CompiledModel::recompute(MicroBatch &micro, size_t index, Recompute mode) {
  if (mode == Recompute::None || calls[index].outputWidth == 0)
    return;
  Saved &saved = micro.saved[index];
  saved.elementwise.poison();
  if (mode == Recompute::Full)
    saved.products.poison();
  call(index,
       mode == Recompute::Full ? Role::RecomputeFull : Role::RecomputeSelective,
       &micro, tensors(calls[index], &State::parameter), {}, {}, {});
}

void CompiledModel::runBackward(MicroBatch &micro, const StepOptions &options) {
  auto tokens = static_cast<int64_t>(micro.samples.size());
  Slab outputGradient;
  for (size_t i = calls.size(); i-- > 0;) {
    recompute(micro, i, options.recompute);
    Slab inputGradient(calls[i].takesIds ? 0
                                         : tokens * calls[i - 1].outputWidth *
                                               bytesOfElement(element));
    bool isLoss = calls[i].outputWidth == 0;
    std::vector<dyna_tensor> in, out;
    if (!isLoss)
      in.push_back({outputGradient.data(), tokens});
    if (!calls[i].takesIds)
      out.push_back({inputGradient.data(), tokens});
    call(i, options.splitBackward ? Role::BackwardInput : Role::Backward,
         &micro, tensors(calls[i], &State::parameter),
         tensors(calls[i], &State::gradient), in, out);
    if (failure.empty() && !inputGradient.guardsAreIntact())
      failure = calls[i].kind + " wrote outside of its input gradient";
    outputGradient = std::move(inputGradient);
  }
  for (size_t i = 0; options.splitBackward && i < calls.size(); ++i)
    call(i, Role::BackwardWeight, &micro, tensors(calls[i], &State::parameter),
         tensors(calls[i], &State::gradient), {}, {});
}

double CompiledModel::train(const std::vector<Batch> &batches,
                            const StepOptions &options,
                            std::vector<std::vector<Tensor>> &activations) {
  std::vector<MicroBatch> micros(batches.size());
  std::vector<std::vector<std::string>> keys; // that batches saw
  double loss = 0;
  activations.clear();
  takeStores(batches);
  for (size_t b = 0; b < batches.size(); ++b) {
    if (options.lost)
      forget(*options.lost);
    prepare(micros[b], batches[b], /*saves=*/true);
    loss += runForward(micros[b], Role::Forward);
    keys.push_back(storedKeys());
    auto tokens = static_cast<int64_t>(micros[b].samples.size());
    std::vector<Tensor> &results = activations.emplace_back();
    for (size_t i = 1; i < calls.size() && degree.empty(); ++i)
      results.push_back(load({tokens, calls[i - 1].outputWidth}, element,
                             micros[b].saved[i].input));
  }
  for (size_t b = batches.size(); b-- > 0;) {
    // Backward reads the keys that forward read.
    for (size_t i = 0; options.lost && i < stores.size(); ++i)
      std::memcpy(stores[i].keys.data(), keys[b][i].data(), keys[b][i].size());
    runBackward(micros[b], options);
    if (options.lost)
      forget(*options.lost);
  }
  return loss;
}

double CompiledModel::train(const std::vector<Batch> &batches,
                            const StepOptions &options,
                            std::vector<Tensor> &activations) {
  std::vector<std::vector<Tensor>> all;
  const double loss = train(batches, options, all);
  activations = std::move(all.front());
  return loss;
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

double CompiledModel::gradientNormSquared() {
  Slab sum(8);
  sum.clear();
  for (size_t i = 0; i < calls.size(); ++i) {
    std::vector<bool> owned = ownedBy(i);
    call(i, Role::GradNorm, nullptr, {},
         tensors(calls[i], &State::gradient, &owned), {}, {{sum.data(), 1}});
  }
  double value;
  std::memcpy(&value, sum.data(), sizeof(value));
  return value;
}

void CompiledModel::update() {
  for (size_t i = 0; i < calls.size(); ++i) {
    std::vector<bool> owned = ownedBy(i);
    auto master = tensors(
        calls[i], needsCast() ? &State::master : &State::parameter, &owned);
    auto m = tensors(calls[i], &State::m, &owned);
    auto v = tensors(calls[i], &State::v, &owned);
    std::vector<dyna_tensor> in;
    for (size_t p = 0; p < master.size(); ++p)
      in.insert(in.end(), {master[p], m[p], v[p]});
    call(i, Role::Update, nullptr, tensors(calls[i], &State::parameter, &owned),
         tensors(calls[i], &State::gradient, &owned), in, {});
  }
}
