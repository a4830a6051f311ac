//===- Checkpointing.cpp - Saving, loading and resuming runs --------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Checkpointing.h"

#include "runtime/checkpoint/FamilyNames.h"
#include "runtime/data/Json.h"
#include "runtime/plan/Text.h"

#include <cstring>

namespace dyna {
namespace {

/// Memory for one part of every parameter.
struct PartCopies {
  std::vector<std::vector<unsigned char>> bytes;

  PartCopies(const RankTeam &ranks, ParameterPart part) {
    for (int p = 0; p < ranks.view().parameters(); ++p)
      bytes.emplace_back(ranks.partBytes(p, part));
  }
};

DType masterDType(const ManifestView &view) {
  return view.masterType() == plan::F64 ? DType::F64 : DType::F32;
}

std::vector<int64_t> shapeOf(const plan::Parameter &parameter) {
  return {parameter.shape().begin(), parameter.shape().end()};
}

/// Reads one part of all parameters and views it as tensors.
Status readTensors(RankTeam &ranks, ParameterPart part,
                   const std::string &suffix, PartCopies &copies,
                   std::vector<TensorView> &tensors) {
  const ManifestView &view = ranks.view();
  for (int p = 0; p < view.parameters(); ++p) {
    DYNA_RETURN_IF_ERROR(ranks.readPart(p, part, copies.bytes[p].data()));
    tensors.push_back({view.parameter(p).name() + suffix, masterDType(view),
                       shapeOf(view.parameter(p)), copies.bytes[p].data()});
  }
  return Status::ok();
}

Status writeParts(RankTeam &ranks, ParameterPart part,
                  const PartCopies &copies) {
  for (int p = 0; p < ranks.view().parameters(); ++p)
    DYNA_RETURN_IF_ERROR(ranks.writePart(p, part, copies.bytes[p].data()));
  return Status::ok();
}

/// One of the two moments, as its suffix and part. The file holds both, which
/// importTensors would call foreign, so each is looked up by name.
Status writeMoment(RankTeam &ranks, ParameterPart part,
                   const std::string &suffix, const SafetensorsFile &file) {
  const ManifestView &view = ranks.view();
  PartCopies copies(ranks, part);
  for (int p = 0; p < view.parameters(); ++p) {
    std::string name = view.parameter(p).name() + suffix;
    const TensorView *tensor = file.find(name);
    if (!tensor || tensor->shape != shapeOf(view.parameter(p)) ||
        !isFloat(tensor->type))
      return Status::invalidArgument(
          file.name() + ": the optimizer state '" + name +
          "' is missing or of another shape; this checkpoint is of another "
          "model");
    convertElements(tensor->type, tensor->data, masterDType(view),
                    copies.bytes[p].data(), view.elements(p));
  }
  return writeParts(ranks, part, copies);
}

} // namespace

std::string RunState::toJson() const {
  std::string text =
      formatText("{\"format\": 1, \"step\": %lld, \"seed\": %lld, "
                 "\"model_hash\": %s,\n \"cursor\": %s,\n \"arguments\": [",
                 static_cast<long long>(step), static_cast<long long>(seed),
                 quoteJson(modelHash).c_str(), cursor.toJson().c_str());
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ",\n  " : "\n  ") + quoteJson(arguments[i]);
  return text + "]}\n";
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
  if (!seed)
    return missing("seed");
  state.step = *step;
  state.seed = *seed;
  if (const JsonValue *hash = value->find("model_hash");
      hash && hash->isString())
    state.modelHash = hash->text;
  const JsonValue *arguments = value->find("arguments");
  if (!arguments || !arguments->isArray())
    return missing("arguments");
  for (const JsonValue &argument : arguments->items) {
    if (!argument.isString())
      return missing("arguments");
    state.arguments.push_back(argument.text);
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

std::string modelHashText(const ManifestView &view) {
  return formatText("%016llx", static_cast<unsigned long long>(view.hash()));
}

std::vector<int64_t> checkpointBytes(const ManifestView &view) {
  constexpr int64_t headerBytes = 1 << 14, entryBytes = 512;
  int64_t header = headerBytes + entryBytes * view.parameters();
  int64_t part = view.totalElements() * elementBytes(view.masterType());
  return {header + part, 2 * (header + part)};
}

Status saveRun(CheckpointStore *store, RankTeam &ranks, const RunState &state) {
  const plan::ModelFacts &facts = ranks.view().manifest().facts();
  PartCopies masters(ranks, ParameterPart::Master);
  PartCopies first(ranks, ParameterPart::FirstMoment);
  PartCopies second(ranks, ParameterPart::SecondMoment);
  std::vector<TensorView> parameters;
  CheckpointContents contents;
  DYNA_RETURN_IF_ERROR(
      readTensors(ranks, ParameterPart::Master, "", masters, parameters));
  auto exported = exportTensors(parseFamily(facts.family()), parameters);
  if (!exported.isOk())
    return exported.status();
  for (const OwnedTensor &tensor : *exported)
    contents.model.push_back(tensor.view);
  DYNA_RETURN_IF_ERROR(readTensors(ranks, ParameterPart::FirstMoment, ".m",
                                   first, contents.optimizer));
  DYNA_RETURN_IF_ERROR(readTensors(ranks, ParameterPart::SecondMoment, ".v",
                                   second, contents.optimizer));
  contents.step = state.step;
  contents.state = state.toJson();
  contents.config = facts.config_json();
  return store ? store->save(contents) : Status::ok();
}

std::vector<std::string> loadingNotes(const Checkpoint &checkpoint,
                                      const ManifestView &view) {
  std::vector<std::string> notes = checkpoint.notes;
  DType kept = masterDType(view);
  for (const TensorView &tensor : checkpoint.model.tensors())
    if (isFloat(tensor.type) && dtypeBytes(tensor.type) > dtypeBytes(kept)) {
      notes.push_back(formatText(
          "%s holds parameters as %s (%s), which are rounded to %s, as this "
          "model keeps them",
          checkpoint.path.c_str(), dtypeName(tensor.type), tensor.name.c_str(),
          dtypeName(kept)));
      break;
    }
  return notes;
}

Status loadModel(const Checkpoint &checkpoint, RankTeam &ranks) {
  const ManifestView &view = ranks.view();
  PartCopies copies(ranks, ParameterPart::Master);
  std::vector<ParameterSlot> slots;
  for (int p = 0; p < view.parameters(); ++p)
    slots.push_back({view.parameter(p).name(), shapeOf(view.parameter(p)),
                     masterDType(view), copies.bytes[p].data()});
  DYNA_RETURN_IF_ERROR(importTensors(
      parseFamily(view.manifest().facts().family()), checkpoint.model, slots));
  return writeParts(ranks, ParameterPart::Master, copies);
}

Status loadOptimizer(const Checkpoint &checkpoint, RankTeam &ranks) {
  if (!checkpoint.canResume())
    return Status::invalidArgument(
        checkpoint.path +
        " holds a model but no optimizer state: start from it with --load");
  DYNA_RETURN_IF_ERROR(writeMoment(ranks, ParameterPart::FirstMoment, ".m",
                                   *checkpoint.optimizer));
  return writeMoment(ranks, ParameterPart::SecondMoment, ".v",
                     *checkpoint.optimizer);
}

} // namespace dyna
