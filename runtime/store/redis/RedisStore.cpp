//===- RedisStore.cpp - Keeps values on a Redis server --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One connection, which its threads use in turn. A connection that breaks is made
// anew for as long as StoreOptions::retry says, and the request repeated: all of
// them may be done twice.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Store.h"

#include "runtime/base/text/Text.h"

#include <hiredis/hiredis.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace dyna {
namespace {

struct ContextDeleter {
  void operator()(redisContext *context) const { redisFree(context); }
};
struct ReplyDeleter {
  void operator()(redisReply *reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

class RedisStore final : public Store {
public:
  explicit RedisStore(StoreOptions options) : options_(std::move(options)) {}

  std::string describe() const override {
    bool isV6 = options_.host.find(':') != std::string::npos;
    return formatText(isV6 ? "redis://[%s]:%d" : "redis://%s:%d", options_.host,
                      options_.port);
  }

  Status connect() {
    std::lock_guard<std::mutex> lock(mutex_);
    return connectLocked();
  }

  Status put(const std::string &key, std::string_view value,
             std::chrono::seconds kept) override {
    if (value.size() > mostStoredBytes)
      return tooLargeFor(*this, key, value.size());
    return request({"SET", key, value, "EX", std::to_string(kept.count())})
        .status();
  }

  StatusOr<bool> putNew(const std::string &key, std::string_view value,
                        std::chrono::seconds kept) override {
    DYNA_ASSIGN_OR_RETURN(
        Reply reply,
        request({"SET", key, value, "EX", std::to_string(kept.count()), "NX"}));
    return reply->type != REDIS_REPLY_NIL;
  }

  StatusOr<std::optional<std::string>> find(const std::string &key) override {
    // Asks for the size first: hiredis allocates three times the bytes of a
    // value before the caller sees it.
    DYNA_ASSIGN_OR_RETURN(Reply size, request({"STRLEN", key}));
    if (size->type != REDIS_REPLY_INTEGER || size->integer <= 0)
      return std::optional<std::string>();
    if (size->integer > static_cast<int64_t>(mostStoredBytes))
      return tooLargeFor(*this, key, static_cast<uint64_t>(size->integer));
    const std::string last = std::to_string(mostStoredBytes - 1);
    DYNA_ASSIGN_OR_RETURN(Reply reply, request({"GETRANGE", key, "0", last}));
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0)
      return std::optional<std::string>();
    return std::optional<std::string>(
        std::string(reply->str, static_cast<size_t>(reply->len)));
  }

  Status remove(const std::string &key) override {
    return request({"DEL", key}).status();
  }

  int64_t losses() const override { return losses_; }

private:
  /// Result of a request. `isLost` is set for failures that may end by
  /// themselves: lost connections, and a server that is starting.
  struct Outcome {
    Status status;
    bool isLost = false;
    Reply reply;
  };

  Status failure(const std::string &what) const {
    return Status::invalidArgument("the store " + describe() + " " + what);
  }

  Status connectLocked() {
    timeval timeout{static_cast<time_t>(options_.timeout.count()), 0};
    context_.reset(
        redisConnectWithTimeout(options_.host.c_str(), options_.port, timeout));
    if (!context_ || context_->err) {
      std::string why = context_ ? context_->errstr : "out of memory";
      context_.reset();
      return failure("cannot be reached: " + why);
    }
    redisSetTimeout(context_.get(), timeout);
    // The server refuses this request if it needs a password and has none.
    Outcome outcome = options_.password.empty()
                          ? ask({"PING"})
                          : ask({"AUTH", options_.password});
    if (outcome.status.isOk())
      return Status::ok();
    context_.reset();
    return outcome.status;
  }

  Outcome ask(const std::vector<std::string_view> &words) {
    std::vector<const char *> texts;
    std::vector<size_t> sizes;
    for (std::string_view word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    Reply reply(static_cast<redisReply *>(
        redisCommandArgv(context_.get(), static_cast<int>(words.size()),
                         texts.data(), sizes.data())));
    if (!reply) {
      std::string why = context_->errstr;
      if (context_->err == REDIS_ERR_IO && errno == EAGAIN)
        why = formatText("no answer within %d s (--timeout)",
                         options_.timeout.count());
      return {failure("was lost: " + why), true, nullptr};
    }
    if (reply->type != REDIS_REPLY_ERROR)
      return {Status::ok(), false, std::move(reply)};
    return refusal(std::string(reply->str, static_cast<size_t>(reply->len)));
  }

  Outcome refusal(const std::string &said) const {
    auto starts = [&](const char *word) { return said.rfind(word, 0) == 0; };
    if (starts("LOADING"))
      return {failure("is still starting"), true, nullptr};
    if (starts("NOAUTH"))
      return {failure("needs a password: give it in the variable "
                      "DYNA_STORE_PASSWORD"),
              false, nullptr};
    if (starts("WRONGPASS") || starts("ERR invalid password"))
      return {failure("refuses the password of DYNA_STORE_PASSWORD"), false,
              nullptr};
    if (starts("ERR AUTH") || starts("ERR Client sent AUTH"))
      return {failure("has no password, but DYNA_STORE_PASSWORD gives one: "
                      "unset it"),
              false, nullptr};
    return {failure("refuses: " + said), false, nullptr};
  }

  /// Tries a request once, on a connection that is made if there is none.
  Outcome tryOnce(const std::vector<std::string_view> &words) {
    if (!context_) {
      if (Status status = connectLocked(); !status.isOk())
        return {status, true, nullptr};
      ++losses_;
    }
    Outcome outcome = ask(words);
    if (outcome.isLost)
      context_.reset();
    return outcome;
  }

  StatusOr<Reply> request(const std::vector<std::string_view> &words) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto deadline = Clock::now() + options_.retry;
    while (true) {
      Outcome outcome = tryOnce(words);
      if (outcome.status.isOk())
        return std::move(outcome.reply);
      if (!outcome.isLost)
        return outcome.status;
      if (Clock::now() >= deadline)
        return Status(outcome.status.code(),
                      outcome.status.message() +
                          (options_.retry.count() > 0
                               ? formatText(", for %d s (--store-retry)",
                                            options_.retry.count())
                               : "; --store-retry tries for longer"));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  const StoreOptions options_;
  std::mutex mutex_;
  std::unique_ptr<redisContext, ContextDeleter> context_;
  std::atomic<int64_t> losses_{0};
};

StatusOr<std::unique_ptr<Store>> openRedis(const StoreOptions &options) {
  auto store = std::make_unique<RedisStore>(options);
  // At the start a store that is not there is a wrong address.
  DYNA_RETURN_IF_ERROR(store->connect());
  return std::unique_ptr<Store>(std::move(store));
}

} // namespace
} // namespace dyna

extern "C" const dyna::RemoteStore dyna_remote_store = {"redis", 6379,
                                                        dyna::openRedis};
