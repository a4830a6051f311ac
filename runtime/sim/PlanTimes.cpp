//===- PlanTimes.cpp - Simulates a plan on a cluster -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanTimes.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/Text.h"
#include "runtime/sim/BucketFlows.h"
#include "runtime/sim/SharedLinks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

namespace dyna {
namespace {

using Step = PlanWork::Step;

/// Simulates ranks: each runs until it waits for something without an end yet.
/// If the order of events matters, ranks take turns in the order of time. (An
/// example are bytes that a free rank moves.) Otherwise each rank runs as far
/// as it can, with the same result. On shared links only begins and ends of
/// transfers have an order. A rank that still runs cannot start a transfer
/// before the next of these events, because it waits for an end.
class Player {
public:
  Player(const PlanWork &work, const SimulationOptions &options)
      : work_(work), options_(options),
        isHost_(options.ranks == SimulationOptions::Ranks::Host),
        isShared_(!isHost_ &&
                  (options.sharing != SimulationOptions::Sharing::None ||
                   work.parts() > 0)),
        isNoisy_(options.noise > 0 || options.delayEvery > 0),
        states_(work.transfers().size()), ranks_(work.ranks()),
        devices_(work.turns().any() ? work.ranks() : 0),
        order_(work, options.bytesUnderWay) {
    if (isShared_)
      links_.emplace(work, options.sharing);
    if (work.parts() == 0)
      return;
    if (isShared_)
      flows_.emplace(work, order_, *links_);
    else
      messages_.emplace(work);
  }

  StatusOr<PlanTimes> run() {
    result_.ranks.resize(work_.ranks());
    result_.transfers.resize(states_.size());
    chain();
    for (int rank = work_.ranks() - 1; rank >= 0; --rank) {
      result_.ranks[rank].instructions.resize(work_.steps(rank).size());
      wake(rank, work_.begin());
    }
    if (isHost_)
      playInOrder();
    else if (isShared_)
      playShared();
    else
      playAnyhow();
    for (int rank = 0; rank < work_.ranks(); ++rank) {
      if (ranks_[rank].next < work_.steps(rank).size())
        return Status::invalidArgument(
            formatText("plan: its ranks wait for each other: rank %d never "
                       "ends instruction %d",
                       rank, ranks_[rank].next));
      result_.makespan = std::max(result_.makespan, ranks_[rank].now);
    }
    if (flows_)
      result_.ports = std::move(flows_->times());
    return std::move(result_);
  }

private:
  static constexpr int nothing = -1;

  struct State {
    int pending = 0;    ///< number of ranks and transfers it waits for
    double ready = 0;   ///< latest arrival so far
    double seconds = 0; ///< of a call, its slowest rank's
    int left = 0;       ///< of a part on the host: messages that have not ended
    bool hasBegun = false;
    bool hasEnded = false;
    int follower = nothing; ///< next transfer of the same line
  };
  struct Rank {
    int next = 0;      ///< instruction
    int use = 0;       ///< next of its transfers after them
    double now = 0;    ///< time at which it can go on
    bool isIn = false; ///< has begun the instruction
    int waitsFor = nothing;
    size_t item = 0;      ///< next of its items
    bool hasTurn = false; ///< is in the item
  };
  /// A device that two ranks share, at the index of the lower one.
  struct Device {
    int turn = 0;    ///< the next one
    double free = 0; ///< end of the turn before it
    int waiting = nothing;
  };

  //===--------------------------------------------------------------------===//
  // Order of transfers
  //===--------------------------------------------------------------------===//

  bool isEager(const PlannedTransfer &transfer) const {
    return !isHost_ && transfer.isMessage() &&
           transfer.bytes <= options_.eagerBytes;
  }
  /// Ranks that must have come before it begins.
  int callers(const PlannedTransfer &transfer) const {
    return isEager(transfer) ? 1 : transfer.parties;
  }

  void chain() {
    const auto &transfers = work_.transfers();
    for (size_t t = 0; t < transfers.size(); ++t)
      states_[t].pending = callers(transfers[t]);
    chainParts();
    if (isHost_)
      return; // a rank that moves bytes does nothing else meanwhile
    const bool one = options_.streams == SimulationOptions::Streams::One;
    followers_.assign(one ? followersAt(transfers.size()) : 0, nothing);
    std::vector<int> last(one ? work_.ranks() : work_.lines(), nothing);
    for (int rank = 0; rank < work_.ranks(); ++rank)
      for (const Step &step : work_.steps(rank)) {
        if (step.kind != Step::Kind::Start)
          continue;
        for (int u = step.first; u < step.first + step.count; ++u) {
          const int t = work_.use(u);
          const PlannedTransfer &transfer = transfers[t];
          if (!one && transfer.line < 0)
            continue; // parts are ordered by their ports
          const bool isFirst = work_.party(transfer, 0) == rank;
          if (one ? isEager(transfer) && !isFirst : !isFirst)
            continue;
          int &before = last[one ? rank : transfer.line];
          if (before != nothing) {
            follower(before, rank) = t;
            ++states_[t].pending;
          }
          before = t;
        }
      }
  }

  /// Makes parts wait for room.
  void chainParts() {
    if (work_.parts() == 0 || isHost_)
      return;
    nextForRoom_ = oldest_ = order_.first;
    for (int part = 0; part < work_.parts(); ++part)
      states_[part].pending += order_.room[part] >= 0;
    for (int &part : nextForRoom_)
      while (part >= 0 && order_.room[part] < 0)
        part = order_.after[part];
  }

  /// Returns the next transfer after this one, in its line or in the stream of
  /// a rank.
  int &follower(int t, int rank) {
    if (followers_.empty())
      return states_[t].follower;
    const PlannedTransfer &transfer = work_.transfers()[t];
    int party = 0;
    while (work_.party(transfer, party) != rank)
      ++party;
    return followers_[firstFollower_[t] + party];
  }
  size_t followersAt(size_t count) {
    size_t sum = 0;
    for (size_t t = 0; t < count; ++t) {
      firstFollower_.push_back(static_cast<int>(sum));
      sum += work_.transfers()[t].parties;
    }
    return sum;
  }

  //===--------------------------------------------------------------------===//
  // Turns
  //===--------------------------------------------------------------------===//

  struct Event {
    double time;
    int number; ///< of a host rank that goes on, or a transfer that begins
    bool operator>(const Event &other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void wake(int rank, double time) {
    ranks_[rank].now = std::max(ranks_[rank].now, time);
    if (isHost_)
      events_.push({ranks_[rank].now, rank});
    else
      ready_.push_back(rank);
  }

  void playAnyhow() {
    while (!ready_.empty()) {
      int rank = ready_.back();
      ready_.pop_back();
      advance(rank);
    }
  }

  void playInOrder() {
    while (!events_.empty()) {
      int rank = events_.top().number;
      events_.pop();
      advance(rank);
    }
  }

  void playShared() {
    for (;;) {
      playAnyhow();
      const bool isLink = links_->isDue(
          events_.empty() ? std::numeric_limits<double>::infinity()
                          : events_.top().time);
      if (isLink) {
        if (auto [time, t] = links_->takeNext(); t != nothing)
          endOnLinks(t, time);
      } else if (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        if (event.number < work_.parts())
          endParts(event.time, [&](std::vector<int> &ended) {
            flows_->begin(event.number, event.time, ended);
          });
        else
          links_->add(event.number, event.time);
      } else {
        return;
      }
    }
  }

  bool mustYield(double time) {
    return isHost_ && !events_.empty() && events_.top().time < time;
  }

  /// Returns true unless the rank is before an item whose turn has not come. The rank is
  /// then woken by the other rank of its device.
  bool takeTurn(int number) {
    Rank &rank = ranks_[number];
    const std::vector<Turns::Item> &items = work_.turns().of(number);
    if (rank.hasTurn || rank.item == items.size() ||
        items[rank.item].first != rank.next)
      return true;
    Device &device = devices_[std::min(number, work_.twinOf(number))];
    if (device.turn != items[rank.item].turn) {
      device.waiting = number;
      return false;
    }
    rank.now = std::max(rank.now, device.free);
    return rank.hasTurn = true;
  }

  /// Ends the turn of a rank behind the last instruction of its item.
  void passTurn(int number) {
    Rank &rank = ranks_[number];
    if (!rank.hasTurn || work_.turns().of(number)[rank.item].last != rank.next)
      return;
    Device &device = devices_[std::min(number, work_.twinOf(number))];
    rank.hasTurn = false;
    ++rank.item;
    ++device.turn;
    device.free = rank.now;
    if (const int next = std::exchange(device.waiting, nothing);
        next != nothing)
      wake(next, ranks_[next].now);
  }

  void advance(int number) {
    Rank &rank = ranks_[number];
    const PlanWork::Steps steps = work_.steps(number);
    auto &times = result_.ranks[number];
    while (rank.next < steps.size()) {
      const Step &step = steps[rank.next];
      if (step.kind != Step::Kind::Run && mustYield(rank.now))
        return wake(number, rank.now);
      if (!takeTurn(number))
        return;
      if (!rank.isIn) {
        rank.isIn = true;
        rank.use = 0;
        times.instructions[rank.next].start = rank.now;
        if (step.kind == Step::Kind::Start)
          for (; rank.use < step.count; ++rank.use)
            come(number, work_.use(step.first + rank.use), 0);
        else if (step.kind == Step::Kind::Meet)
          come(number, work_.use(step.first), secondsOf(number, step));
      }
      if (step.kind == Step::Kind::Run) {
        double seconds = secondsOf(number, step);
        times.busy += seconds;
        rank.now += seconds;
      } else if (step.kind != Step::Kind::Start) {
        for (; rank.use < step.count; ++rank.use) {
          const int t = work_.use(step.first + rank.use);
          if (!states_[t].hasEnded) {
            rank.waitsFor = t;
            return;
          }
          rank.now = std::max(rank.now, result_.transfers[t].end);
        }
        if (mustYield(rank.now))
          return wake(number, rank.now);
        if (step.kind == Step::Kind::Meet)
          times.busy += states_[work_.use(step.first)].seconds;
        else
          rank.now += step.seconds;
      } else {
        rank.now += step.seconds;
      }
      times.instructions[rank.next].end = rank.now;
      rank.isIn = false;
      passTurn(number);
      ++rank.next;
    }
  }

  //===--------------------------------------------------------------------===//
  // Noise
  //===--------------------------------------------------------------------===//

  double secondsOf(int rank, const Step &step) const {
    if (!isNoisy_ || step.seconds == 0)
      return step.seconds;
    uint64_t key =
        dyna_mix64(dyna_mix64(options_.seed) ^
                   (static_cast<uint64_t>(rank) << 32 | ranks_[rank].next));
    auto uniform = [&](uint64_t which) { // in (0, 1]
      return (static_cast<double>(dyna_mix64(key ^ which) >> 11) + 1) * 0x1p-53;
    };
    constexpr double turn = 6.283185307179586;
    double normal =
        std::sqrt(-2 * std::log(uniform(1))) * std::cos(turn * uniform(2));
    double seconds = step.seconds * std::max(0.0, 1 + options_.noise * normal);
    if (options_.delayEvery > 0 &&
        dyna_mix64(key ^ 3) % static_cast<uint64_t>(options_.delayEvery) == 0)
      seconds += options_.delaySeconds;
    return seconds;
  }

  //===--------------------------------------------------------------------===//
  // Transfers
  //===--------------------------------------------------------------------===//

  /// Records that the rank has started the transfer now.
  void come(int rank, int t, double seconds) {
    const PlannedTransfer &transfer = work_.transfers()[t];
    State &state = states_[t];
    state.seconds = std::max(state.seconds, seconds);
    if (isEager(transfer) && work_.party(transfer, 0) != rank)
      return;
    opener_ = rank;
    meet(t, ranks_[rank].now);
  }

  /// Records that one participant has arrived; the last one makes the transfer
  /// begin.
  void meet(int t, double time) {
    State &state = states_[t];
    state.ready = std::max(state.ready, time);
    if (--state.pending == 0)
      begin(t);
  }

  void begin(int t) {
    const PlannedTransfer &transfer = work_.transfers()[t];
    State &state = states_[t];
    result_.transfers[t].start = state.ready;
    if (transfer.isMeeting()) {
      if (transfer.kind == PlannedTransfer::Kind::Norm)
        state.seconds += transfer.seconds;
      return end(t, state.ready + state.seconds);
    }
    if (isShared_)
      return events_.push({state.ready, t});
    if (isHost_)
      return t < work_.parts() ? carryOutPart(t) : carryOut(t);
    end(t, state.ready + transfer.seconds);
  }

  /// Lets a host rank carry out a transfer: one that waits and moves nothing
  /// else, or the one that made it possible.
  void carryOut(int t) {
    const PlannedTransfer &transfer = work_.transfers()[t];
    int by = nothing;
    for (int p = 0; p < transfer.parties && by == nothing; ++p)
      if (isFree(work_.party(transfer, p), states_[t].ready))
        by = work_.party(transfer, p);
    end(t, move(by, states_[t].ready, transfer.seconds));
  }

  bool isFree(int rank, double time) const {
    return ranks_[rank].waitsFor != nothing && ranks_[rank].now <= time;
  }

  /// Lets the rank, or the opener if there is none, move bytes from `time` on.
  /// Returns the end.
  double move(int by, double time, double seconds) {
    if (by == nothing)
      by = opener_;
    Rank &rank = ranks_[by];
    rank.now = std::max(rank.now, time) + seconds;
    result_.ranks[by].copying += seconds;
    return rank.now;
  }

  //===--------------------------------------------------------------------===//
  // Parts in buckets
  //===--------------------------------------------------------------------===//

  /// Messages whose other rank has begun the bucket, too.
  void carryOutPart(int part) {
    State &state = states_[part];
    state.left = messages_->of(part).size();
    state.seconds = state.ready; // the latest end so far
    state.hasBegun = true;
    for (int m : messages_->of(part)) {
      const int peer = messages_->peer(m, part);
      if (!states_[peer].hasBegun)
        continue;
      const SwitchMessages::Message &message = work_.switches().messages[m];
      const double time = std::max(state.ready, states_[peer].ready);
      int by = nothing;
      for (int rank : {message.from, message.to})
        if (by == nothing && isFree(rank, time))
          by = rank;
      const double last = move(
          by, time,
          work_.cluster().messageSeconds(message.from, message.to,
                                         static_cast<double>(message.bytes)));
      state.seconds = std::max(state.seconds, last);
      --state.left;
      states_[peer].seconds = std::max(states_[peer].seconds, last);
      if (--states_[peer].left == 0)
        end(peer, states_[peer].seconds);
    }
    if (state.left == 0)
      end(part, state.seconds);
  }

  void endOnLinks(int t, double time) {
    if (t < static_cast<int>(states_.size()))
      return end(t, time);
    endParts(time, [&](std::vector<int> &ended) {
      flows_->endFlow(t - static_cast<int>(states_.size()), time, ended);
    });
  }

  template <typename Run> void endParts(double time, Run run) {
    std::vector<int> ended;
    run(ended);
    for (int part : ended)
      end(part, time);
  }

  /// Starts the parts of the same rank that waited for the room of this one.
  void goOn(int part, double time) {
    if (isHost_)
      return;
    const int rank = work_.switches().parts[part].rank;
    int &oldest = oldest_[rank], &next = nextForRoom_[rank];
    for (; oldest >= 0 && states_[oldest].hasEnded;
         oldest = order_.after[oldest])
      for (; next >= 0 && order_.room[next] == oldest;
           next = order_.after[next])
        meet(next, time);
  }

  void end(int t, double time) {
    // Chains may be long, so use a queue here instead of recursion.
    ended_.push_back({time, t});
    if (ended_.size() > 1)
      return;
    for (size_t i = 0; i < ended_.size(); ++i) {
      auto [time, t] = ended_[i];
      const PlannedTransfer &transfer = work_.transfers()[t];
      states_[t].hasEnded = true;
      result_.transfers[t].end = time;
      for (int p = 0; p < transfer.parties; ++p) {
        const int number = work_.party(transfer, p);
        if (ranks_[number].waitsFor == t) {
          ranks_[number].waitsFor = nothing;
          wake(number, time);
        }
      }
      if (transfer.isMeeting())
        continue;
      if (t < work_.parts())
        goOn(t, time);
      if (followers_.empty()) {
        if (int next = states_[t].follower; next != nothing)
          meet(next, time);
      } else {
        for (int p = 0; p < transfer.parties; ++p)
          if (int next = followers_[firstFollower_[t] + p]; next != nothing)
            meet(next, time);
      }
    }
    ended_.clear();
  }

  const PlanWork &work_;
  const SimulationOptions &options_;
  const bool isHost_, isShared_, isNoisy_;
  std::vector<State> states_;
  std::vector<Rank> ranks_;
  std::vector<Device> devices_;                ///< empty if no rank takes turns
  std::vector<int> firstFollower_, followers_; ///< with one stream a rank
  std::vector<int> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  const PartOrder order_;
  std::vector<int> oldest_; ///< of each rank, its first part that has not ended
  std::vector<int>
      nextForRoom_; ///< of each rank, the next part that needs room
  std::optional<SharedLinks> links_;
  std::optional<BucketFlows> flows_;     ///< of devices
  std::optional<PartMessages> messages_; ///< of hosts
  std::vector<std::pair<double, int>> ended_;
  int opener_ = 0;
  PlanTimes result_;
};

} // namespace

StatusOr<PlanTimes> playPlan(const PlanWork &work,
                             const SimulationOptions &options) {
  return Player(work, options).run();
}

StatusOr<PlanTimes> timePlan(const ExecutableGraph &graph,
                             const plan::Plan &plan, const CostModel &costs,
                             const SimulationOptions &options) {
  return playPlan(PlanWork(graph, plan, costs), options);
}

} // namespace dyna
