//===- OrderChecker.cpp - Verifies the order on one rank (P3 to P5) -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/OrderChecker.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanRules.h"
#include "runtime/plan/verify/StageEdges.h"

#include <algorithm>
#include <unordered_map>

namespace dyna {

using plan::Instruction;

namespace {

/// State of a program: instructions that have passed, and those that may come
/// next.
class ProgramOrder final : public OrderChecker {
public:
  ProgramOrder(const RankView &view, const std::vector<int> &microBatches,
               Part part);

  Status step(const Instruction &i) override;
  Status finish() const override;

private:
  struct LayerState {
    plan::Recompute mode = plan::RECOMPUTE_NONE;
    bool recomputed = false;
    bool inputDone = false;
    bool weightDone = false;
    bool freed = false;
  };
  /// Messages of one edge: 0: not started, 1: started, 2: waited for.
  struct Messages {
    int activation = 0, gradient = 0;
  };
  struct Progress {
    bool loaded = false;
    bool evaluates = false;
    int forward = 0;  ///< the next layer of forward
    int backward = 0; ///< the next layer of backward, counting down
    std::vector<Messages>
        messages; ///< of incoming edges, then of outgoing ones
    std::vector<LayerState> layers;
  };
  /// State of the exchange of a layer's shared parameters.
  struct Exchange {
    std::vector<int> started; ///< slots
    bool isWaitedFor = false;
    bool isUnderWay() const { return !started.empty() && !isWaitedFor; }
  };
  struct Parameters {
    Exchange reduced, gathered;
    bool normed = false, updated = false, cast = false;
  };

  Status load(const Instruction &i);
  Status forward(const Instruction &i);
  Status recompute(const Instruction &i);
  Status backward(const Instruction &i);
  Status backwardWeight(const Instruction &i);
  Status free(const Instruction &i);
  Status message(const Instruction &i);
  Status parameters(const Instruction &i);
  Status gather(const Instruction &i);
  Status reduce(const Instruction &i);
  Status follow(const Instruction &i, Exchange &exchange) const;
  Status combine();
  Status checkNorms() const;
  Status checkGathered(int layer) const;
  Status checkNotGathering(int layer) const;
  Status checkGradients(const Instruction &i) const;
  Status checkReceived(const Progress &progress, int layer, bool isGradient,
                       const char *what) const;
  Progress &progress(const Instruction &i) {
    return progress_.at(i.microBatch);
  }
  LayerState &state(const Instruction &i) {
    return progress(i).layers[i.layer];
  }
  Status finishMicroBatch(int m) const;

  const RankView &view_;
  const std::vector<int> &microBatches_;
  const Part part_;
  std::unordered_map<int, Progress> progress_;
  std::vector<Parameters> parameters_; ///< by layer
  /// Edges of this rank's layers whose producer, or consumer, is on another stage.
  const std::vector<int> incoming_, outgoing_;
  bool combined_ = false;
  bool updating_ = false;
};

ProgramOrder::ProgramOrder(const RankView &view,
                           const std::vector<int> &microBatches, Part part)
    : view_(view), microBatches_(microBatches), part_(part),
      parameters_(view.layers()), incoming_(edgesOfStage(view, true)),
      outgoing_(edgesOfStage(view, false)) {
  for (int m : microBatches) {
    Progress &progress = progress_[m];
    progress.forward = view.firstLayer();
    progress.backward = view.endLayer() - 1;
    progress.layers.resize(view.layers());
    progress.messages.resize(incoming_.size() + outgoing_.size());
  }
}

Status ProgramOrder::step(const Instruction &i) {
  if (isPerMicroBatch(i.op) && progress_.count(i.microBatch) == 0)
    return refuse(PlanRule::Ordered,
                  "the micro-batch belongs to another replica");
  switch (exchangeOf(i.op).kind) {
  case ExchangeKind::Activation:
  case ExchangeKind::Gradient:
    return message(i);
  case ExchangeKind::Reduction:
    return reduce(i);
  case ExchangeKind::Gather:
    return gather(i);
  case ExchangeKind::ValueSwitch:
  case ExchangeKind::GradientSwitch:
    return part_.isPhase
               ? Status::ok() // StepVerifier.h checks it
               : refuse(PlanRule::Switched,
                        "a switch stands in a plan that is no phase of a step");
  case ExchangeKind::Norm:
  case ExchangeKind::None:
    break;
  }
  switch (i.op) {
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
  case Instruction::TAKE_KEYS:
  case Instruction::CLEAR_KEY_GRADS:
  case Instruction::FREE_KEYS:
    return Status::ok(); // SliceOrder.h checks it
  case Instruction::COMBINE_NORM:
    return combine();
  case Instruction::GRAD_NORM:
  case Instruction::UPDATE:
  case Instruction::CAST_PARAMS:
    return parameters(i);
  default:
    return refuse(PlanRule::Ordered,
                  "no rule says when this instruction may come");
  }
}

//===----------------------------------------------------------------------===//
// Micro-batches
//===----------------------------------------------------------------------===//

Status ProgramOrder::load(const Instruction &i) {
  Progress &progress = this->progress(i);
  if (progress.loaded)
    return refuse(PlanRule::Ordered, "loaded twice");
  progress.loaded = true;
  return Status::ok();
}

Status ProgramOrder::forward(const Instruction &i) {
  Progress &progress = this->progress(i);
  bool evaluates = i.op == Instruction::EVALUATE;
  if (!progress.loaded)
    return refuse(PlanRule::Ordered, "not loaded yet");
  DYNA_RETURN_IF_ERROR(checkReceived(progress, i.layer, false,
                                     "its input has not been received yet"));
  if (progress.forward > view_.firstLayer() && progress.evaluates != evaluates)
    return refuse(PlanRule::Ordered,
                  "a micro-batch is either trained on or evaluated");
  if (i.layer != progress.forward)
    return refuse(PlanRule::Ordered,
                  formatText("expects layer %d next", progress.forward));
  DYNA_RETURN_IF_ERROR(checkGathered(i.layer));
  progress.evaluates = evaluates;
  ++progress.forward;
  // A layer that runs forward alone is done.
  state(i).inputDone = state(i).weightDone =
      !evaluates && !view_.hasBackward(i.layer);
  state(i).mode = evaluates ? plan::RECOMPUTE_NONE : i.recompute;
  if (!evaluates &&
      nearestMode(view_.kind(i.layer), i.recompute) != i.recompute)
    return refuse(PlanRule::Recomputed,
                  "its layer kind has no recomputation of this mode");
  return Status::ok();
}

Status ProgramOrder::recompute(const Instruction &i) {
  LayerState &layer = state(i);
  if (progress(i).forward <= i.layer)
    return refuse(PlanRule::Recomputed, "recomputed before forward");
  if (layer.mode == plan::RECOMPUTE_NONE)
    return refuse(PlanRule::Recomputed,
                  "forward kept everything, there is nothing to recompute");
  if (i.recompute != layer.mode)
    return refuse(PlanRule::Recomputed,
                  "recomputed in another mode than forward's");
  if (layer.recomputed || layer.inputDone)
    return refuse(PlanRule::Recomputed, "recomputed twice or after backward");
  layer.recomputed = true;
  return Status::ok();
}

Status ProgramOrder::backward(const Instruction &i) {
  Progress &progress = this->progress(i);
  if (progress.evaluates || progress.forward != view_.endLayer())
    return refuse(PlanRule::Ordered,
                  formatText("only %d of %d layers have passed forward",
                             progress.evaluates
                                 ? 0
                                 : progress.forward - view_.firstLayer(),
                             view_.endLayer() - view_.firstLayer()));
  DYNA_RETURN_IF_ERROR(
      checkReceived(progress, i.layer, true,
                    "the gradient of its output has not been received yet"));
  if (i.layer != progress.backward)
    return refuse(PlanRule::Ordered,
                  progress.backward < view_.firstLayer()
                      ? std::string("backward is complete already")
                      : formatText("expects layer %d next", progress.backward));
  LayerState &layer = state(i);
  if (layer.mode != plan::RECOMPUTE_NONE && !layer.recomputed)
    return refuse(PlanRule::Recomputed, "not recomputed yet");
  --progress.backward;
  layer.inputDone = true;
  layer.weightDone = i.op == Instruction::BACKWARD;
  return Status::ok();
}

Status ProgramOrder::backwardWeight(const Instruction &i) {
  LayerState &layer = state(i);
  if (!layer.inputDone)
    return refuse(PlanRule::Ordered,
                  "BACKWARD_INPUT of this layer comes first");
  if (layer.weightDone)
    return refuse(PlanRule::Ordered, "the weight gradient was added already");
  layer.weightDone = true;
  return Status::ok();
}

Status ProgramOrder::free(const Instruction &i) {
  LayerState &layer = state(i);
  if (layer.freed)
    return refuse(PlanRule::Ordered, "freed twice");
  if (!layer.inputDone || !layer.weightDone)
    return refuse(PlanRule::Ordered, "freed before its backward is complete");
  layer.freed = true;
  return Status::ok();
}

/// Checks that all inputs of the layer from other stages, or gradients of its
/// outputs, have arrived.
Status ProgramOrder::checkReceived(const Progress &progress, int layer,
                                   bool isGradient, const char *what) const {
  const Model &model = view_.model();
  const std::vector<int> &edges = isGradient ? outgoing_ : incoming_;
  const size_t first = isGradient ? incoming_.size() : 0;
  for (size_t k = 0; k < edges.size(); ++k) {
    const Edge &edge = model.edge(edges[k]);
    const Messages &messages = progress.messages[first + k];
    if ((isGradient ? edge.producer : edge.consumer) == layer &&
        (isGradient ? messages.gradient : messages.activation) < 2)
      return refuse(PlanRule::Ordered, what);
  }
  return Status::ok();
}

Status ProgramOrder::message(const Instruction &i) {
  ExchangeOp op = exchangeOf(i.op);
  Progress &progress = this->progress(i);
  // An activation goes to the consumer's stage, a gradient comes from there.
  const bool isOutgoing = op.isTowardsConsumer();
  const std::vector<int> &edges = isOutgoing ? outgoing_ : incoming_;
  if (edges.empty())
    return refuse(PlanRule::Ordered, isOutgoing
                                         ? "there is no stage behind this one"
                                         : "there is no stage before this one");
  const auto found = std::find(edges.begin(), edges.end(), edgeOf(i));
  if (found == edges.end()) {
    std::string known;
    for (int edge : edges)
      known += formatText("%s%d", known.empty() ? "" : " or ", edge);
    return refuse(PlanRule::Ordered,
                  formatText("at this end of the stage lies layer %s", known));
  }
  if (op.isGradient() && !view_.model().hasGradient(edgeOf(i)))
    return refuse(PlanRule::Ordered, "the layer before takes no gradient");
  const size_t index =
      found - edges.begin() + (isOutgoing ? incoming_.size() : 0);
  Messages &messages = progress.messages[index];
  int &state = op.isGradient() ? messages.gradient : messages.activation;
  if (state != (op.starts ? 0 : 1))
    return refuse(PlanRule::Ordered, op.starts ? "started twice"
                                     : state == 0
                                         ? "waited for before it is started"
                                         : "waited for twice");
  ++state;
  const Edge &edge = view_.model().edge(edgeOf(i));
  if (op.sends && op.starts && !op.isGradient() &&
      progress.forward <= edge.producer)
    return refuse(PlanRule::Ordered, "sent before its forward");
  if (op.sends && op.starts && op.isGradient() &&
      progress.backward >= edge.consumer)
    return refuse(PlanRule::Ordered, "sent before its backward");
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Layers that use what another one updates see it gathered too.
Status ProgramOrder::checkGathered(int layer) const {
  if (!view_.zero() || part_.isSwitched)
    return Status::ok();
  for (int p : view_.layer(layer).parameters())
    if (view_.place(p).holders > 1 &&
        !parameters_[view_.owner(p)].gathered.isWaitedFor)
      return refuse(PlanRule::Updated,
                    "the rows of '" + view_.parameter(p).name() +
                        "' that other ranks updated are not gathered yet");
  return Status::ok();
}

/// Checks that a parameter has one exchange at a time, and that its rows are
/// written only after they were sent.
Status ProgramOrder::checkNotGathering(int layer) const {
  return parameters_[layer].gathered.isUnderWay()
             ? refuse(PlanRule::Updated,
                      "the rows of this layer are still being gathered")
             : Status::ok();
}

/// Follows exchanges. Each parameter starts once, alone or with all others of
/// its layer; the wait comes after all of them.
Status ProgramOrder::follow(const Instruction &i, Exchange &exchange) const {
  const bool gathers = exchangeOf(i.op).kind == ExchangeKind::Gather;
  const std::vector<int> shared = view_.sharedSlots(i.layer);
  if (!exchangeOf(i.op).starts) {
    if (exchange.started.empty() || exchange.isWaitedFor)
      return refuse(PlanRule::Updated, "not started, or waited for twice");
    if (exchange.started.size() < shared.size())
      return refuse(PlanRule::Updated,
                    formatText("waited for when %d of the %d parameters that "
                               "the layer shares are started",
                               exchange.started.size(), shared.size()));
    exchange.isWaitedFor = true;
    return Status::ok();
  }
  bool startsAny = false;
  for (int slot : shared) {
    if (!exchangesSlot(i, slot))
      continue;
    if (std::count(exchange.started.begin(), exchange.started.end(), slot) > 0)
      return refuse(PlanRule::Updated,
                    gathers ? "gathered twice" : "reduced twice");
    exchange.started.push_back(slot);
    startsAny = true;
  }
  return startsAny ? Status::ok()
                   : refuse(PlanRule::Updated,
                            formatText("this layer updates no parameter %d "
                                       "that other ranks have too",
                                       i.parameter));
}

Status ProgramOrder::gather(const Instruction &i) {
  if (part_.isSwitched)
    return refuse(PlanRule::Switched,
                  "values that come by a switch are not gathered");
  if (!view_.zero() || !view_.sharesParameters(i.layer))
    return refuse(PlanRule::Updated,
                  "this layer has no rows that other ranks update");
  if (parameters_[i.layer].reduced.isUnderWay())
    return refuse(PlanRule::Updated,
                  "the gradients of this layer are still being reduced");
  return follow(i, parameters_[i.layer].gathered);
}

/// Checks that all of the rank's micro-batches have added to the gradients that
/// the instruction uses.
Status ProgramOrder::checkGradients(const Instruction &i) const {
  const auto &own = view_.layer(i.layer).parameters();
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    const auto &list = view_.layer(l).parameters();
    bool adds = std::any_of(list.begin(), list.end(), [&](int p) {
      return view_.owner(p) == i.layer &&
             (i.parameter == 0 || own.Get(i.parameter - 1) == p);
    });
    if (!adds)
      continue;
    for (int m : microBatches_) {
      const Progress &progress = progress_.at(m);
      if (progress.evaluates)
        return refuse(
            PlanRule::Updated,
            formatText("micro-batch %d is only evaluated and gives no "
                       "gradient",
                       m));
      if (!progress.layers[l].weightDone)
        return refuse(PlanRule::Updated,
                      formatText("micro-batch %d has not added its gradient of "
                                 "layer %d yet",
                                 m, l));
    }
  }
  return Status::ok();
}

Status ProgramOrder::reduce(const Instruction &i) {
  if (!view_.sharesParameters(i.layer))
    return refuse(PlanRule::Updated,
                  "no other rank has the parameters that this layer updates");
  DYNA_RETURN_IF_ERROR(follow(i, parameters_[i.layer].reduced));
  if (!exchangeOf(i.op).starts)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(checkNotGathering(i.layer));
  return checkGradients(i);
}

Status ProgramOrder::combine() {
  if (part_.isSwitched)
    return refuse(PlanRule::Switched, "only home updates parameters");
  if (view_.ranks() == 1)
    return refuse(PlanRule::Updated,
                  "the only rank has no norms to combine with those of others");
  if (combined_)
    return refuse(PlanRule::Updated, "the norms are combined twice");
  if (updating_)
    return refuse(PlanRule::Updated, "the norms are combined after an update");
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l)
    if (view_.ownsParameters(l) && !parameters_[l].normed)
      return refuse(PlanRule::Updated,
                    formatText("the gradient norm of layer %d is missing", l));
  combined_ = true;
  return Status::ok();
}

/// Checks norms: a gradient that is not finite shows before the first update.
Status ProgramOrder::checkNorms() const {
  if (!part_.updates.needsNorms || combined_)
    return Status::ok();
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l)
    if (view_.ownsParameters(l) && !parameters_[l].normed)
      return refuse(
          PlanRule::Updated,
          formatText("updated without the gradient norm of layer %d: a "
                     "gradient that is not finite would spoil parameters and "
                     "optimizer state",
                     l));
  return view_.ranks() == 1
             ? Status::ok()
             : refuse(PlanRule::Updated,
                      "updated before the gradient norms of the ranks are "
                      "combined");
}

Status ProgramOrder::parameters(const Instruction &i) {
  int layer = i.layer;
  Parameters &own = parameters_[layer];
  if (!view_.ownsParameters(layer))
    return refuse(PlanRule::Updated, "this layer owns no parameters");
  if (part_.isSwitched)
    return refuse(PlanRule::Switched, "only home updates parameters");
  DYNA_RETURN_IF_ERROR(checkNotGathering(layer));
  if (i.op == Instruction::CAST_PARAMS) {
    if (own.cast)
      return refuse(PlanRule::Updated, "cast twice");
    own.cast = true;
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(checkGradients(i));
  if (view_.sharesParameters(layer) && !own.reduced.isWaitedFor)
    return refuse(PlanRule::Updated,
                  "the gradients of the ranks are not reduced yet");
  if (i.op == Instruction::GRAD_NORM) {
    if (updating_)
      return refuse(PlanRule::Updated, "a gradient norm after an update");
    if (own.normed)
      return refuse(PlanRule::Updated, "the norm of a layer twice");
    own.normed = true;
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(checkNorms());
  updating_ = true;
  if (own.updated)
    return refuse(PlanRule::Updated, "updated twice");
  own.updated = true;
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

Status ProgramOrder::finishMicroBatch(int m) const {
  const Progress &progress = progress_.at(m);
  int layers = view_.endLayer() - view_.firstLayer();
  if (progress.forward != view_.endLayer())
    return refuse(PlanRule::Ordered,
                  formatText("micro-batch %d passes %d of %d layers forward", m,
                             progress.forward - view_.firstLayer(), layers));
  bool trains = !progress.evaluates;
  for (int l = view_.firstLayer(); l < view_.endLayer() && trains; ++l) {
    if (!progress.layers[l].weightDone)
      return refuse(
          PlanRule::Ordered,
          formatText("micro-batch %d has no backward of layer %d", m, l));
    if (!progress.layers[l].freed)
      return refuse(PlanRule::Ordered,
                    formatText("the kept block of layer %d micro-batch %d is "
                               "never freed",
                               l, m));
  }
  for (size_t k = 0; k < outgoing_.size(); ++k)
    if (progress.messages[incoming_.size() + k].activation < 2)
      return refuse(
          PlanRule::Ordered,
          formatText("micro-batch %d: its activation is not sent, or the "
                     "send is never waited for",
                     m));
  for (size_t k = 0; k < incoming_.size() && trains; ++k)
    if (view_.model().hasGradient(incoming_[k]) &&
        progress.messages[k].gradient < 2)
      return refuse(PlanRule::Ordered,
                    formatText("micro-batch %d: its gradient is not sent, or "
                               "the send is never waited for",
                               m));
  return Status::ok();
}

Status ProgramOrder::finish() const {
  for (int m : microBatches_)
    DYNA_RETURN_IF_ERROR(finishMicroBatch(m));
  bool anyNorm = std::any_of(parameters_.begin(), parameters_.end(),
                             [](const Parameters &p) { return p.normed; });
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    const Parameters &own = parameters_[l];
    if (own.reduced.isUnderWay() || own.gathered.isUnderWay())
      return refuse(PlanRule::Updated,
                    formatText("an exchange of the parameters of layer %d is "
                               "never waited for",
                               l));
    if (!view_.ownsParameters(l))
      continue;
    const bool mustUpdate = part_.updates.mustUpdate && !part_.isSwitched;
    if (mustUpdate && !own.updated)
      return refuse(PlanRule::Updated,
                    formatText("layer %d is not updated: the gradients of the "
                               "step are lost",
                               l));
    if (updating_ && !own.updated)
      return refuse(PlanRule::Updated,
                    formatText("layer %d is not updated, but others are", l));
    if (anyNorm && !own.normed)
      return refuse(PlanRule::Updated,
                    formatText("the gradient norm of layer %d is missing", l));
  }
  if (anyNorm && view_.ranks() > 1 && !combined_)
    return refuse(PlanRule::Updated,
                  "the gradient norms of the ranks are not combined");
  return Status::ok();
}

} // namespace

std::unique_ptr<OrderChecker>
OrderChecker::create(const RankView &view, const std::vector<int> &microBatches,
                     Part part) {
  return std::make_unique<ProgramOrder>(view, microBatches, part);
}

} // namespace dyna
