//===- OrderSimulator.cpp - Simulates an order ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/OrderSimulator.h"

#include <cstring>
#include <map>

namespace dyna {
namespace {

/// Moments are kept at every so many micro-batches: a state costs as much as a
/// dozen items, and is used once in a while.
constexpr int apart = 4;
/// Sums of seconds in another order differ by less.
constexpr double rounding = 1e-9;

uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Returns as many low bits as numbers below `count` need.
uint64_t bitsFor(int count) {
  uint64_t bits = 0;
  while (bits + 1 < static_cast<uint64_t>(count))
    bits = 2 * bits + 1;
  return bits;
}

int roundDown(int position) { return position / apart * apart; }

} // namespace

OrderSimulator::OrderSimulator(const PipelineProblem &problem,
                               std::vector<int> mostKept)
    : stages_(problem.stages()), count_(problem.microBatches()),
      split_(problem.splitsBackward()), graph_(problem),
      firstStage_(stages_ > 0 ? *graph_.order().begin() : 0), position_(count_),
      now_(stages_), next_(stages_), keys_((stages_ + 3) / 4 * 4, ~UINT64_C(0)),
      stageBits_(bitsFor(stages_)), ends_(count_),
      byForward_(count_ / apart + 1), byBackward_(count_ / apart + 1),
      statesByForward_(byForward_.size() * stages_),
      statesByBackward_(byBackward_.size() * stages_) {
  fillRows(problem, std::move(mostKept));
  size_t cells = static_cast<size_t>(stages_) * count_;
  for (Times *times : {&ofBase_, &ofTrial_})
    for (auto *list : {&times->forward, &times->backward, &times->chosen,
                       &times->input, &times->gradient, &times->ready})
      list->resize(cells);
}

void OrderSimulator::fillRows(const PipelineProblem &problem,
                              std::vector<int> mostKept) {
  ItemSeconds seconds(problem);
  // Store equal rows once, so that they stay in cache: often all rows are
  // equal.
  std::map<std::vector<double>, int> known;
  std::map<std::vector<int64_t>, int> knownBytes;
  std::vector<int> rowOf(stages_), bytesOf(stages_);
  for (int s = 0; s < stages_; ++s) {
    std::vector<double> row;
    for (int m = 0; m < count_; ++m)
      row.push_back(seconds.forward(s, m));
    for (int m = 0; m < count_; ++m)
      row.push_back(seconds.recompute(s, m));
    for (int m = 0; m < count_; ++m)
      row.push_back(seconds.inputGradient(s, m));
    for (int m = 0; m < count_; ++m)
      row.push_back(split_ ? seconds.weight(s, m) : 0);
    double &work = work_.emplace_back();
    for (double value : row)
      work += value;
    // Do not count recomputation: it may run before the stage decides on its
    // backward.
    for (int m = 0; m < count_; ++m)
      work -= row[count_ + m];
    std::vector<int64_t> bytes;
    for (int m = 0; m < count_; ++m)
      bytes.push_back(problem.heldBytes(s, m));
    for (int m = 0; m < count_; ++m)
      bytes.push_back(problem.lateBytes(s, m));
    auto [entry, isNew] =
        known.try_emplace(row, static_cast<int>(seconds_.size()));
    if (isNew)
      seconds_.insert(seconds_.end(), row.begin(), row.end());
    rowOf[s] = entry->second;
    auto [held, isNewBytes] =
        knownBytes.try_emplace(bytes, static_cast<int>(bytes_.size()));
    if (isNewBytes)
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    bytesOf[s] = held->second;
  }
  for (int s = 0; s < stages_; ++s) {
    Row &row = rows_.emplace_back();
    row.forward = seconds_.data() + rowOf[s];
    row.recompute = row.forward + count_;
    row.backward = row.recompute + count_;
    row.weight = row.backward + count_;
    row.held = bytes_.data() + bytesOf[s];
    row.late = row.held + count_;
    row.limit = problem.limits.empty() ? std::numeric_limits<int64_t>::max()
                                       : problem.limits[s];
    row.mostKept = mostKept[s];
    row.mostLate = problem.limits.empty() ? graph_.levels() : count_;
    row.into = graph_.into(s);
    row.outOf = graph_.outOf(s);
    row.depth = graph_.depth(s);
    row.up = 0;
  }
  findLeastUp();
}

void OrderSimulator::findLeastUp() {
  // With split backward a weight gradient may be last, after which nothing
  // follows.
  if (split_ || count_ == 0)
    return;
  for (int s : graph_.order())
    for (const StageLink &link : rows_[s].into) {
      const Row &before = rows_[link.from];
      rows_[s].up =
          std::max(rows_[s].up,
                   before.up + (link.secondsBack() +
                                *std::min_element(before.backward,
                                                  before.backward + count_)));
    }
}

void OrderSimulator::setRule(const DispatchRule &rule) {
  rule_ = rule;
  base_ = {};
  for (auto *moments : {&byForward_, &byBackward_})
    moments->assign(moments->size(), Moment());
}

bool OrderSimulator::forwardFits(int s) const {
  const Stage &stage = now_[s];
  const Row &row = rows_[s];
  return stage.forwards - stage.backwards < row.mostKept &&
         stage.held <= row.limit - row.held[forwards_[stage.forwards]];
}

/// Returns when the next backward may begin; `never` if that is not known yet.
double OrderSimulator::gradientReady(int s) const {
  const Stage &stage = now_[s];
  if (stage.backwards == count_)
    return never;
  if (!rows_[s].outOf.empty())
    return stage.backwards < stage.gradients
               ? times_->ready[s * count_ + stage.backwards]
               : never;
  const int position = position_[backwards_[stage.backwards]];
  return position < stage.forwards ? times_->forward[s * count_ + position]
                                   : never;
}

/// Notes the forwards whose inputs are known now: all stages that give one have run.
/// Called whenever one of them has run.
void OrderSimulator::takeInputs(int s) {
  const StageGraph::Links into = rows_[s].into;
  int &position = now_[s].inputs;
  int known = position + 1; // correct for a stage with one link
  if (into.last - into.first > 1) {
    known = count_;
    for (const StageLink &link : into)
      known = std::min(known, now_[link.from].forwards);
  }
  for (; position < known; ++position) {
    double comes = 0;
    for (const StageLink &link : into)
      comes = std::max(comes, times_->forward[link.from * count_ + position] +
                                  link.seconds);
    times_->input[s * count_ + position] = comes;
  }
}

/// Notes the backwards whose gradients are known now.
void OrderSimulator::takeGradients(int s) {
  const Row &row = rows_[s];
  const StageGraph::Links outOf = row.outOf;
  int &position = now_[s].gradients;
  int known = position + 1; // correct for a stage with one link
  if (outOf.last - outOf.first > 1) {
    known = count_;
    for (const StageLink &link : outOf)
      known = std::min(known, now_[link.to].backwards);
  }
  for (; position < known; ++position) {
    double comes = 0, chosen = 0;
    for (const StageLink &link : outOf) {
      const size_t cell = link.to * count_ + position;
      comes = std::max(comes, times_->backward[cell] + link.secondsBack());
      chosen = std::max(chosen, times_->chosen[cell]);
    }
    const size_t cell = s * count_ + position;
    times_->gradient[cell] = comes;
    // The stage recomputes before the gradient comes, but not before it can
    // know its next backward.
    times_->ready[cell] =
        std::max(comes - row.recompute[backwards_[position]], chosen);
  }
}

void OrderSimulator::decide(int s) {
  const Stage &stage = now_[s];
  Next &next = next_[s];
  next.backward = gradientReady(s);
  next.forward = never;
  if (stage.forwards < count_ && forwardFits(s)) {
    if (rows_[s].into.empty())
      next.forward = 0;
    else if (stage.forwards < stage.inputs)
      next.forward = times_->input[s * count_ + stage.forwards];
  }
  const int late = stage.backwards - stage.weights;
  // Run overdue weight gradients first, so that their memory does not grow for
  // ever.
  if (split_ && late >= rows_[s].mostLate)
    next.backward = next.forward = never;
  double time = std::min(next.backward, next.forward);
  if (split_ && late > 0) {
    double spare = rule_.patience * rows_[s].weight[backwards_[stage.weights]];
    if (time >= stage.free + spare)
      time = stage.free;
  }
  next.time = std::max(time, stage.free);
  // Positive numbers and their bits have the same order. The last bits hold the
  // stage: times that differ only there are compared by stage, which does not
  // matter.
  keys_[s] = (bitsOf(next.time) & ~stageBits_) | static_cast<uint64_t>(s);
}

/// Returns the stage whose next item begins first. Uses four chains, because
/// each comparison waits for the one before.
int OrderSimulator::first() const {
  uint64_t a = keys_[0], b = keys_[1], c = keys_[2], d = keys_[3];
  for (size_t i = 4; i < keys_.size(); i += 4) {
    a = std::min(a, keys_[i]);
    b = std::min(b, keys_[i + 1]);
    c = std::min(c, keys_[i + 2]);
    d = std::min(d, keys_[i + 3]);
  }
  return static_cast<int>(std::min(std::min(a, b), std::min(c, d)) &
                          stageBits_);
}

/// Goes back to the last moment at which neither this forward nor this backward
/// was read. Returns the number of items before it.
int64_t OrderSimulator::restore(Mode mode, int forwards, int backwards,
                                double &makespan) {
  int f = roundDown(forwards) / apart, b = roundDown(backwards) / apart;
  mostForwards_ = mostBackwards_ = 0;
  bool none = mode == Mode::Play || f == 0 || b == 0 ||
              byForward_[f].items < 0 || byBackward_[b].items < 0;
  if (none) {
    for (int s = 0; s < stages_; ++s) {
      now_[s] = Stage();
      now_[s].left = work_[s];
    }
    return 0;
  }
  bool ofForward = byForward_[f].items < byBackward_[b].items;
  const Moment &moment = ofForward ? byForward_[f] : byBackward_[b];
  const Stage *states = ofForward ? &statesByForward_[f * stages_]
                                  : &statesByBackward_[b * stages_];
  std::copy(states, states + stages_, now_.begin());
  if (mode == Mode::Try)
    ofTrial_ = ofBase_;
  makespan = moment.makespan;
  for (const Stage &stage : now_) {
    mostForwards_ = std::max(mostForwards_, stage.forwards);
    mostBackwards_ = std::max(mostBackwards_, stage.backwards);
  }
  return moment.items;
}

void OrderSimulator::save(Moment &moment, Stage *states, int64_t items,
                          double makespan) {
  moment = {items, makespan};
  std::copy(now_.begin(), now_.end(), states);
}

/// Goes to the first difference of the order from the base. Returns the number
/// of items before it.
int64_t OrderSimulator::begin(const MicroBatchOrder &order, Mode mode,
                              double &makespan) {
  forwards_ = order.forwards.data();
  backwards_ = order.backwards.data();
  for (int k = 0; k < count_; ++k)
    position_[forwards_[k]] = k;
  int firstForward = 0, firstBackward = 0;
  if (!base_.forwards.empty()) {
    auto differ = [](const std::vector<int> &a, const std::vector<int> &b) {
      return static_cast<int>(
          std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
    };
    firstForward = differ(order.forwards, base_.forwards);
    firstBackward = differ(order.backwards, base_.backwards);
  }
  times_ = mode == Mode::Record ? &ofBase_ : &ofTrial_;
  return restore(mode, std::min(firstForward, count_ - 1),
                 std::min(firstBackward, count_ - 1), makespan);
}

/// Returns true if the next item is a backward. It must not be a weight
/// gradient.
bool OrderSimulator::runsBackward(int s) const {
  const Next &next = next_[s];
  const bool backward = next.backward <= next.time;
  if (!backward || next.forward > next.time || !rule_.fillsFirst)
    return backward;
  return now_[s].forwards - now_[s].backwards >= rows_[s].depth;
}

void OrderSimulator::runBackward(int s, Simulation &now) {
  Stage &stage = now_[s];
  const Row &row = rows_[s];
  const int position = stage.backwards++, m = backwards_[position];
  const double comes = row.outOf.empty()
                           ? times_->forward[s * count_ + position_[m]]
                           : times_->gradient[s * count_ + position];
  const double begin = std::max(stage.free + row.recompute[m], comes);
  stage.free = begin + row.backward[m];
  stage.left -= row.backward[m];
  stage.held -= row.held[m] - row.late[m];
  now.makespan = std::max(now.makespan, stage.free);
  times_->backward[s * count_ + position] = stage.free;
  times_->chosen[s * count_ + position] = next_[s].time;
  for (const StageLink &link : row.into)
    takeGradients(link.from);
  if (s == firstStage_) {
    if (now.mode == Mode::Record)
      ends_[position] = stage.free;
    else if (position >= watched_ && stage.free > ends_[position])
      now.makespan = never;
  }
  if (now.out)
    (*now.out)[s].push_back({ItemKind::Backward, m});
  if (now.mode == Mode::Record && stage.backwards > mostBackwards_) {
    mostBackwards_ = stage.backwards;
    const int moment = stage.backwards / apart;
    if (stage.backwards % apart == 0)
      save(byBackward_[moment], &statesByBackward_[moment * stages_], now.items,
           now.makespan);
  }
}

void OrderSimulator::runForward(int s, Simulation &now) {
  Stage &stage = now_[s];
  const Row &row = rows_[s];
  const int position = stage.forwards++, m = forwards_[position];
  stage.free = std::max(stage.free, next_[s].forward) + row.forward[m];
  stage.left -= row.forward[m];
  stage.held += row.held[m];
  times_->forward[s * count_ + position] = stage.free;
  for (const StageLink &link : row.outOf)
    takeInputs(link.to);
  if (now.out)
    (*now.out)[s].push_back({ItemKind::Forward, m});
  if (now.mode == Mode::Record && stage.forwards > mostForwards_) {
    mostForwards_ = stage.forwards;
    const int moment = stage.forwards / apart;
    if (stage.forwards % apart == 0)
      save(byForward_[moment], &statesByForward_[moment * stages_], now.items,
           now.makespan);
  }
}

void OrderSimulator::runWeight(int s, Simulation &now) {
  Stage &stage = now_[s];
  const Row &row = rows_[s];
  const int m = backwards_[stage.weights++];
  stage.free += row.weight[m];
  stage.left -= row.weight[m];
  stage.held -= row.late[m];
  now.makespan = std::max(now.makespan, stage.free);
  if (now.out)
    (*now.out)[s].push_back({ItemKind::Weight, m});
}

double OrderSimulator::simulate(const MicroBatchOrder &order, Mode mode,
                                double bound, StageOrders *out) {
  Simulation now = {mode, bound + rounding * bound, out};
  const int64_t before = begin(order, mode, now.makespan);
  now.items = before;
  for (int s = 0; s < stages_; ++s)
    decide(s);
  while (true) {
    const int s = first();
    const Next &next = next_[s];
    if (next.time == never)
      break;
    if (next.time + now_[s].left + rows_[s].up > now.bound) {
      now.makespan = never;
      break;
    }
    ++now.items;
    const bool backward = runsBackward(s);
    const bool forward = !backward && next.forward <= next.time;
    if (backward)
      runBackward(s, now);
    else if (forward)
      runForward(s, now);
    else
      runWeight(s, now);
    if (now.makespan == never)
      break;
    decide(s);
    if (backward)
      for (const StageLink &link : rows_[s].into)
        decide(link.from);
    else if (forward)
      for (const StageLink &link : rows_[s].outOf)
        decide(link.to);
  }
  items_ += now.items - before;
  for (const Stage &stage : now_)
    if (stage.backwards < count_)
      return never;
  return now.makespan > now.bound ? never : now.makespan;
}

double OrderSimulator::evaluate(const MicroBatchOrder &order, double bound,
                                int patience) {
  watched_ = count_;
  if (!base_.forwards.empty() && patience < count_) {
    auto lastOf = [&](const std::vector<int> &a, const std::vector<int> &b) {
      return static_cast<int>(
          a.rend() - std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first);
    };
    watched_ = std::max(lastOf(order.forwards, base_.forwards),
                        lastOf(order.backwards, base_.backwards)) +
               patience;
  }
  return simulate(order, Mode::Try, bound, nullptr);
}

double OrderSimulator::adopt(const MicroBatchOrder &order) {
  watched_ = count_;
  double makespan = simulate(order, Mode::Record, never, nullptr);
  base_ = order;
  return makespan;
}

double OrderSimulator::play(const MicroBatchOrder &order, StageOrders &items) {
  watched_ = count_;
  items.assign(stages_, {});
  return simulate(order, Mode::Play, never, &items);
}

} // namespace dyna
