//===- StoredPlans.cpp - Shares plans between processes through a store ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/StoredPlans.h"

#include "runtime/base/text/Text.h"
#include "runtime/executor/step/Staging.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/store/PlanEntry.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/plans/PlanMark.h"
#include "runtime/train/plans/RunBeacon.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>

namespace dyna {
namespace {

using Clock = Store::Clock;

class StoredPlans : public PlanSource {
public:
  StoredPlans(const Session &session, std::unique_ptr<Store> store,
              std::unique_ptr<PlanSource> maker)
      : session_(session), store_(std::move(store)), maker_(std::move(maker)),
        prefix_(planPrefix(session)), run_(runPrefix(prefix_, session.run)),
        place_(session.run, session.options.planAhead),
        beacon_(*store_, prefix_) {
    int first = session.ranks->firstRank();
    auto local = static_cast<int>(session.ranks->localRanks());
    for (int rank = first; rank < first + local; ++rank)
      ranks_.push_back(rank);
    processes_ = session.ranks->worldRanks() / local;
  }

  /// Planners need not wait for steps that never come, nor the next run for
  /// those of this one, which end with it. Nothing depends on it.
  ~StoredPlans() override {
    if (!isBroken_)
      beacon_.end();
  }

  void startAt(int64_t step) override { place_.startAt(step); }

  Status plan(PlannedStep &step) override {
    Status status = fetch(step);
    // If the store does not answer, another call would only wait once more.
    isBroken_ = isBroken_ || status.code() == StatusCode::InvalidArgument;
    return status;
  }

  void stop() override { isStopped_ = true; }

private:
  /// Failures of the store say for which step it was asked.
  static Status forStep(const PlannedStep &step, const Status &status) {
    if (status.isOk() || status.code() == StatusCode::Cancelled)
      return status;
    return Status(status.code(), formatText("plan of step %d: %s",
                                            step.step + 1, status.message()));
  }
  /// Failures of what the store held name both.
  Status ofStored(const PlannedStep &step, const Status &status) const {
    if (status.isOk())
      return status;
    return Status(status.code(),
                  formatText("the plan of step %d in %s: %s", step.step + 1,
                             store_->describe(), status.message()));
  }

  std::chrono::seconds patience() const {
    return std::chrono::seconds(session_.options.storeRetry > 0
                                    ? session_.options.storeRetry
                                    : session_.options.timeout);
  }
  int64_t ownerOf(const PlannedStep &step, int64_t planners) const {
    return step.step % (planners > 0 ? planners : processes_);
  }

  /// Tries again if planners come or go meanwhile.
  Status fetch(PlannedStep &step) {
    DYNA_RETURN_IF_ERROR(forStep(step, advance(step)));
    const auto deadline = Clock::now() + patience();
    while (true) {
      StatusOr<int64_t> planners = countPlanners();
      if (!planners.isOk())
        return forStep(step, planners.status());
      const int64_t owner = ownerOf(step, *planners);
      if (*planners == 0 && owner == ranks_.front() / ranks_.size())
        return makeForAll(step);
      const bool isLost = isMissing(*planners, owner);
      plan::StepPlan whole;
      DYNA_ASSIGN_OR_RETURN(
          Fetched fetched,
          fetchParts(step, *planners, isLost ? Clock::now() : deadline, whole));
      if (fetched == Fetched::ByOthers)
        continue;
      if (fetched == Fetched::Nothing) {
        DYNA_RETURN_IF_ERROR(miss(step, *planners, owner));
        return maker_->plan(step);
      }
      found(*planners, owner);
      return take(step, std::move(whole));
    }
  }

  enum class Fetched {
    All,
    Nothing,  ///< until the deadline
    ByOthers, ///< planners have come or gone: others have the step now
  };

  /// Fetches the parts of all ranks of this process.
  StatusOr<Fetched> fetchParts(PlannedStep &step, int64_t planners,
                               Clock::time_point deadline,
                               plan::StepPlan &whole) {
    for (int rank : ranks_) {
      std::optional<std::string> entry;
      StatusOr<Fetched> fetched = await(step, rank, planners, deadline, entry);
      if (!fetched.isOk())
        return forStep(step, fetched.status());
      if (*fetched != Fetched::All)
        return *fetched;
      StatusOr<PlanEntry> part = readPlanEntry(*entry, step.step, rank);
      if (!part.isOk())
        return ofStored(step, part.status());
      step.predictedSeconds = part->predictedSeconds;
      if (whole.phases.empty())
        whole = std::move(part->step);
      else
        addRank(whole, std::move(part->step), rank);
    }
    return Fetched::All;
  }

  /// Verifies a fetched plan and removes it from the store.
  Status take(PlannedStep &step, plan::StepPlan whole) {
    DYNA_RETURN_IF_ERROR(ofStored(step, prove(std::move(whole), step)));
    for (int rank : ranks_)
      DYNA_RETURN_IF_ERROR(
          forStep(step, store_->remove(planKey(run_, step, rank))));
    return Status::ok();
  }

  /// Adds the program of a rank. If one is missing, verification fails and
  /// names it.
  static void addRank(plan::StepPlan &whole, plan::StepPlan part, int rank) {
    const int count = std::min(whole.phaseCount(), part.phaseCount());
    for (int k = 0; k < count; ++k) {
      auto &to = whole.phases[k].plan.ranks, &own = part.phases[k].plan.ranks;
      if (own.size() == to.size() && rank < static_cast<int>(own.size()))
        to[rank] = std::move(own[rank]);
    }
  }

  /// Verifies the parts of the ranks of this process.
  Status prove(plan::StepPlan parts, PlannedStep &step) const {
    DYNA_ASSIGN_OR_RETURN(step.plan,
                          session_.planner->verifyRanks(
                              std::move(parts), ranks_, step.batch.lengths(),
                              countTargets(step.batch), step.update));
    return Status::ok();
  }

  Status advance(const PlannedStep &step) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ranks_.front() != 0)
      return Status::ok();
    return place_.want(step.step, step.begin) ? beacon_.say(place_.mark())
                                              : Status::ok();
  }

  static int64_t countOf(const std::string &text) {
    return std::clamp<int64_t>(std::strtol(text.c_str(), nullptr, 10), 1, 1024);
  }

  /// Counts planners. Once this run had planners, they make its plans. Planners
  /// that still wait for a run are expected to join this one; if they join
  /// another, they leave the list.
  StatusOr<int64_t> countPlanners() {
    DYNA_ASSIGN_OR_RETURN(int64_t own, countOwnPlanners());
    if (own > 0)
      return own;
    DYNA_ASSIGN_OR_RETURN(auto waiting, store_->find(plannersKey(prefix_)));
    // Planners register with a run before they leave the waiting list.
    return waiting ? countOf(*waiting) : countOwnPlanners();
  }

  StatusOr<int64_t> countOwnPlanners() {
    DYNA_ASSIGN_OR_RETURN(auto own, store_->find(plannersKey(run_)));
    std::lock_guard<std::mutex> lock(mutex_);
    if (own)
      planners_ = countOf(*own);
    return planners_;
  }

  Status makeForAll(PlannedStep &step) {
    DYNA_RETURN_IF_ERROR(maker_->plan(step));
    return processes_ > 1 ? forStep(step, putPlan(*store_, run_, step, &ranks_))
                          : Status::ok();
  }

  /// Waits for a plan. Announces the state of this run again if the store was
  /// lost meanwhile.
  StatusOr<Fetched> await(const PlannedStep &step, int rank, int64_t planners,
                          Clock::time_point deadline,
                          std::optional<std::string> &entry) {
    constexpr auto slice = std::chrono::milliseconds(200);
    while (true) {
      DYNA_ASSIGN_OR_RETURN(
          entry, store_->get(planKey(run_, step, rank),
                             std::min(deadline, Clock::now() + slice)));
      if (entry)
        return Fetched::All;
      if (Clock::now() >= deadline)
        return Fetched::Nothing;
      if (isStopped_)
        return Status(StatusCode::Cancelled, "no plan is wanted any more");
      DYNA_RETURN_IF_ERROR(beacon_.sayAfterLoss());
      DYNA_ASSIGN_OR_RETURN(int64_t now, countPlanners());
      if (now != planners)
        return Fetched::ByOthers;
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

  /// Returns a failure, or notes that this process plans instead.
  Status miss(const PlannedStep &step, int64_t planners, int64_t owner) {
    std::string who = planners > 0
                          ? formatText("planner %d of %d", owner, planners)
                          : formatText("process %d of %d", owner, processes_);
    if (session_.options.storeRetry == 0)
      return Status(StatusCode::DeadlineExceeded,
                    formatText("%s has left no plan of step %d in %s for %d s "
                               "(--timeout); with --store-retry another would "
                               "be made here",
                               who, step.step + 1, store_->describe(),
                               patience().count()));
    std::lock_guard<std::mutex> lock(mutex_);
    if (missing_.insert({planners, owner}).second)
      sayLine(formatText("note: %s has left no plan of step %d in %s for %d s: "
                         "rank %d plans its steps itself until it is back",
                         who, step.step + 1, store_->describe(),
                         patience().count(), ranks_.front()));
    return Status::ok();
  }

  const Session &session_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<PlanSource> maker_;
  const std::string prefix_, run_; ///< keys of equal runs, and of this run
  std::vector<int> ranks_;         ///< of this process
  int64_t processes_ = 1;
  std::atomic<bool> isStopped_{false}, isBroken_{false};
  std::mutex mutex_;
  RunPlace place_;
  RunBeacon beacon_; ///< of rank 0's process
  int64_t planners_ = 0;
  std::set<std::pair<int64_t, int64_t>> missing_;
};

} // namespace

std::unique_ptr<PlanSource> fetchPlans(const Session &session,
                                       std::unique_ptr<Store> store,
                                       std::unique_ptr<PlanSource> maker) {
  return std::make_unique<StoredPlans>(session, std::move(store),
                                       std::move(maker));
}

Status putPlan(Store &store, const std::string &run, const PlannedStep &step,
               const std::vector<int> *without) {
  const plan::StepPlan plans = step.plan->toStepPlan();
  const int ranks = plans.phases.front().plan.rankCount();
  for (int rank = 0; rank < ranks; ++rank) {
    if (without &&
        std::find(without->begin(), without->end(), rank) != without->end())
      continue;
    const std::string entry =
        writePlanEntry(plans, step.step, rank, step.predictedSeconds);
    DYNA_RETURN_IF_ERROR(
        store.put(planKey(run, step, rank), entry, plansAreKept));
  }
  return Status::ok();
}

} // namespace dyna
