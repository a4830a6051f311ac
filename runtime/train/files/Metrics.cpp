//===- Metrics.cpp - Writes a line of metrics for each step ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/Metrics.h"

#include "runtime/base/file/FileId.h"
#include "runtime/base/file/FileLock.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <unistd.h>

namespace dyna {

LayerLosses nameLosses(const Model &model, const std::vector<double> &sums,
                       int64_t targets) {
  LayerLosses named;
  if (sums.size() < 2 || targets <= 0)
    return named;
  for (int layer : model.lossLayers())
    named.emplace_back(model.layer(layer).name(),
                       sums[named.size()] / static_cast<double>(targets));
  return named;
}

/// Returns the whole lines up to the first that is after `step`.
StatusOr<MetricsFile::KeptLines> MetricsFile::linesUpTo(const std::string &path,
                                                        int64_t step) {
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(path));
  KeptLines lines;
  size_t kept = 0;
  for (size_t end; (end = text.find('\n', kept)) != std::string::npos;) {
    std::string_view line(text.data() + kept, end - kept);
    StatusOr<JsonValue> json = parseJson(line);
    std::optional<int64_t> number =
        json.isOk() ? json->findInteger("step") : std::nullopt;
    if (number && *number > step)
      break;
    if (number && json->find("held_out_loss"))
      lines.curveStep = *number;
    else if (number && json->find("held_out"))
      lines.heldOutStep = *number;
    kept = end + 1;
  }
  lines.bytes = static_cast<int64_t>(kept);
  return lines;
}

bool MetricsFile::hasHeldOut(const std::string &path, int64_t step) {
  StatusOr<KeptLines> lines = linesUpTo(path, step);
  return lines.isOk() && lines->heldOutStep == step;
}

static StatusOr<int> openAppending(const std::string &path) {
  int descriptor =
      ::open(path.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return fileFailure("write", path, errno);
  return descriptor;
}

/// Fails while another run has the file open.
static Status lockAt(int descriptor, const std::string &path) {
  if (lockDescriptor(descriptor) && isAt(descriptor, path))
    return Status::ok();
  return Status::invalidArgument(
      "another run (" + describeLockHolder(descriptor) +
      ") writes its metrics to " + path +
      " at this moment; stop it or choose another file");
}

/// Checks that a new run replaces only a file of metrics.
static Status checkOwn(const std::string &path) {
  // Forecasts make long lines, but no metrics file has lines longer than this.
  constexpr size_t mostBytes = size_t{16} << 20, chunk = size_t{64} << 10;
  std::ifstream file(path);
  std::string line;
  size_t end = 0;
  do {
    const size_t before = line.size();
    line.resize(before + chunk);
    file.read(line.data() + before, chunk);
    line.resize(before + static_cast<size_t>(file.gcount()));
    end = line.find('\n', before);
  } while (file && end == std::string::npos && line.size() < mostBytes);
  if (line.empty())
    return Status::ok();
  JsonReader reader(std::string_view(line).substr(0, end));
  bool isOurs = false;
  Status status = reader.readObject([&](const std::string &key) {
    isOurs |= key == "step" || key == "loss";
    return reader.skip();
  });
  if (status.isOk() && reader.finish().isOk() && isOurs)
    return Status::ok();
  return Status::invalidArgument(
      path + " holds something else than metrics, which would be lost: choose "
             "another file, or remove it");
}

StatusOr<MetricsFile> MetricsFile::open(const std::string &path,
                                        int64_t resumedStep) {
  DYNA_ASSIGN_OR_RETURN(OutputPlace place, findOutputPlace(path));
  MetricsFile metrics;
  metrics.path_ = path;
  bool isFile = place == OutputPlace::Free || place == OutputPlace::RegularFile;
  DYNA_ASSIGN_OR_RETURN(int opened, isFile ? openAppending(path)
                                           : openStream(path, O_APPEND));
  int descriptor = opened;
  metrics.setFile(descriptor);
  if (!isFile)
    return metrics;
  metrics.isFile_ = true;
  DYNA_RETURN_IF_ERROR(lockAt(descriptor, path));
  if (resumedStep < 0)
    DYNA_RETURN_IF_ERROR(checkOwn(path));
  if (resumedStep >= 0) {
    DYNA_ASSIGN_OR_RETURN(metrics.kept_, linesUpTo(path, resumedStep));
  }
  if (::ftruncate(descriptor, metrics.kept_.bytes) != 0)
    return fileFailure("write", path, errno);
  return metrics;
}

void MetricsFile::setFile(int descriptor) {
  file_.reset(::fdopen(descriptor, "a"));
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
}

/// Continues under the file's name if the file was moved or removed.
Status MetricsFile::followName() {
  if (!isFile_ || isAt(::fileno(file_.get()), path_))
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(OutputPlace place, findOutputPlace(path_));
  bool isFree = place == OutputPlace::Free;
  if (!isFree && place != OutputPlace::RegularFile)
    return Status::invalidArgument("cannot write " + path_ +
                                   ": it is no file any more");
  DYNA_ASSIGN_OR_RETURN(int opened, openAppending(path_));
  if (Status locked = lockAt(opened, path_); !locked.isOk()) {
    ::close(opened);
    return locked;
  }
  setFile(opened);
  if (!std::exchange(hasMoved_, true))
    note_ = path_ +
            (isFree ? " was removed or renamed while it was written to: the "
                      "metrics go on in a new file of that name"
                    : " was replaced while it was written to: the metrics go "
                      "on at the end of what stands there now");
  return Status::ok();
}

void StepMetrics::addPlan(const plan::Plan &plan, bool choosesRecompute) {
  if (fallback.empty())
    fallback = plan.fallback;
  const SliceCount own = countSlices(plan);
  slices.samples += own.samples;
  slices.slices += own.slices;
  if (!choosesRecompute)
    return;
  if (!recomputed)
    recomputed.emplace();
  for (const plan::RankProgram &program : plan.ranks)
    for (const plan::Instruction &i : program.instructions)
      if (i.op == plan::Instruction::FORWARD)
        ++(*recomputed)[i.recompute];
}

/// Adds what a run with ranges says, whatever phases the step had.
static void addPhases(JsonObject &line, const StepMetrics &m) {
  if (m.phases.empty())
    return;
  JsonArray strategies;
  for (const PhaseMetrics &phase : m.phases)
    strategies.add(JsonObject()
                       .add("name", phase.strategy)
                       .add("samples", phase.samples)
                       .add("tokens", phase.tokens)
                       .add("micro_batches", phase.microBatches)
                       .add("merged", phase.merged));
  line.add("phases", m.phases.size())
      .add("switch_seconds", jsonFixed(m.switchSeconds, 6))
      .add("switch_bytes", m.switchBytes)
      .add("strategies", strategies);
}

/// Adds what dyna-plan reports of a plan: as it ran, and as it was predicted.
static void addReport(JsonObject &line, const StepMetrics &m) {
  const PlanReport &ran = m.measured;
  line.add("samples", ran.samples)
      .add("largest_micro_batch", ran.largestMicroBatch)
      .add("padding", ran.padding)
      .add("padding_share", jsonFixed(ran.paddingShare(), 6));
  // The host only launches functions and does not know how long they took.
  if (m.launchedAhead)
    line.add("bubble", JsonText::null()).addAll(ran.rankBytesJson());
  else if (!ran.stages.empty())
    line.add("bubble", jsonFixed(ran.bubble(), 6)).addAll(ran.stagesJson());
  else if (!ran.rankBytes.empty())
    line.add("bubble", jsonFixed(ran.bubble(), 6)).addAll(ran.rankBytesJson());
  if (m.predicted)
    line.add("predicted", m.predicted->json(""));
}

/// Adds the load of each layer.
static void addLoads(JsonObject &line, const StepMetrics &m) {
  if (m.layerSeconds.empty())
    return;
  JsonArray layers;
  for (double seconds : m.layerSeconds)
    layers.add(jsonRounded(seconds, 9));
  line.add("layer_seconds", layers);
}

/// Adds where a plan is not what was asked for, and what was left to it.
static void addPlanChoices(JsonObject &line, const StepMetrics &m) {
  if (!m.fallback.empty())
    line.add("fallback", m.fallback);
  if (m.recomputed)
    line.add("recompute", JsonObject()
                              .add("none", (*m.recomputed)[0])
                              .add("selective", (*m.recomputed)[1])
                              .add("full", (*m.recomputed)[2]));
}

/// Adds what is zero, in a run that prunes.
static void addPruning(JsonObject &line, const StepMetrics &m) {
  if (!m.pruning)
    return;
  line.add("sparsity", m.pruning->sparsity)
      .add("survivors", m.pruning->survivors);
  if (m.pruning->eventSeconds)
    line.add("prune_seconds", jsonFixed(*m.pruning->eventSeconds, 6));
}

void addLosses(JsonObject &line, const LayerLosses &losses) {
  if (losses.empty())
    return;
  JsonObject layers;
  for (const auto &[name, loss] : losses)
    layers.add(name.c_str(), loss);
  line.add("losses", layers);
}

Status MetricsFile::write(const StepMetrics &m) {
  double rate = m.seconds > 0 ? static_cast<double>(m.tokens) / m.seconds : 0;
  JsonObject line;
  line.add("step", m.step).add("loss", m.loss);
  addLosses(line, m.losses);
  line.add("tokens", m.tokens)
      .add("targets", m.targets)
      .add("seconds", jsonFixed(m.seconds, 6))
      .add("tokens_per_second", jsonFixed(rate, 1))
      .add("gflops", jsonFixed(m.gflops, 2))
      .add("learning_rate", m.learningRate)
      .add("gradient_norm",
           m.hasGradientNorm ? JsonText(m.gradientNorm) : JsonText::null())
      .add("peak_bytes", m.peakBytes)
      .add("micro_batches", m.microBatches);
  if (m.slices.samples > 0)
    line.add("sliced_samples", m.slices.samples).add("slices", m.slices.slices);
  if (!m.hasGradientNorm)
    line.add("has_gradient_norm", false);
  addPhases(line, m);
  line.add("plan_seconds", jsonFixed(m.planSeconds, 6))
      .add("plan_wait_seconds", jsonFixed(m.planWaitSeconds, 6));
  if (m.launchedAhead)
    line.add("launched_ahead", *m.launchedAhead);
  if (m.predictedSeconds > 0)
    line.add("predicted_seconds", jsonFixed(m.predictedSeconds, 6))
        .add("core_wait_seconds", jsonFixed(m.coreWaitSeconds, 6));
  addPlanChoices(line, m);
  addPruning(line, m);
  addReport(line, m);
  addLoads(line, m);
  return writeLine(line.text());
}

Status MetricsFile::writeLine(const std::string &json) {
  if (!file_)
    return Status::ok();
  if (unwritten_.size() + json.size() < mostKept)
    unwritten_ += json + "\n";
  else
    hasLost_ = true;
  return flush();
}

Status MetricsFile::flush() {
  if (!unwritten_.empty())
    DYNA_RETURN_IF_ERROR(followName());
  errno = 0;
  if (!unwritten_.empty())
    unwritten_.erase(
        0, std::fwrite(unwritten_.data(), 1, unwritten_.size(), file_.get()));
  if (!unwritten_.empty())
    return fileFailure("write", path_, errno);
  return hasLost_ ? Status(StatusCode::ResourceExhausted,
                           path_ + " lacks lines: it could not be written for "
                                   "too long")
                  : Status::ok();
}

} // namespace dyna
