//===- OpenProgramTest.cpp - Programs and their variants ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyRun.h"

#include "runtime/executor/open/CpuFeatures.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(ProgramTest, ChoosesTheFirstVariantThatRuns) {
  TinyProgram tiny;
  auto plain = chooseVariant(tiny.program(), "", cpuFeatures());
  ASSERT_TRUE(plain.isOk());
  EXPECT_STREQ((*plain)->name, "plain");
  auto future = chooseVariant(tiny.program(), "", ~UINT64_C(0));
  ASSERT_TRUE(future.isOk());
  EXPECT_STREQ((*future)->name, "future");
}

TEST(ProgramTest, NamedVariantsMustExistAndRun) {
  TinyProgram tiny;
  EXPECT_TRUE(chooseVariant(tiny.program(), "plain", 0).isOk());
  EXPECT_THAT(chooseVariant(tiny.program(), "future", 0).status().message(),
              HasSubstr("--isa=future needs"));
  EXPECT_THAT(chooseVariant(tiny.program(), "sse9", 0).status().message(),
              HasSubstr("there are: future, plain"));
}

TEST(ProgramTest, DamagedProgramsAreRefused) {
  TinyProgram tiny;
  dyna_program program = tiny.program();
  program.abi_version = 99;
  EXPECT_THAT(openProgram(program).status().message(),
              HasSubstr("ABI version 99"));
  program = tiny.program();
  program.manifest_size /= 2;
  EXPECT_FALSE(openProgram(program).isOk());
  program = tiny.program();
  program.manifest = nullptr;
  EXPECT_THAT(openProgram(program).status().message(), HasSubstr("damaged"));
  std::vector<dyna_layer_function> functions(
      tiny.program().variants[0].functions,
      tiny.program().variants[0].functions + 3 * DYNA_ROLE_COUNT);
  functions[DYNA_ROLE_COUNT + DYNA_ROLE_BACKWARD] = nullptr;
  dyna_variant variant = {"broken", 0, functions.data()};
  program = tiny.program();
  program.variants = &variant;
  program.variant_count = 1;
  EXPECT_THAT(openProgram(program).status().message(),
              HasSubstr("variant 'broken' lacks function 4 of layer kind "
                        "'block'"));
}

} // namespace
