//===- PlanEntry.cpp - Encodes a rank's part of a plan --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/store/PlanEntry.h"

#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/store/Store.h"

#include <cmath>
#include <cstring>

namespace dyna {
namespace {

constexpr std::string_view magic = "DYNAPLAN";
constexpr size_t headerBytes = 32, secondsBytes = 8;

void append(std::string &bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t numberAt(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i]))
             << (8 * i);
  return value;
}

Status bad(const std::string &what) { return Status::invalidArgument(what); }

plan::Plan partOf(const plan::Plan &plan, int rank) {
  plan::Plan part;
  part.manifestHash = plan.manifestHash;
  part.graph = plan.graph;
  part.fallback = plan.fallback;
  part.microBatches = plan.microBatches;
  part.targetTokens = plan.targetTokens;
  part.ranks.resize(plan.ranks.size());
  part.ranks[rank] = plan.ranks[rank];
  return part;
}

/// `part` is a step in the form of PlanFile.h.
std::string writeEntry(const std::string &part, int64_t step, int rank,
                       double predictedSeconds) {
  uint64_t seconds = 0;
  static_assert(sizeof(seconds) == sizeof(predictedSeconds));
  std::memcpy(&seconds, &predictedSeconds, sizeof(seconds));
  std::string body;
  append(body, seconds, secondsBytes);
  body += part;
  std::string bytes(magic);
  append(bytes, storeFormat, 4);
  append(bytes, static_cast<uint64_t>(rank), 4);
  append(bytes, static_cast<uint64_t>(step), 8);
  append(bytes, Checksum::of(body), 8);
  return bytes + body;
}

} // namespace

std::string writePlanEntry(const plan::StepPlan &plans, int64_t step, int rank,
                           double predictedSeconds) {
  plan::StepPlan part;
  for (const plan::Phase &phase : plans.phases)
    part.phases.push_back({partOf(phase.plan, rank), phase.samples});
  return writeEntry(writeStepPlan(part), step, rank, predictedSeconds);
}

StatusOr<PlanEntry> readPlanEntry(std::string_view bytes, int64_t step,
                                  int rank) {
  if (bytes.size() < headerBytes + secondsBytes ||
      bytes.substr(0, magic.size()) != magic)
    return bad(formatText("%d bytes without the beginning of a stored plan",
                          bytes.size()));
  auto format = static_cast<int64_t>(numberAt(bytes, 8, 4));
  if (format != storeFormat)
    return bad(
        formatText("it is of format %d, but this program's plans are of %d",
                   format, storeFormat));
  auto gotRank = static_cast<int64_t>(numberAt(bytes, 12, 4));
  auto gotStep = static_cast<int64_t>(numberAt(bytes, 16, 8));
  if (gotRank != rank || gotStep != step)
    return bad(formatText("it is that of rank %d in step %d, but that of rank "
                          "%d in step %d was asked for",
                          gotRank, gotStep + 1, rank, step + 1));
  std::string_view body = bytes.substr(headerBytes);
  uint64_t expected = numberAt(bytes, 24, 8), got = Checksum::of(body);
  if (got != expected)
    return bad(formatText("it is damaged: its checksum is %016x, but %016x was "
                          "written",
                          got, expected));
  PlanEntry entry;
  const uint64_t seconds = numberAt(body, 0, secondsBytes);
  std::memcpy(&entry.predictedSeconds, &seconds, sizeof(seconds));
  if (!std::isfinite(entry.predictedSeconds) || entry.predictedSeconds < 0)
    return bad(formatText("it predicts %g seconds", entry.predictedSeconds));
  DYNA_ASSIGN_OR_RETURN(entry.step, readStepPlan(body.substr(secondsBytes)));
  return entry;
}

} // namespace dyna
