//===- JsonTest.cpp - Strict JSON reading ---------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"

#include "test/runtime/base/TemporaryFiles.h"

#include <limits>

using namespace dyna;
using namespace dyna::test;

namespace {

std::string stringOf(std::string_view json) {
  StatusOr<JsonValue> value = parseJson(json);
  EXPECT_TRUE(value.isOk()) << json << ": " << value.status().message();
  return value.isOk() ? value->text : "";
}

TEST(JsonTest, readsEveryKind) {
  StatusOr<JsonValue> value = parseJson(
      R"( {"a": [1, -2.5, 1e3, 0], "b": {"c": null, "d": true}, "e": "x"} )");
  ASSERT_TRUE(value.isOk()) << value.status().message();
  const JsonValue *a = value->find("a");
  ASSERT_TRUE(a && a->isArray());
  ASSERT_EQ(a->items.size(), 4u);
  EXPECT_EQ(a->items[0].integer, 1);
  EXPECT_EQ(a->items[1].number, -2.5);
  EXPECT_FALSE(a->items[1].integer);
  EXPECT_EQ(a->items[2].number, 1000);
  EXPECT_FALSE(a->items[2].integer);
  EXPECT_TRUE(value->find("b")->find("d")->boolean);
  EXPECT_EQ(value->find("b")->find("c")->kind, JsonValue::Kind::Null);
  EXPECT_EQ(value->find("missing"), nullptr);
}

TEST(JsonTest, readsLargeNumbers) {
  StatusOr<JsonValue> value =
      parseJson("[9223372036854775807, 9223372036854775808, 1e999, 1e-999]");
  ASSERT_TRUE(value.isOk());
  EXPECT_EQ(value->items[0].integer, INT64_MAX);
  EXPECT_FALSE(value->items[1].integer);
  EXPECT_EQ(value->items[1].number, 9223372036854775808.0);
  EXPECT_GT(value->items[2].number, 1e308);
  EXPECT_EQ(value->items[3].number, 0);
}

TEST(JsonTest, decodesEscapes) {
  EXPECT_EQ(stringOf(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(stringOf(R"("\u0041\u00e9\u20AC")"), "A\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(stringOf(R"("\ud83d\ude00")"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stringOf(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(stringOf("\"\xF0\x9F\x98\x80\""), "\xF0\x9F\x98\x80");
}

TEST(JsonTest, refusesBadStrings) {
  expectFailure(parseJson(R"("\ud83d")"), "high surrogate");
  expectFailure(parseJson(R"("\ud83dx")"), "high surrogate");
  expectFailure(parseJson(R"("\ud83d\u0041")"), "high surrogate");
  expectFailure(parseJson(R"("\ude00")"), "low surrogate");
  expectFailure(parseJson(R"("\u12g4")"), "hexadecimal");
  expectFailure(parseJson(R"("\x")"), "unknown escape");
  expectFailure(parseJson("\"a\nb\""), "control character");
  expectFailure(parseJson("\"abc"), "closing quote");
  expectFailure(parseJson("\"abc\\"), "unknown escape");
}

TEST(JsonTest, refusesBadUtf8) {
  for (std::string_view bad :
       {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    expectFailure(parseJson("\"" + std::string(bad) + "\""), "bad UTF-8");
}

TEST(JsonTest, refusesMalformedText) {
  expectFailure(parseJson(""), "byte 1: expected a value");
  expectFailure(parseJson("{\"a\": 1"), "byte 8: expected ',' or '}'");
  expectFailure(parseJson("{\"a\" 1}"), "byte 6: expected ':'");
  expectFailure(parseJson("{a: 1}"), "expected a key in quotes");
  expectFailure(parseJson("{\"a\": 1,}"), "expected a key in quotes");
  expectFailure(parseJson("[1,]"), "expected a value");
  expectFailure(parseJson("[1 2]"), "expected ',' or ']'");
  expectFailure(parseJson("01"), "more text follows");
  expectFailure(parseJson("1."), "decimal point");
  expectFailure(parseJson("1e"), "exponent");
  expectFailure(parseJson("-"), "expected a value");
  expectFailure(parseJson("nul"), "expected a value");
  expectFailure(parseJson("{} x"), "byte 4: expected the end");
  expectFailure(parseJson("{\"a\":1,\"b\":2,\"a\":3}"),
                "the key \"a\" appears twice");
}

TEST(JsonTest, limitsDepth) {
  EXPECT_TRUE(parseJson(std::string(60, '[') + std::string(60, ']')).isOk());
  expectFailure(parseJson(std::string(100000, '[')), "levels of nesting");
}

TEST(JsonTest, limitsValues) {
  std::string items = "0";
  for (size_t i = 2; i < kMostJsonValues; ++i)
    items += ",0";
  EXPECT_TRUE(parseJson("[" + items + "]").isOk());
  expectFailure(parseJson("[" + items + ",0]"), "more than 262144 values");
}

TEST(JsonReaderTest, givesValuesOneByOne) {
  JsonReader reader(R"( {"a": [1, {"b": [2]}, "c"], "d": "e", "f": NaN} )");
  std::string seen;
  Status status = reader.readObject([&](const std::string &key) -> Status {
    seen += key;
    if (key == "a")
      return reader.readArray([&]() -> Status {
        JsonValue value;
        DYNA_RETURN_IF_ERROR(reader.readValue(value));
        seen += jsonKindName(value.kind)[2];
        return Status::ok();
      });
    std::string text;
    Status read = key == "d" ? reader.readString(text) : reader.skip();
    seen += text;
    return read;
  });
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_TRUE(reader.finish().isOk());
  EXPECT_EQ(seen, "an sdef");
}

TEST(JsonReaderTest, skipsWhateverHasItsBracketsAndQuotes) {
  for (const char *text :
       {"NaN", "-Infinity", "01", "[1 2,,]", R"({"a": Nope, "a": 1})",
        R"("\ud83d \" ")", "[{]}"}) {
    JsonReader reader(text);
    EXPECT_EQ(reader.skip().isOk(), std::string(text) != "[{]}") << text;
  }
  auto refuse = [](const std::string &text, std::string_view message) {
    JsonReader reader(text);
    Status status = reader.skip();
    EXPECT_NE(status.message().find(message), std::string::npos)
        << status.message();
  };
  refuse("", "byte 1: expected a value, but the text ends");
  refuse("[1", "byte 3: expected a value, but the text ends");
  refuse("]", "byte 1: expected a value");
  refuse("\"a\\", "closing quote");
  EXPECT_TRUE(JsonReader(std::string(100000, '[') + std::string(100000, ']'))
                  .skip()
                  .isOk());
}

TEST(JsonTest, quotesWhatItReadsBack) {
  std::string text = "a\"\\\n\x01\xC3\xA9";
  EXPECT_EQ(stringOf(quoteJson(text)), text);
  EXPECT_EQ(stringOf(quoteJson("\xFFx")), "\xEF\xBF\xBDx");
}

TEST(JsonWriterTest, WritesWhatItReadsBack) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const JsonObject object =
      JsonObject()
          .add("text", "a\"\n\xFF")
          .add("largest", std::numeric_limits<uint64_t>::max())
          .add("least", std::numeric_limits<int64_t>::min())
          .add("third", 1.0 / 3)
          .add("fixed", jsonFixed(2.0 / 3, 3))
          .add("rounded", jsonRounded(123456.0, 3))
          .add("huge", jsonFixed(-1e308, 6))
          .add("infinite", infinite)
          .add("none", jsonFixed(-infinite, 3))
          .add("yes", true)
          .add("list", JsonArray().add(1).add(JsonArray()).add(JsonObject()));
  for (const char *separator : {" ", "", "\n ", "\n"}) {
    auto read = parseJson(object.text(separator));
    ASSERT_TRUE(read.isOk()) << read.status().message();
    EXPECT_EQ(read->find("text")->text, "a\"\n\xEF\xBF\xBD");
    EXPECT_EQ(read->find("least")->integer,
              std::numeric_limits<int64_t>::min());
    EXPECT_EQ(read->find("third")->number, 1.0 / 3);
    EXPECT_EQ(read->find("huge")->number, -1e308);
    EXPECT_EQ(read->find("infinite")->kind, JsonValue::Kind::Null);
    EXPECT_EQ(read->find("none")->kind, JsonValue::Kind::Null);
    EXPECT_TRUE(read->find("yes")->boolean);
    EXPECT_EQ(read->find("list")->items.size(), 3u);
  }
  EXPECT_NE(object.text().find("\"largest\": 18446744073709551615, "),
            std::string::npos);
  EXPECT_NE(object.text().find("\"fixed\": 0.667, \"rounded\": 1.23e+05, "),
            std::string::npos);
  EXPECT_EQ(JsonObject().add("a", 1).addAll(JsonObject().add("b", 2)).text(),
            "{\"a\": 1, \"b\": 2}");
  EXPECT_EQ(JsonObject().add("a", 1).add("b", 2).text("\n "),
            "{\n \"a\": 1,\n \"b\": 2}");
  EXPECT_EQ(JsonArray().text(), "[]");
  EXPECT_EQ(JsonObject().text(), "{}");
}

} // namespace
