//===- PassingRulesTest.cpp - When ranks hand on what they got ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On nodes of two ranks, far apart, a bucket may send what an earlier one has
// brought (SwitchPlan.h): it is started when that one has been waited for (P13).
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Text.h"
#include "test/runtime/executor/SwitchedSteps.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

using Program = std::vector<Instruction>;

/// The place of the wait for a bucket of the switch that `start` belongs to, if
/// the program has it.
std::optional<size_t> waitOf(const Program &program, const Instruction &start,
                             int bucket) {
  for (size_t at = 0; at < program.size(); ++at) {
    const Instruction &i = program[at];
    const ExchangeOp op = exchangeOf(i.op);
    if (op.isSwitch() && !op.starts && op.kind == exchangeOf(start.op).kind &&
        i.phase == start.phase && i.bucket == bucket)
      return at;
  }
  return std::nullopt;
}

/// The same plans, with buckets in which nothing moves before those that send
/// what lies where it is needed: who takes no part in one comes after what is
/// behind it.
SwitchTable::Make withIdleBuckets(SwitchTable::Make make) {
  return
      [make](const std::vector<SwitchTensor> &tensors) -> StatusOr<SwitchPlan> {
        DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, make(tensors));
        SwitchPlan result;
        std::vector<int> place; // of each bucket
        for (SwitchBucket &bucket : plan.buckets) {
          if (bucket.after >= 0)
            bucket.after = place[bucket.after];
          bool handsOn = false; // which only the bucket before has
          for (const SwitchTransfer &one : bucket.transfers)
            handsOn |= one.source == SwitchPlace::Passing;
          if (bucket.after >= 0 && !handsOn) {
            result.buckets.push_back({{}, bucket.after});
            bucket.after = static_cast<int>(result.buckets.size()) - 1;
          }
          place.push_back(static_cast<int>(result.buckets.size()));
          result.buckets.push_back(std::move(bucket));
        }
        return result;
      };
}

TEST(PassingRulesTest, NothingIsPassedOnBeforeItIsWaitedFor) {
  const MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12}, 1);
  int direct = 0, behindIdle = 0;
  for (const std::vector<std::string> &sequence :
       {std::vector<std::string>{"dp=4", "dp=2,tp=2,zero=1", "tp=4,sp=1",
                                 "pp=4,layers=1+1+2+1"},
        {"pp=4,layers=2+1+1+1", "dp=2,tp=2,order=tp+dp+pp", "dp=4,zero=1"}}) {
    SCOPED_TRACE(testing::PrintToString(sequence));
    Steps steps(sequence, plan::F64, {withIdleBuckets(onNodes(4, 512)), false});
    std::vector<int> phaseOf;
    for (size_t s = 0; s < batch.samples.size(); ++s)
      phaseOf.push_back(static_cast<int>(s) % (steps.home() + 1));
    const plan::StepPlan right = *steps.plan(batch, phaseOf);
    ASSERT_EQ(steps.prove(right, batch).status().message(), "");
    const auto phases = *steps.table().switchesOf(right);
    for (int k = 0; k < right.phaseCount(); ++k)
      for (int rank = 0; rank < 4; ++rank) {
        const Program &program = right.phases[k].plan.ranks[rank].instructions;
        for (size_t at = 0; at < program.size(); ++at) {
          const Instruction &start = program[at];
          const ExchangeOp op = exchangeOf(start.op);
          if (!op.isSwitch() || !op.starts)
            continue;
          const GraphSwitch &way = op.kind == ExchangeKind::ValueSwitch
                                       ? *phases[start.phase].values
                                       : *phases[start.phase].gradients;
          for (int after = way.plan.buckets[start.bucket].after; after >= 0;
               after = way.plan.buckets[after].after) {
            if (!way.sides[rank].takesPart(after))
              continue;
            const auto wait = waitOf(program, start, after);
            ASSERT_TRUE(wait && *wait < at);
            plan::StepPlan step = right;
            Program &own = step.phases[k].plan.ranks[rank].instructions;
            std::rotate(own.begin() + static_cast<long>(*wait),
                        own.begin() + static_cast<long>(*wait) + 1,
                        own.begin() + static_cast<long>(at) + 1);
            EXPECT_THAT(
                steps.prove(std::move(step), batch).status().message(),
                HasSubstr(formatText("passes on what bucket %d brings, which "
                                     "is not waited for yet (P13)",
                                     after)))
                << describeInstruction(start);
            (after == way.plan.buckets[start.bucket].after ? direct
                                                           : behindIdle) += 1;
          }
        }
      }
  }
  EXPECT_GT(direct, 20);
  EXPECT_GT(behindIdle, 20);
}

} // namespace
