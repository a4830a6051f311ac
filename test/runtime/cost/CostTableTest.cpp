//===- CostTableTest.cpp - Files of costs, good and bad -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostTable.h"

#include <cstdio>
#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(CostTableTest, ReadsEntriesAndDevice) {
  auto table = CostTable::parse(R"(
    # A comment.
    entries {
      kind: "block" tp: 2 sp: true direction: BACKWARD
      points { tokens: 100 pairs: 5050 seconds: 0.25 }
    }
    entries { kind: "block" direction: FORWARD points { tokens: 10 seconds: 1 } }
    device { name: "node" f64_flops: 1 f32_flops: 2 bf16_flops: 4
             bytes_per_second: 8 })",
                                "costs.txt");
  ASSERT_TRUE(table.isOk()) << table.status().message();
  EXPECT_EQ(table->name(), "costs.txt");
  EXPECT_EQ(table->curves().size(), 2u);
  auto found = table->curves().find({"block", 2, true, cost::BACKWARD});
  ASSERT_NE(found, table->curves().end());
  EXPECT_DOUBLE_EQ(found->second.seconds(callLoad(100, 5050, 0)), 0.25);
  // Without tp it is 1.
  EXPECT_EQ(table->curves().count({"block", 1, false, cost::FORWARD}), 1u);
  EXPECT_EQ(table->device().name(), "node");
  EXPECT_EQ(table->device().bf16_flops(), 4);
}

TEST(CostTableTest, PointsMayHaveContext) {
  const char *whole = "points { tokens: 4 pairs: 10 seconds: 1 } ";
  auto curveOf = [&](const std::string &points) {
    auto table = CostTable::parse(
        "entries { kind: \"a\" direction: FORWARD " + points + " }", "file");
    EXPECT_TRUE(table.isOk()) << table.status().message();
    return table->curves().begin()->second;
  };
  const Load slice = sliceLoad(4, 8);
  EXPECT_EQ(slice.pairs, 42);
  // A file from before slices: they are whole samples of as many pairs.
  EXPECT_FALSE(curveOf(whole).hasContext());
  EXPECT_EQ(curveOf(whole).seconds(slice), 1);
  const CostCurve curve =
      curveOf(whole + std::string("points { tokens: 4 pairs: 42 context: 8 "
                                  "seconds: 7 }"));
  EXPECT_TRUE(curve.hasContext());
  EXPECT_DOUBLE_EQ(curve.seconds(slice), 7);
  EXPECT_EQ(curve.seconds(callLoad(4, 10, 0)), 1);
  // A whole sample with as many pairs is none.
  EXPECT_EQ(curve.seconds(callLoad(4, 42, 0)), 1);
}

TEST(CostTableTest, FingerprintsAreOfWhatFilesSay) {
  auto of = [](const char *text) {
    auto table = CostTable::parse(text, "costs.txt");
    EXPECT_TRUE(table.isOk()) << table.status().message();
    return table.isOk() ? table->fingerprint() : 0;
  };
  const char *one = "entries { kind: \"head\" direction: FORWARD "
                    "points { tokens: 1 seconds: 1 } }";
  const char *same = "# Measured today.\nentries {\n  kind: \"head\"\n"
                     "  direction: FORWARD\n"
                     "  points { seconds: 1  tokens: 1 }\n}\n";
  const char *other = "entries { kind: \"head\" direction: FORWARD "
                      "points { tokens: 1 seconds: 2 } }";
  EXPECT_NE(of(one), 0u);
  EXPECT_EQ(of(one), of(same));
  EXPECT_NE(of(one), of(other));
  EXPECT_EQ(CostTable::host().fingerprint(), 0u);
}

TEST(CostTableTest, TheBuiltInDeviceStandsIn) {
  auto table = CostTable::parse("entries { kind: \"head\" direction: FORWARD "
                                "points { tokens: 1 seconds: 1 } }",
                                "no device");
  ASSERT_TRUE(table.isOk());
  for (const cost::Device &device :
       {CostTable::host().device(), table->device()}) {
    EXPECT_EQ(device.name(), "host");
    EXPECT_GT(device.f32_flops(), device.f64_flops());
    EXPECT_GT(device.bytes_per_second(), 0);
  }
  EXPECT_EQ(CostTable::host().name(), "");
}

struct BadTable {
  const char *text;
  std::vector<const char *> words;
};

const BadTable badTables[] = {
    {"", {"file: has no entries and no device"}},
    {"# nothing yet", {"file: has no entries and no device"}},
    // Where in the file, as text protobufs say it.
    {"entries {\n  kind: \"a\"\n  secnds: 3 }", {"file:3", "secnds"}},
    {"entries {\n kind: \"a\" direction: SIDEWAYS }", {"file:2", "SIDEWAYS"}},
    {"entries { kind: \"a\" points { tokens: many } }", {"file:1", "many"}},
    {"entries { kind: \"a\"", {"file:1"}},
    {"\x01\x02\xff", {"file:1"}},
    {"entries { direction: FORWARD points { seconds: 1 } }",
     {"file: entry 1", "has no kind"}},
    {"entries { kind: \"a\" points { seconds: 1 } }",
     {"entry 1 (a tp=1", "no direction", "BACKWARD_WEIGHT"}},
    {"entries { kind: \"a\" direction: FORWARD }",
     {"entry 1 (a tp=1 FORWARD)", "has no points"}},
    {"entries { kind: \"a\" tp: -2 direction: FORWARD points { seconds: 1 } }",
     {"tp expects 1 or more, but got -2"}},
    {"entries { kind: \"a\" direction: FORWARD points { tokens: 1 seconds: 1 } "
     "points { tokens: 4 seconds: -1 } }",
     {"point 2: seconds expects 0 to", "got -1"}},
    {"entries { kind: \"a\" direction: FORWARD points { seconds: nan } }",
     {"point 1: seconds", "nan"}},
    {"entries { kind: \"a\" direction: FORWARD points { seconds: inf } }",
     {"point 1: seconds", "inf"}},
    {"entries { kind: \"a\" direction: FORWARD points { tokens: -4 } }",
     {"point 1: tokens expects 0 to", "-4"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { pairs: 9223372036854775807 } }",
     {"point 1: pairs", "9223372036854775807"}},
    {"entries { kind: \"a\" direction: UPDATE points { seconds: 1 } } "
     "entries { kind: \"a\" tp: 1 direction: UPDATE points { seconds: 2 } }",
     {"entry 2 (a tp=1 UPDATE)", "is there twice"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 10 seconds: 1 } "
     "points { tokens: 4 seconds: 2 } "
     "points { tokens: 4 pairs: 10 seconds: 3 } }",
     {"entry 1 (a tp=1 FORWARD)",
      "points 1 and 3 are of one work (tokens 4, "
      "pairs 10, targets 0), with 1 and 3 seconds"}},
    {"device { name: \"d\" f64_flops: 1 f32_flops: 1 bf16_flops: 1 }",
     {"file: device 'd'", "bytes_per_second", "got 0"}},
    {"device { name: \"d\" f64_flops: nan f32_flops: 1 bf16_flops: 1 "
     "bytes_per_second: 1 }",
     {"f64_flops", "nan"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "launch_seconds: -1 }",
     {"launch_seconds", "-1"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "instruction_seconds: -2 }",
     {"instruction_seconds", "-2"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "step_seconds: inf }",
     {"step_seconds", "inf"}},
    {"device { name: \"d\" f64_flops: 1 f32_flops: 1 bf16_flops: 1 "
     "bytes_per_second: 1 flops_reach: 1.5 }",
     {"device 'd': flops_reach expects 0.001 to 1", "1.5"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "bytes_reach: 1e-320 }",
     {"bytes_reach expects 0.001 to 1"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "bytes_reach: nan }",
     {"bytes_reach", "nan"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 "
     "memory_bytes: -1 }",
     {"memory_bytes expects 0 or more"}},
    {"device { f64_flops: 1 f32_flops: 1 bf16_flops: 1 bytes_per_second: 1 } "
     "layers { kind: \"b\" } layers { kind: \"b\" }",
     {"layers 'b' are described twice"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 10 pairs: 101 seconds: 1 } }",
     {"entry 1 (a tp=1 FORWARD): point 1: 101 pairs", "10 tokens", "100"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 10 targets: 11 seconds: 1 } }",
     {"point 1: 11 targets, but 10 tokens"}},
    // A micro-batch has tokens; an update has no micro-batch.
    {"entries { kind: \"a\" direction: UPDATE points { seconds: 1 } } "
     "entries { kind: \"a\" tp: 2 direction: BACKWARD "
     "points { tokens: 10 seconds: 2 } points { tokens: 0 seconds: 1 } }",
     {"entry 2 (a tp=2 BACKWARD): point 2: has no tokens"}},
    {"compute_type: \"f16\" entries { kind: \"a\" direction: UPDATE "
     "points { seconds: 1 } }",
     {"file: compute_type expects f64, f32 or bf16, but got 'f16'"}},
    {"entries { kind: \"a\" sp: true direction: FORWARD "
     "points { tokens: 10 seconds: 1 } }",
     {"entry 1 (a tp=1,sp=1 FORWARD)", "tp is 1"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 10 seconds: 9 } points { tokens: 1000 seconds: 1e-9 } }",
     {"point 1 (tokens 10, pairs 0, targets 0) takes 9 seconds, but point 2 "
      "(tokens 1000, pairs 0, targets 0), of more work, takes 1e-09: more work "
      "cannot"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 8 pairs: 1 seconds: 9 } }",
     {"point 1: 1 pairs, but each of 8 tokens sees one key at least"}},
    // Slices: a point with context is one of them.
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 42 context: -8 seconds: 1 } }",
     {"point 1: context expects 0 to", "got -8"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 42 context: 9007199254740993 seconds: 1 } }",
     {"point 1: context expects 0 to", "9007199254740993"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 42 context: 2000000000 seconds: 1 } }",
     {"point 1: a slice of 4 tokens after 2000000000: expects at most"}},
    {"entries { kind: \"a\" direction: FORWARD points { tokens: 4 seconds: 1 } "
     "points { tokens: 4 context: 8 seconds: 1 } }",
     {"point 2: has context 8, but no pairs"}},
    {"entries { kind: \"a\" direction: UPDATE "
     "points { context: 8 seconds: 1 } }",
     {"point 1: has context 8, but UPDATE runs once in a step"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { context: 8 seconds: 1 } }",
     {"point 1: has no tokens"}},
    // A slice beside a whole sample, and all pairs instead of the visible ones.
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 38 context: 8 seconds: 1 } }",
     {"point 1: 38 pairs, but a slice of 4 tokens after 8 has 42", "alone"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 48 context: 8 seconds: 1 } }",
     {"point 1: 48 pairs, but a slice of 4 tokens after 8 has 42"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 42 context: 8 seconds: 1 } }",
     {"entry 1 (a tp=1 FORWARD)", "points with context alone",
      "at least one point without"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 10 seconds: 1 } "
     "points { tokens: 4 pairs: 42 context: 8 seconds: 1 } "
     "points { tokens: 4 pairs: 42 context: 8 seconds: 2 } }",
     {"points 2 and 3 are of one work (tokens 4, pairs 42, targets 0, context "
      "8), with 1 and 2 seconds"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 4 pairs: 10 seconds: 1 } "
     "points { tokens: 4 pairs: 42 context: 8 seconds: 30 } "
     "points { tokens: 4 pairs: 74 context: 16 seconds: 1 } }",
     {"point 2 (tokens 4, pairs 42, targets 0, context 8) takes 30 seconds, "
      "but point 3 (tokens 4, pairs 74, targets 0, context 16), of more work, "
      "takes 1"}},
    // The one that several others contradict is the wrong one.
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 10 seconds: 0.1 } points { tokens: 20 seconds: 0.2 } "
     "points { tokens: 30 seconds: 57 } points { tokens: 40 seconds: 0.4 } "
     "points { tokens: 50 seconds: 0.5 } }",
     {"point 3 (tokens 30, pairs 0, targets 0) takes 57 seconds, but point 5"}},
    {"entries { kind: \"a\" direction: FORWARD "
     "points { tokens: 10 seconds: 1 } points { tokens: 20 seconds: 2 } "
     "points { tokens: 30 seconds: 1e-3 } points { tokens: 40 seconds: 4 } }",
     {"point 3 (tokens 30, pairs 0, targets 0) takes 0.001 seconds, but point "
      "2 "
      "(tokens 20, pairs 0, targets 0), of less work, takes 2"}},
};

TEST(CostTableTest, SmallContradictionsAreNoise) {
  auto table =
      CostTable::parse("entries { kind: \"a\" direction: FORWARD "
                       "points { tokens: 10 pairs: 100 seconds: 3e-4 } "
                       "points { tokens: 11 seconds: 1e-6 } "
                       "points { tokens: 12 targets: 12 seconds: 2e-4 } }",
                       "file");
  EXPECT_TRUE(table.isOk()) << table.status().message();
}

TEST(CostTableTest, BadOnesAreRefusedWithTheirPlace) {
  for (const BadTable &bad : badTables) {
    auto table = CostTable::parse(bad.text, "file");
    ASSERT_FALSE(table.isOk()) << bad.text;
    for (const char *word : bad.words)
      EXPECT_THAT(table.status().message(), HasSubstr(word)) << bad.text;
    EXPECT_EQ(table.status().message().find('\n'), std::string::npos);
  }
}

TEST(CostTableTest, ReadsFiles) {
  std::string path = testing::TempDir() + "dyna-costs.txt";
  std::FILE *file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("entries { kind: \"a\" direction: UPDATE points { seconds: 2 } }",
             file);
  std::fclose(file);
  auto table = CostTable::read(path);
  ASSERT_TRUE(table.isOk()) << table.status().message();
  EXPECT_EQ(table->curves().size(), 1u);
  std::remove(path.c_str());
  EXPECT_THAT(CostTable::read(path).status().message(),
              testing::AllOf(HasSubstr(path), HasSubstr("No such file")));
  EXPECT_THAT(CostTable::read(testing::TempDir()).status().message(),
              HasSubstr("directory"));
  EXPECT_THAT(CostTable::read("/dev/zero").status().message(),
              HasSubstr("expected a regular file"));
}

} // namespace
