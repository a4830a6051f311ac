//===- MemoryStoreTest.cpp - Values, waits, ends ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/store/MemoryStore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

using namespace dyna;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

TEST(MemoryStoreTest, ValuesArePutFoundAndRemoved) {
  MemoryStore store;
  EXPECT_FALSE(store.find("a")->has_value());
  std::string bytes("\0\n\xff", 3);
  ASSERT_TRUE(store.put("a", bytes, 1h).isOk());
  EXPECT_EQ(**store.find("a"), bytes);
  ASSERT_TRUE(store.put("a", "other", 1h).isOk());
  EXPECT_EQ(**store.find("a"), "other");
  ASSERT_TRUE(store.remove("a").isOk());
  ASSERT_TRUE(store.remove("a").isOk());
  EXPECT_FALSE(store.find("a")->has_value());
}

TEST(MemoryStoreTest, ANewValueLeavesOneThatStands) {
  MemoryStore store;
  EXPECT_TRUE(*store.putNew("a", "first", 1h));
  EXPECT_FALSE(*store.putNew("a", "second", 1h));
  EXPECT_EQ(**store.find("a"), "first");
  ASSERT_TRUE(store.put("a", "first", 0s).isOk());
  EXPECT_TRUE(*store.putNew("a", "third", 1h));
  EXPECT_EQ(**store.find("a"), "third");
}

TEST(MemoryStoreTest, WhatNobodyTakesIsForgotten) {
  MemoryStore store;
  ASSERT_TRUE(store.put("a", "b", 0s).isOk());
  EXPECT_FALSE(store.find("a")->has_value());
  EXPECT_EQ(store.size(), 0u);
}

TEST(MemoryStoreTest, WaitsEndWithTheValueOrTheDeadline) {
  MemoryStore store;
  auto begin = Store::Clock::now();
  EXPECT_FALSE(store.get("a", begin + 30ms)->has_value());
  EXPECT_GE(Store::Clock::now() - begin, 30ms);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_TRUE(store.put("a", "b", 1h).isOk());
  });
  EXPECT_EQ(**store.get("a", Store::Clock::now() + 60s), "b");
  other.join();
}

/// Has nothing, and counts how often it is asked.
class EmptyStore final : public Store {
public:
  std::string describe() const override { return "empty"; }
  Status put(const std::string &, std::string_view,
             std::chrono::seconds) override {
    return Status::ok();
  }
  StatusOr<bool> putNew(const std::string &, std::string_view,
                        std::chrono::seconds) override {
    return true;
  }
  StatusOr<std::optional<std::string>> find(const std::string &) override {
    ++asked;
    return std::optional<std::string>();
  }
  Status remove(const std::string &) override { return Status::ok(); }
  int asked = 0;
};

// However late it is, a store is asked once, and behind the deadline not again.
TEST(StoreTest, NothingIsAskedBehindTheDeadline) {
  for (auto late : {0ms, 1ms, 1000ms}) {
    EmptyStore store;
    EXPECT_FALSE(store.get("a", Store::Clock::now() - late)->has_value());
    EXPECT_EQ(store.asked, 1);
  }
}

TEST(MemoryStoreTest, StoresOfAnotherFormatAreRefused) {
  MemoryStore store;
  ASSERT_TRUE(checkStoreFormat(store).isOk());
  ASSERT_TRUE(checkStoreFormat(store).isOk());
  ASSERT_TRUE(store.put("dyna:format", "7", 1h).isOk());
  EXPECT_THAT(checkStoreFormat(store).message(),
              HasSubstr("memory holds plans of format 7, but this program's "
                        "are of format 4"));
}

// Without a backend, and before any is asked.
TEST(OpenStoreTest, BadAddressesAreRefusedWithoutTheirPassword) {
  auto refusal = [](const std::string &address) {
    auto store = openStore(address, 1s, 0s);
    EXPECT_FALSE(store.isOk());
    EXPECT_EQ(store.status().code(), StatusCode::InvalidArgument);
    return store.status().message();
  };
  EXPECT_THAT(refusal("host:6379"), HasSubstr("redis://host:6379"));
  EXPECT_THAT(refusal("redis://host"), HasSubstr("--with=redis"));
  std::string said = refusal("redis://user:secret@host");
  EXPECT_THAT(said, HasSubstr("DYNA_STORE_PASSWORD"));
  EXPECT_THAT(said, testing::Not(HasSubstr("secret")));
}

} // namespace
