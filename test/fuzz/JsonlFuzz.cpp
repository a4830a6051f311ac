//===- JsonlFuzz.cpp - Lines of JSON --------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/data/BatchReader.h"
#include "runtime/data/Sources.h"

using namespace dyna;
using namespace dyna::test;

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {
      "{\"text\": \"hello\"}\n{\"text\": \"w\\u00f6rld\\n\"}\n",
      "{\"task\": 1, \"input\": \"a\", \"target\": \"b\"}\n\n"
      "{\"input\": \"\", \"target\": \"\\ud83d\\ude00\"}",
      "\xEF\xBB\xBF{\"text\": \"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}",
      "{\"text\":\"x\",\"more\":[1,-2.5e3,true,null,{\"a\":{}}]}\r\n",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
      "\"assistant\", \"content\": \"b\\n\"}, {\"role\": \"tool\", "
      "\"content\": "
      "\"\"}]}\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  if (StatusOr<JsonValue> value = parseJson(text);
      value.isOk() && value->isString()) {
    StatusOr<JsonValue> again = parseJson(quoteJson(value->text));
    require(again.isOk() && again->text == value->text,
            "a quoted string reads back");
  }
  StatusOr<DatasetPointer> dataset =
      JsonLinesDataset::fromBytes(text, "input", {});
  if (!dataset.isOk())
    return 0;
  ++acceptedInputs;
  for (int64_t i = 0; i < (*dataset)->size(); ++i) {
    StatusOr<Document> document = (*dataset)->read(i);
    require(document.isOk(), "what was checked can be read");
    int64_t count = static_cast<int64_t>(document->tokens.size());
    require(count >= 1 && document->firstTarget >= 1 &&
                document->firstTarget <= count,
            "the first target lies in the document");
    std::vector<DocumentRange> ignored;
    require((*dataset)->readIgnored(i, ignored).isOk(),
            "what was checked can be read");
    int64_t before = document->firstTarget;
    for (const DocumentRange &range : ignored) {
      require(before < range.begin && range.begin < range.end &&
                  range.end <= count,
              "what is ignored lies behind the first target, in order");
      before = range.end;
    }
    for (int32_t token : document->tokens)
      require(token >= 0 && token <= 256, "tokens are bytes or the end");
  }
  StatusOr<SampleIndexPointer> index = SampleIndex::create(*dataset, {5});
  if (!index.isOk())
    return 0; // nothing to predict in it
  BatchOptions options;
  options.epochs = 1;
  BatchReader reader(*index, options);
  int64_t tokens = 0;
  while (true) {
    StatusOr<MiniBatch> batch = reader.next(20);
    require(batch.isOk(), "good lines make batches");
    if (batch->samples.empty()) {
      require(tokens == (*index)->statistics().tokens,
              "an epoch has the tokens that were announced");
      return 0;
    }
    tokens += batch->tokens;
    require(batch->targets > 0 && batch->tokens >= batch->targets,
            "every batch has targets");
  }
}
