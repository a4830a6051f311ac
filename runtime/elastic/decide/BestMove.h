//===- BestMove.h - Finds the cut with the largest net gain -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Moving layers pays if the steps until the next change of the model save more seconds
// than the move takes. The best cut is then not always the most even one: a cut that
// moves fewer bytes can be better if few steps are left.
//
//     gain  = steps left * (seconds of a step now - seconds of a step then)
//     price = fixed + lost overlap + plans + seconds per byte * bytes of the busiest port
//
// A port of a stage carries what the stage sends, or what it gets. Both directions and
// all stages run at the same time, so the busiest one counts. Replicas move at the same
// time too.
//
// Seconds of a step are those of the formula in StageLoads.h, or those of a simulation
// (StepClock.h), if the problem has a clock. Then the formula only proposes cuts.
//
// A move has to pass a test. The gain is at least (1 + margin) times the price, and a
// step becomes faster by at least some share. `bestMove` finds the cut that passes and has the
// largest gain beyond (1 + margin) times the price. It finds one exactly if there is one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_BESTMOVE_H
#define DYNA_RUNTIME_ELASTIC_BESTMOVE_H

#include "runtime/elastic/balance/StageLoads.h"
#include "runtime/elastic/decide/StepClock.h"
#include "runtime/planner/graph/CutLayers.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Seconds that a move costs.
struct MovePrice {
  /// Votes, and copies of the state that stays on its rank.
  double fixedSeconds = 0;
  /// Steps that were planned ahead, or would have run beside others.
  double lostOverlapSeconds = 0;
  /// The switch and the next plans.
  double planSeconds = 0;
  /// Seconds of a byte over the port of a rank.
  double secondsPerByte = 0;

  /// Returns the seconds of a move that sends `portBytes` bytes over its
  /// busiest port.
  double seconds(int64_t portBytes) const {
    return fixedSeconds + lostOverlapSeconds + planSeconds +
           secondsPerByte * static_cast<double>(portBytes);
  }
};

/// Hysteresis: how much better another cut must be.
struct MoveTest {
  double margin = 0.5;      ///< share of the price that the gain has beyond it
  double leastShare = 0.01; ///< of a step's seconds that a move saves
};

/// Facts from which a move is decided.
struct MoveProblem {
  std::vector<double> seconds;     ///< by layer: StageLoads.h
  std::vector<double> waits;       ///< by stage; empty: none
  std::vector<int64_t> stateBytes; ///< by layer: bytes that move with it
  std::vector<int> cut;            ///< layers of each stage at present
  int64_t microBatches = 1;        ///< of one replica in a step
  int64_t stepsLeft = 0; ///< until the model changes again, or the run ends
  MovePrice price;
  MoveTest test;
  /// Memory of stages; null if there is room for any cut.
  const LayerBytes *memory = nullptr;
  /// Simulates steps; null: their seconds are those of the formula.
  const StepClock *clock = nullptr;
};

/// Bytes that a move sends.
struct MovedBytes {
  int64_t all = 0; ///< of all stages
  int64_t port =
      0; ///< of the busiest port: the most that one stage sends or gets
};

/// Returns the bytes of the layers that change their stage. The cuts have equally many
/// stages.
MovedBytes movedBytes(const std::vector<int64_t> &stateBytes,
                      const std::vector<int> &from, const std::vector<int> &to);

/// A cut in numbers.
struct WeighedMove {
  std::vector<int> cut;
  double stepSecondsNow = 0, stepSecondsThen = 0;
  MovedBytes bytes;
  double gainSeconds = 0;  ///< in all steps that are left
  double priceSeconds = 0; ///< 0 if the cut is the present one
  /// First number of steps after which the move is earned back; -1 if it never is.
  int64_t stepsToEarn = -1;
  bool pays = false; ///< passes the test
};

/// Returns the numbers of one cut. O(n) for n layers, beside the simulation.
WeighedMove weighMove(const MoveProblem &problem, const std::vector<int> &cut);

/// Decides again with other seconds: those of a simulation, or of a planned switch.
void weighAgain(const MoveProblem &problem, double stepSecondsNow,
                double stepSecondsThen, double priceSeconds, WeighedMove &move);

/// Returns the best cut that passes the test, or the present one, which does
/// not. Equally good cuts are ordered by the sum of squared loads, least first.
/// Cuts with equal sums are ordered by the layers of earlier stages, most first.
///
/// Each largest load has a least number of bytes. So cuts are found from the fastest one
/// on, each with fewer bytes. This ends when no slower one can be better. A cut within two limits
/// is found in O(n p) for n layers and p stages, and a limit in about 50 of these.
///
/// With a clock, all cuts are candidates if they are at most `mostCuts`. Otherwise these
/// are the best cut of the formula, the most even one, and those that differ from them by
/// one layer. Candidates are simulated in the order of what they can gain at most, by the
/// work of their busiest stage. This ends when no other one can be better, or after
/// `mostItems` items. So with few layers the answer is exact, and it is fast with many.
WeighedMove bestMove(const MoveProblem &problem);
constexpr int64_t mostCuts = 2000;
constexpr int64_t mostItems = 60000;

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_BESTMOVE_H
