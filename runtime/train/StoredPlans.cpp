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
        prefix_(planPrefix(session)),
        place_(drawRun(), session.options.planAhead) {
    int first = session.ranks->firstRank();
    auto local = static_cast<int>(session.ranks->localRanks());
    for (int rank = first; rank < first + local; ++rank)
      ranks_.push_back(rank);
    processes_ = session.home.graph->ranks() / local;
  }

  /// Planners need not wait for steps that never come, nor the next run for
  /// those of this one, which end with it. Nothing depends on it.
  ~StoredPlans() override {
    std::lock_guard<std::mutex> lock(mutex_);
    place_.end();
    if (!place_.isMarked() || isBroken_)
      return;
    (void)store_->put(markKey(prefix_), place_.mark().toJson(), plansAreKept);
    (void)store_->remove(plannersKey(prefix_));
  }

  void startAt(int64_t step) override { place_.startAt(step); }

  Status plan(PlannedStep &step) override {
    Status status = fetch(step);
    // A store that does not answer would only be waited for once more.
    isBroken_ = isBroken_ || status.code() == StatusCode::InvalidArgument;
    return status;
  }

  void stop() override { isStopped_ = true; }

private:
  Status fetch(PlannedStep &step) {
    DYNA_RETURN_IF_ERROR(advance(step));
    DYNA_ASSIGN_OR_RETURN(int64_t planners, countPlanners());
    int64_t owner = step.step % (planners > 0 ? planners : processes_);
    if (planners == 0 && owner == ranks_.front() / ranks_.size())
      return makeForAll(step);
    bool isLost = isMissing(planners, owner);
    auto patience = std::chrono::seconds(session_.options.storeRetry > 0
                                             ? session_.options.storeRetry
                                             : session_.options.timeout);
    plan::StepPlan whole;
    for (int rank : ranks_) {
      auto deadline = Clock::now() + (isLost ? patience * 0 : patience);
      DYNA_ASSIGN_OR_RETURN(auto entry, await(step, rank, deadline));
      if (!entry) {
        DYNA_RETURN_IF_ERROR(miss(step, planners, owner, patience));
        return maker_->plan(step);
      }
      DYNA_ASSIGN_OR_RETURN(PlanEntry part,
                            readPlanEntry(*entry, step.step, rank));
      step.predictedSeconds = part.predictedSeconds;
      if (whole.phases.empty())
        whole = std::move(part.step);
      else
        addRank(whole, std::move(part.step), rank);
    }
    found(planners, owner);
    DYNA_RETURN_IF_ERROR(prove(std::move(whole), step));
    for (int rank : ranks_)
      DYNA_RETURN_IF_ERROR(store_->remove(planKey(prefix_, step, rank)));
    return Status::ok();
  }

  /// Of a rank that is not there, the proof says so.
  static void addRank(plan::StepPlan &whole, plan::StepPlan part, int rank) {
    const int count = std::min(whole.phaseCount(), part.phaseCount());
    for (int k = 0; k < count; ++k) {
      auto &to = whole.phases[k].plan.ranks, &own = part.phases[k].plan.ranks;
      if (own.size() == to.size() && rank < static_cast<int>(own.size()))
        to[rank] = std::move(own[rank]);
    }
  }

  /// For the ranks of this process.
  Status prove(plan::StepPlan parts, PlannedStep &step) const {
    if (session_.ranged) {
      DYNA_ASSIGN_OR_RETURN(
          step.phases,
          session_.ranged->proveRanks(std::move(parts), ranks_, step.batch));
      return Status::ok();
    }
    if (parts.phaseCount() != 1)
      return Status::invalidArgument(
          formatText("the stored plan of step %d has %d phases, but this run "
                     "has one strategy",
                     step.step + 1, parts.phaseCount()));
    DYNA_ASSIGN_OR_RETURN(step.plan,
                          VerifiedPlan::proveRanks(
                              *session_.home.graph,
                              std::move(parts.phases.front().plan), ranks_,
                              step.batch.lengths(),
                              {maxBlockBytes, -1, countTargets(step.batch)}));
    return Status::ok();
  }

  Status advance(const PlannedStep &step) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ranks_.front() != 0)
      return Status::ok();
    return place_.want(step.step, step.begin) ? putMark() : Status::ok();
  }

  Status putMark() {
    losses_ = store_->losses();
    return store_->put(markKey(prefix_), place_.mark().toJson(), plansAreKept);
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

  Status makeForAll(PlannedStep &step) {
    DYNA_RETURN_IF_ERROR(maker_->plan(step));
    return processes_ > 1 ? putPlan(*store_, prefix_, step, &ranks_)
                          : Status::ok();
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
      if (place_.isMarked() && losses_ != store_->losses())
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
  RunPlace place_;
  int64_t losses_ = 0;
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

Status putPlan(Store &store, const std::string &prefix, const PlannedStep &step,
               const std::vector<int> *without) {
  plan::StepPlan phases;
  if (step.phases)
    phases = step.phases->step.toStepPlan();
  const int ranks = step.plans().front()->rankCount();
  for (int rank = 0; rank < ranks; ++rank) {
    if (without &&
        std::find(without->begin(), without->end(), rank) != without->end())
      continue;
    const std::string entry =
        step.plan
            ? writePlanEntry(step.plan->plan(), step.step, rank,
                             step.predictedSeconds)
            : writePlanEntry(phases, step.step, rank, step.predictedSeconds);
    DYNA_RETURN_IF_ERROR(
        store.put(planKey(prefix, step, rank), entry, plansAreKept));
  }
  return Status::ok();
}

} // namespace dyna
