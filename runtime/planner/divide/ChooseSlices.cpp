//===- ChooseSlices.cpp - Chooses slices by costs -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/ChooseSlices.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace dyna {
namespace {

/// Parts of the longest sample that slices are multiples of.
constexpr int64_t mostUnits = 64;
/// Parts of the longest sample if modes are chosen within a limit of bytes, which takes
/// long for many units.
constexpr int64_t mostModeUnits = 16;

/// Seconds on the slowest stage, with the message behind it. Stages count as equal
/// (SliceProblem.h).
SliceCost costOf(const SliceTimes &times, const Load &load) {
  SliceCost cost;
  for (int stage : times.stages) {
    cost.forward = std::max(cost.forward, times.tables.forward(stage, load));
    cost.backward = std::max(cost.backward, times.tables.backward(stage, load));
  }
  const double message = times.message(load);
  cost.forward += message;
  cost.backward += message;
  return cost;
}

SliceCost costOfSliceAt(const SliceTimes &times, int64_t begin,
                        int64_t tokens) {
  return costOf(
      times, loadOf(TokenRange{begin, tokens}, TokenRange{0, begin + tokens}));
}

/// Costs of slices, each asked of the tables once: programs of all replicas and
/// candidates ask for the same ones.
class KnownCosts {
public:
  KnownCosts(const SliceTimes &times, int64_t grain)
      : times_(times), grain_(grain) {}

  SliceCost of(int64_t begin, int64_t tokens) {
    if (begin % grain_ != 0 || tokens % grain_ != 0)
      return costOfSliceAt(times_, begin, tokens);
    const auto row = static_cast<size_t>((begin + tokens) / grain_);
    const auto column = static_cast<size_t>(begin / grain_);
    if (row >= rows_.size())
      rows_.resize(row + 1);
    rows_[row].resize(row, unknown());
    SliceCost &cost = rows_[row][column];
    if (cost.bytes < 0)
      cost = costOfSliceAt(times_, begin, tokens);
    return cost;
  }

private:
  static SliceCost unknown() {
    SliceCost cost;
    cost.bytes = -1;
    return cost;
  }
  const SliceTimes &times_;
  const int64_t grain_;
  std::vector<std::vector<SliceCost>> rows_; ///< by end and begin
};

int64_t grainOf(int64_t longest) {
  return dyna_round_rows((longest + mostUnits - 1) / mostUnits);
}

/// Returns the problem of the micro-batches of one replica. Samples that share
/// a micro-batch are bundles. `samples` and `lengths` get those of the
/// mini-batch, by number in the problem.
SliceProblem problemOf(const MicroBatches &microBatches, int replica,
                       const SliceTimes &times, std::vector<int64_t> &samples,
                       std::vector<int64_t> &lengths) {
  SliceProblem problem;
  int64_t longest = 1;
  for (const plan::MicroBatch &microBatch : microBatches) {
    if (microBatch.replica != replica || microBatch.segments.empty())
      continue;
    std::vector<int64_t> bundle;
    for (const plan::Segment &segment : microBatch.segments) {
      bundle.push_back(static_cast<int64_t>(samples.size()));
      samples.push_back(segment.sample);
      lengths.push_back(segment.length);
    }
    if (bundle.size() == 1 && lengths.back() > 0)
      longest = std::max(longest, lengths.back());
    else
      problem.bundles.push_back(std::move(bundle));
  }
  // A sample without tokens is in a bundle, whose other samples determine its
  // cost.
  for (int64_t length : lengths)
    problem.lengths.push_back(std::max<int64_t>(length, 1));
  problem.options.stages = times.tables.stages();
  problem.options.grain = grainOf(longest);
  problem.costs.slice = [&times](const SliceShape &shape) {
    return costOfSliceAt(times, shape.begin, shape.tokens);
  };
  problem.costs.bundle = [&times](const std::vector<int64_t> &lengths, int) {
    Load load;
    for (int64_t length : lengths)
      load += loadOfSample(length);
    return costOf(times, load);
  };
  return problem;
}

/// Returns the work of a token and of a visible pair. Both follow from the
/// seconds of one slice: of short samples, and of a sample with as many earlier
/// tokens.
SliceWork workOf(const SliceTimes &times, int64_t tokens) {
  auto seconds = [&](int64_t context) {
    const SliceCost cost = costOf(
        times, loadOf(TokenRange{context, tokens}, {0, context + tokens}));
    return cost.forward + cost.backward;
  };
  const auto count = static_cast<double>(tokens);
  const double alone = seconds(0), behind = seconds(tokens);
  SliceWork work;
  // Earlier tokens add this many pairs to those of the slice's own tokens.
  work.perPair = std::max(0.0, (behind - alone) / (count * count));
  work.perToken =
      std::max(0.0, alone - work.perPair * count * (count + 1) / 2) / count;
  return work.perPair + work.perToken > 0 ? work : SliceWork();
}

/// `number` is that of the policy, and positive if it needs one.
StatusOr<SlicePlan> planBy(SlicePolicy policy, int64_t number,
                           const SliceProblem &problem,
                           const SliceTimes &times) {
  const int64_t longest =
      *std::max_element(problem.lengths.begin(), problem.lengths.end());
  switch (policy) {
  case SlicePolicy::TeraPipe:
    return sliceByPaper(problem);
  case SlicePolicy::TeraCode:
    return sliceByPaperCode(problem);
  case SlicePolicy::Uniform:
    return sliceUniformly(problem, number);
  case SlicePolicy::Work:
    return sliceByWork(problem, number, workOf(times, 8 * grainOf(longest)));
  case SlicePolicy::Chunks: {
    ChunkOptions chunks;
    chunks.tokens = number;
    return sliceInChunks(problem, chunks);
  }
  default:
    return sliceTokens(problem);
  }
}

/// Returns the numbers to try for a policy without one. They are 1, 2, 4 ...
/// slices of the longest sample, or the largest chunk, half of it, a quarter
/// ...
std::vector<int64_t> numbersOf(SlicePolicy policy, int64_t longest,
                               int64_t mostChunk) {
  constexpr int64_t mostSlices = 128;
  std::vector<int64_t> numbers;
  if (policy == SlicePolicy::Chunks) {
    numbers.push_back(mostChunk);
    while (numbers.back() / 2 >= leastChunk)
      numbers.push_back(numbers.back() / 2);
  } else if (policy == SlicePolicy::Uniform || policy == SlicePolicy::Work) {
    numbers.push_back(1);
    while (numbers.back() < mostSlices &&
           numbers.back() * 2 <= longest / DYNA_ROW_ALIGNMENT)
      numbers.push_back(numbers.back() * 2);
  } else {
    numbers.push_back(0);
  }
  return numbers;
}

/// Returns the plan of a policy. Without a number, it has the one whose plan is the
/// shortest by the formula of equal stages.
StatusOr<SlicePlan> planBy(const SliceChoice &choice,
                           const SliceProblem &problem, const SliceTimes &times,
                           int64_t mostChunk) {
  if (choice.number > 0)
    return planBy(choice.policy, choice.number, problem, times);
  const int64_t longest =
      *std::max_element(problem.lengths.begin(), problem.lengths.end());
  std::optional<SlicePlan> best;
  for (int64_t number : numbersOf(choice.policy, longest, mostChunk)) {
    DYNA_ASSIGN_OR_RETURN(SlicePlan plan,
                          planBy(choice.policy, number, problem, times));
    if (!best || plan.objective < best->objective)
      best = std::move(plan);
  }
  return std::move(*best);
}

/// Adds the micro-batches of a plan for one replica, and their modes. `samples` are those
/// of the problem.
void addPlan(const SlicePlan &plan, const std::vector<int64_t> &samples,
             const std::vector<int64_t> &lengths, int replica,
             MicroBatches &sliced, std::vector<int> *modes = nullptr) {
  for (const SampleCut &cut : plan.cuts) {
    std::vector<int64_t> begins(cut.samples.size(), 0);
    for (const TokenSlice &slice : cut.slices) {
      if (modes)
        modes->push_back(slice.mode);
      plan::MicroBatch &part = sliced.emplace_back();
      part.replica = replica;
      for (size_t i = 0; i < cut.samples.size(); ++i) {
        part.segments.push_back(
            {samples[cut.samples[i]], begins[i],
             std::min(slice.tokens, lengths[cut.samples[i]] - begins[i])});
        begins[i] += slice.tokens;
      }
    }
  }
  for (const SliceBundle &bundle : plan.bundles) {
    if (modes)
      modes->push_back(bundle.mode);
    plan::MicroBatch &whole = sliced.emplace_back();
    whole.replica = replica;
    for (int64_t sample : bundle.samples)
      whole.segments.push_back({samples[sample], 0, lengths[sample]});
  }
}

} // namespace

Status checkSliceable(const Model &model, Batching batching) {
  if (ruleOf(batching).pads)
    return Status::invalidArgument(formatText(
        "--slices cuts micro-batches without padding, but those of '%s' are "
        "padded: use --micro-batches %s",
        ruleOf(batching).name, batchingNames().front()));
  for (const plan::LayerKind &kind : model.manifest().kinds()) {
    if (looksBehind(kind))
      return Status::invalidArgument(
          formatText("--slices needs causal attention, but '%s' has attention "
                     "that looks at "
                     "later tokens; use --slices none",
                     kind.name()));
    if (lacksKeyStore(kind))
      return Status::invalidArgument(formatText(
          "--slices needs a store for the keys of '%s', which the binary was "
          "compiled without; compile the model again",
          kind.name()));
  }
  return Status::ok();
}

StatusOr<MicroBatches> slicesByPolicy(const MicroBatches &microBatches,
                                      const SliceTimes &times, int replicas,
                                      const SliceChoice &choice,
                                      int64_t mostChunk) {
  MicroBatches sliced;
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<int64_t> samples, lengths;
    SliceProblem problem =
        problemOf(microBatches, replica, times, samples, lengths);
    // These policies derive the size of slices from their number.
    if (choice.policy == SlicePolicy::Chunks ||
        choice.policy == SlicePolicy::Uniform ||
        choice.policy == SlicePolicy::Work)
      problem.options.grain = 1;
    if (lengths.empty())
      continue;
    DYNA_ASSIGN_OR_RETURN(SlicePlan plan,
                          planBy(choice, problem, times, mostChunk));
    addPlan(plan, samples, lengths, replica, sliced);
  }
  return sliced;
}

namespace {

/// Finds cuts of the micro-batches of a mini-batch, and times them by the formula of
/// equal stages (SliceProblem.h).
class CutFinder {
public:
  CutFinder(const MicroBatches &whole, const SliceTimes &times, int replicas)
      : whole_(whole), times_(times), replicas_(replicas) {
    int64_t longest = 1;
    for (const plan::MicroBatch &microBatch : whole) {
      largest_ = std::max(largest_, loadOf(microBatch).queries);
      for (const plan::Segment &segment : microBatch.segments)
        longest = std::max(longest, segment.length);
    }
    grain_ = grainOf(longest);
    known_ = std::make_unique<KnownCosts>(times, grain_);
  }

  StatusOr<std::vector<TimedCut>> run() {
    if (times_.tables.stages() < 2 || largest_ < 2 * DYNA_ROW_ALIGNMENT)
      return std::move(cuts_);
    for (int fills : {1, manyFills})
      DYNA_RETURN_IF_ERROR(addByPolicy(SlicePolicy::Exact, 0, fills));
    const int64_t most = std::max<int64_t>(2 * times_.tables.stages(), 64);
    int64_t before = largest_;
    for (int64_t count = 2; count <= most; count *= 2) {
      const int64_t tokens = dyna_round_rows((largest_ + count - 1) / count);
      if (tokens == before)
        break;
      before = tokens;
      // Small micro-batches get fewer slices, and no slice is smaller than the
      // others.
      SliceChoice equal;
      equal.lengths = {tokens};
      add(sliceMicroBatches(whole_, equal));
      DYNA_RETURN_IF_ERROR(addByPolicy(SlicePolicy::Chunks, tokens, 1));
      for (int fills : {1, manyFills})
        DYNA_RETURN_IF_ERROR(addByPolicy(SlicePolicy::Exact, tokens, fills));
    }
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < cuts_.size(); ++i)
      order.push_back({cuts_[i].seconds, i});
    std::sort(order.begin(), order.end());
    std::vector<TimedCut> sorted;
    for (const auto &[seconds, i] : order)
      sorted.push_back(std::move(cuts_[i]));
    return std::move(sorted);
  }

private:
  /// Fills of the pipeline that a program of smaller slices counts.
  static constexpr int manyFills = 4;

  /// Adds the cuts of a policy. With `bundleTokens`, samples that are not
  /// longer share bundles of so many tokens. Without, bundles are those of the
  /// micro-batches. The exact program counts the fill of the pipeline `fills`
  /// times.
  Status addByPolicy(SlicePolicy policy, int64_t bundleTokens, int fills) {
    MicroBatches sliced;
    SliceChoice choice;
    choice.policy = policy;
    choice.number = bundleTokens;
    for (int replica = 0; replica < replicas_; ++replica) {
      std::vector<int64_t> samples, lengths;
      SliceProblem problem =
          problemOf(whole_, replica, times_, samples, lengths);
      if (lengths.empty())
        continue;
      problem.options.grain = grain_;
      problem.options.stages = (problem.options.stages - 1) * fills + 1;
      problem.costs.slice = [&](const SliceShape &shape) {
        return known_->of(shape.begin, shape.tokens);
      };
      if (policy == SlicePolicy::Chunks)
        problem.options.grain = 1;
      else if (bundleTokens > 0)
        problem.bundles = packBundles(problem.lengths, bundleTokens);
      DYNA_ASSIGN_OR_RETURN(SlicePlan plan,
                            planBy(choice, problem, times_, largest_));
      addPlan(plan, samples, lengths, replica, sliced);
    }
    add(std::move(sliced));
    return Status::ok();
  }

  /// Adds a cut with slices, unless it is there.
  void add(MicroBatches cut) {
    if (std::none_of(cut.begin(), cut.end(), continuesSample))
      return;
    TimedCut timed = timeCut(std::move(cut));
    for (const TimedCut &other : cuts_)
      if (other.seconds == timed.seconds && other.cut == timed.cut)
        return;
    cuts_.push_back(std::move(timed));
  }

  TimedCut timeCut(MicroBatches cut) const {
    std::vector<double> sums(replicas_, 0), forwards = sums, backwards = sums;
    for (const plan::MicroBatch &microBatch : cut) {
      const SliceCost cost = costOf(times_, loadOf(microBatch));
      const int replica = microBatch.replica;
      sums[replica] += cost.forward + cost.backward;
      forwards[replica] = std::max(forwards[replica], cost.forward);
      backwards[replica] = std::max(backwards[replica], cost.backward);
    }
    TimedCut timed{std::move(cut)};
    for (int replica = 0; replica < replicas_; ++replica) {
      const double seconds =
          pipelineSeconds(times_.tables.stages(), sums[replica],
                          forwards[replica] + backwards[replica]);
      if (seconds <= timed.seconds)
        continue;
      timed.seconds = seconds;
      timed.slowest = replica;
    }
    return timed;
  }

  const MicroBatches &whole_;
  const SliceTimes &times_;
  const int replicas_;
  int64_t largest_ = 0; ///< tokens of a micro-batch
  int64_t grain_ = 1;
  std::unique_ptr<KnownCosts> known_;
  std::vector<TimedCut> cuts_;
};

} // namespace

StatusOr<std::vector<TimedCut>> slicesByCost(const MicroBatches &microBatches,
                                             const SliceTimes &times,
                                             int replicas) {
  return CutFinder(microBatches, times, replicas).run();
}

StatusOr<ModeCut> sliceWithModes(const MicroBatches &microBatches, int replica,
                                 const ModeTimes &modes, int64_t totalBytes) {
  std::vector<int64_t> samples, lengths;
  SliceProblem problem =
      problemOf(microBatches, replica, modes[0].times, samples, lengths);
  ModeCut cut;
  if (lengths.empty())
    return std::move(cut);
  // A limit on the bytes of all slices takes long for many units.
  problem.options.grain *= mostUnits / mostModeUnits;
  problem.options.totalBytes = totalBytes;
  problem.costs.modes = static_cast<int>(modes.size());
  const auto costIn = [&](int mode, const Load &load) {
    SliceCost cost = costOf(modes[mode].times, load);
    cost.bytes = modes[mode].bytes(load);
    return cost;
  };
  problem.costs.slice = [&](const SliceShape &shape) {
    return costIn(shape.mode,
                  loadOf(TokenRange{shape.begin, shape.tokens},
                         TokenRange{0, shape.begin + shape.tokens}));
  };
  problem.costs.bundle = [&](const std::vector<int64_t> &lengths, int mode) {
    Load load;
    for (int64_t length : lengths)
      load += loadOfSample(length);
    return costIn(mode, load);
  };
  DYNA_ASSIGN_OR_RETURN(SlicePlan plan, sliceTokens(problem));
  addPlan(plan, samples, lengths, replica, cut.microBatches, &cut.modes);
  cut.bytes = plan.bytes;
  return std::move(cut);
}

} // namespace dyna
