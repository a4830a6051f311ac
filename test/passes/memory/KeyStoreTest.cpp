//===- KeyStoreTest.cpp - Columns of attentions in stores -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/KeyStore.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <optional>
#include <string>

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// An attention of a function of the layer.
struct Attention {
  std::string type = "f32";
  int kvHeads = 2, headDim = 16, number = 0;
};

/// Returns a function of layer `l` with these attentions.
std::string functionWith(const std::string &name,
                         const std::vector<Attention> &attentions) {
  std::string arguments, body, types, results;
  for (const Attention &a : attentions) {
    const std::string at = std::to_string(&a - attentions.data());
    const std::string q = "tensor<?x" + std::to_string(4 * a.headDim) + "x" +
                          a.type + ">",
                      k = "tensor<?x" + std::to_string(a.kvHeads * a.headDim) +
                          "x" + a.type + ">";
    for (const char *operand : {"q", "k", "v"})
      arguments += "%" + std::string(operand) + at + ": " +
                   (operand[0] == 'q' ? q : k) + " in <products>, ";
    body += "  %o" + at + ", %lse" + at + " = dyna.attention %q" + at + ", %k" +
            at + ", %v" + at +
            ", %s {heads = 4 : i64, kv_heads = " + std::to_string(a.kvHeads) +
            " : i64, number = " + std::to_string(a.number) +
            " : i64, scale = 0.25 : f64} : " + q + ", " + k + ", " + k + "\n";
    const std::string separator = results.empty() ? "" : ", ";
    results += separator + q + " in <products>";
    types += separator + q;
  }
  std::string values;
  for (size_t i = 0; i < attentions.size(); ++i)
    values += (i ? ", %o" : "%o") + std::to_string(i);
  return "dyna.function @" + name + " of @l as " + name + "(" + arguments +
         "%s: !dyna.segments in <segments>) -> (" + results + ") {\n" + body +
         "  dyna.return " + values + " : " + types + "\n}\n";
}

/// Stores have types of the context.
struct KeyStoreTest : testing::Test {
  KeyStoreTest() { context.loadDialect<DynaDialect>(); }

  FailureOr<KeyStore> storeOf(const std::string &text);

  MLIRContext context;
  std::string said; ///< why there is no store
};

/// Returns the store of layer `l`.
FailureOr<KeyStore> KeyStoreTest::storeOf(const std::string &text) {
  said.clear();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str();
    return success();
  });
  auto module = parseSourceString<ModuleOp>(
      text, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!module)
    return failure();
  return KeyStore::create(*module, "l");
}

TEST_F(KeyStoreTest, AttentionsLieSideBySide) {
  auto store =
      storeOf(functionWith("forward", {{"f32", 2, 16, 1}, {"f32", 1, 24, 0}}) +
              functionWith("evaluate", {{"f32", 1, 24, 0}}));
  ASSERT_TRUE(succeeded(store)) << said;
  EXPECT_EQ(store->getStride(), 2 * 24 + 2 * 32);
  EXPECT_EQ(store->getRowBytes(), 4 * (2 * 24 + 2 * 32));
  EXPECT_EQ(store->getGradientRowBytes(), 4 * (2 * 32 + 2 * 32));
  EXPECT_EQ(store->columnsOf(0).values, 24);
  EXPECT_EQ(store->columnsOf(1).keys, 48);
  EXPECT_EQ(store->columnsOf(1).keyGradients, 64);
}

TEST_F(KeyStoreTest, FunctionsThatDisagreeAreRefused) {
  const struct {
    Attention one, other;
    const char *said;
  } cases[] = {
      {{"f32"},
       {"bf16"},
       "2 key/value heads of 16 elements of type 'bf16'; "
       "another function of the layer has 2 of 16 elements "
       "of type 'f32' there"},
      {{"f32", 2}, {"f32", 1}, "1 key/value heads of 16 elements of type"},
      {{"f32", 2, 16}, {"f32", 2, 32}, "2 key/value heads of 32 elements"}};
  for (const auto &one : cases) {
    EXPECT_TRUE(failed(storeOf(functionWith("forward", {one.one}) +
                               functionWith("evaluate", {one.other}))));
    EXPECT_NE(said.find(one.said), std::string::npos) << said;
  }
}

TEST_F(KeyStoreTest, NumbersAreOfOneAttentionEach) {
  EXPECT_TRUE(
      failed(storeOf(functionWith("forward", {Attention(), Attention()}))));
  EXPECT_NE(said.find("has number 0, as another attention of its function"),
            std::string::npos)
      << said;
}

} // namespace
