//===- PrunedRuns.h - Runs with --prune -------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRAIN_PRUNEDRUNS_H
#define DYNA_TEST_RUNTIME_TRAIN_PRUNEDRUNS_H

#include "runtime/executor/open/OpenProgram.h"
#include "runtime/train/loop/Trainer.h"
#include "runtime/train/open/OpenSession.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/train/TrainProgram.h"

#include <map>

namespace dyna::test {

using Numbers = std::vector<double>;

/// Runs with --prune in this process, and what they leave.
class PrunedRuns : public TrainProgram {
protected:
  /// State at the end of a run, by parameter, and what the run reported.
  struct Left {
    Status status;
    Numbers losses, norms, sparsity, survivors;
    std::vector<Numbers> masters, moments, squares;
    std::vector<Numbers> scores;                     ///< empty without scores
    std::vector<std::vector<uint8_t>> masks, copies; ///< copies are bytes
    std::string said;
  };
  /// Strategies by the step, from 0, before which the run goes over.
  using Changes = std::map<int64_t, std::string>;

  static constexpr const char *gradual =
      "--prune=initial=0.3,final=0.8,from=4,until=8,every=2";

  static TinyOptions tiny(plan::ElementType compute = plan::F64) {
    TinyOptions options;
    options.vocabulary = 257;
    options.hidden = 12;
    options.compute = compute;
    options.degrees = {{2, false}, {2, true}, {4, false}};
    options.nestedTie = true;
    return options;
  }

  static Numbers readPart(RankTeam &ranks, int p, ParameterPart part) {
    const int64_t count = ranks.model().elements(p);
    const RowRange rows = {0, ranks.model().rows(p)};
    Numbers wide(static_cast<size_t>(count));
    std::vector<float> narrow(static_cast<size_t>(count));
    const bool isWide = ranks.model().masterType() == plan::F64;
    EXPECT_TRUE(
        ranks
            .readRows(p, part, rows,
                      isWide ? static_cast<void *>(wide.data()) : narrow.data())
            .isOk());
    if (!isWide)
      wide.assign(narrow.begin(), narrow.end());
    return wide;
  }

  static void readAll(RankTeam &ranks, Left &left) {
    for (int p = 0; p < ranks.model().parameters(); ++p) {
      left.masters.push_back(readPart(ranks, p, ParameterPart::Master));
      left.moments.push_back(readPart(ranks, p, ParameterPart::FirstMoment));
      left.squares.push_back(readPart(ranks, p, ParameterPart::SecondMoment));
      if (ranks.model().hasScores(p))
        left.scores.push_back(readPart(ranks, p, ParameterPart::Score));
      left.masks.push_back(readBytes(ranks, p, ParameterPart::Mask));
      left.copies.push_back(readBytes(ranks, p, ParameterPart::Copy));
    }
  }

  static Status go(const TinyOptions &tiny,
                   const std::vector<std::string> &arguments,
                   const Changes &changes, Left &left) {
    const TinyProgram program(tiny);
    DYNA_ASSIGN_OR_RETURN(Model model, openProgram(program.program()));
    TrainOptions options;
    DYNA_RETURN_IF_ERROR(parseCommandLine(arguments, options));
    DYNA_RETURN_IF_ERROR(resolveOptions(options));
    DYNA_RETURN_IF_ERROR(setMasks(model, options));
    Session session;
    session.arenaBytes = 4 << 20;
    std::optional<Checkpoint> loaded;
    if (!options.load.empty()) {
      DYNA_ASSIGN_OR_RETURN(loaded, loadCheckpoint(options.load));
    }
    const Checkpoint *const start = loaded ? &*loaded : nullptr;
    DYNA_RETURN_IF_ERROR(openSession(program.program(), model, options,
                                     /*training=*/true, start, session));
    Trainer trainer(session, start, nullptr);
    auto choose = [&](int64_t step) -> std::optional<NextStrategy> {
      if (const auto found = changes.find(step); found != changes.end())
        return NextStrategy{found->second, ""};
      return std::nullopt;
    };
    if (!changes.empty()) // else --repack chooses
      trainer.setNext(choose);
    DYNA_RETURN_IF_ERROR(trainer.run());
    readAll(*session.ranks, left);
    return trainer.endFiles();
  }

  Left train(const TinyOptions &tiny, std::vector<std::string> more,
             const Changes &changes = {}) {
    fs::remove(path("metrics"));
    more.push_back("--metrics=" + path("metrics"));
    Left left;
    testing::internal::CaptureStderr();
    left.status = go(tiny, training(std::move(more)), changes, left);
    left.said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(left.status.isOk()) << left.status.message();
    left.losses = numbers("metrics", "loss");
    left.norms = numbers("metrics", "gradient_norm");
    left.sparsity = numbers("metrics", "sparsity");
    left.survivors = numbers("metrics", "survivors");
    return left;
  }

  using TrainProgram::expectNear;
  static void expectNear(const Left &a, const Left &b) {
    ASSERT_GT(a.losses.size(), 0u);
    expectNear(a.losses, b.losses);
    expectNear(a.norms, b.norms);
    EXPECT_EQ(a.masks == b.masks, true);
    EXPECT_EQ(a.survivors, b.survivors);
    ASSERT_EQ(a.masters.size(), b.masters.size());
    for (size_t p = 0; p < a.masters.size(); ++p) {
      expectNear(a.masters[p], b.masters[p]);
      expectNear(a.moments[p], b.moments[p]);
      expectNear(a.squares[p], b.squares[p]);
    }
    ASSERT_EQ(a.scores.size(), b.scores.size());
    for (size_t i = 0; i < a.scores.size(); ++i)
      expectNear(a.scores[i], b.scores[i]);
  }

  void expectSameMasks(const std::string &a, const std::string &b) const {
    auto one = loadStep(path(a)), two = loadStep(path(b));
    ASSERT_TRUE(one.isOk() && two.isOk());
    int masks = 0;
    for (const TensorView &tensor : one->optimizer->tensors()) {
      if (tensor.type != DType::U8)
        continue;
      ++masks;
      const TensorView *other = two->optimizer->find(tensor.name);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(std::memcmp(tensor.data, other->data,
                            *tensorBytes(tensor.type, tensor.shape)),
                0)
          << tensor.name;
    }
    EXPECT_GT(masks, 0);
  }

  /// Starts again at each step between `first` and `last` of a run of 10 steps that prunes.
  /// Expects the checkpoint of the whole run: bitwise under its own strategy, and the same
  /// masks under another one, if `other` is not empty. The summary has `says`.
  void expectResumes(const std::string &prune, int first, int last,
                     const std::string &other, const std::string &says = "") {
    const std::vector<std::string> arguments =
        training({prune, "--schedule-steps=10", "--warmup=2", "--save-every=1",
                  "--keep=20", "--strategy=dp=2,zero=1", "--steps=10",
                  "--save=" + path("whole")});
    ASSERT_EQ(run(arguments).code, 0);
    for (int step = first; step <= last; ++step)
      for (const std::string &strategy : {std::string(), other}) {
        SCOPED_TRACE(testing::Message() << step << " " << strategy);
        const bool isOwn = strategy.empty();
        fs::remove_all(folder_ / "part");
        fs::create_directories(folder_ / "part");
        const std::string name = "step-" + std::to_string(step);
        fs::copy(folder_ / "whole" / name, folder_ / "part" / name,
                 fs::copy_options::recursive);
        std::vector<std::string> resumed = {"--resume=" + path("part"),
                                            "--no-progress", "--save-every=0"};
        if (!isOwn)
          resumed.push_back("--strategy=" + strategy);
        const Result result = run(resumed);
        ASSERT_EQ(result.code, 0) << result.err;
        EXPECT_NE(result.out.find(says), std::string::npos) << result.out;
        if (isOwn)
          expectSame("whole/step-10", "part/step-10");
        else
          expectSameMasks("whole/step-10", "part/step-10");
        if (other.empty())
          break;
      }
  }

  /// Expects that pruned weights and their moments are zero, and that others train. Returns
  /// the number of survivors.
  static int64_t expectZeros(const Left &left) {
    int64_t survivors = 0, moved = 0;
    for (size_t p = 0; p < left.masks.size(); ++p)
      for (size_t i = 0; i < left.masks[p].size(); ++i) {
        if (left.masks[p][i] == 1) {
          ++survivors;
          moved += left.masters[p][i] != 0 && left.squares[p][i] != 0;
          continue;
        }
        EXPECT_EQ(left.masks[p][i], 0);
        EXPECT_EQ(left.masters[p][i], 0);
        EXPECT_EQ(left.moments[p][i], 0);
        EXPECT_EQ(left.squares[p][i], 0);
        if (const size_t bytes = left.copies[p].size(); bytes > 0)
          EXPECT_EQ(left.copies[p][2 * i] | left.copies[p][2 * i + 1], 0);
      }
    EXPECT_EQ(moved, survivors);
    return survivors;
  }
};

/// Blocks have 12 * 6 weights in each of two matrices, one of which two blocks share.
inline constexpr int64_t weightsOfBlocks = 5 * 72;

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_TRAIN_PRUNEDRUNS_H
