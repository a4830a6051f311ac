//===- PassingRulesTest.cpp - When ranks hand on what they got ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On nodes of two ranks, far apart, a bucket may send what an earlier one has
// brought (SwitchPlan.h): it is started when that one has been waited for (P13). So
// do values that came to a phase and go on to the next one.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "test/runtime/executor/SwitchedSteps.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

using Program = std::vector<Instruction>;

/// The place of the wait for a bucket of a phase's switch, if the program has it.
std::optional<size_t> waitOf(const Program &program, ExchangeKind kind,
                             int phase, int bucket) {
  for (size_t at = 0; at < program.size(); ++at) {
    const Instruction &i = program[at];
    const ExchangeOp op = exchangeOf(i.op);
    if (op.isSwitch() && !op.starts && op.kind == kind && i.phase == phase &&
        i.bucket == bucket)
      return at;
  }
  return std::nullopt;
}

void putBehind(Program &program, size_t from, size_t behind) {
  std::rotate(program.begin() + static_cast<long>(from),
              program.begin() + static_cast<long>(from) + 1,
              program.begin() + static_cast<long>(behind) + 1);
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
            const auto wait = waitOf(program, op.kind, start.phase, after);
            ASSERT_TRUE(wait && *wait < at);
            plan::StepPlan step = right;
            putBehind(step.phases[k].plan.ranks[rank].instructions, *wait, at);
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

/// Where no layer of the phase reads them before: replicas without samples.
TEST(PassingRulesTest, ValuesGoOnOnceTheyHaveCome) {
  Steps steps({"dp=4", "tp=4,sp=1", "dp=2,tp=2,zero=1"}, plan::F64);
  const MiniBatch batch = tinyBatch({5, 17, 9}, 1);
  const plan::StepPlan right = *steps.plan(batch, {0, 1, 2});
  ASSERT_EQ(steps.prove(right, batch).status().message(), "");
  const auto phases = *steps.table().switchesOf(right);
  int tried = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const Program &program = right.phases[0].plan.ranks[rank].instructions;
    if (std::any_of(program.begin(), program.end(), [](const Instruction &i) {
          return i.op == Instruction::LOAD;
        }))
      continue;
    for (size_t at = 0; at < program.size(); ++at) {
      const Instruction &start = program[at];
      if (start.op != Instruction::SWITCH_START || start.phase != 1)
        continue;
      for (int p : phases[1].values->sides[rank].sent[start.bucket])
        for (int bucket : phases[0].values->sides[rank].arrivals[p]) {
          const auto wait =
              waitOf(program, ExchangeKind::ValueSwitch, 0, bucket);
          ASSERT_TRUE(wait && *wait < at);
          plan::StepPlan step = right;
          putBehind(step.phases[0].plan.ranks[rank].instructions, *wait, at);
          EXPECT_THAT(steps.prove(std::move(step), batch).status().message(),
                      HasSubstr(formatText("comes in bucket %d, which is not "
                                           "waited for yet (P13)",
                                           bucket)))
              << describeInstruction(start);
          ++tried;
        }
    }
  }
  EXPECT_GT(tried, 5);
}

} // namespace
