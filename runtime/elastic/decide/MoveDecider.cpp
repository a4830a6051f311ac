//===- MoveDecider.cpp - Decides to move, stay or go back -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/decide/MoveDecider.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

const char *wordOf(MoveAnswer answer) {
  switch (answer) {
  case MoveAnswer::Stay:
    return "stay";
  case MoveAnswer::Move:
    return "move";
  case MoveAnswer::GoBack:
    return "go back";
  }
  return "";
}

const char *wordOf(MoveState state) {
  switch (state) {
  case MoveState::Measuring:
    return "measuring";
  case MoveState::Settled:
    return "settled";
  case MoveState::Watching:
    return "watching";
  case MoveState::Barred:
    return "barred";
  }
  return "";
}

namespace {

std::string describeCut(const std::vector<int> &cut) {
  std::string text;
  for (int layers : cut)
    text += (text.empty() ? "" : "+") + std::to_string(layers);
  return text;
}

/// Returns the cut that the formula calls the fastest one.
std::vector<int> fastestCut(MoveProblem problem) {
  problem.clock = nullptr;
  problem.price = {};
  problem.test = {0, 0};
  return bestMove(problem).cut;
}

/// Says why a cut was not taken.
const char *reasonOf(const WeighedMove &move) {
  if (move.gainSeconds <= 0)
    return "no cut is faster";
  return "the gain is too small";
}

} // namespace

std::string MoveDecision::describe() const {
  std::string text = formatText("%s: ", wordOf(answer));
  if (answer == MoveAnswer::Stay && state != MoveState::Settled)
    return text + wordOf(state);
  if (answer == MoveAnswer::Stay)
    text += formatText("%s; ", reasonOf(move));
  if (answer == MoveAnswer::GoBack)
    text +=
        formatText("steps became %.1f %% slower; ", 100 * (after / before - 1));
  if (move.cut == from)
    return text + formatText("step %.3g s", move.stepSecondsNow);
  text +=
      formatText("%s -> %s, step %.3g -> %.3g s, gain %.3g s, price %.3g s",
                 describeCut(from), describeCut(move.cut), move.stepSecondsNow,
                 move.stepSecondsThen, move.gainSeconds, move.priceSeconds);
  if (move.stepsToEarn >= 0)
    text += formatText(", earned back in %d steps", move.stepsToEarn);
  return text + formatText(", %s moved", formatBytes(move.bytes.all));
}

double MoveDecider::Steps::meanWork() const {
  return count > 0 ? work / static_cast<double>(count) : 0;
}

double MoveDecider::Steps::median() const {
  if (perWork.empty())
    return 0;
  std::vector<double> sorted = perWork;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[half]
                           : (sorted[half - 1] + sorted[half]) / 2;
}

MoveDecider::MoveDecider(const MoveOptions &options) : options_(options) {
  modelChanged();
}

void MoveDecider::modelChanged() {
  steps_ = {};
  previous_.clear();
  before_ = 0;
  state_ =
      options_.measuredSteps > 0 ? MoveState::Measuring : MoveState::Settled;
}

void MoveDecider::stepEnded(double seconds, double work) {
  if (skipsStep_) {
    skipsStep_ = false;
    return;
  }
  if (!(work > 0))
    return;
  ++steps_.count;
  steps_.work += work;
  steps_.perWork.push_back(seconds / work);
  const auto measured = static_cast<size_t>(options_.measuredSteps);
  if (steps_.perWork.size() > measured)
    steps_.perWork.erase(steps_.perWork.begin());
  if (state_ == MoveState::Measuring && steps_.perWork.size() == measured)
    state_ = MoveState::Settled;
}

bool MoveDecider::goesBack(const MoveProblem &problem, MoveDecision &decision) {
  decision.before = before_;
  if (steps_.count < options_.measuredSteps)
    return false;
  decision.after = steps_.median();
  if (!(decision.after > before_ * (1 + options_.slowerShare))) {
    state_ = MoveState::Settled;
    return false;
  }
  WeighedMove back = weighMove(problem, previous_);
  weighAgain(problem, decision.after * steps_.meanWork(),
             before_ * steps_.meanWork(), back.priceSeconds, back);
  decision.move = back;
  if (!back.pays)
    state_ = MoveState::Barred;
  return back.pays;
}

MoveDecision MoveDecider::answer(const MoveProblem &problem,
                                 const std::vector<int> *cut) {
  MoveDecision decision;
  decision.from = problem.cut;
  decision.move = weighMove(problem, problem.cut);
  if (state_ == MoveState::Watching && goesBack(problem, decision)) {
    decision.answer = MoveAnswer::GoBack;
    decision.state = state_;
    return decision;
  }
  decision.state = state_;
  if (state_ != MoveState::Settled)
    return decision;
  decision.move = cut ? weighMove(problem, *cut) : bestMove(problem);
  if (decision.move.pays)
    decision.answer = MoveAnswer::Move;
  else if (!cut)
    decision.move = weighMove(problem, fastestCut(problem));
  return decision;
}

MoveDecision MoveDecider::decide(const MoveProblem &problem) {
  return answer(problem, nullptr);
}

MoveDecision MoveDecider::decide(const MoveProblem &problem,
                                 const std::vector<int> &cut) {
  return answer(problem, &cut);
}

void MoveDecider::moved(const MoveDecision &decision) {
  const bool isBack = decision.answer == MoveAnswer::GoBack;
  before_ = steps_.median();
  previous_ = decision.from;
  steps_ = {};
  skipsStep_ = true;
  state_ = isBack                       ? MoveState::Barred
           : options_.measuredSteps > 0 ? MoveState::Watching
                                        : MoveState::Settled;
}

void MoveDecider::refused() { state_ = MoveState::Barred; }

} // namespace dyna
