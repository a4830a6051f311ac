//===- ProgramWriter.cpp - Writes the instructions of one rank ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/ProgramWriter.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

/// Parameters of several stages.
static std::vector<int> spanningParameters(const ExecutableGraph &graph) {
  std::vector<int> spanning;
  for (int p = 0; p < graph.model().parameters(); ++p)
    if (graph.spansStages(p))
      spanning.push_back(p);
  return spanning;
}

/// Layers of a rank that update these, in the order of the first of them.
static std::vector<int> layersOf(const std::vector<int> &parameters,
                                 const RankView &view) {
  std::vector<int> layers;
  for (int p : parameters)
    if (view.holds(p) &&
        std::find(layers.begin(), layers.end(), view.owner(p)) == layers.end())
      layers.push_back(view.owner(p));
  return layers;
}

/// Returns true if every stage that starts whole layers reaches the parameters
/// of several stages in the order of their numbers.
static bool areInOrderByLayers(const ExecutableGraph &graph,
                               const std::vector<int> &spanning) {
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    int last = -1;
    for (int layer : layersOf(spanning, view))
      for (int slot : view.sharedSlots(layer)) {
        const int p = view.layer(layer).parameters(slot);
        if (!graph.spansStages(p))
          continue;
        if (p < last)
          return false;
        last = p;
      }
  }
  return true;
}

/// Returns the number of parameter `p` in an instruction that exchanges it
/// alone.
static int numberIn(const RankView &view, int layer, int p) {
  const auto &list = view.layer(layer).parameters();
  return static_cast<int>(std::find(list.begin(), list.end(), p) -
                          list.begin()) +
         1;
}

ProgramWriter::ProgramWriter(const ExecutableGraph &graph,
                             const PlanChoice &choice, plan::Plan &plan,
                             int rank, const Bundles *bundles)
    : graph_(graph), view_(graph.replicaView(rank)), choice_(choice),
      program_(plan.ranks[rank]), bundles_(bundles),
      gathering_(view_.layers(), false) {
  const std::vector<int> spanning = spanningParameters(graph);
  if (spanning.size() < 2 || areInOrderByLayers(graph, spanning)) {
    for (int layer : layersOf(spanning, view_))
      spanning_.push_back({layer, 0});
    return;
  }
  for (int p : spanning)
    if (const int layer = view_.owner(p); view_.holds(p))
      spanning_.push_back({layer, numberIn(view_, layer, p)});
}

bool ProgramWriter::spansStages(int layer) const {
  return std::any_of(spanning_.begin(), spanning_.end(),
                     [&](const Spanning &one) { return one.layer == layer; });
}

void ProgramWriter::startSpanning(Instruction::Op op) {
  for (const Spanning &one : spanning_)
    add(op, one.layer, 0).parameter = one.parameter;
}

/// Starts the exchanges of what a layer shares inside its stage.
void ProgramWriter::startInStage(Instruction::Op op, int layer) {
  if (!spansStages(layer)) {
    add(op, layer, 0);
    return;
  }
  const bool isByLayer =
      std::all_of(spanning_.begin(), spanning_.end(),
                  [](const Spanning &one) { return one.parameter == 0; });
  if (isByLayer)
    return;
  for (int slot : view_.sharedSlots(layer))
    if (!graph_.spansStages(view_.layer(layer).parameters(slot)))
      add(op, layer, 0).parameter = slot + 1;
}

Instruction &ProgramWriter::add(Instruction::Op op, int layer, int microBatch) {
  Instruction &i = program_.instructions.emplace_back();
  i.op = op;
  i.layer = layer;
  i.microBatch = microBatch;
  return i;
}

plan::Recompute ProgramWriter::mode(int layer, int microBatch) const {
  return nearestMode(view_.kind(layer), choice_.modeOf(layer, microBatch));
}

//===----------------------------------------------------------------------===//
// Stores of slices
//===----------------------------------------------------------------------===//

bool ProgramWriter::storesKeys(int layer, int m) const {
  return bundles_ && bundles_->of(m).bundle >= 0 &&
         view_.kind(layer).key_bytes() > 0;
}

// The micro-batches of a bundle run forward in order, and backward in reverse.
bool ProgramWriter::isFirstOfBundle(int m) const {
  return bundles_->of(m).bundle == m;
}
bool ProgramWriter::isLastOfBundle(int m) const {
  return bundles_->of(m).last == m;
}

void ProgramWriter::takeKeys(int layer, int m) {
  if (storesKeys(layer, m) && isFirstOfBundle(m))
    add(Instruction::TAKE_KEYS, layer, m);
}

void ProgramWriter::clearKeyGradients(int layer, int m) {
  if (storesKeys(layer, m) && isLastOfBundle(m))
    add(Instruction::CLEAR_KEY_GRADS, layer, m);
}

void ProgramWriter::freeKeys(int layer, int m, bool isForward) {
  if (storesKeys(layer, m) &&
      (isForward ? isLastOfBundle(m) : isFirstOfBundle(m)))
    add(Instruction::FREE_KEYS, layer, m);
}

//===----------------------------------------------------------------------===//
// Micro-batches
//===----------------------------------------------------------------------===//

void ProgramWriter::forward(int m) {
  add(Instruction::LOAD, 0, m);
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    waitForGather(l);
    takeKeys(l, m);
    add(Instruction::FORWARD, l, m).recompute = mode(l, m);
    if (view_.hasBackward(l))
      continue;
    freeKeys(l, m, /*isForward=*/true);
    add(Instruction::FREE, l, m);
  }
}

bool ProgramWriter::splits(int layer) const {
  return splitsBackward(view_.kind(layer)) &&
         (choice_.splitBackward || !view_.hasRole(layer, DYNA_ROLE_BACKWARD));
}

/// Returns the layers whose weight gradients are left. With `last`, reductions of
/// those that nothing is left of start.
std::vector<int> ProgramWriter::inputGradients(int m, bool recomputed,
                                               bool last) {
  std::vector<int> weights;
  for (int l = view_.endLayer() - 1; l >= view_.firstLayer(); --l) {
    if (!view_.hasBackward(l))
      break; // nor does any layer before it
    if (mode(l, m) != plan::RECOMPUTE_NONE && !recomputed)
      add(Instruction::RECOMPUTE, l, m).recompute = mode(l, m);
    recomputed = false;
    clearKeyGradients(l, m);
    if (splits(l)) {
      add(Instruction::BACKWARD_INPUT, l, m);
      freeKeys(l, m, /*isForward=*/false);
      weights.push_back(l);
      continue;
    }
    add(Instruction::BACKWARD, l, m);
    freeKeys(l, m, /*isForward=*/false);
    add(Instruction::FREE, l, m);
    if (last && weights.empty())
      startReduction(l);
  }
  return weights;
}

void ProgramWriter::weightGradients(int m, const std::vector<int> &layers) {
  for (int l : layers) {
    add(Instruction::BACKWARD_WEIGHT, l, m);
    add(Instruction::FREE, l, m);
  }
}

void ProgramWriter::backward(int m, bool last) {
  std::vector<int> weights = inputGradients(m, false, last);
  weightGradients(m, weights);
  if (last && !weights.empty())
    startReductions(weights.front());
}

void ProgramWriter::recomputeFirst(int m) {
  int l = view_.endLayer() - 1;
  if (mode(l, m) != plan::RECOMPUTE_NONE)
    add(Instruction::RECOMPUTE, l, m).recompute = mode(l, m);
}

void ProgramWriter::backwardBehindRecompute(int m, bool last) {
  std::vector<int> weights = inputGradients(m, true, last);
  if (choice_.splitBackward)
    return;
  weightGradients(m, weights);
  if (last && !weights.empty())
    startReductions(weights.front());
}

void ProgramWriter::backwardWeights(int m, bool last) {
  std::vector<int> weights;
  for (int l = view_.endLayer() - 1; l >= view_.firstLayer(); --l)
    if (splits(l))
      weights.push_back(l);
  weightGradients(m, weights);
  if (last)
    startReductions(view_.endLayer() - 1);
}

void ProgramWriter::evaluate(int m) {
  add(Instruction::LOAD, 0, m);
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    waitForGather(l);
    takeKeys(l, m);
    add(Instruction::EVALUATE, l, m);
    freeKeys(l, m, /*isForward=*/true);
  }
}

/// Starts the reduction of a layer. A parameter that several layers use is
/// reduced with the layer that updates it. That is the first of the rank, which
/// backward reaches last.
void ProgramWriter::startReduction(int layer) {
  if (choice_.reduces() && view_.sharesParameters(layer))
    startInStage(Instruction::REDUCE_GRADS_START, layer);
}

/// Starts reductions from this layer down to the first one.
void ProgramWriter::startReductions(int layer) {
  for (int l = layer; l >= view_.firstLayer(); --l)
    startReduction(l);
}

void ProgramWriter::startReductions() { startReductions(view_.endLayer() - 1); }

void ProgramWriter::forOwners(Instruction::Op op, bool sharedOnly) {
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l)
    if (sharedOnly ? view_.sharesParameters(l) : view_.ownsParameters(l))
      add(op, l, 0);
}

void ProgramWriter::finishReductions() {
  startSpanning(Instruction::REDUCE_GRADS_START);
  forOwners(Instruction::REDUCE_GRADS_WAIT, true);
}

void ProgramWriter::update() {
  finishReductions();
  if (choice_.norms)
    forOwners(Instruction::GRAD_NORM, false);
  if (choice_.norms && view_.ranks() > 1)
    add(Instruction::COMBINE_NORM, 0, 0);
  forOwners(Instruction::UPDATE, false);
}

void ProgramWriter::startGathers() {
  if (!view_.zero() || choice_.switched)
    return;
  startSpanning(Instruction::GATHER_PARAMS_START);
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    gathering_[l] = view_.sharesParameters(l);
    if (gathering_[l])
      startInStage(Instruction::GATHER_PARAMS_START, l);
  }
}

/// Waits for the parameters of a layer. It may use those of another one, which
/// comes before it on this rank, and so does its forward.
void ProgramWriter::waitForGather(int layer) {
  if (gathering_[layer])
    add(Instruction::GATHER_PARAMS_WAIT, layer, 0);
  gathering_[layer] = false;
}

void ProgramWriter::finishGathers() {
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l)
    waitForGather(l);
}

void ProgramWriter::casts() {
  for (int l = view_.firstLayer(); l < view_.endLayer(); ++l) {
    bool copies = false;
    for (int slot = 0; slot < view_.layer(l).parameters_size(); ++slot)
      copies |= view_.updates(l, slot) &&
                view_.hasCopy(view_.layer(l).parameters(slot));
    if (copies)
      add(Instruction::CAST_PARAMS, l, 0);
  }
}

namespace {

/// Puts a rank's messages between its items; see PipelineSchedule.h.
class Interleaver {
public:
  Interleaver(const ExecutableGraph::Place &place,
              const PipelineSchedule &schedule,
              const std::vector<int> &microBatches, bool trains,
              ProgramWriter &writer)
      : place_(place), schedule_(schedule), microBatches_(microBatches),
        trains_(trains), writer_(writer) {
    for (const PipelineMessage &message : schedule.messages)
      if (message.from == place.stage || message.to == place.stage)
        messages_.push_back(&message);
  }

  void write() {
    if (writer_.isNaive())
      return writeNaive();
    const auto &items = schedule_.stages[place_.stage];
    for (size_t index = 0; index < items.size(); ++index) {
      const PipelineItem &item = items[index];
      startMessages(item.start);
      // At least one item is between the start of a send and its wait. If
      // stages run several short items beside a long one, the send ends when
      // the receiver takes it.
      waitForSends([&](const Sent &sent) {
        return sent.item < index &&
               (!writer_.waitsLate() || sent.message->taken <= item.start);
      });
      if (item.isBackward() && writer_.fillsGaps()) {
        writer_.recomputeFirst(microBatches_[item.microBatch]);
        startMessages(item.inputs);
      }
      waitForInput(item);
      writeItem(item, index + 1 == items.size());
      itemsDone_ = index + 1;
    }
    for (; next_ < messages_.size(); ++next_)
      start(*messages_[next_]);
    waitForSends([](const Sent &) { return true; });
  }

private:
  void writeNaive() {
    const auto &items = schedule_.stages[place_.stage];
    for (size_t index = 0; index < items.size(); ++index) {
      const PipelineItem &item = items[index];
      if (item.isBackward() && writer_.fillsGaps())
        writer_.recomputeFirst(microBatches_[item.microBatch]);
      forEachInput(item,
                   [&](const PipelineMessage &input) { addStart(input); });
      waitForInput(item);
      writeItem(item, index + 1 == items.size());
      if (item.kind == ItemKind::Weight)
        continue;
      const int stage = place_.stage;
      for (const StageLink &link : item.isForward()
                                       ? schedule_.graph.outOf(stage)
                                       : schedule_.graph.into(stage)) {
        if (item.isBackward() && !link.hasGradient)
          continue;
        const PipelineMessage sent = {
            stage, item.isForward() ? link.to : link.from, link.edge,
            item.microBatch, item.isBackward()};
        addStart(sent);
        waitForSend(sent);
      }
    }
  }

  struct Sent {
    const PipelineMessage *message;
    size_t item; ///< items done when it started
  };

  void startMessages(double until) {
    for (; next_ < messages_.size() && messages_[next_]->time <= until; ++next_)
      start(*messages_[next_]);
  }

  /// Adds the start of a message. Returns true if it is a send.
  bool addStart(const PipelineMessage &message) {
    bool sends = message.from == place_.stage;
    if (sends)
      add(message, message.gradient ? Instruction::SEND_GRAD_START
                                    : Instruction::SEND_ACT_START);
    else
      add(message, message.gradient ? Instruction::RECV_GRAD_START
                                    : Instruction::RECV_ACT_START);
    return sends;
  }

  void start(const PipelineMessage &message) {
    if (!addStart(message))
      return;
    if (writer_.waitsForSends())
      waitForSend(message);
    else
      sent_.push_back({&message, itemsDone_});
  }

  void waitForSend(const PipelineMessage &message) {
    add(message, message.gradient ? Instruction::SEND_GRAD_WAIT
                                  : Instruction::SEND_ACT_WAIT);
  }

  template <typename IsDue> void waitForSends(IsDue isDue) {
    size_t kept = 0;
    for (const Sent &sent : sent_)
      if (isDue(sent))
        waitForSend(*sent.message);
      else
        sent_[kept++] = sent;
    sent_.resize(kept);
  }

  /// Calls `use` with each message that an item runs after.
  template <typename Use>
  void forEachInput(const PipelineItem &item, Use use) const {
    schedule_.graph.forEachPredecessor(
        place_.stage, item.kind, item.microBatch, [&](const Predecessor &one) {
          if (one.link && (item.isForward() || one.link->hasGradient))
            use(PipelineMessage{one.stage, place_.stage, one.link->edge,
                                one.microBatch, item.isBackward()});
        });
  }

  void waitForInput(const PipelineItem &item) {
    forEachInput(item, [&](const PipelineMessage &input) {
      add(input, input.gradient ? Instruction::RECV_GRAD_WAIT
                                : Instruction::RECV_ACT_WAIT);
    });
  }

  void writeItem(const PipelineItem &item, bool last) {
    int m = microBatches_[item.microBatch];
    last &= writer_.reducesEarly();
    if (!trains_)
      writer_.evaluate(m);
    else if (item.isForward())
      writer_.forward(m);
    else if (item.kind == ItemKind::Weight)
      writer_.backwardWeights(m, last);
    else if (writer_.fillsGaps())
      writer_.backwardBehindRecompute(m, last);
    else
      writer_.backward(m, last);
  }

  void add(const PipelineMessage &message, Instruction::Op op) {
    writer_.add(op, message.edge, microBatches_[message.microBatch]);
  }

  const ExecutableGraph::Place &place_;
  const PipelineSchedule &schedule_;
  const std::vector<int> &microBatches_;
  const bool trains_;
  ProgramWriter &writer_;
  std::vector<const PipelineMessage *> messages_;
  std::vector<Sent> sent_;
  size_t next_ = 0;
  size_t itemsDone_ = 0;
};

} // namespace

void writeSchedule(const ExecutableGraph::Place &place,
                   const PipelineSchedule &schedule,
                   const std::vector<int> &microBatches, bool trains,
                   ProgramWriter &writer) {
  Interleaver(place, schedule, microBatches, trains, writer).write();
}

} // namespace dyna
