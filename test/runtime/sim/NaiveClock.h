//===- NaiveClock.h - Simulates a step by the definition --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Goes from one event to the next and looks at everything anew at each of them:
// ranks, transfers and the flows of ports. It knows neither pending counts nor
// bundles, and computes all speeds from what moves. For devices without sharing.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_SIM_NAIVECLOCK_H
#define DYNA_TEST_RUNTIME_SIM_NAIVECLOCK_H

#include "runtime/sim/PlanWork.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace dyna {

class NaiveClock {
public:
  NaiveClock(const PlanWork &work, int64_t limit)
      : ends(work.ranks()), work_(work), limit_(limit), ranks_(work.ranks()),
        transfers_(work.transfers().size()), started_(work.ranks()) {
    for (Rank &rank : ranks_)
      rank.until = work.begin();
    readBuckets();
    readLines();
  }

  void run() {
    for (;;) {
      while (progress())
        ;
      const double step = untilNext();
      if (step == never)
        return;
      pass(step);
    }
  }

  std::vector<std::vector<double>> ends; ///< of instructions, by rank
  int slowed = 0; ///< flows that had half of their speed for some time

private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double tiny = 1e-9;
  using Step = PlanWork::Step;
  /// Rank, whether inside of a node, whether in.
  using Link = std::tuple<int, bool, bool>;

  struct Rank {
    int next = 0;
    bool isIn = false; ///< in an instruction
    double until = 0;  ///< computes until then
  };
  struct Transfer {
    int come = 0;
    double seconds = 0; ///< of a call
    bool hasBegun = false, hasEnded = false;
    double latency = 0, left = 0;
    std::set<Link> links;
    int before = -1; ///< in its line
  };
  struct Message {
    int from, to; ///< parts
    double bytes;
    bool canMove = false, isOut = false, isIn = false;
  };
  struct Flow {
    bool isOn = false;
    double latency = 0, left = 0, drained = -1;
  };

  void readBuckets() {
    if (work_.parts() == 0)
      return;
    const SwitchMessages &all = work_.switches();
    for (int b = 0; b < static_cast<int>(all.buckets.size()); ++b) {
      auto partOf = [&](int rank) {
        size_t part = all.firstPart(b);
        while (all.parts[part].rank != rank)
          ++part;
        return static_cast<int>(part);
      };
      for (size_t m = all.firstMessage(b); m < all.buckets[b].messages; ++m)
        messages_.push_back({partOf(all.messages[m].from),
                             partOf(all.messages[m].to),
                             static_cast<double>(all.messages[m].bytes)});
    }
  }

  void readLines() {
    std::map<int, int> last;
    for (int rank = 0; rank < work_.ranks(); ++rank)
      for (const Step &step : work_.steps(rank))
        for (int u = step.first;
             step.kind == Step::Kind::Start && u < step.first + step.count;
             ++u) {
          const int t = work_.use(u);
          const PlannedTransfer &transfer = work_.transfers()[t];
          if (isPart(t) || work_.party(transfer, 0) != rank)
            continue;
          if (last.count(transfer.line))
            transfers_[t].before = last[transfer.line];
          last[transfer.line] = t;
        }
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      findLinks(static_cast<int>(t));
  }

  int nodeOf(int rank) const { return work_.network().nodeOf(rank); }
  bool isPart(int t) const { return t < work_.parts(); }
  int rankOf(int part) const { return work_.switches().parts[part].rank; }

  void findLinks(int t) {
    const PlannedTransfer &transfer = work_.transfers()[t];
    std::map<int, int> onNode;
    for (int p = 0; p < transfer.parties; ++p)
      ++onNode[nodeOf(work_.party(transfer, p))];
    for (int p = 0; p < transfer.parties; ++p) {
      const int rank = work_.party(transfer, p);
      for (bool in : {false, true}) {
        if (transfer.isMessage()) {
          if (in == (p == 1))
            transfers_[t].links.insert({rank, onNode.size() == 1, in});
          continue;
        }
        if (onNode[nodeOf(rank)] > 1)
          transfers_[t].links.insert({rank, true, in});
        if (onNode.size() > 1)
          transfers_[t].links.insert({rank, false, in});
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // At one moment
  //===--------------------------------------------------------------------===//

  bool progress() {
    bool changes = false;
    for (int rank = 0; rank < work_.ranks(); ++rank)
      changes |= goOn(rank);
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      changes |= begin(static_cast<int>(t));
    for (int rank = 0; rank < work_.ranks(); ++rank)
      changes |= beginParts(rank);
    for (Message &message : messages_)
      if (!message.canMove && transfers_[message.from].hasBegun &&
          transfers_[message.to].hasBegun)
        changes = message.canMove = true;
    for (int rank = 0; rank < work_.ranks(); ++rank)
      for (bool inside : {false, true})
        for (bool in : {false, true})
          changes |= moveOn({rank, inside, in});
    for (int part = 0; part < work_.parts(); ++part)
      if (transfers_[part].hasBegun && !transfers_[part].hasEnded &&
          std::all_of(messages_.begin(), messages_.end(),
                      [&](const Message &message) {
                        return (message.from != part && message.to != part) ||
                               (message.isOut && message.isIn);
                      }))
        changes = transfers_[part].hasEnded = true;
    return changes;
  }

  bool goOn(int number) {
    Rank &rank = ranks_[number];
    if (rank.until > now_ + tiny || rank.next >= work_.steps(number).size())
      return false;
    const Step &step = work_.steps(number)[rank.next];
    if (!rank.isIn) {
      rank.isIn = true;
      for (int u = step.first; u < step.first + step.count; ++u)
        if (step.kind == Step::Kind::Start || step.kind == Step::Kind::Meet)
          come(number, work_.use(u), step.seconds);
      if (step.kind == Step::Kind::Run || step.kind == Step::Kind::Start)
        rank.until = now_ + step.seconds;
      return true;
    }
    for (int u = step.first; u < step.first + step.count; ++u)
      if (step.kind != Step::Kind::Start && !transfers_[work_.use(u)].hasEnded)
        return false;
    ends[number].push_back(now_);
    rank.isIn = false;
    ++rank.next;
    return true;
  }

  void come(int rank, int t, double seconds) {
    ++transfers_[t].come;
    transfers_[t].seconds = std::max(transfers_[t].seconds, seconds);
    if (isPart(t))
      started_[rank].push_back(t);
  }

  bool begin(int t) {
    const PlannedTransfer &what = work_.transfers()[t];
    Transfer &own = transfers_[t];
    if (own.hasBegun || own.come < what.parties ||
        (own.before >= 0 && !transfers_[own.before].hasEnded))
      return false;
    own.hasBegun = true;
    if (what.isMeeting()) {
      own.links.clear(); // nothing slows it
      own.latency = own.seconds;
      if (what.kind == PlannedTransfer::Kind::Norm)
        own.latency += what.seconds;
    } else {
      own.latency = what.latency;
      own.left = what.seconds - what.latency;
    }
    return true;
  }

  /// The next part of a rank begins if its bytes fit beside those under way, the oldest
  /// of which come first to their end.
  bool beginParts(int rank) {
    int64_t bytes = 0;
    bool areEnded = true, isAlone = true;
    for (int part : started_[rank]) {
      const SwitchMessages::Part &one = work_.switches().parts[part];
      areEnded &= transfers_[part].hasEnded;
      if (areEnded)
        continue;
      const int64_t own = std::max(one.sent, one.received);
      if (!transfers_[part].hasBegun) {
        if (!isAlone && bytes + own > limit_)
          return false;
        transfers_[part].hasBegun = true;
        return true;
      }
      bytes += own;
      isAlone = false;
    }
    return false;
  }

  /// What of a part goes over a port.
  std::vector<Message *> messagesOn(const Link &link, int part) {
    const auto [rank, inside, in] = link;
    std::vector<Message *> found;
    for (Message &message : messages_)
      if ((in ? message.to : message.from) == part &&
          (nodeOf(rankOf(message.from)) == nodeOf(rankOf(message.to))) ==
              inside)
        found.push_back(&message);
    return found;
  }

  bool moveOn(const Link &link) {
    const auto [rank, inside, in] = link;
    Flow &flow = flows_[link];
    bool changes = false;
    if (flow.isOn && flow.latency <= tiny && flow.left <= tiny) {
      flow.isOn = false;
      flow.drained = now_;
      changes = true;
    }
    for (int part : started_[rank]) {
      const std::vector<Message *> own = messagesOn(link, part);
      auto isDone = [in = in](const Message *message) {
        return in ? message->isIn : message->isOut;
      };
      if (std::all_of(own.begin(), own.end(), isDone))
        continue;
      // This part has its turn.
      for (Message *message : own)
        if (message->canMove && !given_.count({message, in})) {
          given_.insert({message, in});
          if (!flow.isOn)
            flow.latency = flow.drained == now_ && turn_[link] == part
                               ? 0
                               : work_.network().latency(inside);
          flow.left += message->bytes * work_.network().secondsPerByte(inside);
          turn_[link] = part;
          changes = flow.isOn = true;
        }
      const bool areGiven =
          std::all_of(own.begin(), own.end(), [&, in = in](Message *message) {
            return given_.count({message, in}) > 0;
          });
      if (flow.isOn || !areGiven)
        return changes;
      for (Message *message : own)
        (in ? message->isIn : message->isOut) = true;
      changes = true;
    }
    return changes;
  }

  //===--------------------------------------------------------------------===//
  // From one moment to the next
  //===--------------------------------------------------------------------===//

  static bool isMoving(const Flow &flow) {
    return flow.isOn && flow.latency <= tiny;
  }
  bool isMoving(int t) const {
    const Transfer &own = transfers_[t];
    return own.hasBegun && !own.hasEnded && own.latency <= tiny &&
           own.left > tiny;
  }
  double speedOf(int t) const {
    for (const Link &link : transfers_[t].links)
      if (auto flow = flows_.find(link);
          flow != flows_.end() && isMoving(flow->second))
        return 0.5;
    return 1;
  }
  double speedOf(const Link &link) const {
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      if (isMoving(static_cast<int>(t)) && transfers_[t].links.count(link))
        return 0.5;
    return 1;
  }

  double untilNext() const {
    double step = never;
    for (int number = 0; number < work_.ranks(); ++number)
      if (const Rank &rank = ranks_[number]; rank.until > now_ + tiny)
        step = std::min(step, rank.until - now_);
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      if (const Transfer &own = transfers_[t]; own.hasBegun && !own.hasEnded)
        step = std::min(step, own.latency > tiny
                                  ? own.latency
                                  : own.left / speedOf(static_cast<int>(t)));
    for (const auto &[link, flow] : flows_)
      if (flow.isOn)
        step = std::min(step, flow.latency > tiny ? flow.latency
                                                  : flow.left / speedOf(link));
    return step;
  }

  void pass(double step) {
    std::vector<std::pair<double *, double>> less;
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      if (Transfer &own = transfers_[t]; own.hasBegun && !own.hasEnded) {
        const double speed = speedOf(static_cast<int>(t));
        if (own.latency > tiny)
          less.push_back({&own.latency, step});
        else
          less.push_back({&own.left, step * speed});
        slowed += own.latency <= tiny && speed < 1;
      }
    for (auto &[link, flow] : flows_)
      if (flow.isOn)
        less.push_back(flow.latency > tiny
                           ? std::pair(&flow.latency, step)
                           : std::pair(&flow.left, step * speedOf(link)));
    now_ += step;
    for (auto [what, by] : less)
      *what -= by;
    for (size_t t = work_.parts(); t < transfers_.size(); ++t)
      if (Transfer &own = transfers_[t]; own.hasBegun && !own.hasEnded)
        own.hasEnded = own.latency <= tiny && own.left <= tiny;
  }

  const PlanWork &work_;
  const int64_t limit_;
  double now_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Transfer> transfers_;
  std::vector<Message> messages_;
  std::vector<std::vector<int>> started_; ///< parts, by rank, in order
  std::map<Link, Flow> flows_;
  std::map<Link, int> turn_; ///< part whose messages a port was given last
  std::set<std::pair<const Message *, bool>> given_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_SIM_NAIVECLOCK_H
