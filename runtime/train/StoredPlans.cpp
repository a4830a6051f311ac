//===- StoredPlans.cpp - Plans that processes share -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/StoredPlans.h"

#include "runtime/abi/Random.h"
#include "runtime/base/Text.h"
#include "runtime/executor/Staging.h"
#include "runtime/plan/Bytes.h"
#include "runtime/store/PlanEntry.h"
#include "runtime/train/PlanMark.h"
#include "runtime/train/Progress.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <unistd.h>

namespace dyna {
namespace {

using Clock = Store::Clock;

/// No other run has it, on any machine: all that it is made from counts.
uint64_t drawRun() {
  auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return dyna_mix64(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid())
                                                     << 40);
}

class StoredPlans : public PlanSource {
public:
  StoredPlans(const Session &session, std::unique_ptr<Store> store,
              std::unique_ptr<PlanSource> maker)
      : session_(session), store_(std::move(store)), maker_(std::move(maker)),
        prefix_(planPrefix(session)) {
    int first = session.ranks->firstRank();
    auto local = static_cast<int>(session.ranks->localRanks());
    for (int rank = first; rank < first + local; ++rank)
      ranks_.push_back(rank);
    processes_ = session.graph->ranks() / local;
    mark_.run = drawRun();
  }

  /// Planners need not wait for steps that never come. Nothing depends on it.
  ~StoredPlans() override {
    std::lock_guard<std::mutex> lock(mutex_);
    mark_.hasEnded = true;
    if (isMarked_ && !isBroken_)
      (void)store_->put(markKey(prefix_), mark_.toJson(), plansAreKept);
  }

  void startAt(int64_t step) override { first_ = step; }

  StatusOr<VerifiedPlan> plan(const PlannedStep &step) override {
    StatusOr<VerifiedPlan> plan = fetch(step);
    // A store that does not answer would only be waited for once more.
    isBroken_ = isBroken_ || (!plan.isOk() && plan.status().code() ==
                                                  StatusCode::InvalidArgument);
    return plan;
  }

  void stop() override { isStopped_ = true; }

private:
  StatusOr<VerifiedPlan> fetch(const PlannedStep &step) {
    DYNA_RETURN_IF_ERROR(advance(step));
    DYNA_ASSIGN_OR_RETURN(int64_t planners, countPlanners());
    int64_t owner = step.step % (planners > 0 ? planners : processes_);
    if (planners == 0 && owner == ranks_.front() / ranks_.size())
      return makeForAll(step);
    bool isLost = isMissing(planners, owner);
    auto patience = std::chrono::seconds(session_.options.storeRetry > 0
                                             ? session_.options.storeRetry
                                             : session_.options.timeout);
    plan::Plan whole;
    for (int rank : ranks_) {
      auto deadline = Clock::now() + (isLost ? patience * 0 : patience);
      DYNA_ASSIGN_OR_RETURN(auto entry, await(step, rank, deadline));
      if (!entry) {
        DYNA_RETURN_IF_ERROR(miss(step, planners, owner, patience));
        return maker_->plan(step);
      }
      DYNA_ASSIGN_OR_RETURN(plan::Plan part,
                            readPlanEntry(*entry, step.step, rank));
      // Of a rank that is not there, the proof says so.
      if (whole.ranks.empty())
        whole = part;
      else if (part.ranks.size() == whole.ranks.size())
        whole.ranks[rank] = std::move(part.ranks[rank]);
    }
    found(planners, owner);
    DYNA_ASSIGN_OR_RETURN(VerifiedPlan proven,
                          VerifiedPlan::proveRanks(
                              *session_.graph, std::move(whole), ranks_,
                              step.batch.lengths(),
                              {maxBlockBytes, -1, countTargets(step.batch)}));
    for (int rank : ranks_)
      DYNA_RETURN_IF_ERROR(store_->remove(planKey(prefix_, step, rank)));
    return proven;
  }

  /// Steps that wait are at most `--plan-ahead`: so this one was asked for when
  /// the one so far before it had been taken.
  Status advance(const PlannedStep &step) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ranks_.front() != 0)
      return Status::ok();
    begins_[step.step] = step.begin;
    int64_t at = std::max(begins_.begin()->first,
                          step.step - session_.options.planAhead);
    begins_.erase(begins_.begin(), begins_.lower_bound(at));
    auto begin = begins_.begin();
    if (isMarked_ && begin->first <= mark_.step)
      return Status::ok();
    // Of several threads the one of a later step may come first. Planners plan
    // nothing before the mark, so it has to begin where the run does.
    if (!isMarked_ && begin->first > first_)
      return Status::ok();
    mark_.step = begin->first;
    mark_.cursor = begin->second;
    isMarked_ = true;
    return putMark();
  }

  Status putMark() {
    losses_ = store_->losses();
    return store_->put(markKey(prefix_), mark_.toJson(), plansAreKept);
  }

  /// Once there were planners, plans are theirs.
  StatusOr<int64_t> countPlanners() {
    DYNA_ASSIGN_OR_RETURN(auto text, store_->find(plannersKey(prefix_)));
    std::lock_guard<std::mutex> lock(mutex_);
    if (text)
      planners_ =
          std::clamp<int64_t>(std::strtol(text->c_str(), nullptr, 10), 1, 1024);
    return planners_;
  }

  StatusOr<VerifiedPlan> makeForAll(const PlannedStep &step) {
    DYNA_ASSIGN_OR_RETURN(VerifiedPlan plan, maker_->plan(step));
    if (processes_ > 1)
      DYNA_RETURN_IF_ERROR(
          putPlan(*store_, prefix_, step, plan.plan(), &ranks_));
    return plan;
  }

  /// Says where this run stands again to a store that was lost meanwhile.
  StatusOr<std::optional<std::string>> await(const PlannedStep &step, int rank,
                                             Clock::time_point deadline) {
    constexpr auto slice = std::chrono::milliseconds(200);
    while (true) {
      DYNA_ASSIGN_OR_RETURN(
          auto entry, store_->get(planKey(prefix_, step, rank),
                                  std::min(deadline, Clock::now() + slice)));
      if (entry || Clock::now() >= deadline)
        return entry;
      if (isStopped_)
        return Status(StatusCode::Cancelled, "no plan is wanted any more");
      std::lock_guard<std::mutex> lock(mutex_);
      if (isMarked_ && losses_ != store_->losses())
        DYNA_RETURN_IF_ERROR(putMark());
    }
  }

  bool isMissing(int64_t planners, int64_t owner) {
    std::lock_guard<std::mutex> lock(mutex_);
    return missing_.count({planners, owner}) > 0;
  }
  void found(int64_t planners, int64_t owner) {
    std::lock_guard<std::mutex> lock(mutex_);
    missing_.erase({planners, owner});
  }

  /// A failure, or a note that this process plans instead.
  Status miss(const PlannedStep &step, int64_t planners, int64_t owner,
              std::chrono::seconds patience) {
    std::string who = planners > 0
                          ? formatText("planner %d of %d", owner, planners)
                          : formatText("process %d of %d", owner, processes_);
    if (session_.options.storeRetry == 0)
      return Status(StatusCode::DeadlineExceeded,
                    formatText("%s has left no plan of step %d in %s for %d s "
                               "(--timeout); with --store-retry another would "
                               "be made here",
                               who, step.step + 1, store_->describe(),
                               patience.count()));
    std::lock_guard<std::mutex> lock(mutex_);
    if (missing_.insert({planners, owner}).second)
      sayLine(formatText("note: %s has left no plan of step %d in %s for %d s: "
                         "rank %d plans its steps itself until it is back",
                         who, step.step + 1, store_->describe(),
                         patience.count(), ranks_.front()));
    return Status::ok();
  }

  const Session &session_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<PlanSource> maker_;
  const std::string prefix_;
  std::vector<int> ranks_; ///< of this process
  int64_t processes_ = 1;
  std::atomic<bool> isStopped_{false}, isBroken_{false};
  std::mutex mutex_;
  PlanMark mark_;
  bool isMarked_ = false;
  int64_t first_ = 0; ///< of the run's steps
  int64_t losses_ = 0;
  int64_t planners_ = 0;
  std::map<int64_t, DataCursor> begins_; ///< of steps that may be marked yet
  std::set<std::pair<int64_t, int64_t>> missing_;
};

} // namespace

std::unique_ptr<PlanSource> fetchPlans(const Session &session,
                                       std::unique_ptr<Store> store,
                                       std::unique_ptr<PlanSource> maker) {
  return std::make_unique<StoredPlans>(session, std::move(store),
                                       std::move(maker));
}

Status putPlan(Store &store, const std::string &prefix, const PlannedStep &step,
               const plan::Plan &plan, const std::vector<int> *without) {
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    if (!without ||
        std::find(without->begin(), without->end(), rank) == without->end())
      DYNA_RETURN_IF_ERROR(store.put(planKey(prefix, step, rank),
                                     writePlanEntry(plan, step.step, rank),
                                     plansAreKept));
  return Status::ok();
}

} // namespace dyna
