//===- CostTable.cpp - Measured costs, checked ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostTable.h"

#include "runtime/base/InputFile.h"
#include "runtime/base/Text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cassert>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace dyna {

extern const char *const hostDescription; // Descriptions.cpp.in

namespace {

/// Larger than any table of measurements.
constexpr int64_t maxFileBytes = INT64_C(1) << 26;
/// Points beyond these are slips of the pen; sums of work stay exact.
constexpr double maxSeconds = 1e9;
constexpr int64_t maxWork = INT64_C(1) << 52;

/// Keeps the first error: the others follow from it.
class FirstError : public google::protobuf::io::ErrorCollector {
public:
  explicit FirstError(const std::string &name) : name_(name) {}
  void AddError(int line, int column, const std::string &message) override {
    if (text_.empty())
      text_ = formatText("%s:%d:%d: %s", name_, line + 1, column + 1, message);
  }
  const std::string &text() const { return text_; }

private:
  std::string name_, text_;
};

Status parseText(const std::string &text, const std::string &name,
                 google::protobuf::Message &message) {
  FirstError error(name);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &message))
    return Status::ok();
  return Status::invalidArgument(error.text());
}

Status checkDevice(const cost::Device &device) {
  auto refuse = [&](const char *field, const char *expected, double value) {
    return Status::invalidArgument(
        formatText("device '%s': %s expects %s, but got %g", device.name(),
                   field, expected, value));
  };
  const std::pair<const char *, double> rates[] = {
      {"f64_flops", device.f64_flops()},
      {"f32_flops", device.f32_flops()},
      {"bf16_flops", device.bf16_flops()},
      {"bytes_per_second", device.bytes_per_second()}};
  for (auto [field, rate] : rates)
    if (!std::isfinite(rate) || rate < 1)
      return refuse(field, "a rate per second of at least 1", rate);
  double launch = device.launch_seconds();
  if (!std::isfinite(launch) || launch < 0 || launch > maxSeconds)
    return refuse("launch_seconds", "seconds, 0 or more", launch);
  return Status::ok();
}

Status checkPoint(const cost::Point &point) {
  const std::pair<const char *, int64_t> works[] = {
      {"tokens", point.tokens()},
      {"pairs", point.pairs()},
      {"targets", point.targets()}};
  for (auto [field, value] : works)
    if (value < 0 || value > maxWork)
      return Status::invalidArgument(
          formatText("%s expects 0 to %d, but got %d", field, maxWork, value));
  if (!std::isfinite(point.seconds()) || point.seconds() < 0 ||
      point.seconds() > maxSeconds)
    return Status::invalidArgument(formatText(
        "seconds expects 0 to %g, but got %g", maxSeconds, point.seconds()));
  return Status::ok();
}

} // namespace

std::string describeCostKey(const CostKey &key) {
  return formatText("%s tp=%d%s %s", key.kind, key.tp, key.sp ? ",sp=1" : "",
                    cost::Direction_Name(key.direction));
}

Status CostTable::add(const cost::Entry &entry, int index) {
  CostKey key{entry.kind(), entry.tp() == 0 ? 1 : entry.tp(), entry.sp(),
              entry.direction()};
  auto refuse = [&](const std::string &what) {
    return Status::invalidArgument(formatText(
        "%s: entry %d (%s): %s", name_, index + 1, describeCostKey(key), what));
  };
  if (key.kind.empty())
    return refuse("has no kind: name a kind of layer, as in kind: \"block\"");
  if (key.direction == cost::DIRECTION_UNKNOWN)
    return refuse("has no direction: FORWARD, BACKWARD, BACKWARD_INPUT, "
                  "BACKWARD_WEIGHT, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL or "
                  "UPDATE");
  if (key.tp < 1)
    return refuse(formatText("tp expects 1 or more, but got %d", key.tp));
  if (entry.points().empty())
    return refuse("has no points: measure at least one");
  std::vector<MeasuredPoint> points;
  for (const cost::Point &point : entry.points()) {
    if (Status status = checkPoint(point); !status.isOk())
      return refuse(formatText("point %d: %s",
                               static_cast<int>(points.size()) + 1,
                               status.message()));
    points.push_back(
        {{point.tokens(), point.pairs(), point.targets()}, point.seconds()});
  }
  if (!curves_.emplace(key, CostCurve(points)).second)
    return refuse("is there twice: put all points into one entry");
  return Status::ok();
}

StatusOr<CostTable> CostTable::parse(const std::string &text,
                                     const std::string &name) {
  cost::Table message;
  DYNA_RETURN_IF_ERROR(parseText(text, name, message));
  if (message.entries().empty() && !message.has_device())
    return Status::invalidArgument(
        name + ": has no entries and no device: give it what was measured "
               "(docs/costs.md), or leave it out");
  CostTable table = host();
  table.name_ = name;
  for (int i = 0; i < message.entries_size(); ++i)
    DYNA_RETURN_IF_ERROR(table.add(message.entries(i), i));
  if (message.has_device()) {
    table.device_ = message.device();
    if (Status status = checkDevice(table.device_); !status.isOk())
      return Status::invalidArgument(name + ": " + status.message());
  }
  return table;
}

StatusOr<CostTable> CostTable::read(const std::string &path) {
  StatusOr<std::string> text = readFile(path, maxFileBytes);
  if (!text.isOk())
    return Status(text.status().code(), "no costs: " + text.status().message());
  return parse(*text, path);
}

CostTable CostTable::host() {
  CostTable table;
  Status status = parseText(hostDescription, "host.textproto", table.device_);
  assert(status.isOk() && checkDevice(table.device_).isOk());
  (void)status;
  return table;
}

} // namespace dyna
