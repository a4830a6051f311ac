//===- Checkpointing.cpp - Saves, loads and resumes runs ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Checkpointing.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/checkpoint/StoredTensors.h"
#include "runtime/train/files/SavedConfig.h"
#include "runtime/train/session/CompareConfigs.h"
#include "runtime/train/session/MasterRows.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace dyna {
namespace {

std::vector<int64_t> shapeOf(const plan::Parameter &parameter) {
  return {parameter.shape().begin(), parameter.shape().end()};
}

/// Returns the parameters as tensors without data.
std::vector<TensorView> parameterViews(const Model &model,
                                       const std::string &suffix) {
  std::vector<TensorView> tensors;
  for (int p = 0; p < model.parameters(); ++p)
    tensors.push_back({model.parameter(p).name() + suffix, masterDType(model),
                       shapeOf(model.parameter(p)), nullptr});
  return tensors;
}

constexpr const char *maskSuffix = ".mask", *scoreSuffix = ".score";

TensorView maskView(const Model &model, int parameter) {
  return {model.parameter(parameter).name() + maskSuffix, DType::U8,
          shapeOf(model.parameter(parameter)), nullptr};
}

std::vector<ParameterSlot> parameterSlots(const Model &model) {
  std::vector<ParameterSlot> slots;
  for (int p = 0; p < model.parameters(); ++p)
    slots.push_back({model.parameter(p).name(), shapeOf(model.parameter(p)),
                     masterDType(model), nullptr, ""});
  for (const plan::Layer &layer : model.manifest().layers())
    for (int p : layer.parameters())
      if (model.parameter(p).added())
        slots[p].addedPart = layer.name();
  return slots;
}

/// Returns a function that writes imported rows to a part of a parameter.
TakeRows writeTo(RankTeam &ranks, ParameterPart part) {
  return [&ranks, part](size_t slot, int64_t begin, int64_t end,
                        const void *rows) {
    const int p = static_cast<int>(slot);
    return part == ParameterPart::Master
               ? writeMasterRows(ranks, p, {begin, end}, rows)
               : ranks.writeRows(p, part, {begin, end}, rows);
  };
}

/// Gives the tensors of a checkpoint one after another, in the order of its
/// files, which is the same on all processes. Each process sends its rows, and
/// that of rank 0 writes them. No tensor is ever in memory as a whole, except
/// one that is joined or transposed.
class TensorStream {
public:
  TensorStream(RankTeam &ranks) : ranks_(ranks) {}

  Status prepare(CheckpointContents &contents) {
    const Model &model = ranks_.model();
    parameters_ = parameterViews(model, "");
    DYNA_ASSIGN_OR_RETURN(
        auto stored, storedTensors(storedNames(model.manifest()), parameters_));
    std::vector<Entry> entries;
    for (const StoredTensor &tensor : stored)
      entries.push_back({tensor, ParameterPart::Master});
    add(entries, contents.model);
    entries.clear();
    const std::pair<const char *, ParameterPart> moments[] = {
        {".m", ParameterPart::FirstMoment},
        {".v", ParameterPart::SecondMoment}};
    for (auto [suffix, part] : moments) {
      std::vector<TensorView> tensors = parameterViews(model, suffix);
      for (size_t p = 0; p < tensors.size(); ++p)
        if (model.hasMoments(static_cast<int>(p)))
          entries.push_back({{tensors[p], {p}, false}, part});
    }
    for (int p = 0; p < model.parameters(); ++p)
      if (model.hasMask(p))
        entries.push_back(
            {{maskView(model, p), {static_cast<size_t>(p)}, false},
             ParameterPart::Mask});
    const std::vector<TensorView> scores = parameterViews(model, scoreSuffix);
    for (size_t p = 0; p < scores.size(); ++p)
      if (model.hasScores(static_cast<int>(p)))
        entries.push_back({{scores[p], {p}, false}, ParameterPart::Score});
    add(entries, contents.optimizer);
    contents.give = [this](const TensorView &tensor, const TakeBytes &take) {
      return next_ < order_.size() &&
                     order_[next_].stored.view.name == tensor.name
                 ? giveNext(take)
                 : Status::internal("tensor " + tensor.name +
                                    " was asked for out of turn");
    };
    return Status::ok();
  }

  /// Sends the rows that were not asked for, because another process writes or
  /// because writing has failed. The other processes wait for these rows.
  Status giveRest() {
    while (next_ < order_.size())
      DYNA_RETURN_IF_ERROR(
          giveNext([](const void *, size_t) { return Status::ok(); }));
    return Status::ok();
  }

private:
  struct Entry {
    StoredTensor stored;
    ParameterPart part;
  };

  /// Adds the tensors of one file, which have different names.
  void add(const std::vector<Entry> &entries, std::vector<TensorView> &file) {
    std::map<std::string, const Entry *> byName;
    for (const Entry &entry : entries) {
      byName[entry.stored.view.name] = &entry;
      file.push_back(entry.stored.view);
    }
    sortAsInFiles(file);
    for (const TensorView &tensor : file)
      order_.push_back(*byName.at(tensor.name));
  }

  Status giveNext(const TakeBytes &take) {
    const Entry &entry = order_[next_++];
    const StoredTensor &stored = entry.stored;
    Status taken;
    std::vector<unsigned char> whole;
    if (!stored.isPlain() && ranks_.hasRankZero())
      whole.resize(*tensorBytes(stored.view.type, stored.view.shape));
    for (size_t member : stored.members) {
      int p = static_cast<int>(member);
      for (RowRange rows : ranks_.rowChunks(p, entry.part)) {
        size_t bytes = rows.count() * ranks_.model().rowElements(p) *
                       dtypeBytes(stored.view.type);
        rows_.resize(bytes);
        DYNA_RETURN_IF_ERROR(
            entry.part == ParameterPart::Master
                ? readMasterRows(ranks_, p, rows, rows_.data())
                : ranks_.readRows(p, entry.part, rows, rows_.data()));
        if (!ranks_.hasRankZero())
          continue;
        if (!stored.isPlain())
          placeRows(stored, parameters_, member, rows.begin, rows.end,
                    rows_.data(), whole.data());
        else if (taken.isOk())
          taken = take(rows_.data(), bytes);
      }
    }
    return whole.empty() ? taken : take(whole.data(), whole.size());
  }

  RankTeam &ranks_;
  std::vector<TensorView> parameters_;
  std::vector<Entry> order_;
  size_t next_ = 0;
  std::vector<unsigned char> rows_;
};

/// Writes one of the two moments, or scores, given the suffix and the part. The file has
/// all, and importTensors would refuse others, so each is looked up by name.
Status writeNumbers(RankTeam &ranks, ParameterPart part,
                    const std::string &suffix, const SafetensorsFile &file) {
  std::vector<ParameterSlot> slots = parameterSlots(ranks.model());
  for (size_t p = 0; p < slots.size(); ++p) {
    if (ranks.partBytes(static_cast<int>(p), part) == 0)
      continue;
    std::string name = slots[p].name + suffix;
    const TensorView *tensor = file.find(name);
    if (!tensor || tensor->shape != slots[p].shape || !isFloat(tensor->type))
      return Status::invalidArgument(
          file.name() + ": the optimizer state '" + name +
          "' is missing or of another shape; this checkpoint is of another "
          "model");
    DYNA_RETURN_IF_ERROR(
        importRows(file, *tensor, slots, p, writeTo(ranks, part)));
  }
  return Status::ok();
}

} // namespace

// A file name may have any bytes, and JSON strings may not. Then it is stored
// as {"hex": "2d2d..."}.
static constexpr const char *hexKey = "hex";

static bool isUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8SequenceLength(text, at);
    if (length == 0)
      return false;
    at += length;
  }
  return true;
}

static std::string toHex(const std::string &bytes) {
  std::string text;
  for (char byte : bytes)
    text += formatText("%02x", static_cast<unsigned char>(byte));
  return text;
}

/// Reads an argument as `toJson` writes it; nothing for anything else.
static std::optional<std::string> readArgument(const JsonValue &value) {
  if (value.isString())
    return value.text;
  const JsonValue *hex = value.find(hexKey);
  if (!hex || !hex->isString() || hex->text.size() % 2 != 0)
    return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < hex->text.size(); at += 2) {
    unsigned byte = 0;
    const char *begin = hex->text.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error != std::errc() || end != begin + 2)
      return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string RunState::toJson() const {
  JsonArray given;
  for (const std::string &argument : arguments)
    if (isUtf8(argument))
      given.add(argument);
    else
      given.add(JsonObject().add(hexKey, toHex(argument)));
  JsonObject state;
  state.add("format", 1)
      .add("step", step)
      .add("seed", seed)
      .add("model_hash", modelHash)
      .add("cursor", cursor.toJson())
      .add("skipped", skipped)
      .add("held_out", heldOut)
      .add("costs", costs);
  if (version > 0)
    state.add("version", version);
  pruned.addTo(state);
  frozen.addTo(state);
  lossWeights.addTo(state);
  return state.add("arguments", JsonText::raw(given.text("\n  "))).text("\n ") +
         "\n";
}

/// Reads skipped steps, which earlier versions did not store. False if not valid.
static bool readSkipped(const JsonValue &value, RunState &state) {
  if (!value.find("skipped"))
    return true;
  const auto skipped = value.findInteger("skipped");
  if (!skipped || *skipped < 0 || *skipped > state.step)
    return false;
  state.skipped = *skipped;
  return true;
}

/// Reads the version, which is there if graphs were replaced. False if it is not valid.
static bool readVersion(const JsonValue &value, RunState &state) {
  if (!value.find("version"))
    return true;
  const auto version = value.findInteger("version");
  if (!version || *version < 0 || *version > state.step)
    return false;
  state.version = *version;
  return true;
}

StatusOr<RunState> RunState::fromJson(const std::string &text) {
  StatusOr<JsonValue> value = parseJson(text);
  if (!value.isOk())
    return Status::invalidArgument("state.json: " + value.status().message());
  auto missing = [](const char *key) {
    return Status::invalidArgument(
        std::string("state.json has no valid \"") + key +
        "\": this checkpoint cannot be resumed, use --load");
  };
  RunState state;
  if (value->findInteger("format") != std::optional<int64_t>(1))
    return missing("format");
  auto step = value->findInteger("step"), seed = value->findInteger("seed");
  if (!step || *step < 0)
    return missing("step");
  if (*step > mostSteps)
    return Status::invalidArgument(
        formatText("state.json is of step %d, but a run has at most %d: this "
                   "checkpoint cannot be resumed, use --load",
                   *step, mostSteps));
  if (!seed)
    return missing("seed");
  state.step = *step;
  state.seed = *seed;
  if (const JsonValue *hash = value->find("model_hash");
      hash && hash->isString())
    state.modelHash = hash->text;
  if (!readSkipped(*value, state))
    return missing("skipped");
  if (!readVersion(*value, state))
    return missing("version");
  if (!state.pruned.readFrom(*value))
    return missing("pruned");
  if (const JsonValue *heldOut = value->find("held_out");
      heldOut && heldOut->isString())
    state.heldOut = heldOut->text;
  if (const JsonValue *costs = value->find("costs"); costs && costs->isString())
    state.costs = costs->text;
  if (!state.frozen.readFrom(*value))
    return missing("frozen");
  if (!state.lossWeights.readFrom(*value))
    return missing("loss_weights");
  const JsonValue *arguments = value->find("arguments");
  if (!arguments || !arguments->isArray())
    return missing("arguments");
  for (const JsonValue &argument : arguments->items) {
    std::optional<std::string> text = readArgument(argument);
    if (!text)
      return missing("arguments");
    state.arguments.push_back(*std::move(text));
  }
  const JsonValue *cursor = value->find("cursor");
  if (!cursor || !cursor->isObject())
    return missing("cursor");
  StatusOr<DataCursor> place = DataCursor::fromJson(*cursor);
  if (!place.isOk())
    return Status::invalidArgument("state.json: " + place.status().message());
  state.cursor = *place;
  return state;
}

/// Leaves out the memory that functions work in and the tables of micro-batches
/// that they need. These differ between targets and do not change results.
std::string modelHashText(const Model &model) {
  plan::Manifest computed = model.manifest();
  computed.clear_batch_tables();
  auto clear = [](auto *kinds) {
    for (plan::LayerKind &kind : *kinds)
      for (plan::LayerKind::Role &role : *kind.mutable_roles())
        role.clear_workspace();
  };
  clear(computed.mutable_kinds());
  for (plan::TensorDegree &degree : *computed.mutable_degrees())
    clear(degree.mutable_kinds());
  return formatText("%016x", manifestHash(computed));
}

std::vector<int64_t> checkpointBytes(const Model &model, int64_t shardBytes) {
  // Limit the shards, since each is an open file while free space is checked.
  constexpr int64_t mostShards = 16;
  constexpr int64_t headerBytes = 1 << 14, entryBytes = 512;
  int64_t header = headerBytes + entryBytes * model.parameters();
  int64_t part = model.totalElements() * elementBytes(model.masterType());
  const int64_t shards =
      shardBytes > 0 ? std::clamp<int64_t>(part / shardBytes + 1, 1, mostShards)
                     : 1;
  std::vector<int64_t> bytes(static_cast<size_t>(shards),
                             header + part / shards + 1);
  int64_t masks = 0, moments = 0, scores = 0;
  for (int p = 0; p < model.parameters(); ++p) {
    masks += model.hasMask(p) ? model.elements(p) : 0;
    moments += model.hasMoments(p) ? model.elements(p) : 0;
    scores += model.hasScores(p) ? model.elements(p) : 0;
  }
  moments *= elementBytes(model.masterType());
  scores *= elementBytes(model.masterType());
  bytes.push_back(2 * (header + moments) + (masks > 0 ? header + masks : 0) +
                  (scores > 0 ? header + scores : 0));
  return bytes;
}

int64_t checkpointBufferBytes(const Model &model) {
  std::vector<TensorView> parameters = parameterViews(model, "");
  auto stored = storedTensors(storedNames(model.manifest()), parameters);
  // Ranks may keep frozen parameters in narrower types than files, so chunks in
  // files are larger.
  int64_t chunk = kRowChunkBytes;
  for (int p = 0; p < model.parameters(); ++p)
    chunk = std::max(chunk, kRowChunkBytes / elementBytes(model.masterType(p)) *
                                elementBytes(model.masterType()));
  int64_t whole = 0, rows = 0;
  if (stored.isOk())
    for (const StoredTensor &tensor : *stored) {
      int64_t bytes = *tensorBytes(tensor.view.type, tensor.view.shape);
      rows = std::max(rows, std::min(bytes, chunk));
      if (!tensor.isPlain())
        whole = std::max(whole, bytes);
    }
  // Four buffers of rows: as stored, transposed, and on the way from or to a
  // rank. The fourth is for the pages of a file that is read.
  return whole + 4 * rows;
}

Status saveRun(CheckpointStore *store, RankTeam &ranks, const RunState &state,
               int64_t shardBytes, std::optional<int32_t> endToken) {
  CheckpointContents contents;
  contents.shardBytes = shardBytes;
  TensorStream tensors(ranks);
  DYNA_RETURN_IF_ERROR(tensors.prepare(contents));
  contents.step = state.step;
  contents.state = state.toJson();
  const plan::ModelFacts &facts = ranks.model().manifest().facts();
  contents.config = savedConfig(facts.config_json(), facts.config_defaults(),
                                masterDType(ranks.model()), endToken);
  Status saved = store ? store->save(contents) : Status::ok();
  DYNA_RETURN_IF_ERROR(tensors.giveRest());
  return saved;
}

std::vector<std::string> loadingNotes(const Checkpoint &checkpoint,
                                      const Model &model) {
  std::vector<std::string> notes = checkpoint.notes;
  if (std::string other = otherConfig(checkpoint, model); !other.empty())
    notes.push_back("the config.json of " + checkpoint.path +
                    " is that of another model: " + other +
                    "; its parameters are used as this program computes");
  DType kept = masterDType(model);
  for (const TensorView &tensor : checkpoint.model.tensors())
    if (isFloat(tensor.type) && dtypeBytes(tensor.type) > dtypeBytes(kept)) {
      notes.push_back(formatText(
          "%s holds parameters as %s (%s), which are rounded to %s, as this "
          "model keeps them",
          checkpoint.path, dtypeName(tensor.type), tensor.name,
          dtypeName(kept)));
      break;
    }
  return notes;
}

/// Returns true if no element has all exponent bits set. `exponents` is their
/// mask in a `Word`.
template <typename Word, Word exponents>
static bool areFinite(const void *values, int64_t count) {
  const auto *at = static_cast<const unsigned char *>(values);
  unsigned found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word bits;
    std::memcpy(&bits, at + i * int64_t(sizeof bits), sizeof bits);
    found |= (bits & exponents) == exponents;
  }
  return found == 0;
}

static bool areFinite(DType type, const void *values, int64_t count) {
  return type == DType::F64
             ? areFinite<uint64_t, 0x7FF0000000000000>(values, count)
             : areFinite<uint32_t, 0x7F800000>(values, count);
}

/// Joins the first names of a list.
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  return names.size() > most
             ? text + formatText(" and %d others", names.size() - most)
             : text;
}

Status loadModel(const Checkpoint &checkpoint, RankTeam &ranks,
                 std::vector<std::string> &warnings) {
  const Model &model = ranks.model();
  std::string notFinite;
  std::vector<std::string> missing;
  TakeRows write = writeTo(ranks, ParameterPart::Master);
  auto look = [&](size_t slot, int64_t begin, int64_t end, const void *rows) {
    int p = static_cast<int>(slot);
    int64_t count = (end - begin) * model.rowElements(p);
    if (notFinite.empty() && !areFinite(masterDType(model), rows, count))
      notFinite = model.parameter(p).name();
    return write(slot, begin, end, rows);
  };
  DYNA_RETURN_IF_ERROR(importTensors(storedNames(model.manifest()),
                                     checkpoint.model, parameterSlots(model),
                                     look, &missing));
  if (!missing.empty())
    warnings.push_back(checkpoint.path + " has nothing that was added with " +
                       listed(missing) + ", which begins anew");
  if (!notFinite.empty())
    warnings.push_back(checkpoint.path +
                       " holds values that are NaN or infinite (in '" +
                       notFinite +
                       "'): losses will not be finite either; use an earlier "
                       "checkpoint");
  return Status::ok();
}

Status loadOptimizer(const Checkpoint &checkpoint, RankTeam &ranks) {
  if (!checkpoint.canResume())
    return Status::invalidArgument(
        checkpoint.path +
        " holds a model but no optimizer state: start from it with --load");
  DYNA_RETURN_IF_ERROR(writeNumbers(ranks, ParameterPart::FirstMoment, ".m",
                                    *checkpoint.optimizer));
  return writeNumbers(ranks, ParameterPart::SecondMoment, ".v",
                      *checkpoint.optimizer);
}

Status loadMasks(const Checkpoint &checkpoint, RankTeam &ranks) {
  const Model &model = ranks.model();
  const SafetensorsFile &file = *checkpoint.optimizer;
  auto isMask = [](const TensorView &tensor) {
    const std::string_view name = tensor.name, suffix = maskSuffix;
    return name.size() > suffix.size() &&
           name.substr(name.size() - suffix.size()) == suffix;
  };
  const auto count =
      std::count_if(file.tensors().begin(), file.tensors().end(), isMask);
  if (count == 0)
    return Status::ok();
  int64_t found = 0;
  for (int p = 0; p < model.parameters(); ++p) {
    if (!model.hasMask(p))
      continue;
    const TensorView wanted = maskView(model, p);
    const TensorView *tensor = file.find(wanted.name);
    if (!tensor || tensor->type != wanted.type || tensor->shape != wanted.shape)
      return Status::invalidArgument(
          file.name() + ": the mask '" + wanted.name +
          "' is missing or of another shape: go on with the --prune of the "
          "saved run");
    ++found;
    for (RowRange rows : ranks.rowChunks(p, ParameterPart::Mask))
      DYNA_RETURN_IF_ERROR(
          ranks.writeRows(p, ParameterPart::Mask, rows,
                          static_cast<const uint8_t *>(tensor->data) +
                              rows.begin * model.rowElements(p)));
  }
  if (found < count)
    return Status::invalidArgument(formatText(
        "%s: %d masks are of parameters that this run does not prune: go on "
        "with the --prune of the saved run",
        file.name(), count - found));
  return Status::ok();
}

Status loadScores(const Checkpoint &checkpoint, RankTeam &ranks) {
  const SafetensorsFile &file = *checkpoint.optimizer;
  for (int p = 0; p < ranks.model().parameters(); ++p)
    if (ranks.model().hasScores(p) &&
        file.find(ranks.model().parameter(p).name() + scoreSuffix))
      return writeNumbers(ranks, ParameterPart::Score, scoreSuffix, file);
  return Status::ok();
}

} // namespace dyna
