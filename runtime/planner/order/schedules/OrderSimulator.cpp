//===- OrderSimulator.cpp - What an order of micro-batches takes ----------===//
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

/// As many low bits as numbers below `count` need.
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
      split_(problem.splitsBackward()), message_(problem.messageSeconds),
      position_(count_), now_(stages_), next_(stages_),
      keys_((stages_ + 3) / 4 * 4, ~UINT64_C(0)), stageBits_(bitsFor(stages_)),
      ends_(count_), byForward_(count_ / apart + 1),
      byBackward_(count_ / apart + 1),
      statesByForward_(byForward_.size() * stages_),
      statesByBackward_(byBackward_.size() * stages_) {
  fillRows(problem, std::move(mostKept));
  size_t cells = static_cast<size_t>(stages_) * count_;
  for (Arrivals *arrivals : {&ofBase_, &ofTrial_}) {
    arrivals->forward.resize(cells + count_);
    arrivals->ready.resize(cells);
    arrivals->gradient.resize(cells);
  }
}

void OrderSimulator::fillRows(const PipelineProblem &problem,
                              std::vector<int> mostKept) {
  ItemSeconds seconds(problem);
  // Rows that are alike are kept once: in the cache, one is often all there is.
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
    // What is computed again may run before it is decided on.
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
  double up = 0;
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
    // Behind weight gradients, which may be a stage's last item, comes nothing.
    row.up = split_ ? 0 : up;
    if (count_ > 0)
      up += message_ + *std::min_element(row.backward, row.backward + count_);
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

/// When the next backward may begin; `never` where that is not known yet.
double OrderSimulator::gradientReady(int s) const {
  const Stage &stage = now_[s];
  if (stage.backwards == count_)
    return never;
  if (s + 1 < stages_)
    return stage.backwards < now_[s + 1].backwards
               ? arrivals_->ready[s * count_ + stage.backwards]
               : never;
  int position = position_[backwards_[stage.backwards]];
  return position < stage.forwards
             ? arrivals_->forward[stages_ * count_ + position]
             : never;
}

void OrderSimulator::decide(int s) {
  const Stage &stage = now_[s];
  double backward = gradientReady(s), forward = never;
  if (stage.forwards < count_ &&
      (s == 0 || stage.forwards < now_[s - 1].forwards) && forwardFits(s))
    forward = s == 0 ? 0 : arrivals_->forward[s * count_ + stage.forwards];
  double time = std::min(backward, forward);
  if (split_ && stage.weights < stage.backwards) {
    double spare = rule_.patience * rows_[s].weight[backwards_[stage.weights]];
    if (time >= stage.free + spare)
      time = stage.free;
  }
  next_[s] = {std::max(time, stage.free), backward, forward};
  // Positive numbers are in the order of their bits; the last ones give way to
  // the number of the stage. Which of two is looked at first does not matter
  // where they differ by that little.
  keys_[s] = (bitsOf(next_[s].time) & ~stageBits_) | static_cast<uint64_t>(s);
}

/// The stage whose next item begins first. Four chains, since each comparison
/// waits for the one before.
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

/// To the last moment at which neither this forward nor this backward was looked
/// at; how many items came before it.
int64_t OrderSimulator::restore(Mode mode, int forwards, int backwards,
                                double &makespan) {
  int f = roundDown(forwards) / apart, b = roundDown(backwards) / apart;
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
  return moment.items;
}

void OrderSimulator::save(Moment &moment, Stage *states, int64_t items,
                          double makespan) {
  moment = {items, makespan};
  std::copy(now_.begin(), now_.end(), states);
}

/// To where the order differs from the base; how many items came before.
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
  arrivals_ = mode == Mode::Record ? &ofBase_ : &ofTrial_;
  return restore(mode, std::min(firstForward, count_ - 1),
                 std::min(firstBackward, count_ - 1), makespan);
}

/// Of a stage whose next item is no weight gradient.
bool OrderSimulator::runsBackward(int s) const {
  const Next &next = next_[s];
  const bool backward = next.backward <= next.time;
  if (!backward || next.forward > next.time || !rule_.fillsFirst)
    return backward;
  return now_[s].forwards - now_[s].backwards >= stages_ - s;
}

/// The stage that has input of it, or -1.
int OrderSimulator::runBackward(int s, Simulation &now) {
  const int last = stages_ - 1;
  Stage &stage = now_[s];
  const Row &row = rows_[s];
  const int position = stage.backwards++, m = backwards_[position];
  double begin = stage.free + row.recompute[m];
  begin = std::max(
      begin, s < last ? arrivals_->gradient[s * count_ + position]
                      : arrivals_->forward[stages_ * count_ + position_[m]]);
  stage.free = begin + row.backward[m];
  stage.left -= row.backward[m];
  stage.held -= row.held[m] - row.late[m];
  now.makespan = std::max(now.makespan, stage.free);
  int neighbour = -1;
  if (s > 0) {
    // The stage before begins early enough to have computed again what it
    // needs by then, as soon as it can know.
    const double comes = stage.free + message_;
    const size_t cell = (s - 1) * count_ + position;
    arrivals_->gradient[cell] = comes;
    arrivals_->ready[cell] =
        std::max(comes - rows_[s - 1].recompute[m], next_[s].time);
    neighbour = s - 1;
  } else if (now.mode == Mode::Record) {
    ends_[position] = stage.free;
  } else if (position >= watched_ && stage.free > ends_[position]) {
    now.makespan = never;
  }
  if (now.out)
    (*now.out)[s].push_back({ItemKind::Backward, m});
  if (now.mode == Mode::Record && s == last && stage.backwards % apart == 0) {
    const int moment = stage.backwards / apart;
    save(byBackward_[moment], &statesByBackward_[moment * stages_], now.items,
         now.makespan);
  }
  return neighbour;
}

/// The stage that has input of it, or -1.
int OrderSimulator::runForward(int s, Simulation &now) {
  const int last = stages_ - 1;
  Stage &stage = now_[s];
  const Row &row = rows_[s];
  const int position = stage.forwards++, m = forwards_[position];
  const double begin = s == 0 ? 0 : arrivals_->forward[s * count_ + position];
  stage.free = std::max(stage.free, begin) + row.forward[m];
  stage.left -= row.forward[m];
  stage.held += row.held[m];
  arrivals_->forward[(s + 1) * count_ + position] =
      stage.free + (s < last ? message_ : 0);
  if (now.out)
    (*now.out)[s].push_back({ItemKind::Forward, m});
  if (now.mode == Mode::Record && s == 0 && stage.forwards % apart == 0) {
    const int moment = stage.forwards / apart;
    save(byForward_[moment], &statesByForward_[moment * stages_], now.items,
         now.makespan);
  }
  return s < last ? s + 1 : -1;
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
    int neighbour = -1;
    if (runsBackward(s))
      neighbour = runBackward(s, now);
    else if (next.forward <= next.time)
      neighbour = runForward(s, now);
    else
      runWeight(s, now);
    if (now.makespan == never)
      break;
    decide(s);
    if (neighbour >= 0)
      decide(neighbour);
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
