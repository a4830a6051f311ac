//===- ProfileFile.cpp - Writes measured times to a file of costs ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/ProfileFile.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Text.h"
#include "runtime/cost/CostText.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/planner/report/ContextReport.h"
#include "runtime/train/files/OutputPaths.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/profile/MeasureLinks.h"
#include "runtime/train/session/Devices.h"
#include "runtime/train/session/Prediction.h"
#include "runtime/train/session/Session.h"

#include <algorithm>

namespace dyna {
namespace {

/// Returns the rates that the device of one rank reaches. `like` is the
/// description of its kind, whose proportions are used for types that were not
/// measured.
cost::Device deviceOf(const Model &thin, const cost::Table &measured,
                      double flopRate, const cost::Device &like,
                      const std::string &name) {
  const cost::Device host = CostTable::host().device();
  cost::Device device = like;
  device.set_name(name);
  // Measured rates are effective rates already.
  device.clear_flops_reach();
  device.clear_bytes_reach();
  device.clear_memory_bytes(); // a similar device may have more or less
  plan::ElementType type = thin.manifest().compute_type();
  double known = type == plan::F64    ? device.f64_flops()
                 : type == plan::BF16 ? device.bf16_flops()
                                      : device.f32_flops();
  // Rates of other types were not measured, so keep their proportions.
  double factor = flopRate > 0 ? flopRate / known : 1;
  device.set_f64_flops(std::max(1.0, device.f64_flops() * factor));
  device.set_f32_flops(std::max(1.0, device.f32_flops() * factor));
  device.set_bf16_flops(std::max(1.0, device.bf16_flops() * factor));
  double launch = 1, speed = 0;
  for (const cost::Entry &entry : measured.entries())
    for (const cost::Point &point : entry.points())
      if (point.tokens() > 0)
        launch = std::min(launch, point.seconds());
  // An update reads and writes memory, by bytes that the estimate knows. The
  // longest one has all its parameters, while tied parameters are updated
  // elsewhere.
  double longest = 0;
  CostModel estimates(thin);
  const auto &kinds = thin.manifest().kinds();
  for (const cost::Entry &entry : measured.entries())
    for (int kind = 0; kind < kinds.size(); ++kind)
      if (entry.direction() == cost::UPDATE &&
          kinds.Get(kind).name() == entry.kind() &&
          entry.points(0).seconds() > longest) {
        longest = entry.points(0).seconds();
        KindAt at{kind, std::max(entry.tp(), 1), entry.sp()};
        double bytes =
            (estimates.estimate(at, cost::UPDATE, {}) - host.launch_seconds()) *
            host.bytes_per_second();
        speed = bytes / longest;
      }
  if (speed >= 1)
    device.set_bytes_per_second(speed);
  device.set_launch_seconds(launch);
  return device;
}

std::string degreeText(const Strategy &strategy) {
  return formatText("tp=%d%s", strategy.tp, strategy.sp ? ",sp=1" : "");
}

/// Returns one line for each tensor degree: how it was measured.
std::vector<std::string> commentsOf(const Session &session,
                                    const CostsBefore &before,
                                    const Profiled &profiled,
                                    const std::string &links) {
  const plan::Manifest &manifest = session.model->manifest();
  std::vector<std::string> comments = {
      formatText("Measured by --profile: %s, %s.", manifest.model(),
                 elementTypeName(manifest.compute_type()))};
  std::string degree = degreeText(session.home().graph->strategy()) + ": ";
  for (const std::string &comment : before.comments)
    if (comment.rfind("tp=", 0) == 0 && comment.rfind(degree, 0) != 0)
      comments.push_back(comment);
  comments.push_back(
      degree +
      formatText(
          "%s; %d rank%s at once; time of %s%s; typical of %d passes; %s",
          session.device().describe(), session.home().graph->ranks(),
          session.home().graph->ranks() > 1 ? "s" : "",
          session.device().runsLate() ? "the device" : "cores",
          session.home().graph->strategy().tp > 1
              ? ", on the wall where ranks exchange"
              : "",
          std::max(profiled.passes.passes, 1),
          profiled.grid.noise().describe()));
  comments.push_back("links: " + links);
  return comments;
}

/// Takes the links of the described device if a single rank measured none and
/// the file has none. Empty for the host, whose links are the default of files
/// without any.
std::string describeLinks(const CostTable &like, cost::Table &measured,
                          const cost::Table &before) {
  const std::string &name = like.device().name();
  if (measured.has_cluster() || before.has_cluster() ||
      name == CostTable::host().device().name())
    return "";
  *measured.mutable_cluster() = like.cluster().description();
  return formatText("; the file has those described for '%s'", name);
}

/// Returns the errors of the table off its grid, of long calls and of short
/// ones.
std::pair<PredictionErrors, PredictionErrors>
errorsOf(const CostTable &table, const Measurements &heldOut) {
  std::pair<PredictionErrors, PredictionErrors> errors;
  for (const Measurements::Typical &one : heldOut.typical()) {
    if (one.load.context > 0)
      continue; // slicesOf handles slices
    auto curve = table.curves().find(one.function);
    if (curve != table.curves().end())
      (one.seconds < shortCall ? errors.second : errors.first)
          .add(curve->second.seconds(one.load), one.seconds);
  }
  return errors;
}

/// Returns what was measured of slices off the grid: calls that are not short, or all if
/// there are no others.
std::vector<MeasuredSlice> slicesOf(const Measurements &heldOut) {
  std::vector<MeasuredSlice> longer, shorter;
  for (const Measurements::Typical &one : heldOut.typical())
    if (one.load.context > 0)
      (one.seconds < shortCall ? shorter : longer)
          .push_back({one.function, {one.load, one.seconds}});
  return longer.empty() ? shorter : longer;
}

} // namespace

StatusOr<CostsBefore> readCostsBefore(const std::string &path,
                                      const Model &model) {
  DYNA_RETURN_IF_ERROR(OutputFile::checkReplace(path));
  DYNA_ASSIGN_OR_RETURN(OutputPlace place, findOutputPlace(path));
  CostsBefore before;
  if (place != OutputPlace::RegularFile)
    return before;
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(path, maxCostsBytes));
  if (text.empty())
    return before;
  StatusOr<CostModel> costs = CostModel::open(model, path);
  if (!costs.isOk())
    return Status::invalidArgument(
        "--profile would write over what is no costs of this model: " +
        costs.status().message() + "; name another file, or remove it");
  if (const std::string type = costs->otherComputeType(); !type.empty())
    return Status::invalidArgument(formatText(
        "--profile would mix compute types: %s was measured in %s, this "
        "program computes in %s; name another file, or remove it",
        path, type, elementTypeName(model.manifest().compute_type())));
  before.table = costs->table().message();
  before.comments = costComments(text);
  return before;
}

Status writeProfile(const Session &session, const Profiled &profiled,
                    const MeasuredLinks &links, const CostsBefore &before) {
  const TrainOptions &options = session.options;
  cost::Table measured = profiled.grid.table();
  const plan::Manifest &manifest = session.model->manifest();
  measured.set_compute_type(elementTypeName(manifest.compute_type()));
  for (const plan::LayerKind &kind : manifest.kinds())
    *measured.add_layers() = layerOf(kind);
  const std::string device = session.device().describe();
  const CostTable like = CostTable::likest(device, dyna_device_kind.described);
  *measured.mutable_device() = deviceOf(
      *session.model, measured, profiled.flopRate, like.device(), device);
  measured.mutable_device()->set_instruction_seconds(
      typicalSeconds(profiled.between));
  measured.mutable_device()->set_step_seconds(typicalSeconds(profiled.around));
  if (links.cluster)
    *measured.mutable_cluster() = *links.cluster;
  const std::string linked =
      links.note + describeLinks(like, measured, before.table);
  std::string text = writeCosts(mergeCosts(before.table, measured),
                                commentsOf(session, before, profiled, linked));
  DYNA_ASSIGN_OR_RETURN(CostTable table,
                        CostTable::parse(text, options.profile));
  DYNA_RETURN_IF_ERROR(replaceFile(options.profile, text));
  size_t points = 0;
  for (const cost::Entry &entry : measured.entries())
    points += entry.points_size();
  sayLine(formatText("profile: %s: %d functions, %d points, %d full passes",
                     options.profile, measured.entries_size(), points,
                     profiled.passes.passes));
  if (profiled.passes.passes == 0)
    sayLine(
        "note: --profile-seconds ended the first pass: larger micro-batches "
        "than those in the file are extrapolated");
  if (!profiled.unfitSlices.empty())
    sayLine("note: " + profiled.unfitSlices);
  sayLine("note: " + linked);
  const MachineNoise noise = profiled.grid.noise();
  sayLine((noise.isTooMuch()
               ? "warning: the machine was busy with other things: "
               : "noise: ") +
          noise.describe());
  auto [longer, shorter] = errorsOf(table, profiled.heldOut);
  if (!longer.empty())
    sayLine(
        "error off the grid: " +
        longer.describe("call of 0.1 ms or more", "calls of 0.1 ms and more") +
        formatText("; weighted by their time %.1f %%",
                   100 * longer.weighted()));
  if (!shorter.empty())
    sayLine("error off the grid: " +
            shorter.describe("shorter call", "shorter calls"));
  for (const ContextErrors &errors :
       contextErrors(table, slicesOf(profiled.heldOut)))
    sayLine(describeContext(errors));
  return Status::ok();
}

} // namespace dyna
