//===- TableGradientTest.cpp - Sums of rows, bit for bit ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On a GPU the rows of a gradient that go to one row of a table are added up in
// order, in the accumulator's type, and added to the table once: the same bits
// whoever sums what. Kernels run on the processor.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/reference/CompiledModel.h"
#include "test/reference/RandomModule.h"
#include "test/runtime/device/TestDevice.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

namespace {

constexpr int64_t kVocabulary = 5, kPositions = 40;

/// The embedding of a model with a table of tokens and one of positions.
std::string layerOf(int64_t width) {
  const std::string w = std::to_string(width) + "xf32>";
  const std::string tokens = "tensor<5x" + w, positions = "tensor<40x" + w;
  const std::string rows = "tensor<?x" + w;
  return "dyna.layer @embed[%wte: " + tokens + ", %wpe: " + positions +
         "](%ids: tensor<?xi32>, %s: !dyna.segments) -> " + rows +
         " {\n  %a = dyna.embedding %ids, %wte : tensor<?xi32>, " + tokens +
         "\n  %b = dyna.positions %wpe, %s : " + positions +
         "\n  %c = dyna.add %a, %b : " + rows + "\n  dyna.return %c : " + rows +
         "\n}\n";
}

struct Runs {
  std::vector<int32_t> rows, starts = {0};

  template <typename Key> void fill(const std::vector<Key> &keys, Key end) {
    for (Key key = 0; key < end; ++key) {
      const size_t before = rows.size();
      for (size_t row = 0; row < keys.size(); ++row)
        if (keys[row] == key)
          rows.push_back(static_cast<int32_t>(row));
      if (rows.size() > before)
        starts.push_back(static_cast<int32_t>(rows.size()));
    }
  }
  dyna_row_runs get() const {
    return {rows.data(), starts.data(),
            static_cast<int64_t>(starts.size()) - 1};
  }
};

/// What is added up in is `Sum`.
template <typename Sum, typename Key>
void addRows(const Tensor &dy, const std::vector<Key> &keys, Tensor &table) {
  for (int64_t key = 0; key < table.rows(); ++key)
    for (int64_t column = 0; column < table.width(); ++column) {
      Sum sum = 0;
      for (int64_t row = 0; row < dy.rows(); ++row)
        if (keys[static_cast<size_t>(row)] == key)
          sum += static_cast<Sum>(dy.at(row, column));
      table.at(key, column) =
          static_cast<Sum>(table.at(key, column)) + static_cast<Sum>(sum);
    }
}

class TableGradientTest
    : public testing::TestWithParam<std::pair<const char *, const char *>> {
protected:
  TableGradientTest() {
    mlirContext.loadDialect<DynaDialect>();
    context.abi_version = DYNA_ABI_VERSION;
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context, *stream);
  }

  Tensor draw(std::vector<int64_t> shape, Type element) {
    Tensor tensor(std::move(shape));
    // Large and small ones: the order of a sum shows.
    for (double &value : tensor.values)
      value = (choices.next() - 0.5) * (choices.chance(0.3) ? 1000 : 1);
    roundTo(element, tensor);
    return tensor;
  }

  void check(int64_t width, const std::vector<int64_t> &lengths);

  MLIRContext mlirContext;
  const std::unique_ptr<::dyna::Device> device = ::dyna::makeTestDevice();
  const std::unique_ptr<::dyna::Stream> stream =
      std::move(*device->createStream());
  dyna_context context = {};
  char message[256] = {};
  Choices choices{3};
};

void TableGradientTest::check(int64_t width,
                              const std::vector<int64_t> &lengths) {
  SCOPED_TRACE(width);
  auto module = parseSourceString<ModuleOp>(layerOf(width), &mlirContext);
  ASSERT_TRUE(module);
  CompileOptions options;
  options.type = GetParam().first;
  options.gradients = GetParam().second;
  options.emulated = true;
  auto program = CompiledProgram::compile(*module, options);
  ASSERT_TRUE(program);
  Builder builder(&mlirContext);
  const Type element = options.type == "f64"   ? Type(builder.getF64Type())
                       : options.type == "f32" ? Type(builder.getF32Type())
                                               : Type(builder.getBF16Type());
  const Type sums = program->gradientElement();

  Segments drawn = Segments::ofLengths(lengths);
  const int64_t tokens = drawn.tokens();
  std::vector<dyna_segment> list;
  for (const Segment &s : drawn.list)
    list.push_back({s.sample, s.queryBegin, s.queryLength, s.keyBegin,
                    s.keyLength, s.position});
  const std::vector<int64_t> samples = drawn.rowSamples(),
                             positions = drawn.rowPositions();
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < tokens; ++row)
    // Mostly one of them; the last id is nobody's.
    ids.push_back(static_cast<int32_t>(
        choices.chance(0.5) ? 1 : choices.between(0, kVocabulary - 2)));
  Runs tokenRuns, positionRuns;
  tokenRuns.fill<int32_t>(ids, kVocabulary);
  positionRuns.fill<int64_t>(positions, kPositions);
  dyna_segments segments = {};
  segments.data = list.data();
  segments.count = static_cast<int64_t>(list.size());
  segments.tq = segments.tkv = tokens;
  segments.row_sample = samples.data();
  segments.row_position = positions.data();

  const Tensor dy = draw({tokens, width}, element);
  const Tensor before[] = {draw({kVocabulary, width}, sums),
                           draw({kPositions, width}, sums)};
  Slab dyBlock(static_cast<int64_t>(dy.values.size()) *
               element.getIntOrFloatBitWidth() / 8);
  store(dy, element, dyBlock);
  std::vector<Tensor> given;
  auto run = [&](dyna_row_runs byToken, dyna_row_runs byPosition) {
    segments.token_runs = byToken;
    segments.position_runs = byPosition;
    std::vector<Slab> blocks;
    std::vector<dyna_tensor> gradients;
    for (const Tensor &table : before) {
      Slab &block =
          blocks.emplace_back(static_cast<int64_t>(table.values.size()) *
                              sums.getIntOrFloatBitWidth() / 8);
      store(table, sums, block);
      gradients.push_back({block.data(), table.rows()});
    }
    const CompiledFunction &function =
        program->layer("embed").functions.at(Role::Backward);
    Slab workspace(function.workspace.at({tokens, tokens, segments.count}));
    dyna_saved saved = {};
    saved.input = ids.data();
    dyna_tensor in = {dyBlock.data(), tokens};
    dyna_status status =
        function.function(&context, nullptr, gradients.data(), &saved,
                          workspace.data(), &segments, &in, nullptr);
    given.clear();
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_TRUE(blocks[i].guardsAreIntact());
      given.push_back(load(before[i].shape, sums, blocks[i]));
    }
    return status;
  };
  Tensor wanted[] = {before[0], before[1]};
  if (element.isF64()) {
    addRows<double>(dy, ids, wanted[0]);
    addRows<double>(dy, positions, wanted[1]);
  } else {
    addRows<float>(dy, ids, wanted[0]);
    addRows<float>(dy, positions, wanted[1]);
  }
  const dyna_row_runs byToken = tokenRuns.get();
  const dyna_row_runs byPosition = positionRuns.get();
  ASSERT_EQ(run(byToken, byPosition), DYNA_OK) << message;
  for (size_t i = 0; i < 2; ++i) {
    roundTo(sums, wanted[i]);
    EXPECT_TRUE(given[i].values == wanted[i].values) << "table " << i;
  }

  // A run too few is something else, and so is another order, which rounding to
  // bf16 may hide.
  ASSERT_EQ(run({byToken.rows, byToken.starts, byToken.count - 1}, byPosition),
            DYNA_OK)
      << message;
  EXPECT_FALSE(given[0].values == wanted[0].values);
  EXPECT_TRUE(given[1].values == wanted[1].values);
  std::vector<int32_t> turned = tokenRuns.rows;
  for (int64_t i = 0; i < byToken.count; ++i)
    std::reverse(turned.begin() + byToken.starts[i],
                 turned.begin() + byToken.starts[i + 1]);
  ASSERT_EQ(run({turned.data(), byToken.starts, byToken.count}, byPosition),
            DYNA_OK)
      << message;
  if (tokens > 30 && !sums.isBF16())
    EXPECT_FALSE(given[0].values == wanted[0].values);

  // Where there are no runs nothing would be added: that is refused.
  EXPECT_EQ(run({}, byPosition), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(run(byToken, {}), DYNA_INVALID_ARGUMENT);
}

TEST_P(TableGradientTest, IsTheSumInOrder) {
  check(30, {40, 1, 33, 7, 2});     // two elements at once; runs of one row
  check(1, {9});                    // one
  check(1104, {37, 40});            // several blocks' columns, and a rest
  check(256, {40, 40, 40, 40, 40}); // whole accesses
}

INSTANTIATE_TEST_SUITE_P(Types, TableGradientTest,
                         testing::Values(std::pair("f64", ""),
                                         std::pair("f32", ""),
                                         std::pair("bf16", ""),
                                         std::pair("bf16", "bf16")),
                         [](const auto &info) {
                           return std::string(info.param.first) +
                                  (*info.param.second ? "_narrow" : "");
                         });

} // namespace
