//===- RowSumTest.cpp - Every row is in a sum over rows -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On a GPU blocks add up some of the rows each, and groups of threads some of these
// sums each. Sums of small whole numbers are exact in any order: here all groups have
// some, and none may be missing. Kernels run on the processor.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/reference/CompiledModel.h"
#include "test/reference/RandomModule.h"
#include "test/runtime/device/TestDevice.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

namespace {

/// Whose backward function adds rows of its gradient up, for the bias.
std::string layerOf(int64_t width) {
  const std::string vector = "tensor<" + std::to_string(width) + "xf32>";
  const std::string rows = "tensor<?x" + std::to_string(width) + "xf32>";
  return "dyna.layer @norm[%g: " + vector + ", %b: " + vector +
         "](%x: " + rows + ") -> " + rows +
         " {\n  %y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : " +
         rows + ", " + vector + "\n  dyna.return %y : " + rows + "\n}\n";
}

class RowSumTest : public testing::TestWithParam<const char *> {
protected:
  RowSumTest() {
    mlirContext.loadDialect<DynaDialect>();
    context.abi_version = DYNA_ABI_VERSION;
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context, *stream);
  }

  Tensor wholeNumbers(std::vector<int64_t> shape) {
    Tensor tensor(std::move(shape));
    for (double &value : tensor.values)
      value = static_cast<double>(choices.between(1, 8));
    return tensor;
  }

  void check(int64_t width, const std::vector<int64_t> &rowCounts);
  void checkRows(const CompiledProgram &program, int64_t width, int64_t rows);

  MLIRContext mlirContext;
  const std::unique_ptr<::dyna::Device> device = ::dyna::makeTestDevice();
  const std::unique_ptr<::dyna::Stream> stream =
      std::move(*device->createStream());
  dyna_context context = {};
  char message[256] = {};
  Choices choices{5};
};

void RowSumTest::checkRows(const CompiledProgram &program, int64_t width,
                           int64_t rows) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(width));
  Builder builder(&mlirContext);
  const std::string type = GetParam();
  const Type element = type == "f64"   ? Type(builder.getF64Type())
                       : type == "f32" ? Type(builder.getF32Type())
                                       : Type(builder.getBF16Type());
  const Type sums = program.gradientElement();
  auto put = [](const Tensor &tensor, Type element) {
    Slab slab(static_cast<int64_t>(tensor.values.size()) *
              element.getIntOrFloatBitWidth() / 8);
    store(tensor, element, slab);
    return slab;
  };
  const dyna_segment segment = {0, 0, rows, 0, rows, 0};
  dyna_segments segments = {};
  segments.data = &segment, segments.count = 1;
  segments.tq = segments.tkv = rows;
  segments.longest_query = segments.longest_key = rows;
  const Tensor dy = wholeNumbers({rows, width});
  const Tensor before = wholeNumbers({width});
  Slab x = put(wholeNumbers({rows, width}), element),
       dyBlock = put(dy, element);
  Slab y = put(dy, element), dx = put(dy, element);
  Slab gain = put(before, element), bias = put(before, element);
  Slab gainGradient = put(before, sums), biasGradient = put(before, sums);
  const dyna_tensor params[] = {{gain.data(), 1}, {bias.data(), 1}};
  const dyna_tensor grads[] = {{gainGradient.data(), 1},
                               {biasGradient.data(), 1}};

  const CompiledLayer &layer = program.layer("norm");
  std::vector<Slab> tiers;
  for (const auto &tier : layer.tiers)
    tiers.emplace_back(tier.at({rows, rows, 1}));
  const dyna_saved saved = {x.data(), tiers[1].data(), tiers[2].data(),
                            tiers[3].data(), nullptr};
  auto run = [&](Role role, dyna_tensor in, dyna_tensor out) {
    const CompiledFunction &function = layer.functions.at(role);
    Slab workspace(function.workspace.at({rows, rows, 1}));
    return function.function(&context, params, grads, &saved, workspace.data(),
                             &segments, &in, &out);
  };
  ASSERT_EQ(run(Role::Forward, {x.data(), rows}, {y.data(), rows}), DYNA_OK)
      << message;
  ASSERT_EQ(run(Role::Backward, {dyBlock.data(), rows}, {dx.data(), rows}),
            DYNA_OK)
      << message;
  Tensor wanted = before;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < width; ++column)
      wanted.values[column] += dy.at(row, column);
  EXPECT_TRUE(load({width}, sums, biasGradient).values == wanted.values);
}

void RowSumTest::check(int64_t width, const std::vector<int64_t> &rowCounts) {
  auto module = parseSourceString<ModuleOp>(layerOf(width), &mlirContext);
  ASSERT_TRUE(module);
  CompileOptions options;
  options.type = GetParam();
  options.emulated = true;
  auto program = CompiledProgram::compile(*module, options);
  ASSERT_TRUE(program);
  for (int64_t rows : rowCounts)
    checkRows(*program, width, rows);
}

TEST_P(RowSumTest, IsOfAllRows) {
  check(40, {1, 31, 129, 300, 1111}); // a warp has a row
  check(7, {250});                    // one element at a time
  check(1104, {65});                  // a block has a row
}

INSTANTIATE_TEST_SUITE_P(Types, RowSumTest,
                         testing::Values("f64", "f32", "bf16"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
