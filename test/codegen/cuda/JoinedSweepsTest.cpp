//===- JoinedSweepsTest.cpp - Many tensors in one launch --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Updates, casts and sums of squares of several tensors are one launch, and have
// the bits of as many functions with one tensor each.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Passes.h"
#include "codegen/cuda/Pipelines.h"
#include "passes/memory/Passes.h"
#include "test/codegen/cpu/FunctionTest.h"
#include "test/reference/Emulation.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dyna::test;

namespace {

int64_t launches = 0;
using Launch = dyna_status(dyna_context *, const dyna_device_code *, int64_t,
                           const void *, int64_t, int64_t);
Launch *emulatedLaunch = nullptr;

dyna_status countedLaunch(dyna_context *context, const dyna_device_code *code,
                          int64_t function, const void *args, int64_t bytes,
                          int64_t grid) {
  launches += grid > 0 ? 1 : 0;
  return emulatedLaunch(context, code, function, args, bytes, grid);
}

Kernels emulatedKernels() {
  Kernels kernels;
  for (auto [name, address] : mlir::dyna::reference::emulationKernels()) {
    void *used = address;
    if (name == std::string("dyna_launch_kernel")) {
      emulatedLaunch = reinterpret_cast<Launch *>(address);
      used = reinterpret_cast<void *>(&countedLaunch);
    }
    kernels.push_back({name, used});
  }
  return kernels;
}

/// One of the tensors of a layer: `rows` of its `all` rows, from `first` on; none
/// are an absent one.
struct Part {
  int64_t all, width, first, rows;
  bool decay = false;

  std::string shape() const {
    return std::to_string(all) + "x" + std::to_string(width);
  }
  size_t count() const { return static_cast<size_t>(all * width); }
  dyna_tensor of(Tensor &tensor, Element element) const {
    if (rows == 0)
      return {nullptr, 0};
    auto *data = static_cast<char *>(tensor.data());
    return {data + static_cast<size_t>(first * width) * bytesOf(element), rows};
  }
};

/// Of all sizes: single elements, several blocks, more than the parts that a sum
/// has; aligned and not; an absent one at each end and between others.
const std::vector<Part> mixedParts = {
    {3, 5, 0, 0},        {40, 111, 0, 40, true}, {1, 5, 0, 1},
    {9, 31, 2, 5, true}, {7, 300, 0, 0, true},   {300, 301, 0, 300, true},
    {64, 512, 1, 63},    {5, 4, 0, 5},           {2, 2, 0, 0}};

/// Numbers whose sums depend on the order.
Tensor uneven(Element element, size_t count, size_t seed) {
  Tensor tensor(element, count);
  for (size_t i = 0; i < count; ++i)
    tensor.set(i, std::sin(static_cast<double>(i * 37 + seed * 101)));
  return tensor;
}

/// "%0, %1, ..." of a name and numbers.
template <typename F> std::string list(size_t count, F entry) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + entry(i);
  return text;
}

class JoinedSweepsTest : public testing::Test {
protected:
  void compile(const std::string &functions) {
    module = std::make_unique<CompiledModule>(
        std::string(layer) + functions,
        [](mlir::OpPassManager &manager) {
          mlir::dyna::SetTargetOptions target;
          target.target = "cuda";
          manager.addPass(mlir::dyna::createSetTarget(target));
          mlir::dyna::cuda::buildLowerCudaPipeline(manager);
          mlir::dyna::cuda::EmbedKernelsOptions embed;
          embed.arch = "emulated";
          manager.addPass(mlir::dyna::cuda::createEmbedKernels(embed));
        },
        emulatedKernels());
    ASSERT_TRUE(module->ok());
  }
  dyna_status run(const std::string &function, Call &call) {
    call.workspace = workspace.data();
    call.context.message = message;
    call.context.message_capacity = sizeof(message);
    launches = 0;
    return call.run(module->find(function));
  }

  std::unique_ptr<CompiledModule> module;
  Tensor workspace = Tensor(Element::F64, 1 << 16);
  char message[256] = {};
};

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

std::string place(const char *memory, size_t index) {
  return std::string("<") + memory + ", index = " + std::to_string(index) + ">";
}

/// A function that updates parts; with bf16 parameters they are copied, and
/// `narrow` says that gradients are bf16, too.
std::string updateText(const std::string &name, const std::vector<Part> &parts,
                       Element element, bool narrow) {
  const std::string master = accumulatorOf(element);
  const std::string gradient = narrow ? "bf16" : master;
  const bool copies = element == Element::BF16;
  auto tensor = [&](size_t i, const std::string &type) {
    return "tensor<" + parts[i].shape() + "x" + type + ">";
  };
  auto places = [&](size_t i, const char *prefix) {
    auto input = [&](size_t k) { return prefix + place("input", 3 * i + k); };
    return std::vector<std::string>{prefix + place("gradient", i), input(0),
                                    input(1), input(2)};
  };
  std::string arguments = list(parts.size(), [&](size_t i) {
    const std::string n = std::to_string(i), m = tensor(i, master);
    auto at = places(i, "");
    return "%g" + n + ": " + tensor(i, gradient) + " in " + at[0] + ", %p" + n +
           ": " + m + " in " + at[1] + ", %m" + n + ": " + m + " in " + at[2] +
           ", %v" + n + ": " + m + " in " + at[3];
  });
  std::string results = list(parts.size(), [&](size_t i) {
    const std::string m = tensor(i, master);
    auto at = places(i, "");
    return tensor(i, gradient) + " in " + at[0] + ", " + m + " in " + at[1] +
           ", " + m + " in " + at[2] + ", " + m + " in " + at[3] +
           (copies ? ", " + tensor(i, "bf16") + " in " + place("parameter", i)
                   : "");
  });
  std::string text = "dyna.function @" + name + " of @l as update(" +
                     arguments + ") -> (" + results + ") {\n";
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string n = std::to_string(i), m = tensor(i, master);
    auto at = places(i, "#dyna.place");
    text += "  %q" + n + ", %h" + n + ", %n" + n + ", %w" + n +
            " = dyna.adamw %p" + n + ", %g" + n + ", %m" + n + ", %v" + n +
            " {" + (parts[i].decay ? "decay, " : "") + "places = [" + at[1] +
            ", " + at[0] + ", " + at[2] + ", " + at[3] + "]} : " + m + ", " +
            tensor(i, gradient) + "\n";
    if (copies)
      text += "  %c" + n + " = dyna.cast %q" + n + " {places = [#dyna.place" +
              place("parameter", i) + "]} : " + m + " -> " + tensor(i, "bf16") +
              "\n";
  }
  text += "  dyna.return " +
          list(parts.size(),
               [&](size_t i) {
                 const std::string n = std::to_string(i);
                 return "%h" + n + ", %q" + n + ", %n" + n + ", %w" + n +
                        (copies ? ", %c" + n : "");
               }) +
          " : " +
          list(parts.size(),
               [&](size_t i) {
                 const std::string m = tensor(i, master);
                 return tensor(i, gradient) + ", " + m + ", " + m + ", " + m +
                        (copies ? ", " + tensor(i, "bf16") : "");
               }) +
          "\n}\n";
  return text;
}

const double kScale = 0.5;

/// What an update works on.
struct UpdatedState {
  Element element;
  bool narrow;
  std::vector<std::vector<Tensor>> tensors; ///< gradient, p, m, v, copy

  UpdatedState(const std::vector<Part> &parts, Element element, bool narrow)
      : element(element), narrow(narrow) {
    for (const Part &part : parts) {
      tensors.emplace_back();
      for (size_t k = 0; k < 5; ++k) {
        tensors.back().push_back(
            uneven(typeOf(k), part.count(), 5 * tensors.size() + k));
        if (k == 3)
          for (size_t i = 0; i < part.count(); ++i)
            tensors.back()[k].set(i, std::abs(tensors.back()[k].get(i)));
      }
    }
  }
  Element typeOf(size_t k) const {
    Element master = element == Element::F64 ? Element::F64 : Element::F32;
    return k == 0 && narrow ? Element::BF16 : k == 4 ? Element::BF16 : master;
  }
  /// Adds a part's tensors to a call.
  void give(const Part &part, size_t i, Call &call) {
    auto at = [&](size_t k) { return part.of(tensors[i][k], typeOf(k)); };
    call.grads.push_back(at(0));
    for (size_t k = 1; k < 4; ++k)
      call.in.push_back(at(k));
    call.params.push_back(at(4));
    call.context.optimizer = {1e-2, 0.9,     0.95,  1e-8,
                              0.1,  &kScale, 0.271, 0.142625};
  }
};

TEST_F(JoinedSweepsTest, UpdatesAreOneLaunch) {
  for (GradientTypes types : gradientTypes) {
    const bool narrow = types.gradient == Element::BF16;
    SCOPED_TRACE(nameOf(types.compute) + " " + nameOf(types.gradient));
    std::string text = updateText("f", mixedParts, types.compute, narrow);
    for (size_t i = 0; i < mixedParts.size(); ++i)
      text += updateText("f" + std::to_string(i), {mixedParts[i]},
                         types.compute, narrow);
    compile(text);
    UpdatedState together(mixedParts, types.compute, narrow);
    UpdatedState apart(mixedParts, types.compute, narrow);
    Call call({});
    for (size_t i = 0; i < mixedParts.size(); ++i)
      together.give(mixedParts[i], i, call);
    ASSERT_EQ(run("f", call), DYNA_OK) << message;
    EXPECT_EQ(launches, 1);
    for (size_t i = 0; i < mixedParts.size(); ++i) {
      Call one({});
      apart.give(mixedParts[i], i, one);
      const std::vector<double> before = apart.tensors[i][1].values();
      ASSERT_EQ(run("f" + std::to_string(i), one), DYNA_OK) << message;
      EXPECT_EQ(launches, mixedParts[i].rows > 0 ? 1 : 0);
      EXPECT_EQ(apart.tensors[i][1].values() != before, mixedParts[i].rows > 0);
      for (size_t k = 0; k < 5; ++k) {
        EXPECT_EQ(together.tensors[i][k].values(), apart.tensors[i][k].values())
            << "part " << i << ", tensor " << k;
        EXPECT_TRUE(together.tensors[i][k].guardIntact());
      }
    }
  }
}

/// A kernel's struct has 4 KiB: tensors of 7 words each beside 9 scalars.
TEST_F(JoinedSweepsTest, MoreThanAStructHoldsAreSeveralLaunches) {
  constexpr size_t kMost = (512 - 9) / 7;
  for (size_t count : {kMost, kMost + 1}) {
    std::vector<Part> parts(count, {2, 3, 0, 2});
    compile(updateText("f", parts, Element::F32, false));
    UpdatedState state(parts, Element::F32, false);
    Call call({});
    for (size_t i = 0; i < count; ++i)
      state.give(parts[i], i, call);
    std::vector<double> before = state.tensors.back()[1].values();
    ASSERT_EQ(run("f", call), DYNA_OK) << message;
    EXPECT_EQ(launches, static_cast<int64_t>((count + kMost - 1) / kMost));
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(state.tensors[i][0].values(), std::vector<double>(6, 0.0));
    EXPECT_NE(state.tensors.back()[1].values(), before);
  }
}

/// Rows of one tensor that cannot be: nothing is done to the others either.
TEST_F(JoinedSweepsTest, RowsThatCannotBeAreRefused) {
  std::vector<Part> parts = {{4, 8, 0, 4}, {4, 8, 0, 4}, {4, 8, 0, 4}};
  compile(updateText("f", parts, Element::F32, false));
  for (size_t bad = 0; bad < parts.size(); ++bad) {
    UpdatedState state(parts, Element::F32, false);
    Call call({});
    for (size_t i = 0; i < parts.size(); ++i)
      state.give(parts[i], i, call);
    call.in[3 * bad].rows = 5;
    std::vector<double> before = state.tensors[0][1].values();
    EXPECT_EQ(run("f", call), DYNA_INVALID_ARGUMENT);
    EXPECT_EQ(launches, 0);
    EXPECT_EQ(state.tensors[0][1].values(), before);
  }
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

std::string castText(const std::string &name, const std::vector<Part> &parts) {
  auto tensor = [&](size_t i, const char *type) {
    return "tensor<" + parts[i].shape() + "x" + type + ">";
  };
  std::string text =
      "dyna.function @" + name + " of @l as cast(" +
      list(parts.size(),
           [&](size_t i) {
             return "%x" + std::to_string(i) + ": " + tensor(i, "f32") +
                    " in " + place("input", i);
           }) +
      ") -> (" +
      list(parts.size(),
           [&](size_t i) {
             return tensor(i, "bf16") + " in " + place("parameter", i);
           }) +
      ") {\n";
  for (size_t i = 0; i < parts.size(); ++i)
    text += "  %y" + std::to_string(i) + " = dyna.cast %x" + std::to_string(i) +
            " {places = [#dyna.place" + place("parameter", i) +
            "]} : " + tensor(i, "f32") + " -> " + tensor(i, "bf16") + "\n";
  return text + "  dyna.return " +
         list(parts.size(),
              [&](size_t i) { return "%y" + std::to_string(i); }) +
         " : " +
         list(parts.size(), [&](size_t i) { return tensor(i, "bf16"); }) +
         "\n}\n";
}

TEST_F(JoinedSweepsTest, CastsAreOneLaunch) {
  compile(castText("f", mixedParts));
  std::vector<Tensor> from, to;
  Call call({});
  for (const Part &part : mixedParts) {
    from.push_back(uneven(Element::F32, part.count(), from.size()));
    to.push_back(pattern(Element::BF16, part.count(), 3));
  }
  for (size_t i = 0; i < mixedParts.size(); ++i) {
    call.in.push_back(mixedParts[i].of(from[i], Element::F32));
    call.params.push_back(mixedParts[i].of(to[i], Element::BF16));
  }
  ASSERT_EQ(run("f", call), DYNA_OK) << message;
  EXPECT_EQ(launches, 1);
  for (size_t i = 0; i < mixedParts.size(); ++i) {
    const Part &part = mixedParts[i];
    Tensor expected = pattern(Element::BF16, part.count(), 3);
    for (int64_t at = part.first * part.width;
         at < (part.first + part.rows) * part.width; ++at)
      expected.set(static_cast<size_t>(at),
                   from[i].get(static_cast<size_t>(at)));
    EXPECT_EQ(to[i].values(), expected.values()) << "part " << i;
    EXPECT_TRUE(to[i].guardIntact());
  }
}

//===----------------------------------------------------------------------===//
// Sums of squares
//===----------------------------------------------------------------------===//

/// With `apart` each has scratch memory of its own.
std::string squaresText(const std::string &name, const std::vector<Part> &parts,
                        Element element, bool apart) {
  auto tensor = [&](size_t i) {
    return "tensor<" + parts[i].shape() + "x" + nameOf(element) + ">";
  };
  std::string text =
      "dyna.function @" + name + " of @l as grad_norm(" +
      list(parts.size(),
           [&](size_t i) {
             return "%g" + std::to_string(i) + ": " + tensor(i) + " in " +
                    place("gradient", i);
           }) +
      ", %s0: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>) {\n";
  for (size_t i = 0; i < parts.size(); ++i)
    text += "  %s" + std::to_string(i + 1) + " = dyna.sum_squares %g" +
            std::to_string(i) + ", %s" + std::to_string(i) +
            " {places = [#dyna.place<output>, #dyna.place<workspace, constant "
            "= " +
            std::to_string(apart ? 256 * i : 0) + ">]} : " + tensor(i) + "\n";
  return text + "  dyna.return %s" + std::to_string(parts.size()) +
         " : tensor<1xf64>\n}\n";
}

TEST_F(JoinedSweepsTest, SquaresAreTwoLaunches) {
  for (Element element : {Element::F32, Element::F64, Element::BF16}) {
    SCOPED_TRACE(nameOf(element));
    std::string text = squaresText("f", mixedParts, element, true) +
                       squaresText("shared", mixedParts, element, false);
    for (size_t i = 0; i < mixedParts.size(); ++i)
      text +=
          squaresText("f" + std::to_string(i), {mixedParts[i]}, element, true);
    compile(text);
    std::vector<Tensor> gradients;
    Call call({});
    for (const Part &part : mixedParts)
      gradients.push_back(uneven(element, part.count(), gradients.size()));
    for (size_t i = 0; i < mixedParts.size(); ++i)
      call.grads.push_back(mixedParts[i].of(gradients[i], element));
    // What an earlier call left there must not be added.
    for (size_t i = 0; i < workspace.count(); ++i)
      workspace.set(i, std::nan(""));
    Tensor sum(Element::F64, std::vector<double>{0.3});
    call.out = {{sum.data(), 1}};
    ASSERT_EQ(run("f", call), DYNA_OK) << message;
    EXPECT_EQ(launches, 2);

    Tensor apart(Element::F64, std::vector<double>{0.3});
    int64_t present = 0;
    double expected = 0.3;
    for (size_t i = 0; i < mixedParts.size(); ++i) {
      const Part &part = mixedParts[i];
      present += part.rows > 0;
      Call one({});
      one.grads = {part.of(gradients[i], element)};
      one.out = {{apart.data(), 1}};
      ASSERT_EQ(run("f" + std::to_string(i), one), DYNA_OK) << message;
      for (int64_t at = part.first * part.width;
           at < (part.first + part.rows) * part.width; ++at)
        expected += std::pow(gradients[i].get(static_cast<size_t>(at)), 2);
    }
    EXPECT_EQ(sum.get(0), apart.get(0));
    EXPECT_NEAR(sum.get(0), expected, 1e-9 * expected);

    // Where their parts would lie on each other, one goes after the other.
    Tensor shared(Element::F64, std::vector<double>{0.3});
    call.out = {{shared.data(), 1}};
    ASSERT_EQ(run("shared", call), DYNA_OK) << message;
    EXPECT_EQ(launches, 2 * present);
    EXPECT_EQ(shared.get(0), sum.get(0));

    // With nothing there the sum stays as it is.
    for (dyna_tensor &gradient : call.grads)
      gradient = {nullptr, 0};
    call.out = {{sum.data(), 1}};
    sum.set(0, 7);
    ASSERT_EQ(run("f", call), DYNA_OK) << message;
    EXPECT_EQ(launches, 0);
    EXPECT_EQ(sum.get(0), 7);
  }
}

} // namespace
