//===- PlanVerifier.cpp - The proof of a plan -----------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanVerifier.h"

#include "runtime/plan/InstructionBlocks.h"
#include "runtime/plan/Text.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dyna {
namespace {

using plan::Instruction;

Status bad(const std::string &what) {
  return Status::invalidArgument("plan: " + what);
}

long long asLong(int64_t value) { return static_cast<long long>(value); }

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// P2.
Status checkSegments(const plan::Plan &plan,
                     const std::vector<int64_t> &lengths) {
  std::vector<char> seen(lengths.size(), 0);
  for (int m = 0; m < plan.micro_batches_size(); ++m) {
    int64_t tokens = 0;
    for (const plan::Segment &segment : plan.micro_batches(m).segments()) {
      int64_t sample = segment.sample();
      if (sample < 0 || sample >= static_cast<int64_t>(lengths.size()))
        return bad(formatText("micro-batch %d names sample %lld of %zu", m,
                              asLong(sample), lengths.size()));
      if (segment.begin() < 0 || segment.length() < 0 ||
          segment.length() > lengths[sample] ||
          segment.begin() > lengths[sample] - segment.length())
        return bad(formatText("micro-batch %d takes tokens [%lld, +%lld) of "
                              "sample %lld, which has %lld",
                              m, asLong(segment.begin()),
                              asLong(segment.length()), asLong(sample),
                              asLong(lengths[sample])));
      if (segment.length() != lengths[sample])
        return bad(formatText("micro-batch %d takes a part of sample %lld: "
                              "slices are not supported yet",
                              m, asLong(sample)));
      if (seen[sample])
        return bad(formatText("sample %lld is in two segments, the second in "
                              "micro-batch %d",
                              asLong(sample), m));
      seen[sample] = 1;
      tokens += segment.length();
    }
    if (tokens > maxMicroBatchTokens)
      return bad(formatText("micro-batch %d has %lld tokens, at most %lld are "
                            "possible",
                            m, asLong(tokens), asLong(maxMicroBatchTokens)));
  }
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (!seen[sample])
      return bad(formatText("sample %zu is in no micro-batch", sample));
  return Status::ok();
}

/// Layers and micro-batches in range, functions present.
Status checkInstructions(const ManifestView &view, const plan::Plan &plan,
                         const plan::RankProgram &program) {
  for (int index = 0; index < program.instructions_size(); ++index) {
    const Instruction &i = program.instructions(index);
    std::string where = formatText("instruction %d (%s)", index,
                                   describeInstruction(i).c_str());
    if (i.op() <= Instruction::OP_UNKNOWN || i.op() > Instruction::EVALUATE)
      return bad(where + " is not known");
    if (i.layer() < 0 || i.layer() >= view.layers())
      return bad(
          formatText("%s: there are %d layers", where.c_str(), view.layers()));
    bool needsMicroBatch = i.op() != Instruction::GRAD_NORM &&
                           i.op() != Instruction::UPDATE &&
                           i.op() != Instruction::CAST_PARAMS;
    if (needsMicroBatch &&
        (i.micro_batch() < 0 || i.micro_batch() >= plan.micro_batches_size()))
      return bad(formatText("%s: there are %d micro-batches", where.c_str(),
                            plan.micro_batches_size()));
    if (i.recompute() < plan::RECOMPUTE_NONE ||
        i.recompute() > plan::RECOMPUTE_FULL)
      return bad(where + ": unknown recompute mode");
    if (int role = roleOf(i); role >= 0 && !view.hasRole(i.layer(), role))
      return bad(where + ": its layer kind '" + view.kind(i.layer()).name() +
                 "' has no such function");
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Follows every micro-batch through the layers (P3, P4) and the parameters
/// through their update (P5).
class OrderChecker {
public:
  OrderChecker(const ManifestView &view, const plan::Plan &plan)
      : view_(view), progress_(plan.micro_batches_size()),
        norms_(view.layers(), 0), updates_(view.layers(), 0),
        casts_(view.layers(), 0) {
    for (Progress &progress : progress_)
      progress.layers.resize(view.layers());
  }

  Status step(const Instruction &i) {
    switch (i.op()) {
    case Instruction::LOAD:
      return load(i);
    case Instruction::FORWARD:
    case Instruction::EVALUATE:
      return forward(i);
    case Instruction::RECOMPUTE:
      return recompute(i);
    case Instruction::BACKWARD:
    case Instruction::BACKWARD_INPUT:
      return backward(i);
    case Instruction::BACKWARD_WEIGHT:
      return backwardWeight(i);
    case Instruction::FREE:
      return free(i);
    default:
      return parameters(i);
    }
  }

  Status finish() const;

private:
  struct LayerState {
    plan::Recompute mode = plan::RECOMPUTE_NONE;
    bool recomputed = false;
    bool inputDone = false;
    bool weightDone = false;
    bool freed = false;
  };
  struct Progress {
    bool loaded = false;
    bool evaluates = false;
    int forward = 0;   ///< layers that have passed forward
    int backward = -1; ///< the next layer of backward; -1 after layer 0
    std::vector<LayerState> layers;
  };

  Status fail(const std::string &what) const { return bad(what); }
  Status load(const Instruction &i);
  Status forward(const Instruction &i);
  Status recompute(const Instruction &i);
  Status backward(const Instruction &i);
  Status backwardWeight(const Instruction &i);
  Status free(const Instruction &i);
  Status parameters(const Instruction &i);
  LayerState &state(const Instruction &i) {
    return progress_[i.micro_batch()].layers[i.layer()];
  }

  const ManifestView &view_;
  std::vector<Progress> progress_;
  std::vector<int> norms_, updates_, casts_;
  bool gradientsComplete_ = false;
  bool updating_ = false;
};

Status OrderChecker::load(const Instruction &i) {
  Progress &progress = progress_[i.micro_batch()];
  if (progress.loaded)
    return fail("loaded twice");
  progress.loaded = true;
  progress.backward = view_.layers() - 1;
  return Status::ok();
}

Status OrderChecker::forward(const Instruction &i) {
  Progress &progress = progress_[i.micro_batch()];
  bool evaluates = i.op() == Instruction::EVALUATE;
  if (!progress.loaded)
    return fail("not loaded yet");
  if (progress.forward > 0 && progress.evaluates != evaluates)
    return fail("a micro-batch is either trained on or evaluated");
  if (i.layer() != progress.forward)
    return fail(formatText("expects layer %d next", progress.forward));
  progress.evaluates = evaluates;
  ++progress.forward;
  state(i).mode = evaluates ? plan::RECOMPUTE_NONE : i.recompute();
  if (!evaluates &&
      view_.nearestMode(i.layer(), i.recompute()) != i.recompute())
    return fail("its layer kind has no recomputation of this mode");
  return Status::ok();
}

Status OrderChecker::recompute(const Instruction &i) {
  LayerState &layer = state(i);
  if (progress_[i.micro_batch()].forward <= i.layer())
    return fail("recomputed before forward");
  if (layer.mode == plan::RECOMPUTE_NONE)
    return fail("forward kept everything, there is nothing to recompute");
  if (i.recompute() != layer.mode)
    return fail("recomputed in another mode than forward's");
  if (layer.recomputed || layer.inputDone)
    return fail("recomputed twice or after backward");
  layer.recomputed = true;
  return Status::ok();
}

Status OrderChecker::backward(const Instruction &i) {
  Progress &progress = progress_[i.micro_batch()];
  if (progress.evaluates || progress.forward != view_.layers())
    return fail(formatText("only %d of %d layers have passed forward",
                           progress.evaluates ? 0 : progress.forward,
                           view_.layers()));
  if (i.layer() != progress.backward)
    return fail(progress.backward < 0
                    ? std::string("backward is complete already")
                    : formatText("expects layer %d next", progress.backward));
  LayerState &layer = state(i);
  if (layer.mode != plan::RECOMPUTE_NONE && !layer.recomputed)
    return fail("not recomputed yet");
  --progress.backward;
  layer.inputDone = true;
  layer.weightDone = i.op() == Instruction::BACKWARD;
  return Status::ok();
}

Status OrderChecker::backwardWeight(const Instruction &i) {
  LayerState &layer = state(i);
  if (!layer.inputDone)
    return fail("BACKWARD_INPUT of this layer comes first");
  if (layer.weightDone)
    return fail("the weight gradient was added already");
  layer.weightDone = true;
  return Status::ok();
}

Status OrderChecker::free(const Instruction &i) {
  LayerState &layer = state(i);
  if (layer.freed)
    return fail("freed twice");
  if (!layer.inputDone || !layer.weightDone)
    return fail("freed before its backward is complete");
  layer.freed = true;
  return Status::ok();
}

Status OrderChecker::parameters(const Instruction &i) {
  int layer = i.layer();
  if (!view_.ownsParameters(layer))
    return fail("this layer owns no parameters");
  if (i.op() == Instruction::CAST_PARAMS) {
    if (++casts_[layer] > 1)
      return fail("cast twice");
    return Status::ok();
  }
  // Once complete, gradients stay so: a second backward is refused above.
  for (size_t m = 0; m < progress_.size() && !gradientsComplete_; ++m) {
    const Progress &progress = progress_[m];
    for (int l = 0; l < view_.layers(); ++l)
      if (!progress.evaluates && !progress.layers[l].weightDone)
        return fail(formatText("micro-batch %zu has not added its gradient of "
                               "layer %d yet",
                               m, l));
  }
  gradientsComplete_ = true;
  if (i.op() == Instruction::GRAD_NORM) {
    if (updating_)
      return fail("a gradient norm after an update");
    if (++norms_[layer] > 1)
      return fail("the norm of a layer twice");
    return Status::ok();
  }
  updating_ = true;
  if (++updates_[layer] > 1)
    return fail("updated twice");
  return Status::ok();
}

Status OrderChecker::finish() const {
  for (size_t m = 0; m < progress_.size(); ++m) {
    const Progress &progress = progress_[m];
    if (progress.forward != view_.layers())
      return bad(formatText("micro-batch %zu passes %d of %d layers forward", m,
                            progress.forward, view_.layers()));
    for (int l = 0; l < view_.layers() && !progress.evaluates; ++l) {
      if (!progress.layers[l].weightDone)
        return bad(
            formatText("micro-batch %zu has no backward of layer %d", m, l));
      if (!progress.layers[l].freed)
        return bad(formatText("the kept block of layer %d micro-batch %zu is "
                              "never freed",
                              l, m));
    }
  }
  bool anyNorm = *std::max_element(norms_.begin(), norms_.end()) > 0;
  for (int l = 0; l < view_.layers(); ++l) {
    if (!view_.ownsParameters(l))
      continue;
    if (updating_ && updates_[l] == 0)
      return bad(formatText("layer %d is not updated, but others are", l));
    if (anyNorm && norms_[l] == 0)
      return bad(formatText("the gradient norm of layer %d is missing", l));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The blocks alive, by offset (P6, P7).
class MemoryChecker {
public:
  MemoryChecker(const InstructionBlocks &blocks, int64_t bytes)
      : blocks_(blocks), bytes_(bytes) {}

  Status step(int index, const Instruction &i) {
    std::vector<BlockUse> uses = blocks_.uses(index);
    // First what is there, then what is new, then what goes: an instruction's
    // operands are all alive while it runs.
    for (const BlockUse &use : uses)
      if (!use.acquires)
        DYNA_RETURN_IF_ERROR(find(use, i));
    for (const BlockUse &use : uses)
      if (use.acquires)
        DYNA_RETURN_IF_ERROR(acquire(use, i));
    for (const BlockUse &use : uses)
      if (use.releases)
        release(use);
    return Status::ok();
  }

  Status finish() const {
    if (alive_.empty())
      return Status::ok();
    return bad("the " + name(alive_.begin()->second.key) +
               " is never given back");
  }

private:
  using Key = std::tuple<BlockKind, int, int>;
  struct Alive {
    Key key;
    int64_t end;
  };

  static Key keyOf(const BlockUse &use) {
    return {use.kind, use.microBatch, use.layer};
  }
  static std::string name(const Key &key) {
    auto [kind, microBatch, layer] = key;
    std::string text = formatText("%s block", blockKindName(kind));
    if (layer >= 0)
      text += formatText(" of layer %d", layer);
    if (microBatch >= 0)
      text += formatText(layer >= 0 ? " micro-batch %d" : " of micro-batch %d",
                         microBatch);
    return text;
  }

  Status find(const BlockUse &use, const Instruction &i) const {
    int64_t offset = offsetOf(i, use.field);
    auto place = places_.find(keyOf(use));
    if (place == places_.end())
      return bad("the " + name(keyOf(use)) + " is used but is not there");
    if (place->second != offset)
      return bad(formatText("the %s is used at offset %lld, but lies at %lld",
                            name(keyOf(use)).c_str(), asLong(offset),
                            asLong(place->second)));
    return Status::ok();
  }

  Status acquire(const BlockUse &use, const Instruction &i) {
    int64_t begin = offsetOf(i, use.field);
    if (begin < 0 || begin % DYNA_BLOCK_ALIGNMENT != 0)
      return bad(formatText("the %s lies at offset %lld, which is negative or "
                            "not a multiple of %d",
                            name(keyOf(use)).c_str(), asLong(begin),
                            DYNA_BLOCK_ALIGNMENT));
    if (use.bytes > bytes_ || begin > bytes_ - use.bytes)
      return bad(formatText("the %s, %lld bytes at offset %lld, ends past the "
                            "region of %lld bytes",
                            name(keyOf(use)).c_str(), asLong(use.bytes),
                            asLong(begin), asLong(bytes_)));
    int64_t end = begin + use.bytes;
    auto next = alive_.lower_bound(begin);
    if (next != alive_.end() && next->first < end)
      return overlap(use, begin, next->second.key, next->first);
    if (next != alive_.begin() && std::prev(next)->second.end > begin)
      return overlap(use, begin, std::prev(next)->second.key,
                     std::prev(next)->first);
    if (!places_.emplace(keyOf(use), begin).second)
      return bad("the " + name(keyOf(use)) + " is taken twice");
    alive_.emplace(begin, Alive{keyOf(use), end});
    return Status::ok();
  }

  static Status overlap(const BlockUse &use, int64_t begin, const Key &other,
                        int64_t otherBegin) {
    return bad(formatText("the %s at offset %lld overlaps the %s at offset "
                          "%lld, which is in use",
                          name(keyOf(use)).c_str(), asLong(begin),
                          name(other).c_str(), asLong(otherBegin)));
  }

  void release(const BlockUse &use) {
    auto place = places_.find(keyOf(use));
    alive_.erase(place->second);
    places_.erase(place);
  }

  const InstructionBlocks &blocks_;
  const int64_t bytes_;
  std::map<int64_t, Alive> alive_;
  std::map<Key, int64_t> places_;
};

/// "plan: instruction 4 (FORWARD ...): what".
Status atInstruction(Status status, int index, const Instruction &i) {
  if (status.isOk())
    return status;
  std::string what = status.message().substr(std::string("plan: ").size());
  return bad(formatText("instruction %d (%s): %s", index,
                        describeInstruction(i).c_str(), what.c_str()));
}

} // namespace

Status verifyPlan(const ManifestView &view, const plan::Plan &plan,
                  const std::vector<int64_t> &lengths,
                  const VerifyOptions &options) {
  if (plan.manifest_hash() != view.hash())
    return bad(formatText("made for model %016llx, but this is %016llx",
                          static_cast<unsigned long long>(plan.manifest_hash()),
                          static_cast<unsigned long long>(view.hash())));
  if (plan.ranks_size() != 1)
    return bad(formatText("expects one rank, but has %d", plan.ranks_size()));
  const plan::RankProgram &program = plan.ranks(0);
  if (program.dynamic_bytes() < 0 ||
      program.dynamic_bytes() > options.dynamicLimit)
    return bad(formatText("needs %lld bytes, but the limit is %lld",
                          asLong(program.dynamic_bytes()),
                          asLong(options.dynamicLimit)));
  DYNA_RETURN_IF_ERROR(checkSegments(plan, lengths));
  DYNA_RETURN_IF_ERROR(checkInstructions(view, plan, program));

  OrderChecker order(view, plan);
  InstructionBlocks blocks(view, plan, program);
  MemoryChecker memory(blocks, program.dynamic_bytes());
  for (int index = 0; index < program.instructions_size(); ++index) {
    const Instruction &i = program.instructions(index);
    if (Status status = order.step(i); !status.isOk())
      return atInstruction(std::move(status), index, i);
    if (Status status = memory.step(index, i); !status.isOk())
      return atInstruction(std::move(status), index, i);
  }
  DYNA_RETURN_IF_ERROR(order.finish());
  return memory.finish();
}

} // namespace dyna
