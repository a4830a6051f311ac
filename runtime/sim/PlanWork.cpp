//===- PlanWork.cpp - Collects costs of the instructions of plans ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanWork.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace dyna {

using plan::Instruction;

/// Finds the parts that the instructions of a step name.
class PlanWork::Parts {
public:
  explicit Parts(int ranks) : ranks_(static_cast<size_t>(ranks)) {}

  void add(PlanWork &work, const std::vector<PlannedPhase> &phases) {
    auto messages = std::make_shared<SwitchMessages>();
    for (size_t k = 0; k < phases.size(); ++k)
      for (const bool ofGradients : {false, true}) {
        firstBucket_.push_back(static_cast<int>(messages->buckets.size()));
        const GraphSwitch *made =
            ofGradients ? phases[k].gradients : phases[k].values;
        if (!made)
          continue;
        messages->add(made->tensors, made->plan, static_cast<int>(ranks_));
        for (int b = 0; b < made->buckets(); ++b)
          work.buckets_.push_back({static_cast<int>(k), b, ofGradients});
      }
    partOf_.assign(messages->buckets.size() * ranks_, -1);
    work.addParts(std::move(messages));
    for (int part = 0; part < work.parts(); ++part)
      partOf_[static_cast<size_t>(work.bucketOf(part)) * ranks_ +
              static_cast<size_t>(work.switches_->parts[part].rank)] = part;
  }

  int find(const Instruction &i, int rank) const {
    const bool ofGradients =
        exchangeOf(i.op).kind == ExchangeKind::GradientSwitch;
    const int bucket =
        firstBucket_[2 * i.phase + (ofGradients ? 1 : 0)] + i.bucket;
    return partOf_[static_cast<size_t>(bucket) * ranks_ +
                   static_cast<size_t>(rank)];
  }

private:
  const size_t ranks_;
  std::vector<int> firstBucket_; ///< [phase][values, gradients]
  std::vector<int> partOf_;      ///< [bucket][rank]; -1: it has none
};

class PlanWork::Writer {
public:
  /// `parts` is null for a plan alone: switches then take no time.
  Writer(PlanWork &work, const ExecutableGraph &graph, const plan::Plan &plan,
         const CostModel &costs, const Parts *parts)
      : work_(work), graph_(graph), plan_(plan), costs_(costs),
        cluster_(costs.cluster()), strategy_(graph.strategy()), parts_(parts),
        firstLine_(work.lines_) {
    for (int number = 1; number <= Instruction::Op_MAX; ++number)
      exchanges_[number] = exchangeOf(static_cast<Instruction::Op>(number));
    int64_t tokens = 0;
    for (const plan::MicroBatch &microBatch : plan.microBatches) {
      loads_.push_back(loadOf(microBatch));
      tokens += loads_.back().queries;
    }
    // The plan is not verified here: it may give no targets, or too many.
    if (plan.targetTokens > 0 && plan.targetTokens < tokens)
      targetShare_ =
          static_cast<double>(plan.targetTokens) / static_cast<double>(tokens);
    // A plan gives the number of tokens with targets, but not which tokens they
    // are.
    for (Load &load : loads_)
      load.targets =
          std::llround(targetShare_ * static_cast<double>(load.queries));
    numberChannels();
    messages_.assign(static_cast<size_t>(plan.microBatchCount()) *
                         graph.crossingEdges().size() * 2 * strategy_.tp,
                     none);
    meetings_.resize(static_cast<size_t>(graph.replicas()) * graph.stages());
    parameterLists_.resize(graph.ranksPerReplica());
    shared_.resize(
        2 * graph.holderGroups().size() * (graph.model().layers() + 1), none);
    groups_.resize(graph.holderGroups().size());
    work.lines_ += messageLines() + static_cast<int>(groups_.size());
  }

  void write(int rank) {
    enter(rank);
    for (const Instruction &i : plan_.ranks[rank].instructions)
      add(i);
  }

  /// Transfers in the order in which they were added.
  std::vector<int> added;

private:
  static constexpr int none = -1;
  static constexpr double unknown = -1;

  void enter(int rank) {
    rank_ = rank;
    place_ = graph_.placeOf(rank);
    view_ = &graph_.replicaView(rank);
    calls_ = norms_ = 0;
    started_.clear();
    std::vector<int> shards = graph_.compiledGroup(rank, DYNA_GROUP_TP);
    perNode_ = cluster_.shapeOf(shards).perNode;
    seconds_ = &secondsOf_[perNode_];
    if (seconds_->empty())
      seconds_->assign((loads_.size() + 1) * variants() * directions, unknown);
  }

  size_t variants() const { return static_cast<size_t>(costs_.variants()); }

  void add(const Instruction &i) {
    const ExchangeOp &op = exchanges_[i.op];
    switch (op.kind) {
    case ExchangeKind::None:
      return run(i);
    case ExchangeKind::Norm:
      return meet(norms_++, normMeetings_, PlannedTransfer::Kind::Norm, 0);
    case ExchangeKind::ValueSwitch:
    case ExchangeKind::GradientSwitch:
      if (!parts_)
        step(Step::Kind::Run);
      else
        use(step(op.starts ? Step::Kind::Start : Step::Kind::Wait),
            parts_->find(i, rank_));
      return;
    case ExchangeKind::Activation:
    case ExchangeKind::Gradient:
      return addMessage(i, op);
    default:
      return addParameters(i, op);
    }
  }

  Step &step(Step::Kind kind, double seconds = 0) {
    Step step;
    step.kind = kind;
    step.seconds = seconds + costs_.table().device().instruction_seconds();
    step.first = static_cast<int>(work_.uses_.size());
    work_.steps_.push_back(step);
    return work_.steps_.back();
  }

  void use(Step &step, int transfer) {
    work_.uses_.push_back(transfer);
    ++step.count;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  void run(const Instruction &i) {
    const int role = roleOf(i);
    if (role < 0) {
      step(Step::Kind::Run);
      return;
    }
    double seconds = secondsOf(i, role);
    if (strategy_.tp == 1 || view_->exchanges(i.layer, role).empty()) {
      step(Step::Kind::Run, seconds);
      return;
    }
    // All shards of a stage run the same calls in the same order.
    meet(calls_++, meetings_[place_.replica * graph_.stages() + place_.stage],
         PlannedTransfer::Kind::Call, seconds);
  }

  double secondsOf(const Instruction &i, int role) {
    cost::Direction direction = directionOf(role);
    if (direction == cost::DIRECTION_UNKNOWN)
      return 0;
    const KindAt at = costs_.at(i.layer, strategy_, perNode_);
    const bool isOfParameters = !isPerMicroBatch(i.op);
    const size_t row = isOfParameters ? loads_.size() : i.microBatch;
    double &known = (*seconds_)[(row * variants() + costs_.variantOf(i.layer)) *
                                    directions +
                                direction];
    if (known == unknown)
      known = costs_.seconds(at, direction,
                             isOfParameters ? Load() : loads_[i.microBatch]);
    return isOfParameters ? known * updatedShare(i.layer) : known;
  }

  /// Returns this rank's share of the rows that the layer updates (ZeRO). The
  /// graph's views of all ranks give the same, but they cost more time than
  /// everything else here.
  double updatedShare(int layer) const {
    if (!strategy_.zero)
      return 1;
    double updated = 0, all = 0;
    const auto &list = view_->layer(layer).parameters();
    for (int slot = 0; slot < list.size(); ++slot)
      if (view_->updates(layer, slot)) {
        const int p = list.Get(slot);
        auto [index, holders] = graph_.holderIndex(p, rank_);
        int64_t rows = partBegin(view_->rows(p), holders, index + 1) -
                       partBegin(view_->rows(p), holders, index);
        updated += static_cast<double>(rows * view_->rowElements(p));
        all += static_cast<double>(view_->elements(p));
      }
    return all > 0 ? updated / all : 0;
  }

  /// Adds the `nth` meeting of those ranks.
  void meet(int nth, std::vector<int> &meetings, PlannedTransfer::Kind kind,
            double seconds) {
    if (nth == static_cast<int>(meetings.size())) {
      PlannedTransfer transfer;
      transfer.kind = kind;
      // A norm is the sum of the squares of all layers over all ranks.
      if (kind == PlannedTransfer::Kind::Norm)
        setSeconds(transfer, plan::LayerExchange::ALL_REDUCE,
                   8 * graph_.model().layers(), ranksOf(kind));
      if (nth == 0)
        setParties(transfer, ranksOf(kind));
      else {
        transfer.firstParty = work_.transfers_[meetings[0]].firstParty;
        transfer.parties = work_.transfers_[meetings[0]].parties;
      }
      meetings.push_back(addTransfer(transfer));
    }
    use(step(Step::Kind::Meet, seconds), meetings[nth]);
  }

  std::vector<int> ranksOf(PlannedTransfer::Kind kind) const {
    if (kind == PlannedTransfer::Kind::Call)
      return graph_.compiledGroup(rank_, DYNA_GROUP_TP);
    std::vector<int> all(plan_.rankCount());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  //===--------------------------------------------------------------------===//
  // Transfers
  //===--------------------------------------------------------------------===//

  int addTransfer(const PlannedTransfer &transfer) {
    work_.transfers_.push_back(transfer);
    added.push_back(static_cast<int>(work_.transfers_.size()) - 1);
    return added.back();
  }

  void setParties(PlannedTransfer &transfer, const std::vector<int> &ranks) {
    transfer.firstParty = static_cast<int>(work_.parties_.size());
    transfer.parties = static_cast<int>(ranks.size());
    work_.parties_.insert(work_.parties_.end(), ranks.begin(), ranks.end());
  }

  void setSeconds(PlannedTransfer &transfer, plan::LayerExchange::Kind kind,
                  int64_t bytes, const std::vector<int> &ranks) const {
    GroupShape shape = cluster_.shapeOf(ranks);
    transfer.bytes = bytes;
    transfer.leavesNode = shape.perNode < shape.ranks;
    transfer.latency = cluster_.exchangeSeconds(kind, 0, shape);
    transfer.seconds =
        cluster_.exchangeSeconds(kind, static_cast<double>(bytes), shape);
  }

  /// Numbers the stages that each stage sends activations, or gradients, to.
  void numberChannels() {
    channels_.resize(graph_.model().edges());
    std::map<std::pair<bool, int>, std::vector<int>> receivers;
    const std::vector<int> &crossing = graph_.crossingEdges();
    for (size_t k = 0; k < crossing.size(); ++k) {
      const ExecutableGraph::Ends &ends = graph_.endsOf(crossing[k]);
      Channels &channels = channels_[crossing[k]];
      channels.crossing = static_cast<int>(k);
      for (const bool isGradient : {false, true}) {
        const int from = isGradient ? ends.consumer : ends.producer;
        const int to = isGradient ? ends.producer : ends.consumer;
        std::vector<int> &known = receivers[{isGradient, from}];
        const auto found = std::find(known.begin(), known.end(), to);
        const int number = static_cast<int>(found - known.begin());
        (isGradient ? channels.gradient : channels.activation) = number;
        if (found == known.end())
          known.push_back(to);
        mostReceivers_ = std::max(mostReceivers_, number + 1);
      }
    }
  }

  /// Returns the number of lines of messages. A rank has a line for each
  /// direction and each stage that it sends to. Lines of groups follow.
  int messageLines() const { return 2 * mostReceivers_ * plan_.rankCount(); }

  void addMessage(const Instruction &i, const ExchangeOp &op) {
    const size_t edges = graph_.crossingEdges().size();
    int &known = messages_[((static_cast<size_t>(i.microBatch) * edges +
                             channels_[edgeOf(i)].crossing) *
                                2 +
                            (op.isGradient() ? 1 : 0)) *
                               strategy_.tp +
                           place_.shard];
    if (known == none)
      known = makeMessage(i, op);
    use(step(op.starts ? Step::Kind::Start : Step::Kind::Wait), known);
  }

  int makeMessage(const Instruction &i, const ExchangeOp &op) {
    const int edge = edgeOf(i);
    const int peer = graph_.peerOf(rank_, edge, op.isTowardsConsumer());
    const int from = op.sends ? rank_ : peer, to = op.sends ? peer : rank_;
    PlannedTransfer message;
    message.kind = op.isGradient() ? PlannedTransfer::Kind::Gradient
                                   : PlannedTransfer::Kind::Activation;
    message.layer = graph_.model().edge(edge).consumer;
    message.microBatch = i.microBatch;
    message.bytes =
        graph_.replicaView(from).messageBytes(edge, loads_[i.microBatch]);
    message.leavesNode = cluster_.nodeOf(from) != cluster_.nodeOf(to);
    message.latency = cluster_.messageSeconds(from, to, 0);
    message.seconds =
        cluster_.messageSeconds(from, to, static_cast<double>(message.bytes));
    const Channels &channels = channels_[edge];
    message.line =
        firstLine_ + 2 * mostReceivers_ * from +
        (op.isGradient() ? 2 * channels.gradient + 1 : 2 * channels.activation);
    message.firstParty = static_cast<int>(work_.parties_.size());
    message.parties = 2;
    work_.parties_.insert(work_.parties_.end(), {from, to});
    return addTransfer(message);
  }

  /// Bytes that a layer exchanges with one group of ranks.
  struct Share {
    int group;
    int64_t gradientBytes = 0, valueBytes = 0; ///< of the whole tensors
  };

  std::vector<Share> makeShares(const Instruction &i) const {
    std::vector<Share> shares;
    for (int slot : view_->sharedSlots(i.layer)) {
      if (!exchangesSlot(i, slot))
        continue;
      const int p = view_->layer(i.layer).parameters(slot);
      const int group = graph_.holderGroup(p, rank_);
      auto share =
          std::find_if(shares.begin(), shares.end(),
                       [&](const Share &one) { return one.group == group; });
      if (share == shares.end())
        share = shares.insert(share, {group});
      share->gradientBytes +=
          view_->elements(p) * elementBytes(view_->gradientType());
      share->valueBytes +=
          view_->elements(p) * elementBytes(view_->computeType(p));
    }
    return shares;
  }

  /// Returns the shares of all shared parameters of the instruction's layer.
  const std::vector<Share> &sharesOf(const Instruction &i) {
    auto &lists = parameterLists_[graph_.indexInReplica(rank_)];
    if (lists.empty())
      lists.resize(graph_.model().layers());
    std::optional<std::vector<Share>> &shares = lists[i.layer];
    if (!shares)
      shares = makeShares(i);
    return *shares;
  }

  void addParameters(const Instruction &i, const ExchangeOp &op) {
    std::vector<int> &started =
        started_[{op.kind == ExchangeKind::Gather, i.layer}];
    Step &added = step(op.starts ? Step::Kind::Start : Step::Kind::Wait);
    if (!op.starts) {
      for (int transfer : started)
        use(added, transfer);
      started.clear();
      return;
    }
    const std::vector<Share> named =
        i.parameter != 0 ? makeShares(i) : std::vector<Share>();
    for (const Share &share : i.parameter != 0 ? named : sharesOf(i)) {
      started.push_back(transferOf(i, op, share));
      use(added, started.back());
    }
  }

  /// Returns the number of the transfer that all ranks of the group take part
  /// in.
  int &knownTransfer(const Instruction &i, bool gathers, const Share &share) {
    // Stages reach a parameter that they share through layers of different
    // numbers.
    const bool spans = graph_.holderGroups()[share.group].parameter >= 0;
    if (i.parameter != 0 && !spans)
      return named_.insert({{share.group, gathers, i.layer, i.parameter}, none})
          .first->second;
    return shared_[(2 * static_cast<size_t>(share.group) + gathers) *
                       (graph_.model().layers() + 1) +
                   (spans ? 0 : i.layer + 1)];
  }

  int transferOf(const Instruction &i, const ExchangeOp &op,
                 const Share &share) {
    const bool gathers = op.kind == ExchangeKind::Gather;
    const auto &group = graph_.holderGroups()[share.group];
    int &known = knownTransfer(i, gathers, share);
    if (known != none)
      return known;
    PlannedTransfer exchange;
    exchange.kind = gathers ? PlannedTransfer::Kind::Gather
                            : PlannedTransfer::Kind::Reduction;
    exchange.layer = i.layer;
    setSeconds(exchange,
               gathers          ? plan::LayerExchange::ALL_GATHER
               : strategy_.zero ? plan::LayerExchange::REDUCE_SCATTER
                                : plan::LayerExchange::ALL_REDUCE,
               gathers ? share.valueBytes : share.gradientBytes, group.ranks);
    Parties &parties = groups_[share.group];
    if (parties.count == 0) {
      setParties(exchange, group.ranks);
      parties = {exchange.firstParty, exchange.parties};
    }
    exchange.firstParty = parties.first;
    exchange.parties = parties.count;
    exchange.line = firstLine_ + messageLines() + share.group;
    known = addTransfer(exchange);
    return known;
  }

  PlanWork &work_;
  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  const CostModel &costs_;
  const Cluster &cluster_;
  const Strategy &strategy_;
  const Parts *parts_;
  const int firstLine_;
  static constexpr size_t directions = cost::Direction_ARRAYSIZE;
  ExchangeOp exchanges_[Instruction::Op_MAX + 1];
  std::vector<Load> loads_; ///< of micro-batches
  double targetShare_ = 1;  ///< of all tokens, those in the loss
  struct Channels {
    int crossing = 0; ///< number among the edges between stages
    /// Numbers of the receiver among the stages that the sender sends to.
    int activation = 0, gradient = 0;
  };
  std::vector<Channels> channels_; ///< by edge
  int mostReceivers_ = 1;          ///< of one stage in one direction
  // Numbers of transfers; `none` for those that no program has reached.
  std::vector<int> messages_; ///< [micro-batch][crossing edge][gradient][shard]
  std::vector<std::vector<int>> meetings_; ///< [replica * stages + stage]
  std::vector<int> normMeetings_;
  std::vector<int> shared_; ///< [group][gathers][layer + 1]; 0: by parameter
  /// Group, gathers, layer, parameter: of one parameter of one stage alone.
  std::map<std::tuple<int, bool, int, int>, int> named_;
  struct Parties {
    int first = 0, count = 0;
  };
  std::vector<Parties> groups_;
  /// [index in replica][layer], once they are asked for.
  std::vector<std::vector<std::optional<std::vector<Share>>>> parameterLists_;
  /// [micro-batch][kind][direction], and behind the micro-batches what works on
  /// parameters; by ranks of a tensor-parallel group on one node.
  std::map<int, std::vector<double>> secondsOf_;
  // The rank whose program is being added.
  int rank_ = 0;
  ExecutableGraph::Place place_ = {};
  const RankView *view_ = nullptr;
  std::vector<double> *seconds_ = nullptr;
  /// By (gathers, layer): transfers that a wait ends.
  std::map<std::pair<bool, int>, std::vector<int>> started_;
  int calls_ = 0, norms_ = 0, perNode_ = 1;
};

PlanWork::PlanWork(const ExecutableGraph &graph, const plan::Plan &plan,
                   const CostModel &costs)
    : PlanWork(std::vector<PlannedPhase>{{&graph, &plan, &costs}}) {}

PlanWork::PlanWork(const std::vector<PlannedPhase> &phases)
    : cluster_(phases.front().costs->cluster()) {
  const int ranks = phases.front().plan->rankCount();
  begin_ = phases.front().costs->table().device().step_seconds();
  network_ = networkOf(cluster_, ranks);
  std::optional<Parts> parts;
  if (std::any_of(phases.begin(), phases.end(), [](const PlannedPhase &phase) {
        return phase.values || phase.gradients;
      }))
    parts.emplace(ranks).add(*this, phases);
  size_t count = 0;
  for (const PlannedPhase &phase : phases)
    for (const plan::RankProgram &program : phase.plan->ranks)
      count += program.instructions.size();
  steps_.reserve(count);
  uses_.reserve(count);
  transfers_.reserve(transfers_.size() + count / 2);
  std::vector<std::unique_ptr<Writer>> writers;
  for (const PlannedPhase &phase : phases)
    writers.push_back(std::make_unique<Writer>(*this, *phase.graph, *phase.plan,
                                               *phase.costs,
                                               parts ? &*parts : nullptr));
  begins_.push_back(0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto &writer : writers)
      writer->write(rank);
    begins_.push_back(stepCount());
  }
  for (const auto &writer : writers)
    phaseTransfers_.push_back(std::move(writer->added));
  if (phases.size() > 1)
    return;
  turns_ = Turns(*phases.front().graph, *phases.front().plan);
  for (int rank = 0; turns_.any() && rank < ranks; ++rank)
    twins_.push_back(phases.front().graph->twinOf(rank));
}

void PlanWork::addParts(std::shared_ptr<const SwitchMessages> switches) {
  switches_ = std::move(switches);
  parts_ = static_cast<int>(switches_->parts.size());
  transfers_.resize(switches_->parts.size());
  parties_.reserve(switches_->parts.size());
  bucketOfPart_.reserve(switches_->parts.size());
  for (int part = 0, bucket = 0; part < parts_; ++part) {
    while (switches_->buckets[bucket].parts <= static_cast<size_t>(part))
      ++bucket;
    bucketOfPart_.push_back(bucket);
    PlannedTransfer &transfer = transfers_[part];
    transfer.kind = PlannedTransfer::Kind::Switch;
    transfer.firstParty = part;
    transfer.parties = 1;
    transfer.bytes = switches_->parts[part].sent;
    parties_.push_back(switches_->parts[part].rank);
  }
}

} // namespace dyna
