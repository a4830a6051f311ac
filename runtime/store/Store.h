//===- Store.h - Small values that processes share --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names and bytes, put by one process and taken by others: where planners leave
// what executors run. A backend is a folder: `memory/` for the threads of one
// process, which is complete and what one copies to start the next, `redis/` for
// several nodes. A store may forget everything at any time, as a server does that
// starts again: who puts something must be able to put it once more.
//
// An optional library adds backends to a training binary. `dynac --with=redis`
// links it with `-u dyna_remote_store`, and openStore finds it there.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_STORE_STORE_H
#define DYNA_RUNTIME_STORE_STORE_H

#include "runtime/base/Status.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dyna {

/// All calls may come from several threads at once. Failures name the store, but
/// never a password.
class Store {
public:
  using Clock = std::chrono::steady_clock;
  virtual ~Store() = default;

  /// "redis://host:6379"
  virtual std::string describe() const = 0;
  /// Sets or replaces a value, which is kept for `kept` and then forgotten: what
  /// nobody takes any more leaves no trace.
  virtual Status put(const std::string &key, std::string_view value,
                     std::chrono::seconds kept) = 0;
  /// Sets a value only if there is none, in one request. Returns false where
  /// another one stands, which may be what this process put before a connection
  /// was lost.
  virtual StatusOr<bool> putNew(const std::string &key, std::string_view value,
                                std::chrono::seconds kept) = 0;
  /// Nothing where there is no such value, at this moment. InvalidArgument for one
  /// of more than mostStoredBytes, of which nothing is fetched.
  virtual StatusOr<std::optional<std::string>> find(const std::string &key) = 0;
  /// Also of what is not there.
  virtual Status remove(const std::string &key) = 0;
  /// How often the store was lost and found again: what was put before such a
  /// moment may be gone.
  virtual int64_t losses() const { return 0; }

  /// Waits for a value until the deadline; nothing if none has come by then.
  /// Asks again every 1 to 16 ms: a plan is awaited long before it is needed.
  StatusOr<std::optional<std::string>> get(const std::string &key,
                                           Clock::time_point deadline);
};

/// Where a store is, and how long to wait for it.
struct StoreOptions {
  std::string host;
  int port = 0;
  std::string password; ///< empty: none
  /// For a connection, and for each answer.
  std::chrono::seconds timeout{600};
  /// How long a store that was lost is tried again; 0: not at all.
  std::chrono::seconds retry{0};
};

/// Number of the form of keys (PlanMark.h) and values (PlanEntry.h) in a store.
constexpr int storeFormat = 4;

/// Largest value that is put or fetched. A rank's part of a step of 2,048 samples
/// has less than 1 MiB.
constexpr size_t mostStoredBytes = size_t(64) << 20;

/// From "redis://host:port" (6379 if there is none). The password comes from the
/// variable DYNA_STORE_PASSWORD alone: an address that has one is refused, as it
/// would be seen in lists of processes. InvalidArgument where the address is none
/// or no such backend is linked in, the store cannot be reached, the password is
/// wrong, or it holds keys of another format.
StatusOr<std::unique_ptr<Store>> openStore(const std::string &address,
                                           std::chrono::seconds timeout,
                                           std::chrono::seconds retry);

/// Fails if the store is used in another format; marks one that is new.
Status checkStoreFormat(Store &store);

/// The refusal of a value of more than mostStoredBytes under `key`.
Status tooLargeFor(const Store &store, const std::string &key, uint64_t bytes);

/// A backend that is linked in.
struct RemoteStore {
  const char *scheme; ///< "redis"
  int port;           ///< where it is by default
  StatusOr<std::unique_ptr<Store>> (*open)(const StoreOptions &options);
};

} // namespace dyna

extern "C" {
/// Null unless a library for stores is linked in.
extern const dyna::RemoteStore dyna_remote_store __attribute__((weak));
}

#endif // DYNA_RUNTIME_STORE_STORE_H
