//===- CostTable.cpp - Reads and checks tables of measured costs ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostTable.h"

#include "runtime/base/file/InputFile.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Text.h"
#include "runtime/cost/Descriptions.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

namespace dyna {

namespace {

/// Points beyond these are slips of the pen; sums of work stay exact.
constexpr double maxSeconds = 1e9;
constexpr int64_t maxWork = INT64_C(1) << 52;
constexpr double leastReach = 1e-3;

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
  const std::pair<const char *, double> times[] = {
      {"launch_seconds", device.launch_seconds()},
      {"instruction_seconds", device.instruction_seconds()},
      {"step_seconds", device.step_seconds()}};
  for (auto [field, seconds] : times)
    if (!std::isfinite(seconds) || seconds < 0 || seconds > maxSeconds)
      return refuse(field, "seconds, 0 or more", seconds);
  const std::pair<const char *, double> reaches[] = {
      {"flops_reach", device.flops_reach()},
      {"bytes_reach", device.bytes_reach()}};
  for (auto [field, reach] : reaches)
    if (reach != 0 && !(reach >= leastReach && reach <= 1))
      return refuse(field, "0.001 to 1, a part of the rate", reach);
  if (device.memory_bytes() < 0)
    return refuse("memory_bytes", "0 or more",
                  static_cast<double>(device.memory_bytes()));
  return Status::ok();
}

Status checkScores(const cost::StoredScores &scores) {
  // Kernels keep few numbers of a few bytes for each pair, and at least one
  // byte.
  constexpr int32_t most = 64;
  if (scores.kept_bytes() < 1 || scores.kept_bytes() > most)
    return Status::invalidArgument(
        formatText("scores: kept_bytes expects 1 to %d, but got %d", most,
                   scores.kept_bytes()));
  const std::pair<const char *, double> moved[] = {
      {"forward_bytes", scores.forward_bytes()},
      {"backward_bytes", scores.backward_bytes()}};
  for (auto [field, bytes] : moved)
    if (!(bytes >= 0 && bytes <= 1024))
      return Status::invalidArgument(
          formatText("scores: %s expects 0 to 1024, but got %g", field, bytes));
  return Status::ok();
}

/// Parses "4x8": nodes, and devices of each.
bool parseNodes(const std::string &text, cost::Cluster &cluster) {
  int nodes = 0, devices = 0, end = 0;
  if (std::sscanf(text.c_str(), "%6dx%6d%n", &nodes, &devices, &end) != 2 ||
      static_cast<size_t>(end) != text.size() || nodes < 1 || devices < 1)
    return false;
  cluster.set_nodes(nodes);
  cluster.set_devices_per_node(devices);
  return true;
}

/// Returns true if functions of this direction run once for each micro-batch,
/// not once for each step.
bool isPerMicroBatch(cost::Direction direction) {
  return direction != cost::UPDATE && direction != cost::GRAD_NORM;
}

/// Checks a point with context: one slice of a sample, whose attention is causal.
Status checkSlice(const cost::Point &point, cost::Direction direction) {
  if (!isPerMicroBatch(direction))
    return Status::invalidArgument(
        formatText("has context %d, but %s runs once in a step: leave context "
                   "out",
                   point.context(), cost::Direction_Name(direction)));
  if (point.pairs() == 0)
    return Status::invalidArgument(
        formatText("has context %d, but no pairs: only attention reads earlier "
                   "tokens, so other kinds have points without context",
                   point.context()));
  // The limit keeps squares exact in doubles.
  constexpr int64_t most = INT64_C(1) << 30;
  if (point.tokens() > most || point.context() > most)
    return Status::invalidArgument(
        formatText("a slice of %d tokens after %d: expects at most %d of each",
                   point.tokens(), point.context(), most));
  if (const Load slice = sliceLoad(point.tokens(), point.context());
      point.pairs() != slice.pairs)
    return Status::invalidArgument(formatText(
        "%d pairs, but a slice of %d tokens after %d has %d: a point with "
        "context is one slice alone, without other samples",
        point.pairs(), point.tokens(), point.context(), slice.pairs));
  return Status::ok();
}

Status checkPoint(const cost::Point &point, cost::Direction direction) {
  const std::pair<const char *, int64_t> works[] = {
      {"tokens", point.tokens()},
      {"pairs", point.pairs()},
      {"targets", point.targets()},
      {"context", point.context()}};
  for (auto [field, value] : works)
    if (value < 0 || value > maxWork)
      return Status::invalidArgument(
          formatText("%s expects 0 to %d, but got %d", field, maxWork, value));
  if (!std::isfinite(point.seconds()) || point.seconds() < 0 ||
      point.seconds() > maxSeconds)
    return Status::invalidArgument(formatText(
        "seconds expects 0 to %g, but got %g", maxSeconds, point.seconds()));
  if (point.tokens() == 0 && isPerMicroBatch(direction))
    return Status::invalidArgument(
        formatText("has no tokens: %s runs on a micro-batch, say how many "
                   "tokens that has",
                   cost::Direction_Name(direction)));
  // Both are far below 2^53, so doubles hold them exactly.
  const double tokens = static_cast<double>(point.tokens());
  if (point.context() > 0)
    DYNA_RETURN_IF_ERROR(checkSlice(point, direction));
  else if (static_cast<double>(point.pairs()) > tokens * tokens)
    return Status::invalidArgument(
        formatText("%d pairs, but %d tokens have at most %g", point.pairs(),
                   point.tokens(), tokens * tokens));
  if (point.pairs() > 0 && point.pairs() < point.tokens())
    return Status::invalidArgument(
        formatText("%d pairs, but each of %d tokens sees one key at least",
                   point.pairs(), point.tokens()));
  if (point.targets() > point.tokens())
    return Status::invalidArgument(formatText("%d targets, but %d tokens",
                                              point.targets(), point.tokens()));
  return Status::ok();
}

/// Measurements contradict each other, short ones on busy machines by far, and
/// the curve goes between them. Ten times off it, and beyond what a scheduler
/// takes away at once, is no noise.
constexpr double mostOff = 10, leastSeconds = 0.05;

bool isFarMore(double seconds, double others) {
  return std::max(seconds, leastSeconds) >
         mostOff * std::max(others, leastSeconds);
}

/// Returns the number of a point that the curve misses by far, or -1. The curve
/// meets points with context in any case.
int farOff(const CostCurve &curve, const std::vector<MeasuredPoint> &points) {
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].load.context > 0)
      continue;
    const double expected = curve.seconds(points[i].load);
    if (isFarMore(points[i].seconds, expected) ||
        isFarMore(expected, points[i].seconds))
      return static_cast<int>(i);
  }
  return -1;
}

bool isNoMore(const Load &a, const Load &b) {
  return a.queries <= b.queries && a.pairs <= b.pairs &&
         a.targets <= b.targets && a.context <= b.context;
}

/// Returns "tokens 8, pairs 164, targets 0, context 16".
std::string describeWork(const Load &load) {
  return formatText("tokens %d, pairs %d, targets %d%s", load.queries,
                    load.pairs, load.targets,
                    load.context > 0 ? formatText(", context %d", load.context)
                                     : "");
}

std::string describePoint(const std::vector<MeasuredPoint> &points, size_t i) {
  return formatText("point %d (%s)", i + 1, describeWork(points[i].load));
}

/// Finds two points of which one takes far longer than the other, although it
/// has less work. Describes the point that contradicts most others, with one of
/// these. Empty if there is no such pair, or if there are too many points to
/// compare. With `ofSlices`, one of the two points has context.
std::string describeContradiction(const std::vector<MeasuredPoint> &points,
                                  bool ofSlices) {
  constexpr size_t mostCompared = 4096;
  if (points.size() > mostCompared)
    return "";
  std::vector<int> others(points.size(), 0), other(points.size(), -1);
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t j = 0; j < points.size(); ++j)
      if (i != j && isNoMore(points[i].load, points[j].load) &&
          (!ofSlices || points[j].load.context > 0) &&
          isFarMore(points[i].seconds, points[j].seconds)) {
        ++others[i], ++others[j];
        other[i] = static_cast<int>(j), other[j] = static_cast<int>(i);
      }
  const size_t wrong =
      std::max_element(others.begin(), others.end()) - others.begin();
  if (others[wrong] == 0)
    return "";
  const MeasuredPoint &one = points[wrong], &two = points[other[wrong]];
  return formatText("%s takes %g seconds, but %s, of %s work, takes %g",
                    describePoint(points, wrong), one.seconds,
                    describePoint(points, other[wrong]),
                    one.seconds > two.seconds ? "more" : "less", two.seconds);
}

/// Returns what is wrong with measured seconds; empty: nothing.
std::string describeFault(const CostCurve &curve,
                          const std::vector<MeasuredPoint> &points) {
  const int i = farOff(curve, points);
  if (i < 0)
    return curve.hasContext() ? describeContradiction(points, true) : "";
  const std::string what = describeContradiction(points, false);
  return what.empty()
             ? formatText("%s takes %g seconds, but the other points say %g",
                          describePoint(points, i), points[i].seconds,
                          curve.seconds(points[i].load))
             : what;
}

/// Returns the points of an entry, or what is wrong with them.
StatusOr<std::vector<MeasuredPoint>> readPoints(const cost::Entry &entry) {
  std::vector<MeasuredPoint> points;
  std::map<std::array<int64_t, 4>, int> places;
  for (const cost::Point &point : entry.points()) {
    const int number = static_cast<int>(points.size()) + 1;
    if (Status status = checkPoint(point, entry.direction()); !status.isOk())
      return Status::invalidArgument(
          formatText("point %d: %s", number, status.message()));
    Load load = callLoad(point.tokens(), point.pairs(), point.targets());
    load.context = point.context();
    auto [same, isNew] = places.insert(
        {{load.queries, load.pairs, load.targets, load.context}, number});
    if (!isNew)
      return Status::invalidArgument(formatText(
          "points %d and %d are of one work (%s), with %g and %g seconds: keep "
          "one of them",
          same->second, number, describeWork(load),
          points[same->second - 1].seconds, point.seconds()));
    points.push_back({load, point.seconds()});
  }
  if (std::all_of(points.begin(), points.end(),
                  [](const MeasuredPoint &p) { return p.load.context > 0; }))
    return Status::invalidArgument(
        "has points with context alone: slices are compared with whole "
        "samples, so measure at least one point without");
  return points;
}

} // namespace

std::string describeKindOf(const CostKey &key) {
  return formatText("%s tp=%d%s", key.kind, key.tp, key.sp ? ",sp=1" : "");
}

std::string describeCostKey(const CostKey &key) {
  return describeKindOf(key) + " " + cost::Direction_Name(key.direction);
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
                  "BACKWARD_WEIGHT, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, "
                  "UPDATE or GRAD_NORM");
  if (key.tp < 1)
    return refuse(formatText("tp expects 1 or more, but got %d", key.tp));
  if (key.sp && key.tp == 1)
    return refuse("sp splits what tp leaves whole, but tp is 1: leave it out");
  if (entry.points().empty())
    return refuse("has no points: measure at least one");
  StatusOr<std::vector<MeasuredPoint>> points = readPoints(entry);
  if (!points.isOk())
    return refuse(points.status().message());
  CostCurve curve(*points);
  if (std::string what = describeFault(curve, *points); !what.empty())
    return refuse(what + ": more work cannot take that much less time, measure "
                         "again");
  if (!curves_.emplace(key, std::move(curve)).second)
    return refuse("is there twice: put all points into one entry");
  return Status::ok();
}

StatusOr<CostTable> CostTable::parse(const std::string &text,
                                     const std::string &name) {
  cost::Table message;
  DYNA_RETURN_IF_ERROR(parseText(text, name, message));
  if (message.entries().empty() && !message.has_device() &&
      !message.has_cluster() && !message.has_scores() && !message.has_sparse())
    return Status::invalidArgument(
        name + ": has no entries and no device: give it what was measured "
               "(docs/costs.md), or leave it out");
  CostTable table = host();
  table.name_ = name;
  table.fingerprint_ = Checksum::of(message.SerializeAsString());
  for (int i = 0; i < message.entries_size(); ++i)
    DYNA_RETURN_IF_ERROR(table.add(message.entries(i), i));
  if (const std::string &type = message.compute_type();
      !type.empty() && type != "f64" && type != "f32" && type != "bf16")
    return Status::invalidArgument(formatText(
        "%s: compute_type expects f64, f32 or bf16, but got '%s'", name, type));
  std::set<std::string> described;
  for (const cost::Layer &layer : message.layers())
    if (!described.insert(layer.kind()).second)
      return Status::invalidArgument(formatText(
          "%s: layers '%s' are described twice: keep one", name, layer.kind()));
  if (Status status = table.setHardware(message); !status.isOk())
    return Status::invalidArgument(name + ": " + status.message());
  table.message_ = std::move(message);
  return table;
}

Status CostTable::setHardware(const cost::Table &message) {
  if (message.has_device()) {
    DYNA_RETURN_IF_ERROR(checkDevice(message.device()));
    device_ = message.device();
  }
  if (message.has_cluster()) {
    DYNA_ASSIGN_OR_RETURN(cluster_, Cluster::create(message.cluster()));
  }
  if (message.has_scores()) {
    DYNA_RETURN_IF_ERROR(checkScores(message.scores()));
    scores_ = message.scores();
  }
  if (message.has_sparse()) {
    DYNA_ASSIGN_OR_RETURN(sparse_, SparseProducts::create(message.sparse()));
  }
  return Status::ok();
}

StatusOr<CostTable> CostTable::read(const std::string &path) {
  StatusOr<std::string> text = readFile(path, maxCostsBytes);
  if (!text.isOk())
    return Status(text.status().code(), "no costs: " + text.status().message());
  return parse(*text, path);
}

CostTable CostTable::host() { return std::move(*described("host")); }

/// Returns true if all parts of `name`, separated by '-', are in `text`.
static bool hasParts(const std::string &text, const std::string &name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('-', begin), name.size());
    if (text.find(name.substr(begin, end - begin)) == std::string::npos)
      return false;
    begin = end + 1;
  }
  return true;
}

CostTable CostTable::likest(const std::string &device,
                            const std::string &otherwise) {
  std::string text = device, best;
  for (char &letter : text)
    letter =
        static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const Description &description : descriptions()) {
    const std::string name = description.name;
    if (name.size() > best.size() && hasParts(text, name))
      best = name;
  }
  return std::move(*described(best.empty() ? otherwise : best));
}

void CostTable::describeScores() {
  if (!scores_)
    scores_ = parse(storedScores(), "stored-scores")->scores_;
}

StatusOr<CostTable> CostTable::described(const std::string &name) {
  std::string device = name.substr(0, name.find(':')), names;
  for (const Description &description : descriptions()) {
    names += std::string(names.empty() ? "" : ", ") + description.name;
    if (device != description.name)
      continue;
    cost::Table message;
    DYNA_RETURN_IF_ERROR(parseText(description.text, device, message));
    if (device.size() < name.size() &&
        !parseNodes(name.substr(device.size() + 1), *message.mutable_cluster()))
      return Status::invalidArgument(
          formatText("cluster '%s': behind ':' expects nodes x devices of "
                     "each, such as %s:4x8",
                     name, device));
    CostTable table;
    DYNA_RETURN_IF_ERROR(table.setHardware(message));
    return table;
  }
  return Status::invalidArgument(formatText(
      "no device '%s' is described: expects %s, such as a100-40g:4x8", device,
      names));
}

} // namespace dyna
