//===- FileContentTest.cpp - What files hold, whatever their names --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Sources.h"

#include "test/runtime/data/Datasets.h"

using namespace dyna;
using namespace dyna::test;

namespace {

// What a file holds decides, not its name.
TEST(FileContentTest, LinesOfJsonAreReadUnderAnyName) {
  TemporaryDirectory dir;
  for (const char *name : {"a.txt", "a.json", "a.ndjson", "a", "a.jsonl"}) {
    std::string path =
        dir.write(name, "\xEF\xBB\xBF{\"id\": NaN, \"text\": \"aa\"}\n"
                        "{\"text\": \"b\"}\n");
    DatasetPointer lines = mustOpen({path});
    ASSERT_TRUE(lines) << name;
    ASSERT_EQ(lines->size(), 2) << name;
    EXPECT_EQ(mustRead(lines, 0).tokens, bytesOf("aa"));
    // The first line may be longer than what is looked at.
    path = dir.write(name, "{\"input\": \"" + std::string(10000, 'x') +
                               "\", \"target\": \"y\"}\n");
    EXPECT_EQ(mustRead(mustOpen({path}), 0).firstTarget, 10000) << name;
  }
  // Text that only looks like it.
  for (const char *text :
       {"{\"text\": 5}", "{\"text\" is a key}\n", "{ x; }\n", "[1] Dyna",
        "{\"input\": \"x\"}\nand so on", "BZh", "{\"a\": {\"text\": \"x\"}}\n",
        "[1, 2, 3] are sources", "[[1]] is a link", "[\"Yes,\" she said]",
        "[\"a\nb\"]", "[]", "[", "[x]"})
    EXPECT_EQ(mustOpen({dir.write("t.txt", text)})->size(), 1) << text;
}

TEST(JsonLinesDatasetTest, LeavesOutBadLinesUpToALimit) {
  TemporaryDirectory dir;
  const std::string good = "{\"text\": \"good\"}\n";
  std::string a = dir.write("a.jsonl",
                            good + "bad\n" + good + "{\"text\": 5}\n"),
              b = dir.write("b.jsonl",
                            "{\"x\": \"of no known form\"}\n" + good),
              none = dir.write("none.jsonl", "1\n2\n");
  auto open = [&](std::vector<std::string> paths, int64_t most) {
    DataOptions options;
    options.skipBadLines = most;
    return openDataset(paths, options);
  };
  expectFailure(open({a}, 0), "a.jsonl:2: byte 1");
  expectFailure(open({a}, 1), "a.jsonl has more bad lines than "
                              "--skip-bad-lines allows (1); the first: ");
  // Of all files together.
  expectFailure(open({a, b}, 2), "b.jsonl:1: has neither");
  expectFailure(open({none}, 2), "none.jsonl has no line that can be read");
  DatasetPointer both = *open({a, b}, 3);
  ASSERT_EQ(both->size(), 3);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(mustRead(both, i).tokens, bytesOf("good"));
  EXPECT_EQ(both->describe(1), a + ":3");
  ASSERT_EQ(both->notes().size(), 2u);
  EXPECT_EQ(both->notes()[0].rfind("2 lines of " + a +
                                       " left out (--skip-bad-lines): " + a +
                                       ":2: byte 1: ",
                                   0),
            0u)
      << both->notes()[0];
  EXPECT_NE(both->notes()[0].find("; " + a + ":4: "), std::string::npos);
}

TEST(FileContentTest, FormsThatAreNotReadAreRefusedByName) {
  TemporaryDirectory dir;
  std::string little, big;
  for (char c : std::string("Some text of two bytes each")) {
    little += {c, '\0'};
    big += {'\0', c};
  }
  // A quotation mark has no zero byte, and a text may be short.
  const std::string quoted = std::string("\x1c\x20", 2) + little.substr(0, 8);
  const std::pair<std::string, std::string> forms[] = {
      {"\x1f\x8b\x08", "gzip data, which is not read; unpack it first"},
      {"\x28\xb5\x2f\xfd", "zstd data"},
      {"\x50\x2a\x4d\x18", "zstd data"},
      {"BZh91AY&SY", "bzip2 data"},
      {std::string("\x40\1\0\0\0\0\0\0{\"w\":", 13), "a safetensors file"},
      {"GGUF\3", "a GGUF model"},
      {"\x80\4\x95\1", "a pickle of Python"},
      {"/annex/objects/SHA256E-s123--0",
       "a git-annex pointer, which is not read; fetch the file"},
      {"PK\3\4x", "a zip archive"},
      {"PAR1\x15\x04", "a Parquet table, which is not read; convert it"},
      {"Rar!\x1a\7", "a RAR archive"},
      {"\x1f\x9d\x90", "compress data"},
      {"Obj\1", "an Avro table"},
      {"\xca\xfe\xba\xbe", "an executable"},
      {"\x7f"
       "ELF\2\1\1",
       "an executable or library"},
      {"\xff\xfet\1", "UTF-16 text, which is not read; convert it: iconv"},
      {little, "UTF-16 text, which is not read; convert it: iconv -f UTF-16LE"},
      {big, "UTF-16 text, which is not read; convert it: iconv -f UTF-16BE"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
       "a Git LFS pointer, which is not read; fetch the file"},
      {quoted, "UTF-16 text, which is not read; convert it: iconv -f UTF-16LE"},
      {" [\n {\"text\": \"a\"},", "a JSON array, which is not read; write its"},
      {"[\"a \\\" b\",\n \"c\"]\n",
       "a JSON array, which is not read; write an "},
      {"[ \"" + std::string(10000, 'x'), "a JSON array, which is not read; "},
      {"[15496, 11, 995, 0, 50256, 1, 2, 3]", "a JSON array, which is not "},
      {"[[15496, 11], [995]]", "a JSON array, which is not read; token ids"},
      {std::string("MMIDIDX\0\0\1", 10),
       "the index of a Megatron-LM data set"}};
  for (const auto &[bytes, message] : forms)
    for (const char *name : {"x.txt", "x.jsonl", "x"}) {
      std::string path = dir.write(name, bytes);
      expectFailure(openDataset({path}, {}), path + " is " + message);
    }
  // In a folder they are documents, and said.
  dir.write("folder/a", "text");
  dir.write("folder/b", "\x1f\x8b\x08");
  EXPECT_EQ(mustOpen({dir / "folder"})->notes(),
            std::vector<std::string>{"1 file of " + (dir / "folder") +
                                     " read as bytes, but no text (" +
                                     (dir / "folder/b") + ", gzip data)"});
}

} // namespace
