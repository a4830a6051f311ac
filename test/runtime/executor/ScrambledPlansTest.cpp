//===- ScrambledPlansTest.cpp - What the verifier accepts, runs right -----===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier's word is enough. Plans of 2 to 8 ranks are scrambled, the
// program of each rank by itself: instructions move, are left out or doubled,
// parts come from another legal plan of the same mini-batch, micro-batches of
// equal length change places, are evaluated, are recomputed otherwise. What the
// verifier still accepts must run to the end on a transport on which every start
// blocks, and compute what one rank computes.
//
// DYNA_SCRAMBLES says how many plans are scrambled, DYNA_SCRAMBLE_SEED names the
// first. Each ends as what the last accepted change made of it, which runs; with
// DYNA_SCRAMBLE_ALL=1 what every accepted change makes of it runs too.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyRun.h"
#include "test/runtime/transport/RendezvousTransport.h"

#include "runtime/executor/RankTeam.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <thread>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

constexpr int64_t enough = INT64_C(1) << 22;
constexpr int steps = 2;

const char *const strategies[] = {
    "tp=2",
    "tp=2,sp=1",
    "tp=3",
    "tp=4,sp=1",
    "dp=2,tp=2,zero=1",
    "dp=2,tp=2,sp=1,zero=1",
    "dp=2,tp=3",
    "tp=2,pp=2,layers=2+3",
    "tp=2,sp=1,pp=2,layers=3+2,zero=1",
    "tp=2,pp=3,layers=2+1+2",
    "tp=4,pp=2,layers=2+3,sp=1",
    "dp=2,tp=2,pp=2,layers=2+3,zero=1",
    "pp=2,layers=3+2,zero=1",
    "dp=2,pp=3,layers=1+2+2,zero=1",
    "dp=3",
};

int64_t numberFrom(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<std::vector<double>> parameters;
};

/// Ranks that are threads, with the initial values of every test.
class Ranks {
public:
  Ranks(const TinyProgram &program, const ExecutableGraph &graph,
        bool isRendezvous, bool checkMemory,
        Transport::Clock::duration patience)
      : graph_(graph) {
    auto variant = chooseVariant(program.program(), "", 0);
    std::vector<std::unique_ptr<Transport>> transports =
        makeThreadTransports(graph.ranks());
    std::vector<RankSeat> seats(graph.ranks());
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      seats[rank].rank = rank;
      auto device = HostDevice::create(1);
      seats[rank].device = std::move(*device);
      seats[rank].dynamicBytes = enough;
      if (graph.ranks() == 1)
        continue;
      seats[rank].transport = std::move(transports[rank]);
      if (isRendezvous)
        seats[rank].transport = std::make_unique<RendezvousTransport>(
            std::move(seats[rank].transport));
      seats[rank].transport->setTimeout(patience);
    }
    ExecutorOptions options;
    options.seed = 7;
    options.checkMemory = checkMemory;
    auto team = RankTeam::create(graph, **variant, std::move(seats), options);
    team_ = std::move(*team);
    const ManifestView &view = graph.model();
    for (int p = 0; p < view.parameters(); ++p) {
      std::vector<double> values(view.elements(p));
      uint64_t key = dyna_parameter_key(3, view.parameter(p).name().c_str());
      for (size_t i = 0; i < values.size(); ++i) {
        double u, v;
        dyna_parameter_uniforms(key, i, &u, &v);
        values[i] = view.parameter(p).normal_std() * (2 * v - 1);
      }
      EXPECT_OK(team_->writePart(p, ParameterPart::Master, values.data()));
    }
  }

  /// The same plan for mini-batches of equal lengths.
  Status run(plan::Plan plan, const std::vector<MiniBatch> &batches,
             Outcome &outcome) {
    for (int s = 0; s < steps; ++s) {
      StepResult result;
      plan.set_target_tokens(batches[s].targets);
      DYNA_RETURN_IF_ERROR(
          team_->run(plan, batches[s], TinyRun::scalars(s, 1.0), result));
      outcome.losses.push_back(result.lossSum);
      outcome.norms.push_back(result.gradientNorm);
    }
    const ManifestView &view = graph_.model();
    for (int p = 0; p < view.parameters(); ++p) {
      outcome.parameters.emplace_back(view.elements(p));
      DYNA_RETURN_IF_ERROR(team_->readPart(p, ParameterPart::Master,
                                           outcome.parameters.back().data()));
    }
    return Status::ok();
  }

  /// A plan that the verifier refuses.
  Status runUnverified(const plan::Plan &plan, const MiniBatch &batch) {
    std::vector<Status> results(graph_.ranks());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      threads.emplace_back([&, rank] {
        StepResult result;
        results[rank] = team_->executor(rank).run(
            plan, batch, TinyRun::scalars(0, 1.0), result);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const Status &result : results)
      if (!result.isOk() && result.code() != StatusCode::PeerFailed)
        return result;
    return Status::ok();
  }

private:
  const ExecutableGraph &graph_;
  std::unique_ptr<RankTeam> team_;
};

/// max|a-b| <= 1e-10 max(max|a|, 0.01).
bool isNear(const std::vector<double> &a, const std::vector<double> &b) {
  double largest = 0.01, difference = 0;
  for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return a.size() == b.size() && difference <= 1e-10 * largest;
}

bool isNear(const Outcome &a, const Outcome &b) {
  bool near = isNear(a.losses, b.losses) && isNear(a.norms, b.norms);
  for (size_t p = 0; p < a.parameters.size(); ++p)
    near = near && isNear(a.parameters[p], b.parameters[p]);
  return near;
}

//===----------------------------------------------------------------------===//
// Scrambling
//===----------------------------------------------------------------------===//

/// Gives every block a place of its own, so that no order is refused for lack
/// of memory.
void placeApart(const ExecutableGraph &graph, plan::Plan &plan, int rank) {
  plan::RankProgram &program = *plan.mutable_ranks(rank);
  InstructionBlocks blocks(graph.replicaView(rank), plan, program);
  using Key = std::tuple<BlockKind, int, int>;
  std::map<Key, int64_t> sizes, offsets;
  auto keyOf = [](const BlockUse &use) {
    return Key{use.kind, use.microBatch, use.layer};
  };
  for (int index = 0; index < program.instructions_size(); ++index)
    for (const BlockUse &use : blocks.uses(index))
      sizes[keyOf(use)] = std::max(sizes[keyOf(use)], alignToBlock(use.bytes));
  int64_t end = 0;
  for (const auto &[key, bytes] : sizes) {
    offsets[key] = end;
    end += bytes;
  }
  for (int index = 0; index < program.instructions_size(); ++index) {
    Instruction &i = *program.mutable_instructions(index);
    // What the instruction had under another name, or at another place.
    for (int field = 0; field < fieldCount; ++field)
      if (auto which = static_cast<Field>(field);
          which >= Field::Kept || !hasField(i.op(), which))
        setField(i, which, 0);
    for (const BlockUse &use : blocks.uses(index))
      setField(i, use.field, offsets[keyOf(use)]);
  }
  program.set_dynamic_bytes(end);
}

class Scrambler {
public:
  Scrambler(const ExecutableGraph &graph, const plan::Plan &other,
            uint64_t seed)
      : graph_(graph), other_(other), random_(seed) {}

  int below(int64_t count) {
    return static_cast<int>(random_() % static_cast<uint64_t>(count));
  }

  /// Changes some ranks' programs, or one in all of its ranks' programs.
  void change(plan::Plan &plan) {
    int rank = below(graph_.ranks());
    std::vector<int> ranks = {rank};
    ExecutableGraph::Place place = graph_.placeOf(rank);
    // Consistent along a channel, or on all replicas.
    bool allStages = below(3) == 0, allReplicas = below(4) == 0;
    bool allShards = below(8) == 0;
    for (int r = 0; r < graph_.ranks(); ++r) {
      ExecutableGraph::Place there = graph_.placeOf(r);
      if (r != rank && (there.stage == place.stage || allStages) &&
          (there.replica == place.replica || allReplicas) &&
          (there.shard == place.shard || allShards))
        ranks.push_back(r);
    }
    int what = below(18);
    std::vector<int> own;
    for (int m = 0; m < plan.micro_batches_size(); ++m)
      if (plan.micro_batches(m).replica() == place.replica)
        own.push_back(m);
    int a = own[below(own.size())], b = own[below(own.size())];
    uint64_t seed = random_();
    for (int r : ranks) {
      random_.seed(seed); // the same change on all of them
      plan::RankProgram &program = *plan.mutable_ranks(r);
      std::vector<Instruction> list(program.instructions().begin(),
                                    program.instructions().end());
      if (what < 6)
        move(list);
      else if (what == 6)
        leaveOut(list);
      else if (what == 7)
        repeat(list);
      else if (what == 8)
        list.assign(other_.ranks(r).instructions().begin(),
                    other_.ranks(r).instructions().end());
      else if (what == 9)
        join(list, other_.ranks(r));
      else if (what <= 11)
        exchange(list, a, b);
      else if (what == 12)
        evaluate(list, a);
      else if (what == 13)
        recompute(list, a);
      else if (what == 14)
        split(list, a);
      else if (what == 15)
        moveMany(list);
      else
        moveStart(list);
      program.clear_instructions();
      for (const Instruction &i : list)
        *program.add_instructions() = i;
      random_.seed(seed + 1);
    }
  }

private:
  using List = std::vector<Instruction>;

  void moveRange(List &list, int begin, int count, int to) {
    List part(list.begin() + begin, list.begin() + begin + count);
    list.erase(list.begin() + begin, list.begin() + begin + count);
    to = std::clamp(to, 0, static_cast<int>(list.size()));
    list.insert(list.begin() + to, part.begin(), part.end());
  }

  void move(List &list) {
    if (list.empty())
      return;
    int from = below(list.size());
    int count = std::min<int>(1 + (below(3) == 0 ? below(6) : 0),
                              static_cast<int>(list.size()) - from);
    moveRange(list, from, count, from + below(25) - 12);
  }

  void moveMany(List &list) {
    for (int k = 0; k < 4; ++k)
      move(list);
  }

  /// Something that other ranks take part in.
  void moveStart(List &list) {
    std::vector<int> starts;
    for (size_t k = 0; k < list.size(); ++k)
      if (auto op = list[k].op(); messageOf(op).starts ||
                                  op == Instruction::REDUCE_GRADS_START ||
                                  op == Instruction::GATHER_PARAMS_START)
        starts.push_back(static_cast<int>(k));
    if (starts.empty())
      return;
    int from = starts[below(starts.size())];
    moveRange(list, from, 1, from + below(61) - 30);
  }

  void leaveOut(List &list) {
    if (list.empty())
      return;
    int from = below(list.size());
    int count =
        std::min<int>(1 + below(3), static_cast<int>(list.size()) - from);
    list.erase(list.begin() + from, list.begin() + from + count);
  }

  void repeat(List &list) {
    if (list.empty())
      return;
    Instruction again = list[below(list.size())];
    list.insert(list.begin() + below(list.size() + 1), again);
  }

  static std::tuple<int, int, int> nameOf(const Instruction &i) {
    return {i.op(), namesLayer(i.op()) ? i.layer() : 0,
            isPerMicroBatch(i.op()) ? i.micro_batch() : 0};
  }

  /// The first part of one program, then what of another it does not have.
  void join(List &list, const plan::RankProgram &other) {
    list.resize(below(list.size() + 1));
    std::set<std::tuple<int, int, int>> here;
    for (const Instruction &i : list)
      here.insert(nameOf(i));
    for (const Instruction &i : other.instructions())
      if (!here.count(nameOf(i)))
        list.push_back(i);
  }

  static void exchange(List &list, int a, int b) {
    for (Instruction &i : list)
      if (isPerMicroBatch(i.op()) &&
          (i.micro_batch() == a || i.micro_batch() == b))
        i.set_micro_batch(a + b - i.micro_batch());
  }

  static void evaluate(List &list, int m) {
    List kept;
    for (Instruction i : list) {
      if (isPerMicroBatch(i.op()) && i.micro_batch() == m) {
        if (i.op() == Instruction::FORWARD) {
          i.set_op(Instruction::EVALUATE);
          i.clear_recompute();
        } else if (int role = roleOf(i); role >= 0 ||
                                         i.op() == Instruction::FREE ||
                                         messageOf(i.op()).gradient) {
          continue;
        }
      }
      kept.push_back(i);
    }
    list = kept;
  }

  /// One layer in another mode.
  void recompute(List &list, int m) {
    auto mode = static_cast<plan::Recompute>(below(3));
    int layer = below(graph_.model().layers());
    List changed;
    for (Instruction i : list) {
      bool here =
          isPerMicroBatch(i.op()) && i.micro_batch() == m && i.layer() == layer;
      if (here && i.op() == Instruction::RECOMPUTE)
        continue;
      bool back = i.op() == Instruction::BACKWARD ||
                  i.op() == Instruction::BACKWARD_INPUT;
      if (here && back && mode != plan::RECOMPUTE_NONE) {
        Instruction again = i;
        again.set_op(Instruction::RECOMPUTE);
        again.set_recompute(mode);
        changed.push_back(again);
      }
      if (here && i.op() == Instruction::FORWARD)
        i.set_recompute(mode);
      changed.push_back(i);
    }
    list = changed;
  }

  /// One layer's backward in two parts.
  void split(List &list, int m) {
    int layer = below(graph_.model().layers());
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k].op() == Instruction::BACKWARD && list[k].layer() == layer &&
          list[k].micro_batch() == m) {
        Instruction weight = list[k];
        list[k].set_op(Instruction::BACKWARD_INPUT);
        weight.set_op(Instruction::BACKWARD_WEIGHT);
        list.insert(list.begin() + k + 1, weight);
        return;
      }
  }

  const ExecutableGraph &graph_;
  const plan::Plan &other_;
  std::mt19937_64 random_;
};

PlanOptions randomOptions(Scrambler &random) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 12;
  options.schedule = static_cast<Schedule>(random.below(3));
  options.inFlight = 1 + random.below(4);
  options.recompute = {static_cast<plan::Recompute>(random.below(3))};
  options.splitBackward = random.below(2);
  return options;
}

//===----------------------------------------------------------------------===//
// The test
//===----------------------------------------------------------------------===//

struct Counts {
  int64_t tried = 0, accepted = 0, run = 0, untouched = 0, hanging = 0;
  int64_t differing = 0; ///< run, with programs of one stage that differ
};

class ScrambledPlansTest : public testing::Test {
protected:
  static TinyOptions tinyOptions(bool nestedTie) {
    TinyOptions options;
    options.hidden = 12;
    options.nestedTie = nestedTie;
    options.degrees = {{2, false}, {2, true}, {3, false}, {4, true}};
    return options;
  }

  void scramble(uint64_t seed) {
    const Model &model = models[seed % 2];
    ExecutableGraph graph = *ExecutableGraph::create(
        *model.view,
        *parseStrategy(strategies[seed / 2 % std::size(strategies)]));
    Planner planner(graph);
    const plan::Plan none;
    Scrambler chooser(graph, none, seed);
    bool trains = chooser.below(8) > 0;
    auto planOf = [&](const PlanOptions &options) {
      return trains ? *planner.training(lengths, batches[0].targets, options)
                    : *planner.evaluation(lengths, batches[0].targets, options);
    };
    plan::Plan plan = planOf(randomOptions(chooser));
    plan::Plan other = planOf(randomOptions(chooser));
    VerifyOptions limits = {enough, -1, batches[0].targets};
    for (plan::Plan *legal : {&plan, &other}) {
      Status status = verifyPlan(graph, *legal, lengths, limits);
      ASSERT_TRUE(status.isOk()) << status.message();
      ++counts.untouched;
    }
    Scrambler scrambler(graph, other, seed);
    bool apart = chooser.below(4) > 0;
    int hanging = 0;
    for (int change = 0; change < 40; ++change) {
      plan::Plan candidate = plan;
      for (int times = 1 + scrambler.below(2); times > 0; --times)
        scrambler.change(candidate);
      for (int rank = 0; apart && rank < graph.ranks(); ++rank)
        placeApart(graph, candidate, rank);
      ++counts.tried;
      Status status = verifyPlan(graph, candidate, lengths, limits);
      if (status.isOk()) {
        ++counts.accepted;
        plan = candidate;
        if (runsAll && !HasFailure())
          run(model, graph, plan, trains, seed + change);
      } else if (hanging == 0 && counts.hanging < 20 &&
                 status.message().find("wait for each other") !=
                     std::string::npos) {
        ++hanging;
        expectHang(model, graph, candidate);
      }
    }
    if (!runsAll)
      run(model, graph, plan, trains, seed);
  }

  struct Model {
    std::unique_ptr<TinyProgram> program;
    std::unique_ptr<ManifestView> view;
    Outcome trained, evaluated;
  };

  void SetUp() override {
    for (int s = 0; s < steps; ++s)
      batches.push_back(tinyBatch(lengths, s + 1));
    for (Model &model : models) {
      model.program =
          std::make_unique<TinyProgram>(tinyOptions(&model == &models[1]));
      model.view = std::make_unique<ManifestView>(
          *openProgram(model.program->program()));
      ExecutableGraph one = *ExecutableGraph::create(*model.view, Strategy());
      Planner planner(one);
      PlanOptions options;
      options.maxTokensPerMicroBatch = 12;
      for (bool trains : {false, true}) {
        auto plan =
            trains ? planner.training(lengths, batches[0].targets, options)
                   : planner.evaluation(lengths, batches[0].targets, options);
        EXPECT_OK(
            Ranks(*model.program, one, false, true, patience)
                .run(*plan, batches, trains ? model.trained : model.evaluated));
      }
    }
  }

  void run(const Model &model, const ExecutableGraph &graph,
           const plan::Plan &plan, bool trains, uint64_t seed) {
    Outcome got;
    Status status =
        Ranks(*model.program, graph, seed % 3 != 0, seed % 5 == 0, patience)
            .run(plan, batches, got);
    EXPECT_TRUE(status.isOk()) << status.message();
    if (status.isOk())
      EXPECT_TRUE(isNear(trains ? model.trained : model.evaluated, got));
    ++counts.run;
    bool differs = false;
    for (int rank = 1; rank < graph.ranks(); ++rank)
      if (graph.placeOf(rank).shard > 0)
        differs |= !haveOneOrder(plan.ranks(rank - 1), plan.ranks(rank));
    counts.differing += differs;
  }

  static bool haveOneOrder(const plan::RankProgram &a,
                           const plan::RankProgram &b) {
    bool same = a.instructions_size() == b.instructions_size();
    for (int i = 0; same && i < a.instructions_size(); ++i)
      same = a.instructions(i).op() == b.instructions(i).op() &&
             a.instructions(i).layer() == b.instructions(i).layer() &&
             a.instructions(i).micro_batch() == b.instructions(i).micro_batch();
    return same;
  }

  /// P11 refuses no more than it must: the plan does not end.
  void expectHang(const Model &model, const ExecutableGraph &graph,
                  const plan::Plan &plan) {
    Status status = Ranks(*model.program, graph, true, false,
                          std::chrono::milliseconds(500))
                        .runUnverified(plan, batches[0]);
    EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded) << status.message();
    ++counts.hanging;
  }

  const std::vector<int64_t> lengths = std::vector<int64_t>(8, 6);
  static constexpr auto patience = std::chrono::seconds(30);
  std::vector<MiniBatch> batches;
  Model models[2];
  const bool runsAll = numberFrom("DYNA_SCRAMBLE_ALL", 0) != 0;
  Counts counts;
};

TEST_F(ScrambledPlansTest, RunAndComputeWhatOneRankComputes) {
  int64_t plans = numberFrom("DYNA_SCRAMBLES", 90);
  int64_t first = numberFrom("DYNA_SCRAMBLE_SEED", 0);
  for (int64_t seed = first; seed < first + plans && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    scramble(static_cast<uint64_t>(seed));
  }
  std::printf("%lld legal plans, %lld changes tried, %lld accepted, %lld plans "
              "run (%lld with ranks of one group in different orders), %lld "
              "refused ones seen to hang\n",
              static_cast<long long>(counts.untouched),
              static_cast<long long>(counts.tried),
              static_cast<long long>(counts.accepted),
              static_cast<long long>(counts.run),
              static_cast<long long>(counts.differing),
              static_cast<long long>(counts.hanging));
  if (plans < 90)
    return;
  EXPECT_EQ(counts.run, runsAll ? counts.accepted : plans);
  // A change in ten is harmless; most are not.
  EXPECT_GT(counts.accepted, counts.tried / 50);
  EXPECT_LT(counts.accepted, counts.tried / 2);
  EXPECT_GT(counts.differing, counts.run / 8);
  EXPECT_GT(counts.hanging, 0);
}

/// What the verifier counts on is what the functions do.
TEST_F(ScrambledPlansTest, AManifestThatSaysOtherwiseIsNoticed) {
  const std::function<void(plan::LayerKind::Role &)> lies[] = {
      [](auto &role) { role.mutable_exchanges()->RemoveLast(); },
      [](auto &role) { *role.add_exchanges() = role.exchanges(0); },
      [](auto &role) {
        role.mutable_exchanges(0)->mutable_tensors(0)->set_kind(
            plan::LayerExchange::ALL_REDUCE);
      },
      [](auto &role) {
        auto *bytes =
            role.mutable_exchanges(0)->mutable_tensors(0)->mutable_bytes();
        bytes->set_tq(bytes->tq() - 1);
      },
      [](auto &role) {
        role.mutable_exchanges(0)->mutable_tensors(0)->set_dealt_group(1);
      },
      [](auto &role) {
        *role.mutable_exchanges(0)->add_tensors() =
            role.exchanges(0).tensors(0);
      },
  };
  for (const auto &lie : lies) {
    plan::Manifest manifest = models[0].view->manifest();
    lie(*manifest.mutable_degrees(1)->mutable_kinds(1)->mutable_roles(
        DYNA_ROLE_BACKWARD));
    ManifestView view = *ManifestView::create(manifest);
    ExecutableGraph graph =
        *ExecutableGraph::create(view, *parseStrategy("tp=2,sp=1"));
    PlanOptions options;
    options.maxTokensPerMicroBatch = 12;
    auto plan = Planner(graph).training(lengths, batches[0].targets, options);
    Outcome outcome;
    Status status = Ranks(*models[0].program, graph, false, false, patience)
                        .run(*plan, batches, outcome);
    EXPECT_THAT(status.message(),
                testing::AllOf(HasSubstr("(BACKWARD layer 3"),
                               HasSubstr("by the manifest it is")));
  }
}

} // namespace
