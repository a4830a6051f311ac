//===- LineFieldsTest.cpp - Members of a line of JSON that are read -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/LineFields.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/data/SampleIndex.h"
#include "test/runtime/data/Datasets.h"

#include <set>

using namespace dyna;
using namespace dyna::test;

namespace {

/// A data set of these lines, by these names.
StatusOr<DatasetPointer> openLines(const TemporaryDirectory &dir,
                                   const std::string &lines,
                                   const std::string &fields = "",
                                   int64_t vocabulary = 257) {
  DataOptions options;
  options.vocabulary = vocabulary;
  if (!fields.empty()) {
    DYNA_ASSIGN_OR_RETURN(options.fields, parseLineFields(fields));
  }
  return openDataset({dir.write("lines.txt", lines)}, options);
}

/// The bytes of a sample, and below each the byte that is its target; "." where none
/// is. The end of a document is "$".
std::string render(const Sample &sample) {
  auto letter = [](int32_t token) {
    return token == ignoreTarget         ? '.'
           : token == endOfDocumentToken ? '$'
           : token == '\n'               ? '/'
                                         : static_cast<char>(token);
  };
  std::string tokens, targets;
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    tokens += letter(sample.tokens[i]);
    targets += letter(sample.targets[i]);
  }
  return tokens + "\n" + targets;
}

std::string renderFirst(const StatusOr<DatasetPointer> &dataset,
                        int64_t limit = 0) {
  if (!dataset.isOk())
    return dataset.status().message();
  SampleOptions options;
  options.limit = limit;
  auto index = SampleIndex::create(*dataset, options);
  return index.isOk() ? render(*(*index)->read(0)) : index.status().message();
}

//===--- Names ------------------------------------------------------------===//

TEST(LineFieldsTest, InputAndTargetOfSeveralMembers) {
  TemporaryDirectory dir;
  const std::string names = "input=instruction+input,target=output";
  auto first = [&](const std::string &line) {
    return renderFirst(openLines(dir, line, names));
  };
  // A text beside them is another column of the table.
  EXPECT_EQ(first("{\"instruction\": \"Add\", \"input\": \"1 2\", \"output\": "
                  "\"3\", \"text\": \"all\"}\n"),
            "Add/1 2/3\n.......3$");
  // Empty, null and absent members leave no trace.
  for (const char *more : {"", ", \"input\": \"\"", ", \"input\": null"})
    EXPECT_EQ(first("{\"output\": \"3\", \"instruction\": \"Add\"" +
                    std::string(more) + "}"),
              "Add/3\n...3$");
  EXPECT_EQ(
      renderFirst(openLines(dir, "{\"a\": \"1\", \"b\": \"2\", \"c\": \"\"}",
                            "text=a+c+b")),
      "1/2\n/2$");
  EXPECT_EQ(
      renderFirst(openLines(dir, "{\"q\": \"1\", \"a\": \"2\", \"b\": \"3\"}",
                            "target=a+b,input=q")),
      "1/2/3\n.2/3$");
}

TEST(LineFieldsTest, BadLinesAreNamed) {
  TemporaryDirectory dir;
  const std::string names = "input=instruction+input,target=output",
                    good = "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  const std::pair<const char *, const char *> lines[] = {
      {"{\"instruction\": \"a\"}", "has no \"output\", which --fields names"},
      {"{\"output\": \"a\"}",
       "has no \"instruction\" or \"input\", which --fields names"},
      {"{\"text\": \"a\"}", "has no \"instruction\" or \"input\""},
      {"{\"instruction\": \"a\", \"output\": null}", "has no \"output\""},
      {"{\"instruction\": 1, \"output\": \"b\"}",
       "expected a string for \"instruction\", but got"},
      {"{\"output\": \"b\", \"instruction\": \"a\", \"output\": \"b\"}",
       "the key \"output\" appears twice"},
  };
  for (const auto &[line, message] : lines) {
    StatusOr<DatasetPointer> opened = openLines(dir, good + line, names);
    expectFailure(opened, message);
    expectFailure(opened, "lines.txt:2: ");
  }
  // A text is no line of JSON.
  expectFailure(openLines(dir, "some text", names),
                "--fields names members of lines of JSON, but ");
}

TEST(LineFieldsTest, NamesAreChecked) {
  for (const char *names :
       {"", "input", "input=", "=a", "input=a", "target=a", "text=a,input=b",
        "input=a,target=b,messages=c", "input=a,target=b,input=c", "source=a",
        "text=a+", "text=+a", "text=a,", "messages=a+b", "text=a+a",
        "input=a,target=a"}) {
    StatusOr<LineFields> fields = parseLineFields(names);
    EXPECT_FALSE(fields.isOk()) << names;
    if (!fields.isOk())
      EXPECT_NE(fields.status().message().find("--fields"), std::string::npos)
          << names;
  }
  StatusOr<LineFields> fields = parseLineFields("target=x,input=a+b c+d=e");
  ASSERT_TRUE(fields.isOk());
  EXPECT_EQ(fields->input, (std::vector<std::string>{"a", "b c", "d=e"}));
  EXPECT_EQ(fields->target, std::vector<std::string>{"x"});
  EXPECT_TRUE(fields->text.empty() && fields->messages.empty());
}

// A run must not be resumed with other names.
TEST(LineFieldsTest, NamesAreInTheFingerprint) {
  TemporaryDirectory dir;
  const std::string line = "{\"text\": \"aa\", \"more\": \"bb\"}\n";
  std::set<uint64_t> prints;
  for (const char *names :
       {"", "text=more", "text=text", "text=text+more", "text=more+text"})
    prints.insert((*openLines(dir, line, names))->fingerprint());
  EXPECT_EQ(prints.size(), 5u);
}

//===--- Messages ---------------------------------------------------------===//

/// What a sample should be: pieces of text, and whether they are in the loss.
std::string expected(const std::vector<std::pair<std::string, bool>> &pieces) {
  std::string tokens, targets;
  for (const auto &[text, isTarget] : pieces)
    for (char c : text) {
      const char letter = c == '\n' ? '/' : c;
      tokens += letter;
      targets += isTarget ? letter : '.';
    }
  return tokens.substr(0, tokens.size() - 1) + "\n" + targets.substr(1);
}

TEST(MessagesTest, LossIsOnTheAssistantsPart) {
  TemporaryDirectory dir;
  const std::string line =
      "{\"id\": NaN, \"messages\": [{\"role\": \"user\", \"content\": \"2+2\"},"
      " {\"content\": \"4\", \"role\": \"assistant\", \"name\": null},"
      " {\"role\": \"user\", \"content\": \"+1\"},"
      " {\"role\": \"assistant\", \"content\": \"5\"}]}\n";
  const std::string ask = "<|im_start|>user\n2+2<|im_end|>\n"
                          "<|im_start|>assistant\n",
                    more = "<|im_start|>user\n+1<|im_end|>\n"
                           "<|im_start|>assistant\n";
  EXPECT_EQ(renderFirst(openLines(dir, line)),
            expected({{ask, false},
                      {"4<|im_end|>\n", true},
                      {more, false},
                      {"5<|im_end|>\n$", true}}));
  // Without a token that ends documents.
  EXPECT_EQ(renderFirst(openLines(dir, line, "", 256)),
            expected({{ask, false},
                      {"4<|im_end|>\n", true},
                      {more, false},
                      {"5<|im_end|>\n", true}}));
  // By another name, in one set with lines of another form.
  std::string renamed = line;
  renamed.replace(renamed.find("messages"), 8, "conversation");
  EXPECT_EQ(renderFirst(openLines(dir, renamed, "messages=conversation")),
            renderFirst(openLines(dir, line)));
  StatusOr<DatasetPointer> both = openLines(dir, line + "{\"text\": \"a\"}");
  ASSERT_TRUE(both.isOk()) << both.status().message();
  EXPECT_EQ(mustRead(*both, 1).tokens, bytesOf("a"));
}

TEST(MessagesTest, TheEndIsTheSpeakersLast) {
  TemporaryDirectory dir;
  EXPECT_EQ(renderFirst(openLines(
                dir, "{\"messages\": [{\"role\": \"system\", \"content\": "
                     "\"\"}, {\"role\": \"assistant\", \"content\": \"\"}, "
                     "{\"role\": \"tool\", \"content\": \"x\"}]}")),
            expected({{"<|im_start|>system\n<|im_end|>\n"
                       "<|im_start|>assistant\n",
                       false},
                      {"<|im_end|>\n", true},
                      {"<|im_start|>tool\nx<|im_end|>\n$", false}}));
}

TEST(MessagesTest, BadOnesAreNamed) {
  TemporaryDirectory dir;
  const std::string said = "{\"role\": \"assistant\", \"content\": \"a\"}";
  const std::pair<std::string, const char *> lists[] = {
      {"5", "expected an array of messages for \"messages\", but got"},
      {"[]", "has no message of the assistant in \"messages\""},
      {"[{\"role\": \"user\", \"content\": \"a\"}]",
       "has no message of the assistant"},
      {"[" + said + ", 5]", "message 2: expected an object with \"role\""},
      {"[{\"role\": \"assistant\"}]", "message 1: has no \"content\""},
      {"[{\"content\": \"a\"}]", "message 1: has no \"role\""},
      {"[" + said + ", {\"role\": \"asistant\", \"content\": \"a\"}]",
       "message 2: expected system, developer, user, assistant, tool or "
       "function as its role, but got \"asistant\""},
      {"[{\"role\": \"assistant\", \"content\": [\"a\"]}]",
       "message 1: expected a string for \"content\", but got"},
      {"[{\"role\": \"assistant\", \"content\": null}]",
       "message 1: expected a string for \"content\""},
      {"[{\"role\": \"user\", \"role\": \"assistant\", \"content\": \"a\"}]",
       "the key \"role\" appears twice"},
      {"[" + said + "], \"messages\": [" + said + "]",
       "the key \"messages\" appears twice"},
      {"[" + said + "], \"text\": \"a\"",
       "has \"messages\" and also \"text\", \"input\" or \"target\""},
      {"[" + said, "byte "},
  };
  for (const auto &[list, message] : lists) {
    StatusOr<DatasetPointer> opened = openLines(
        dir, "{\"messages\": [" + said + "]}\n{\"messages\": " + list + "}\n");
    expectFailure(opened, message);
    expectFailure(opened, "lines.txt:2: ");
  }
}

/// Texts of random pieces, which may look like the template's marks.
std::string randomText(uint64_t &state, int most) {
  static const char *pieces[] = {
      "a", "\n", "<|im_end|>", "bc ", "<|im_start|>assistant\n", "\""};
  std::string text;
  for (int left = static_cast<int>((state = dyna_mix64(state)) % (most + 1));
       left > 0; --left)
    text += pieces[(state = dyna_mix64(state)) % 6];
  return text;
}

// Against marks that are made with the text, for random conversations and every limit
// on the length of samples: those that are cut keep the marks of what they keep.
TEST(MessagesTest, RandomConversationsAndLimits) {
  TemporaryDirectory dir;
  uint64_t state = 7;
  const char *roles[] = {"user", "assistant", "system", "assistant"};
  for (int round = 0; round < 60; ++round) {
    JsonArray messages;
    std::string text, marks;
    size_t first = std::string::npos;
    const int count = 1 + static_cast<int>((state = dyna_mix64(state)) % 5);
    for (int i = 0; i < count; ++i) {
      const std::string role =
          i + 1 == count ? roles[1] : roles[(state = dyna_mix64(state)) % 4];
      const std::string content = randomText(state, 3);
      messages.add(JsonObject().add("role", role).add("content", content));
      const std::string head = "<|im_start|>" + role + "\n";
      const std::string body = content + "<|im_end|>\n";
      text += head + body;
      const bool speaks = role == "assistant";
      if (speaks && first == std::string::npos)
        first = marks.size() + head.size();
      marks += std::string(head.size(), '.') +
               std::string(body.size(), speaks ? 'x' : '.');
    }
    marks += 'x'; // the last message is the assistant's
    std::vector<int32_t> tokens = bytesOf(text);
    StatusOr<DatasetPointer> dataset =
        openLines(dir, JsonObject().add("messages", messages).text() + "\n");
    ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
    EXPECT_EQ(mustRead(*dataset, 0).tokens, tokens);
    for (int64_t limit = 1; limit <= int64_t(tokens.size()); ++limit) {
      SampleOptions options;
      options.limit = limit;
      auto index = SampleIndex::create(*dataset, options);
      ASSERT_TRUE(index.isOk()) << index.status().message();
      ASSERT_EQ((*index)->size(), 1);
      const Sample sample = *(*index)->read(0);
      // The gap lies before the first answer, so that what is kept behind it stands
      // at a fixed distance from there.
      const int64_t size = sample.tokens.size();
      int64_t targets = 0, place = -1;
      for (int64_t i = 0; i < size && place < 0; ++i)
        if (sample.targets[i] != ignoreTarget)
          place = i + 1;
      ASSERT_GT(place, 0) << limit;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = static_cast<int64_t>(first) + i + 1 - place;
        const bool isTarget = i + 1 >= place && marks[at] == 'x';
        EXPECT_EQ(sample.targets[i], isTarget ? tokens[at] : ignoreTarget)
            << limit << " " << i;
        targets += isTarget;
      }
      EXPECT_GT(targets, 0);
    }
  }
}

} // namespace
