//===- ChooseSlices.cpp - Slices that costs find worth it -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/ChooseSlices.h"

#include "runtime/base/Text.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"

#include <algorithm>
#include <optional>

namespace dyna {
namespace {

/// Parts of the longest sample that slices are multiples of.
constexpr int64_t mostUnits = 64;

/// Seconds on the slowest stage, with the message behind it. Stages count as equal
/// (SliceProblem.h).
SliceCost costOf(const SliceTimes &times, const Load &load) {
  SliceCost cost;
  for (int stage = 0; stage < times.tables.stages(); ++stage) {
    cost.forward = std::max(cost.forward, times.tables.forward(stage, load));
    cost.backward = std::max(cost.backward, times.tables.backward(stage, load));
  }
  const double message = times.message(load);
  cost.forward += message;
  cost.backward += message;
  return cost;
}

/// The problem of the micro-batches of one replica. Samples that share a micro-batch are
/// bundles. `samples` and `lengths` get those of the mini-batch, by number in the problem.
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
  // A sample without tokens is in a bundle, which costs what its others do.
  for (int64_t length : lengths)
    problem.lengths.push_back(std::max<int64_t>(length, 1));
  problem.options.stages = times.tables.stages();
  problem.options.grain =
      dyna_round_rows((longest + mostUnits - 1) / mostUnits);
  problem.costs.slice = [&times](const SliceShape &shape) {
    return costOf(times, loadOf(TokenRange{shape.begin, shape.tokens},
                                TokenRange{0, shape.begin + shape.tokens}));
  };
  problem.costs.bundle = [&times](const std::vector<int64_t> &lengths, int) {
    Load load;
    for (int64_t length : lengths)
      load += loadOfSample(length);
    return costOf(times, load);
  };
  return problem;
}

/// Work of a token and of a visible pair, from the seconds of one slice: of short
/// samples, and of one with as many tokens behind as many others.
SliceWork workOf(const SliceTimes &times, int64_t tokens) {
  auto seconds = [&](int64_t context) {
    const SliceCost cost = costOf(
        times, loadOf(TokenRange{context, tokens}, {0, context + tokens}));
    return cost.forward + cost.backward;
  };
  const auto count = static_cast<double>(tokens);
  const double alone = seconds(0), behind = seconds(tokens);
  SliceWork work;
  // So many pairs come beside those of the slice's own tokens.
  work.perPair = std::max(0.0, (behind - alone) / (count * count));
  work.perToken =
      std::max(0.0, alone - work.perPair * count * (count + 1) / 2) / count;
  return work.perPair + work.perToken > 0 ? work : SliceWork();
}

/// `number` is that of the policy, and positive if it needs one.
StatusOr<SlicePlan> planBy(SlicePolicy policy, int64_t number,
                           const SliceProblem &problem,
                           const SliceTimes &times) {
  switch (policy) {
  case SlicePolicy::TeraPipe:
    return sliceByPaper(problem);
  case SlicePolicy::TeraCode:
    return sliceByPaperCode(problem);
  case SlicePolicy::Uniform:
    return sliceUniformly(problem, number);
  case SlicePolicy::Work:
    return sliceByWork(problem, number,
                       workOf(times, 8 * problem.options.grain));
  case SlicePolicy::Chunks: {
    ChunkOptions chunks;
    chunks.tokens = number;
    return sliceInChunks(problem, chunks);
  }
  default:
    return sliceTokens(problem);
  }
}

/// Returns the numbers that a policy without one is tried with: 1, 2, 4 ... slices of the
/// longest sample, or the largest chunk, half of it, a quarter ...
std::vector<int64_t> numbersOf(SlicePolicy policy, int64_t longest,
                               int64_t mostChunk) {
  constexpr int64_t mostSlices = 128, leastChunk = 512;
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

/// Adds the micro-batches of a plan for one replica. `samples` are those of the problem.
void addPlan(const SlicePlan &plan, const std::vector<int64_t> &samples,
             const std::vector<int64_t> &lengths, int replica,
             MicroBatches &sliced) {
  for (const SampleCut &cut : plan.cuts) {
    std::vector<int64_t> begins(cut.samples.size(), 0);
    for (const TokenSlice &slice : cut.slices) {
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
    if (choice.policy == SlicePolicy::Chunks)
      problem.options.grain = 1;
    if (lengths.empty())
      continue;
    DYNA_ASSIGN_OR_RETURN(SlicePlan plan,
                          planBy(choice, problem, times, mostChunk));
    addPlan(plan, samples, lengths, replica, sliced);
  }
  return sliced;
}

StatusOr<std::vector<MicroBatches>>
slicesByCost(const MicroBatches &microBatches, const SliceTimes &times,
             int replicas) {
  std::vector<MicroBatches> all;
  if (times.tables.stages() < 2)
    return all;
  int64_t largest = 0;
  for (const plan::MicroBatch &microBatch : microBatches)
    largest = std::max(largest, loadOf(microBatch).queries);
  if (largest < 2 * DYNA_ROW_ALIGNMENT)
    return all;
  SliceChoice exact;
  exact.policy = SlicePolicy::Exact;
  DYNA_ASSIGN_OR_RETURN(
      MicroBatches best,
      slicesByPolicy(microBatches, times, replicas, exact, largest));
  if (best.size() > microBatches.size())
    all.push_back(std::move(best));
  for (int64_t count = 2; count <= 2 * times.tables.stages() &&
                          largest / count >= DYNA_ROW_ALIGNMENT;
       count *= 2) {
    // Small micro-batches have fewer slices, none of them smaller than the rest.
    SliceChoice equal;
    equal.lengths = {dyna_round_rows((largest + count - 1) / count)};
    all.push_back(sliceMicroBatches(microBatches, equal));
  }
  return all;
}

} // namespace dyna
