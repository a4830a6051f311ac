//===- SourcesTest.cpp - Every kind of data set ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Sources.h"

#include "runtime/data/Lengths.h"
#include "runtime/data/SampleIndex.h"
#include "test/runtime/data/Datasets.h"

#include <chrono>
#include <cstring>
#include <numeric>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace dyna;
using namespace dyna::test;

namespace {

//===--- Text -------------------------------------------------------------===//

TEST(TextDatasetTest, readsADirectoryInOrder) {
  TemporaryDirectory dir;
  dir.write("b.txt", "second");
  dir.write("a/deep/z.h", "first");
  dir.write("c", "\xFF");
  dir.write("empty", "");
  dir.write(".hidden", "no");
  dir.write(".git/config", "no");
  ASSERT_EQ(::symlink("/nowhere", (dir / "dangling").c_str()), 0);
  ASSERT_EQ(::symlink(dir.path().c_str(), (dir / "circle").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  DatasetPointer dataset = mustOpen({dir.path()});
  ASSERT_TRUE(dataset);
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(mustRead(dataset, 0).tokens, bytesOf("first"));
  EXPECT_EQ(mustRead(dataset, 1).tokens, bytesOf("second"));
  EXPECT_EQ(mustRead(dataset, 2).tokens, bytesOf("\xFF"));
  EXPECT_EQ(mustRead(dataset, 0).firstTarget, 1);
  EXPECT_EQ(dataset->describe(0), dir / "a/deep/z.h");
  EXPECT_EQ(
      dataFiles({dir.path()}),
      (std::vector<std::string>{dir / "a/deep/z.h", dir / "b.txt", dir / "c"}));
}

TEST(TextDatasetTest, countsWhatIsNeitherFileNorFolder) {
  TemporaryDirectory dir, none;
  dir.write("text/a", "text");
  dir.write("text/empty", "");
  dir.write("text/.hidden", "no");
  EXPECT_TRUE(mustOpen({dir / "text"})->notes().empty());
  ASSERT_EQ(::mkfifo((dir / "text/pipe").c_str(), 0600), 0);
  EXPECT_EQ(mustOpen({dir / "text"})->notes(),
            std::vector<std::string>{
                "1 entry of " + (dir / "text") +
                " left out, being neither files nor folders: pipes, sockets, "
                "devices, links to folders or to nothing (pipe)"});
  dir.write("text/deep/b", "text");
  ASSERT_EQ(::symlink("/nowhere", (dir / "text/deep/link").c_str()), 0);
  ASSERT_EQ(::symlink(dir.path().c_str(), (dir / "text/z").c_str()), 0);
  ASSERT_EQ(::symlink("a", (dir / "text/good").c_str()), 0);
  int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {AF_UNIX, "s"};
  auto here = std::filesystem::current_path();
  std::filesystem::current_path(dir / "text"); // sockets have short names
  EXPECT_EQ(
      ::bind(listening, reinterpret_cast<sockaddr *>(&address), sizeof address),
      0);
  std::filesystem::current_path(here);
  ::close(listening);
  DatasetPointer data = mustOpen({dir / "text"});
  EXPECT_EQ(data->size(), 3);
  const std::string four = "4 entries of " + (dir / "text") + " left out";
  ASSERT_EQ(data->notes().size(), 1u);
  EXPECT_EQ(data->notes()[0].rfind(four, 0), 0u) << data->notes()[0];
  EXPECT_NE(data->notes()[0].find("(the first is deep/link)"),
            std::string::npos);
  // Also of a part, and of several.
  EXPECT_EQ(holdOut(data, 1, 0)->first->notes(), data->notes());
  EXPECT_EQ(mustOpen({dir / "text", dir / "text"})->notes().size(), 2u);
}

TEST(TextDatasetTest, readsADirectoryThatEndsInLinksToNothing) {
  TemporaryDirectory dir;
  dir.write("file", "text");
  // Whatever order the folder is listed in, some link comes last.
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(::symlink("/nowhere", (dir / std::to_string(i)).c_str()), 0);
  DatasetPointer dataset = mustOpen({dir.path()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 1);
}

TEST(TextDatasetTest, readsOneFileAndSeveralPaths) {
  TemporaryDirectory dir;
  std::string a = dir.write("a.txt", "aa"), b = dir.write("b,c.txt", "b");
  DatasetPointer one = mustOpen({a});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->describe(0), a);
  // A comma separates paths unless a file has it in its name.
  for (const std::vector<std::string> &paths :
       {std::vector<std::string>{b, a}, {a + "," + a}}) {
    DatasetPointer two = mustOpen(paths);
    ASSERT_TRUE(two);
    ASSERT_EQ(two->size(), 2);
    EXPECT_EQ(mustRead(two, 1).tokens, bytesOf("aa"));
  }
}

TEST(TextDatasetTest, endsDocumentsOnlyIfTheVocabularyHasRoom) {
  TemporaryDirectory dir;
  std::string a = dir.write("a.txt", "aa");
  EXPECT_EQ(mustRead(mustOpen({a}, 256), 0).tokens, bytesOf("aa", false));
  EXPECT_EQ(mustRead(mustOpen({a}, 257), 0).tokens, bytesOf("aa"));
  expectFailure(openDataset({a}, {0, 0}), "positive vocabulary");
}

TEST(TextDatasetTest, knowsTheTokenThatEndsDocuments) {
  TemporaryDirectory dir;
  std::string text = dir.write("a.txt", "aa"), other = dir.write("b.txt", "b");
  std::string lines = dir.write("a.jsonl", "{\"text\": \"aa\"}\n");
  IndexParts parts;
  parts.type = 1;
  dir.write("data.idx", parts.bytes());
  parts.offsets = {0, 3, 3, 5};
  dir.write("data.idx", parts.bytes());
  std::string bin = dir.write("data.bin", "abcdef");
  EXPECT_EQ(mustOpen({text})->endToken(), 256);
  EXPECT_EQ(mustOpen({lines, text})->endToken(), 256);
  EXPECT_EQ(mustOpen({text}, 256)->endToken(), std::nullopt);
  EXPECT_EQ(mustOpen({bin})->endToken(), std::nullopt);
  EXPECT_EQ(mustOpen({text, bin})->endToken(), std::nullopt);
  EXPECT_EQ(holdOut(mustOpen({text, other}), 1, 0)->first->endToken(), 256);
}

// In any other vocabulary bytes would be the ids of other tokens.
TEST(TextDatasetTest, isForVocabulariesOfBytesOnly) {
  TemporaryDirectory dir;
  std::string text = dir.write("a.txt", "aa");
  std::string lines = dir.write("a.jsonl", "{\"text\": \"aa\"}\n");
  for (const std::string &path : {text, lines, dir.path()})
    for (int64_t vocabulary : {1, 255, 258, 300, 32000, 50257}) {
      expectFailure(openDataset({path}, {vocabulary, 0}),
                    "vocabulary of 257 (or 256, without an end of documents), "
                    "but the model's is " +
                        std::to_string(vocabulary));
      expectFailure(openDataset({path}, {vocabulary, 0}),
                    "give token ids made with the model's tokenizer");
    }
}

TEST(TextDatasetTest, readsParts) {
  TemporaryDirectory dir;
  for (int64_t vocabulary : {256, 257}) {
    DatasetPointer data = mustOpen({dir.write("a.txt", "abcd")}, vocabulary);
    std::vector<int32_t> whole = bytesOf("abcd", vocabulary == 257);
    int64_t size = static_cast<int64_t>(whole.size());
    EXPECT_EQ(data->shape(0).tokens, size);
    for (int64_t begin = 0; begin <= size; ++begin)
      for (int64_t end = begin; end <= size; ++end) {
        std::vector<int32_t> part;
        ASSERT_TRUE(data->readTokens(0, begin, end, part).isOk());
        EXPECT_EQ(part, std::vector<int32_t>(whole.begin() + begin,
                                             whole.begin() + end));
      }
  }
}

TEST(TextDatasetTest, noticesThatAFileChanges) {
  TemporaryDirectory dir;
  std::string path = dir.write("d/a.txt", "abcd");
  dir.write("d/b.txt", "efgh");
  for (const std::string &given : {path, dir / "d"}) {
    DatasetPointer data = mustOpen({given});
    mustRead(data, 0);
    touch(path);
    expectFailure(data->read(0), "a.txt was written to while it was in use");
    std::ofstream(path, std::ios::app) << "x";
    expectFailure(data->read(0), "a.txt has become longer while it was in use");
    std::filesystem::resize_file(path, 2);
    expectFailure(data->read(0), "a.txt has become shorter while it was in");
    dir.write("d/a.txt", "abcd");
  }
}

// The time of writing is what its owner says it is.
TEST(TextDatasetTest, noticesWritingWhoseTimeWasPutBack) {
  TemporaryDirectory dir;
  for (const char *name : {"a.txt", "a.jsonl", "data.bin"}) {
    std::string text = "{\"text\": \"one\"}\n", other = "{\"text\": \"two\"}\n";
    IndexParts parts;
    parts.type = 1;
    parts.lengths = {static_cast<int32_t>(text.size())};
    parts.offsets = {0};
    parts.documents = {0, 1};
    dir.write("data.idx", parts.bytes());
    std::string path = dir.write(name, text);
    DatasetPointer data = mustOpen({path});
    ASSERT_TRUE(data);
    mustRead(data, 0);
    rewriteUnseen(path, other);
    expectFailure(data->read(0), name + std::string(" was changed while it was "
                                                    "in use: it was written to "
                                                    "and its time put back"));
  }
}

// Sparse, so it costs no disk: neither is it copied, nor even read.
TEST(TextDatasetTest, readsFilesBeyondAGibibyte) {
  TemporaryDirectory dir;
  constexpr int64_t size = (INT64_C(5) << 30) + 3;
  std::string path = dir.write("large.txt", "start");
  std::filesystem::resize_file(path, size - 3);
  std::ofstream(path, std::ios::app) << "end";
  DatasetPointer data = mustOpen({path});
  ASSERT_TRUE(data);
  EXPECT_LT(data->heldBytes(), 10000);
  StatusOr<SampleIndexPointer> index = SampleIndex::create(data, {1024});
  ASSERT_TRUE(index.isOk());
  EXPECT_EQ((*index)->statistics().documentTokens, size + 1);
  StatusOr<Sample> first = (*index)->read(0);
  StatusOr<Sample> last = (*index)->read((*index)->size() - 1);
  ASSERT_TRUE(first.isOk() && last.isOk());
  EXPECT_EQ(first->tokens[0], 's');
  EXPECT_EQ(last->targets.back(), 256);
  EXPECT_EQ(last->tokens.back(), 'd');
  EXPECT_EQ((*index)->statistics().tokens, size);
  // What is read is a sample, not the file.
  EXPECT_LE(last->tokens.capacity(), 1025u);
}

TEST(TextDatasetTest, namesWhatIsMissing) {
  TemporaryDirectory dir;
  expectFailure(openDataset({}, {}), "no data was given");
  expectFailure(openDataset({""}, {}), "empty name");
  expectFailure(openDataset({dir.path()}, {}), "holds no file");
  expectFailure(openDataset({dir / "nothing"}, {}),
                dir / "nothing: No such file");
  expectFailure(openDataset({dir / "nothing"}, {}),
                "; give an existing directory");
  expectFailure(openDataset({dir.write("e.txt", "")}, {}), "e.txt is empty");
  dir.write("d/f", "x");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  expectFailure(openDataset({dir / "pipe"}, {}), "expected a regular file");
  DatasetPointer dataset = mustOpen({dir / "d"});
  std::filesystem::remove(dir / "d/f");
  expectFailure(dataset->read(0), "d/f: No such file");
}

//===--- JSON lines -------------------------------------------------------===//

TEST(JsonLinesTest, readsBothForms) {
  TemporaryDirectory dir;
  std::string path =
      dir.write("x.jsonl", "\xEF\xBB\xBF{\"text\": \"h\\u00e9\"}\r\n\n"
                           "{\"task\":1,\"input\":\"in\",\"target\":\"t\"}\n"
                           "  \n{\"input\": \"\", \"target\": \"tt\"}");
  DatasetPointer dataset = mustOpen({path});
  ASSERT_TRUE(dataset);
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(mustRead(dataset, 0).tokens, bytesOf("h\xC3\xA9"));
  EXPECT_EQ(mustRead(dataset, 0).firstTarget, 1);
  EXPECT_EQ(mustRead(dataset, 1).tokens, bytesOf("int"));
  EXPECT_EQ(mustRead(dataset, 1).firstTarget, 2);
  EXPECT_EQ(mustRead(dataset, 2).firstTarget, 1);
  EXPECT_EQ(dataset->describe(1), path + ":3");
  EXPECT_EQ(dataset->describe(2), path + ":5");
}

TEST(JsonLinesTest, namesFileAndLine) {
  const std::pair<const char *, const char *> cases[] = {
      {"[1]",
       "expected an object such as {\"text\": \"...\"}, but got an array"},
      {"{\"text\": 5}", "expected a string for \"text\", but got a number"},
      {"{\"input\": \"a\"}", "has \"input\" but no \"target\""},
      {"{\"target\": \"a\"}", "has \"target\" but no \"input\""},
      {"{\"content\": \"a\"}", "has neither \"text\" nor"},
      {"{\"text\": \"a\", \"input\": \"b\"}", "one of the two forms"},
      {"{\"text\": \"a\"", "byte 13: expected ',' or '}'"},
      {"{\"text\": \"\xC3\x28\"}", "bad UTF-8"},
  };
  for (auto [line, message] : cases) {
    std::string text = std::string("{\"text\": \"ok\"}\n\n") + line + "\n";
    StatusOr<DatasetPointer> dataset =
        JsonLinesDataset::fromBytes(text, "some.jsonl", {});
    expectFailure(dataset, std::string("some.jsonl:3: "));
    expectFailure(dataset, message);
  }
}

// Large enough for several threads, which must agree on the first bad line.
TEST(JsonLinesTest, checksEveryLineWhenOpened) {
  const std::string good = "{\"text\": \"" + std::string(1000, 'x') + "\"}\n";
  const int lines = 20000;
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += good;
  EXPECT_TRUE(JsonLinesDataset::fromBytes(text, "big.jsonl", {}).isOk());
  for (int bad : {lines, lines - 1, lines / 2, 2}) {
    text[good.size() * static_cast<size_t>(bad - 1)] = '[';
    expectFailure(JsonLinesDataset::fromBytes(text, "big.jsonl", {}),
                  "big.jsonl:" + std::to_string(bad) + ": ");
  }
}

// Reading behind the end of a mapping would end the process.
TEST(JsonLinesTest, noticesThatTheFileHasBecomeShorter) {
  TemporaryDirectory dir;
  std::string path =
      dir.write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  DatasetPointer data = mustOpen({path});
  mustRead(data, 1);
  std::filesystem::resize_file(path, 3);
  expectFailure(data->read(1), "a.jsonl has become shorter");
}

TEST(JsonLinesTest, noticesThatTheFileIsWrittenTo) {
  // One line short, one so long that it is kept.
  for (int length : {3, 100000}) {
    TemporaryDirectory dir;
    std::string line = "{\"text\": \"" +
                       std::string(static_cast<size_t>(length), 'x') + "\"}\n";
    std::string path = dir.write("a.jsonl", line);
    DatasetPointer data = mustOpen({path});
    EXPECT_EQ(mustRead(data, 0).tokens.size(), size_t(length) + 1);
    EXPECT_EQ(mustRead(data, 0).tokens.size(), size_t(length) + 1);
    touch(path);
    expectFailure(data->read(0), "a.jsonl was written to while it was in use");
    std::ofstream(path, std::ios::app) << line;
    expectFailure(data->read(0), "a.jsonl has become longer");
  }
}

TEST(JsonLinesTest, readsParts) {
  const std::string text =
      "{\"target\": \"xyz\", \"input\": \"abcd\"}\n{\"text\": \"qr\"}\n";
  for (int64_t vocabulary : {256, 257}) {
    StatusOr<DatasetPointer> data =
        JsonLinesDataset::fromBytes(text, "x", {vocabulary, 0});
    ASSERT_TRUE(data.isOk());
    for (int64_t document : {0, 1}) {
      std::vector<int32_t> whole = mustRead(*data, document).tokens;
      int64_t size = static_cast<int64_t>(whole.size());
      EXPECT_EQ((*data)->shape(document).tokens, size);
      for (int64_t begin = 0; begin <= size; ++begin)
        for (int64_t end = begin; end <= size; ++end) {
          std::vector<int32_t> part;
          ASSERT_TRUE((*data)->readTokens(document, begin, end, part).isOk());
          EXPECT_EQ(part, std::vector<int32_t>(whole.begin() + begin,
                                               whole.begin() + end));
        }
    }
  }
}

TEST(JsonLinesTest, refusesAnotherLayoutAtOnce) {
  // Values that training does not read refuse nothing, whatever they are.
  for (const char *other : {"NaN", "-Infinity", "[1,,2]", R"({"a":1,"a":2})",
                            R"("\ud83d")", "\"\xFF\"", "[[]]"}) {
    auto line =
        std::string("{\"m\": ") + other + ", \"m\": 1, \"text\": \"hé\"}";
    DatasetPointer dataset =
        *JsonLinesDataset::fromBytes(line, "some.jsonl", {});
    EXPECT_EQ(mustRead(dataset, 0).tokens, bytesOf("hé")) << line;
  }
  EXPECT_TRUE(JsonLinesDataset::fromBytes("{\"\\ud83d\": 0, \"text\": \"x\"}",
                                          "some.jsonl", {})
                  .isOk());
  expectFailure(JsonLinesDataset::fromBytes("a,b\n1,2\n", "x.jsonl", {}),
                "x.jsonl:1: byte 1");
  expectFailure(JsonLinesDataset::fromBytes("\n \n", "x.jsonl", {}),
                "x.jsonl has no line of JSON");
  expectFailure(JsonLinesDataset::fromBytes("{}", "x", {100, 0}),
                "vocabulary of 257");
}

//===--- Fingerprints -----------------------------------------------------===//

TEST(FingerprintTest, changesWithLengthsOrderAndContents) {
  auto ofText = [](const std::vector<std::string> &files) {
    TemporaryDirectory dir;
    for (size_t i = 0; i < files.size(); ++i)
      dir.write(std::to_string(i), files[i]);
    return mustOpen({dir.path()})->fingerprint();
  };
  auto ofLines = [](const std::string &lines) {
    return (*JsonLinesDataset::fromBytes(lines, "x", {}))->fingerprint();
  };
  uint64_t text = ofText({"one", "three", "four"});
  EXPECT_EQ(text, ofText({"one", "three", "four"}));
  for (const std::vector<std::string> &other :
       {std::vector<std::string>{"one", "three", "five"},
        {"one", "four", "three"},
        {"onet", "hree", "four"},
        {"one", "three"}})
    EXPECT_NE(text, ofText(other));
  uint64_t lines = ofLines("{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  EXPECT_EQ(lines, ofLines("{\"text\": \"one\"}\n{\"text\": \"two\"}\n"));
  EXPECT_NE(lines, ofLines("{\"text\": \"one\"}\n{\"text\": \"twa\"}\n"));
}

// Also of text that is larger than any block that is read at once.
TEST(FingerprintTest, seesEveryByteOfText) {
  TemporaryDirectory dir;
  constexpr int64_t bytes = INT64_C(66) << 20;
  dir.write("a", "first");
  dir.write("b", "");
  std::filesystem::resize_file(dir / "b", bytes);
  auto fingerprint = [&] { return mustOpen({dir.path()})->fingerprint(); };
  std::set<uint64_t> seen = {fingerprint()};
  EXPECT_EQ(seen.count(fingerprint()), 1u);
  for (int64_t at : {INT64_C(0), INT64_C(4194303), INT64_C(4194304),
                     INT64_C(20000001), bytes - 1}) {
    std::fstream file(dir / "b", std::ios::in | std::ios::out);
    file.seekp(at);
    file.put('x');
    file.close();
    EXPECT_TRUE(seen.insert(fingerprint()).second) << at;
  }
}

TEST(FingerprintTest, seesEveryByteOfIndexedTokens) {
  std::string idx = IndexParts().bytes(), bin = u16Tokens();
  StatusOr<MegatronIndex> index = MegatronIndex::parse(idx, 12, "x.idx");
  ASSERT_TRUE(index.isOk());
  auto fingerprint = [&] {
    return (*MegatronDataset::fromIndex(*index, bin, "x", {65536, 0}))
        ->fingerprint();
  };
  std::set<uint64_t> seen = {fingerprint()};
  EXPECT_EQ(seen.count(fingerprint()), 1u);
  for (char &byte : bin) {
    byte ^= 1;
    EXPECT_TRUE(seen.insert(fingerprint()).second);
    byte ^= 1;
  }
}

TEST(FingerprintTest, hashesSeeEveryBit) {
  for (size_t size : {1, 8, 31, 32, 33, 64, 100}) {
    std::string bytes(size, 'x');
    std::set<uint64_t> seen = {hashBytes(bytes, 1), hashBytes(bytes, 2),
                               hashBytes(bytes + "x", 1)};
    EXPECT_EQ(seen.size(), 3u);
    for (char &byte : bytes)
      for (int bit = 0; bit < 8; ++bit) {
        byte ^= static_cast<char>(1 << bit);
        EXPECT_TRUE(seen.insert(hashBytes(bytes, 1)).second);
        byte ^= static_cast<char>(1 << bit);
      }
  }
  // Checkpoints hold such values: they must never change.
  EXPECT_EQ(hashBytes("fingerprint", 0), UINT64_C(13784017500311155867));
}

TEST(FingerprintTest, staysWithItsPart) {
  TemporaryDirectory dir;
  for (int i = 0; i < 20; ++i)
    dir.write(std::to_string(i), std::string(1, char('a' + i)));
  DatasetPointer all = mustOpen({dir.path()});
  auto parts = holdOut(all, 5, 7), same = holdOut(all, 5, 7),
       others = holdOut(all, 5, 8);
  EXPECT_EQ(parts->first->fingerprint(), same->first->fingerprint());
  EXPECT_NE(parts->first->fingerprint(), others->first->fingerprint());
  EXPECT_NE(parts->first->fingerprint(), parts->second->fingerprint());
}

//===--- Combinations and synthetic data ----------------------------------===//

TEST(HoldOutTest, partsTheDocuments) {
  TemporaryDirectory dir;
  for (int i = 0; i < 20; ++i)
    dir.write(std::to_string(i), std::string(1, char('a' + i)));
  auto parts = holdOut(mustOpen({dir.path()}), 5, 7);
  ASSERT_TRUE(parts.isOk());
  EXPECT_EQ(parts->first->size(), 15);
  EXPECT_EQ(parts->second->size(), 5);
  std::vector<int> seen(256);
  for (const DatasetPointer &part : {parts->first, parts->second})
    for (int64_t i = 0; i < part->size(); ++i)
      ++seen[mustRead(part, i).tokens[0]];
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(seen['a' + i], 1);
  expectFailure(holdOut(mustOpen({dir.path()}), 20, 7), "hold out 20 of 20");
  expectFailure(holdOut(mustOpen({dir.path()}), 0, 7), "hold out 0 of 20");
}

TEST(SyntheticTest, hasTheLengthsOfTheTables) {
  for (auto [name, table, mean] :
       {std::tuple("synthetic:multitask", &multitaskLengths, 227.0),
        {"synthetic:code", &codeLengths, 2541.0}}) {
    // Even steps through the distribution: its mean without noise.
    double sum = 0;
    for (int i = 0; i < 100000; ++i)
      sum += double(lengthAt(*table, (i + 0.5) / 100000));
    EXPECT_NEAR(sum / 100000, mean, 0.01 * mean) << name;
    EXPECT_EQ(lengthAt(*table, 0), table->quantiles[0].length);
    EXPECT_EQ(lengthAt(*table, 1), table->quantiles[table->count - 1].length);
    for (int i = 1; i < table->count; ++i) {
      EXPECT_LT(table->quantiles[i - 1].place, table->quantiles[i].place);
      EXPECT_LE(table->quantiles[i - 1].length, table->quantiles[i].length);
    }
  }
  DatasetPointer dataset = mustOpen({"synthetic:multitask"}, 100);
  EXPECT_EQ(dataset->size(), 100000);
  double sum = 0;
  for (int i = 0; i < 5000; ++i)
    sum += double(mustRead(dataset, i).tokens.size() - 1);
  EXPECT_NEAR(sum / 5000, 227, 50); // heavy-tailed: sigma of this mean is 14
}

TEST(SyntheticTest, followsSeedAndOptions) {
  StatusOr<DatasetPointer> a =
      openDataset({"synthetic:equal=256:documents=10"}, {1000, 1});
  StatusOr<DatasetPointer> b =
      openDataset({"synthetic:equal=256:documents=10"}, {1000, 2});
  ASSERT_TRUE(a.isOk() && b.isOk());
  EXPECT_EQ((*a)->size(), 10);
  Document one = mustRead(*a, 3);
  EXPECT_EQ(one.tokens.size(), 257u);
  EXPECT_EQ(one.tokens, mustRead(*a, 3).tokens);
  EXPECT_NE(one.tokens, mustRead(*b, 3).tokens);
  for (int32_t token : one.tokens)
    EXPECT_TRUE(token >= 0 && token < 1000);
  TemporaryDirectory dir;
  std::string file = dir.write("lengths", "5\n2,3\n\n9\r\n");
  DatasetPointer listed = mustOpen({"synthetic:lengths=" + file});
  ASSERT_TRUE(listed);
  EXPECT_EQ(mustRead(listed, 1).tokens.size(), 6u);
  EXPECT_EQ(mustRead(listed, 2).tokens.size(), 10u);
  EXPECT_EQ(mustRead(listed, 3).tokens.size(), 6u);
}

TEST(SyntheticTest, refusesUnknownNames) {
  for (const char *name :
       {"synthetic:", "synthetic:foo", "synthetic:equal=", "synthetic:equal=0",
        "synthetic:equal=-1", "synthetic:code:documents=0",
        "synthetic:code:documents=x", "synthetic:equal=99999999999999999999"})
    expectFailure(openDataset({name}, {}),
                  std::string("unknown synthetic data ") + name);
  TemporaryDirectory dir;
  expectFailure(
      openDataset({"synthetic:lengths=" + dir.write("l", "3\nx\n")}, {}),
      "l:2: expected a length");
  expectFailure(openDataset({"synthetic:lengths=" + (dir / "no")}, {}),
                "no: No such file");
}

} // namespace
