//===- Store.h - Shares small values between processes ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A store maps names to bytes. One process puts a value and others get it:
// planners leave plans there for executors. Backends are folders. `memory/` is
// for the threads of one process; it is complete, and a new backend starts as
// its copy. `redis/` is for several nodes.
//
// A store may forget everything at any time, like a server that restarts. So a
// process that puts something must be able to put it again.
//
// An optional library adds backends to a training binary. `dynac --with=redis`
// links it with `-u dyna_remote_store`, and openStore finds it there.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_STORE_STORE_H
#define DYNA_RUNTIME_STORE_STORE_H

#include "runtime/base/error/Status.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dyna {

/// A store. All calls may come from several threads at once. Error messages
/// name the store, but never a password.
class Store {
public:
  using Clock = std::chrono::steady_clock;
  virtual ~Store() = default;

  /// Returns the address, for example "redis://host:6379".
  virtual std::string describe() const = 0;
  /// Sets or replaces a value. It is kept for `kept` and then forgotten, so
  /// that unused values disappear.
  virtual Status put(const std::string &key, std::string_view value,
                     std::chrono::seconds kept) = 0;
  /// Sets a value only if there is none, in one request. Returns false if there
  /// is a value. That may be this process's own, from before a connection was
  /// lost.
  virtual StatusOr<bool> putNew(const std::string &key, std::string_view value,
                                std::chrono::seconds kept) = 0;
  /// Returns a value; nothing if it does not exist at this moment. Returns
  /// InvalidArgument for a value of more than mostStoredBytes, without fetching
  /// it.
  virtual StatusOr<std::optional<std::string>> find(const std::string &key) = 0;
  /// Removes a value; succeeds if there is none.
  virtual Status remove(const std::string &key) = 0;
  /// Returns how often the store was lost and found again. Values from before
  /// may be gone.
  virtual int64_t losses() const { return 0; }

  /// Waits for a value until the deadline; returns nothing if none has come by
  /// then. Polls every 1 to 16 ms, which is enough because plans are awaited
  /// long before they are needed.
  StatusOr<std::optional<std::string>> get(const std::string &key,
                                           Clock::time_point deadline);
};

/// Address of a store, and the time to wait for it.
struct StoreOptions {
  std::string host;
  int port = 0;
  std::string password; ///< empty: none
  /// Limit for a connection, and for each answer.
  std::chrono::seconds timeout{600};
  /// Time during which a lost store is tried again; 0: not at all.
  std::chrono::seconds retry{0};
};

/// Version of the keys (PlanMark.h) and values (PlanEntry.h) in a store.
constexpr int storeFormat = 4;

/// Largest value that is put or fetched. A rank's part of a step of 2,048
/// samples has less than 1 MiB.
constexpr size_t mostStoredBytes = size_t(64) << 20;

/// Opens the store of an address such as "redis://host:port" (default port
/// 6379). The password comes from the variable DYNA_STORE_PASSWORD alone. An
/// address with a password is refused, because lists of processes would show
/// it.
///
/// Returns InvalidArgument in these cases: the address is invalid, no such
/// backend is linked in, the store cannot be reached, or the password is wrong.
/// A store with keys of another format is refused too.
StatusOr<std::unique_ptr<Store>> openStore(const std::string &address,
                                           std::chrono::seconds timeout,
                                           std::chrono::seconds retry);

/// Fails if the store has another format; marks a new store.
Status checkStoreFormat(Store &store);

/// Returns the error for a value of more than mostStoredBytes under `key`.
Status tooLargeFor(const Store &store, const std::string &key, uint64_t bytes);

/// A backend that is linked in.
struct RemoteStore {
  const char *scheme; ///< "redis"
  int port;           ///< default port
  StatusOr<std::unique_ptr<Store>> (*open)(const StoreOptions &options);
};

} // namespace dyna

extern "C" {
/// Null unless a library for stores is linked in.
extern const dyna::RemoteStore dyna_remote_store __attribute__((weak));
}

#endif // DYNA_RUNTIME_STORE_STORE_H
