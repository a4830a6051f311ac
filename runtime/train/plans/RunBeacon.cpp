//===- RunBeacon.cpp - Announces a run to planners ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/RunBeacon.h"

#include "runtime/base/text/Text.h"

namespace dyna {

RunBeacon::~RunBeacon() { stop(); }

Status RunBeacon::say(const PlanMark &mark) {
  std::lock_guard<std::mutex> lock(mutex_);
  mark_ = mark;
  DYNA_RETURN_IF_ERROR(put());
  if (!isSaid_)
    thread_ = std::thread([this] { repeat(); });
  isSaid_ = true;
  return Status::ok();
}

Status RunBeacon::sayAfterLoss() {
  std::lock_guard<std::mutex> lock(mutex_);
  return isSaid_ && losses_ != store_.losses() ? put() : Status::ok();
}

/// Puts the mark into the slot that this run has, or else into the next free
/// one.
Status RunBeacon::put() {
  losses_ = store_.losses();
  const std::string text = mark_.toJson();
  for (int i = 0; i < kMostRuns; ++i) {
    const int slot = (slot_ + i) % kMostRuns;
    const std::string key = slotKey(prefix_, slot);
    DYNA_ASSIGN_OR_RETURN(bool isNew, store_.putNew(key, text, runsAreKept));
    if (!isNew) {
      DYNA_ASSIGN_OR_RETURN(auto there, store_.find(key));
      if (!there)
        continue;
      StatusOr<PlanMark> other = PlanMark::fromJson(*there);
      if (!other.isOk() || other->run != mark_.run)
        continue;
      DYNA_RETURN_IF_ERROR(store_.put(key, text, runsAreKept));
    }
    slot_ = slot;
    return Status::ok();
  }
  return Status::resourceExhausted(formatText(
      "%d runs of this program with these data and strategies use %s at this "
      "moment, which is the limit: use another server",
      kMostRuns, store_.describe()));
}

/// Repeats the mark. It does not report a failure: the next request of the run
/// itself does.
void RunBeacon::repeat() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!isStopped_)
    if (wake_.wait_for(lock, runsAreKept / 6) == std::cv_status::timeout &&
        !isStopped_)
      (void)put();
}

void RunBeacon::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    isStopped_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void RunBeacon::end() {
  stop();
  if (!isSaid_)
    return;
  const std::string run = runPrefix(prefix_, mark_.run);
  (void)store_.put(endedKey(run), "1", plansAreKept);
  (void)store_.remove(slotKey(prefix_, slot_));
  (void)store_.remove(plannersKey(run));
}

} // namespace dyna
