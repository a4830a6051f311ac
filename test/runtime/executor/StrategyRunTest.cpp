//===- StrategyRunTest.cpp - Strategies against one rank -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every strategy computes what one rank computes: the same plan of work cut
// over replicas and stages, on ranks that are threads, with the memory of every
// rank poisoned and watched.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/StrategyRun.h"

#include "runtime/plan/verify/PlanVerifier.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

using namespace dyna;
using namespace dyna::test;
using testing::HasSubstr;

namespace {

class StrategyRunTest : public testing::TestWithParam<StrategyCase> {};

TEST_P(StrategyRunTest, EqualsOneRank) {
  const StrategyCase &test = GetParam();
  Outcome expected = runOneRank(test), got = runStrategy(test);
  // f64: sums in another order. bf16: gradients of other micro-batches round
  // alike, but sums of f32 do not, and an Adam step of 0.01 amplifies.
  // Gradients in bf16 lose up to 2^-9 with every one of some sixty tokens.
  double relative = test.gradients == plan::BF16 ? 5e-2
                    : test.compute == plan::F64  ? 1e-10
                                                 : 2e-2;
  expectNear(expected.losses, got.losses, relative);
  expectNear(expected.norms, got.norms, relative);
  for (size_t p = 0; p < expected.parameters.size(); ++p) {
    SCOPED_TRACE(p);
    expectNear(expected.parameters[p], got.parameters[p], relative);
  }
}

/// All degrees with a product of 1 to 8; ZeRO, schedules and recomputation go
/// round.
std::vector<StrategyCase> allDegrees() {
  std::vector<StrategyCase> cases;
  int turn = 0;
  for (int dp = 1; dp <= 8; ++dp)
    for (int pp = 1; pp <= 5 && dp * pp <= 8; ++pp)
      for (int zero = 0; zero < 2; ++zero)
        for (Schedule schedule :
             {Schedule::GPipe, Schedule::OneForwardOneBackward}) {
          const char *cuts[] = {"5", "3+2", "1+1+3", "2+1+1+1", "1+1+1+1+1"};
          StrategyCase test;
          test.strategy =
              "dp=" + std::to_string(dp) + ",pp=" + std::to_string(pp) +
              ",zero=" + std::to_string(zero) + ",layers=" + cuts[pp - 1];
          test.schedule = schedule;
          test.recompute = static_cast<plan::Recompute>(turn % 3);
          test.splitBackward = turn % 2;
          if (turn % 5 == 4)
            test.compute = plan::BF16;
          ++turn;
          cases.push_back(test);
        }
  return cases;
}

/// A new one is tried by standing in the table.
std::vector<StrategyCase> everySchedule() {
  std::vector<StrategyCase> cases;
  for (Schedule schedule : allSchedules()) {
    cases.push_back({"pp=2,layers=3+2", schedule});
    cases.push_back({"dp=2,pp=3,layers=2+1+2,zero=1", schedule,
                     plan::RECOMPUTE_FULL, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, StrategyRunTest,
                         testing::ValuesIn(everySchedule()));

/// The same, and with fewer samples than replicas: some of these run nothing.
std::vector<StrategyCase> everyBatching() {
  std::vector<StrategyCase> cases;
  for (Batching batching : allBatchings()) {
    StrategyCase test{"pp=2,layers=3+2"};
    test.batching = batching;
    cases.push_back(test);
    test.strategy = "dp=2,pp=3,layers=2+1+2,zero=1";
    test.recompute = plan::RECOMPUTE_FULL;
    test.splitBackward = true;
    cases.push_back(test);
    test.schedule = Schedule::Adaptive;
    cases.push_back(test);
    test.splitBackward = false;
    test.strategy = "dp=3,zero=1";
    cases.push_back(test);
    for (const char *few :
         {"dp=2", "dp=3,pp=2,layers=2+3,zero=1", "dp=4,pp=2,layers=3+2"}) {
      test.strategy = few;
      test.lengths = {12};
      cases.push_back(test);
      test.lengths = {4, 9, 4};
      cases.push_back(test);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryBatching, StrategyRunTest,
                         testing::ValuesIn(everyBatching()));

INSTANTIATE_TEST_SUITE_P(AllDegrees, StrategyRunTest,
                         testing::ValuesIn(allDegrees()));

/// Replicas without a sample take part in the exchanges all the same.
INSTANTIATE_TEST_SUITE_P(
    FewSamples, StrategyRunTest,
    testing::Values(StrategyCase{"dp=4,pp=2,layers=2+3",
                                 Schedule::OneForwardOneBackward,
                                 plan::RECOMPUTE_NONE,
                                 false,
                                 plan::F64,
                                 {7, 4}},
                    StrategyCase{"dp=6,zero=1",
                                 Schedule::GPipe,
                                 plan::RECOMPUTE_FULL,
                                 false,
                                 plan::F64,
                                 {9}}));

/// Two parameters that are on both stages, whose layers lie in opposite order
/// there.
std::vector<StrategyCase> nestedTies() {
  std::vector<StrategyCase> cases;
  for (const char *strategy :
       {"pp=2,layers=3+2", "dp=2,pp=2,layers=2+3", "dp=3,zero=1",
        "dp=2,pp=3,layers=2+1+2,zero=1", "dp=2,pp=2,layers=3+2,zero=1"}) {
    StrategyCase test;
    test.strategy = strategy;
    test.nestedTie = true;
    cases.push_back(test);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(NestedTies, StrategyRunTest,
                         testing::ValuesIn(nestedTies()));

/// Slices of all sizes, under every schedule, in the order of the plan and in others
/// that the verifier accepts.
std::vector<StrategyCase> slicedPlans() {
  std::vector<StrategyCase> cases;
  const char *const strategies[] = {"dp=1", "pp=2,layers=3+2", "dp=2,zero=1",
                                    "dp=2,pp=3,layers=2+1+2,zero=1"};
  const char *const slices[] = {"2", "5", "1+3", "17"};
  uint64_t turn = 0;
  for (const char *strategy : strategies)
    for (Schedule schedule : allSchedules())
      for (bool split : {false, true}) {
        StrategyCase test{strategy, schedule};
        test.recompute = static_cast<plan::Recompute>(turn % 3);
        test.splitBackward = split;
        test.slices = slices[turn % 4];
        test.compute = turn % 7 == 6 ? plan::BF16 : plan::F64;
        test.shuffle = turn % 3 == 2 ? 500 + turn : 0;
        ++turn;
        cases.push_back(test);
      }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(SlicedPlans, StrategyRunTest,
                         testing::ValuesIn(slicedPlans()));

/// Two ranks on each device, with all that a step may have.
std::vector<StrategyCase> mirroredPlans() {
  std::vector<StrategyCase> cases;
  const char *const strategies[] = {"dp=2,pp=2,mirror=1,layers=3+2",
                                    "dp=2,pp=4,mirror=1,layers=2+1+1+1",
                                    "dp=4,pp=2,mirror=1,layers=2+3,zero=1",
                                    "dp=2,pp=4,mirror=1,layers=1+2+1+1,zero=1"};
  const std::vector<int64_t> lengths[] = {
      {5, 1, 17, 9, 3, 12, 1, 8}, {7}, {4, 9, 4}};
  for (int turn = 0; turn < 24; ++turn) {
    StrategyCase test{strategies[turn % 4], Schedule::Chimera};
    test.recompute = static_cast<plan::Recompute>(turn % 3);
    test.splitBackward = turn % 5 == 1;
    test.lengths = lengths[turn % 7 == 3 ? 1 : turn % 7 == 5 ? 2 : 0];
    test.nestedTie = turn % 6 == 4 && turn % 4 < 2;
    test.slices = turn % 8 == 6 ? "5" : "none";
    test.shuffle = turn % 3 == 2 ? 700 + turn : 0;
    // Plans fall back to these if they do not fit memory.
    if (turn >= 20)
      test.schedule = turn % 2 ? Schedule::Sequential : Schedule::Adaptive;
    cases.push_back(test);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(MirroredPlans, StrategyRunTest,
                         testing::ValuesIn(mirroredPlans()));

/// Chimera on four devices against 1F1B on four devices.
TEST(MirroredRunTest, ChimeraEqualsOneForwardOneBackward) {
  StrategyCase chimera{"dp=2,pp=4,mirror=1,layers=2+1+1+1", Schedule::Chimera};
  StrategyCase plain{"pp=4,layers=2+1+1+1", Schedule::OneForwardOneBackward};
  chimera.steps = plain.steps = 5;
  const Outcome expected = runStrategy(plain), got = runStrategy(chimera);
  ASSERT_EQ(expected.losses.size(), 5u);
  expectNear(expected.losses, got.losses, 1e-10);
  expectNear(expected.norms, got.norms, 1e-10);
  for (size_t p = 0; p < expected.parameters.size(); ++p)
    expectNear(expected.parameters[p], got.parameters[p], 1e-10);
}

/// Counts layer functions that run while the other rank of their device is in one.
std::atomic<int> callsOnDevice[4], calls, callsTogether;
thread_local int deviceOfThread = -1;
thread_local bool isInCall = false;

/// Clock of layer functions, which is read before and behind each.
double countingClock() {
  if (deviceOfThread >= 0 && (isInCall = !isInCall)) {
    callsTogether += callsOnDevice[deviceOfThread]++ > 0;
    ++calls;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  } else if (deviceOfThread >= 0) {
    --callsOnDevice[deviceOfThread];
  }
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Trains a step on ranks that share four devices.
Status runMirrored(std::deque<DeviceTurns> *turns) {
  StrategyCase test{"dp=2,pp=4,mirror=1,layers=2+1+1+1", Schedule::Chimera};
  test.steps = 1;
  const TinyProgram program(tinyOptions(test));
  const Model model = *openProgram(program.program());
  const auto planner = makePlanner(model, test.strategy);
  const auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  const ExecutableGraph &graph = planner->graph();
  return runRanks(graph.ranks(), [&](Transport &transport) {
    transport.setTimeout(kPatience);
    deviceOfThread = graph.deviceOf(transport.rank());
    StrategyRank rank(test, program, *planner, transport);
    rank.limits = *bytes;
    rank.turns = turns;
    rank.clock = countingClock;
    DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
    DYNA_RETURN_IF_ERROR(rank.initialize());
    Outcome own;
    return rank.train(own);
  });
}

TEST(MirroredRunTest, RanksOfADeviceWorkInTurns) {
  std::deque<DeviceTurns> turns;
  for (int rank = 0; rank < 8; ++rank)
    turns.emplace_back();
  EXPECT_OK(runMirrored(&turns));
  EXPECT_EQ(callsTogether, 0);
  EXPECT_GT(calls, 50);
  EXPECT_THAT(runMirrored(nullptr).message(),
              HasSubstr("ranks that share a device have to be threads of one "
                        "process"));
}

/// The verifier's word is enough: whatever order it accepts computes the same,
/// touches no memory that it should not, and ends.
std::vector<StrategyCase> shuffledPlans() {
  std::vector<StrategyCase> cases;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    StrategyCase test;
    const char *strategies[] = {"dp=2,pp=2,layers=3+2,zero=1",
                                "pp=3,layers=2+2+1", "dp=3,zero=1",
                                "dp=2,pp=3,layers=1+3+1"};
    test.strategy = strategies[seed % 4];
    test.schedule =
        seed % 2 ? Schedule::GPipe : Schedule::OneForwardOneBackward;
    test.recompute = static_cast<plan::Recompute>(seed % 3);
    test.splitBackward = seed % 5 == 0;
    test.shuffle = 1000 * seed;
    cases.push_back(test);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(ShuffledPlans, StrategyRunTest,
                         testing::ValuesIn(shuffledPlans()));

/// Gradients of half the size of masters.
std::vector<StrategyCase> narrowGradients() {
  std::vector<StrategyCase> cases;
  for (const char *strategy :
       {"dp=1", "dp=2", "dp=2,zero=1", "dp=2,pp=2,layers=3+2,zero=1"}) {
    StrategyCase test{strategy};
    test.compute = test.gradients = plan::BF16;
    cases.push_back(test);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(NarrowGradients, StrategyRunTest,
                         testing::ValuesIn(narrowGradients()));

TEST(StrategyRunsTest, RepeatBitwise) {
  StrategyCase test{"dp=2,pp=2,zero=1,layers=3+2"};
  Outcome first = runStrategy(test), second = runStrategy(test);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.parameters, second.parameters);
}

// Two processes with a rank each: what one of them refuses ends the other too,
// which waits for nobody then.
/// Which number a rank has changes nothing that it computes.
TEST(StrategyRunsTest, RanksAreNumberedInAnyOrder) {
  Outcome first = runStrategy({"dp=2,pp=2,layers=3+2,zero=1"});
  for (const char *order :
       {"dp+tp+pp", "pp+dp+tp", "pp+tp+dp", "tp+dp+pp", "tp+pp+dp"}) {
    SCOPED_TRACE(order);
    Outcome other = runStrategy(
        {std::string("dp=2,pp=2,layers=3+2,zero=1,order=") + order});
    EXPECT_EQ(first.losses, other.losses);
    EXPECT_EQ(first.norms, other.norms);
    EXPECT_EQ(first.parameters, other.parameters);
  }
}

TEST(StrategyRunsTest, APlanThatOneProcessRefusesEndsAll) {
  TinyProgram program;
  Model model = *openProgram(program.program());
  StrategyCase test{"dp=2"};
  auto planner = makePlanner(model, test.strategy);
  ASSERT_TRUE(planner.isOk()) << planner.status().message();
  auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  MiniBatch batch = tinyBatch(test.lengths, 1);
  plan::Plan good =
      *planner->training(batch.lengths(), batch.targets, planOptions(test));
  plan::Plan bad = good;
  bad.ranks[1].instructions.erase(bad.ranks[1].instructions.begin());
  Status ends[2];
  auto transports = makeThreadTransports(2);
  auto process = [&](int rank) {
    std::vector<RankResources> own(1);
    own[0].rank = rank;
    own[0].device = makeTestDevice();
    own[0].dynamicBytes = (*bytes)[rank];
    own[0].transport = std::move(transports[rank]);
    auto variant = chooseVariant(program.program(), "", 0);
    auto team = RankTeam::create({{&planner->graph()}}, **variant,
                                 std::move(own), ExecutorOptions());
    ASSERT_TRUE(team.isOk()) << team.status().message();
    StepResult result;
    ends[rank] = runPlan(**team, planner->graph(), rank == 1 ? bad : good,
                         batch, TinyRun::scalars(0, 1.0), result);
    if (!ends[rank].isOk())
      (*team)->abort(ends[rank]);
  };
  std::thread other(process, 1);
  process(0);
  other.join();
  EXPECT_EQ(ends[1].code(), StatusCode::InvalidArgument) << ends[1].message();
  EXPECT_EQ(ends[0].code(), StatusCode::PeerFailed);
  EXPECT_THAT(ends[0].message(), HasSubstr("rank 1 failed"));
  EXPECT_THAT(ends[0].message(), HasSubstr(ends[1].message()));
}

/// Two ranks meet in the backward of their embeddings.
struct Meeting {
  std::mutex mutex;
  std::condition_variable arrived;
  int count = 0;
  Executor *executors[2] = {};
  std::vector<double> gradients[2];
} *meeting = nullptr;

void meet(const dyna_context &context) {
  Meeting &m = *meeting;
  {
    std::unique_lock<std::mutex> lock(m.mutex);
    ++m.count;
    m.arrived.notify_all();
    EXPECT_TRUE(
        m.arrived.wait_for(lock, kPatience, [&] { return m.count >= 2; }));
  }
  // Of the last block, whose reduction started three layers ago.
  constexpr int parameter = 9;
  GraphSeat &own = m.executors[context.rank]->seat();
  m.gradients[context.rank].resize(
      own.partBytes(parameter, ParameterPart::Gradient) / sizeof(double));
  EXPECT_OK(readPart(own, parameter, ParameterPart::Gradient,
                     m.gradients[context.rank].data()));
}

// The reductions of later layers are done when the first layer's backward
// begins, and not only when they are waited for. They are too large to be done
// by whoever starts them last.
TEST(StrategyRunsTest, ReductionsGoOnDuringBackward) {
  StrategyCase test{"dp=2"};
  test.lengths = {5, 6};
  TinyOptions tiny;
  tiny.hidden = 10000;
  TinyProgram program(tiny);
  Model model = *openProgram(program.program());
  ASSERT_EQ(RankView::whole(model).owner(9), 3);
  ASSERT_GT(model.elements(9) * 8, 256 << 10);
  auto planner = makePlanner(model, test.strategy);
  auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  Meeting here;
  meeting = &here;
  tinyEmbeddingHook = meet;
  Status ran = runRanks(2, [&](Transport &transport) {
    transport.setTimeout(kPatience);
    StrategyRank rank(test, program, *planner, transport);
    DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
    DYNA_RETURN_IF_ERROR(rank.initialize());
    here.executors[transport.rank()] = &rank.executor();
    MiniBatch batch = tinyBatch(test.lengths, 1);
    auto plan =
        planner->training(batch.lengths(), batch.targets, planOptions(test));
    StepResult result;
    return runPlan(rank.executor(), planner->graph(), *plan, batch,
                   TinyRun::scalars(0, 1.0), result);
  });
  tinyEmbeddingHook = nullptr;
  meeting = nullptr;
  EXPECT_OK(ran);
  EXPECT_EQ(here.gradients[0], here.gradients[1]);
  EXPECT_THAT(here.gradients[0], testing::Contains(testing::Ne(0.0)));
}

/// Seconds that layer functions have taken on a rank's thread, as the test says.
thread_local double layerClock = 0;
void spendSeconds(const dyna_context &context) {
  layerClock += context.layer == 2 ? 100 : 1;
}

/// All ranks learn what layers took on all of them. One layer is slow; a tensor degree
/// and replicas call it more often.
TEST(StrategyRunsTest, AllRanksKnowTheSecondsOfLayers) {
  for (const char *strategy :
       {"pp=2,layers=3+2", "dp=2,pp=2,layers=2+3", "tp=2,pp=2,layers=1+4"}) {
    SCOPED_TRACE(strategy);
    StrategyCase test{strategy};
    TinyOptions tiny = tinyOptions(test);
    tiny.hidden = 12;
    tiny.degrees = {{2, false}};
    TinyProgram program(tiny);
    Model model = *openProgram(program.program());
    auto planner = makePlanner(model, test.strategy);
    ASSERT_TRUE(planner.isOk()) << planner.status().message();
    auto bytes = planner->largestDynamicBytes(planOptions(test), true);
    MiniBatch batch = tinyBatch(test.lengths, 1);
    auto plan =
        planner->training(batch.lengths(), batch.targets, planOptions(test));
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    std::vector<double> expected(model.layers());
    for (const plan::RankProgram &rank : plan->ranks)
      for (const plan::Instruction &i : rank.instructions)
        if (i.op == plan::Instruction::FORWARD ||
            (i.op == plan::Instruction::BACKWARD && i.layer > 0))
          expected[i.layer] += i.layer == 2 ? 100 : 1;
    expected.back() = 0; // the head has no hook
    ASSERT_GT(expected[2], 100);
    tinyLayerHook = spendSeconds;
    Status ran =
        runRanks(planner->graph().ranks(), [&](Transport &transport) -> Status {
          StrategyRank rank(test, program, *planner, transport);
          rank.clock = [] { return layerClock; };
          DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
          DYNA_RETURN_IF_ERROR(rank.initialize());
          StepResult result;
          DYNA_RETURN_IF_ERROR(runPlan(rank.executor(), planner->graph(), *plan,
                                       batch, TinyRun::scalars(0, 1.0),
                                       result));
          EXPECT_EQ(result.layerSeconds, expected);
          double busy = 0;
          for (const RankUse &use : result.uses)
            busy += use.busySeconds;
          EXPECT_EQ(busy,
                    std::accumulate(expected.begin(), expected.end(), 0.0));
          return Status::ok();
        });
    tinyLayerHook = nullptr;
    EXPECT_OK(ran);
  }
}

TEST(StrategyRunsTest, AFailingRankIsNamedByAll) {
  StrategyCase test{"dp=2,pp=2,layers=3+2"};
  TinyProgram program;
  Model model = *openProgram(program.program());
  auto planner = makePlanner(model, test.strategy);
  auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  std::vector<Status> seen(4);
  tinyFault = TinyFault();
  tinyFault.kind = TinyFault::Kind::Fail;
  tinyFault.role = DYNA_ROLE_BACKWARD;
  tinyFault.layer = 3;
  Status status = runRanks(4, [&](Transport &transport) {
    transport.setTimeout(kPatience);
    StrategyRank rank(test, program, *planner, transport);
    DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
    DYNA_RETURN_IF_ERROR(rank.initialize());
    Outcome own;
    return seen[transport.rank()] = rank.train(own);
  });
  tinyFault = TinyFault();
  EXPECT_THAT(status.message(), HasSubstr("BACKWARD layer 3"));
  // Layer 3 is on ranks 1 and 3, either of which may be the first to fail.
  int first = seen[1].message() == status.message() ? 1 : 3;
  EXPECT_EQ(seen[first].message(), status.message());
  for (int rank : {0, 2}) {
    EXPECT_EQ(seen[rank].code(), StatusCode::PeerFailed);
    EXPECT_THAT(seen[rank].message(),
                HasSubstr("rank " + std::to_string(first) +
                          " failed: " + status.message()));
  }
}

// While a layer's parameters are gathered they may change at any time, but not
// once they are there.
TEST(StrategyRunsTest, AWriteToWhatWasExchangedIsFound) {
  StrategyCase test{"dp=2,zero=1"};
  TinyProgram program;
  Model model = *openProgram(program.program());
  auto planner = makePlanner(model, test.strategy);
  auto bytes = planner->largestDynamicBytes(planOptions(test), true);
  tinyFault = TinyFault();
  tinyFault.kind = TinyFault::Kind::WriteParameter;
  tinyFault.role = DYNA_ROLE_FORWARD;
  tinyFault.layer = 1;
  Status status = runRanks(2, [&](Transport &transport) {
    transport.setTimeout(kPatience);
    StrategyRank rank(test, program, *planner, transport);
    DYNA_RETURN_IF_ERROR(rank.create((*bytes)[transport.rank()]));
    DYNA_RETURN_IF_ERROR(rank.initialize());
    Outcome own;
    return rank.train(own);
  });
  tinyFault = TinyFault();
  EXPECT_THAT(status.message(), HasSubstr("FORWARD layer 1 micro-batch"));
  EXPECT_THAT(status.message(), HasSubstr("wrote where it must not"));
}

TEST(StrategyRunsTest, GraphsThatDoNotFitAreRefused) {
  TinyProgram program;
  Model model = *openProgram(program.program());
  struct {
    const char *strategy, *message;
  } cases[] = {
      {"pp=6,layers=1+1+1+1+1+1", "6 stages, but the model has 5 layers"},
      {"pp=2,layers=3+3", "have 6 layers together, but the model has 5"},
      {"tp=2", "tp=2 was not compiled into this binary, only tp=1"},
  };
  for (const auto &test : cases)
    EXPECT_THAT(makePlanner(model, test.strategy).status().message(),
                HasSubstr(test.message));
}

} // namespace
