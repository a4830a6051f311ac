//===- Store.cpp - Shares small values between processes ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/store/Store.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace dyna {

StatusOr<std::optional<std::string>> Store::get(const std::string &key,
                                                Clock::time_point deadline) {
  std::chrono::milliseconds pause(1);
  while (true) {
    DYNA_ASSIGN_OR_RETURN(auto value, find(key));
    auto left = deadline - Clock::now();
    if (value || left <= Clock::duration::zero())
      return value;
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
    pause = std::min(pause * 2, std::chrono::milliseconds(16));
  }
}

static Status badAddress(const std::string &what) {
  return Status::invalidArgument("--store " + what);
}

/// Parses host and port after "scheme://".
static Status parseHost(const std::string &rest, StoreOptions &options) {
  size_t colon = rest.rfind(':');
  // "[::1]:6379" and "[::1]".
  if (colon != std::string::npos && rest.find(']', colon) != std::string::npos)
    colon = std::string::npos;
  options.host = rest.substr(0, colon);
  if (options.host.size() > 2 && options.host.front() == '[' &&
      options.host.back() == ']')
    options.host = options.host.substr(1, options.host.size() - 2);
  if (options.host.empty())
    return badAddress("'" + rest + "' names no host");
  if (colon == std::string::npos)
    return Status::ok();
  std::string port = rest.substr(colon + 1);
  char *end = nullptr;
  long number = std::strtol(port.c_str(), &end, 10);
  if (port.empty() || *end || number < 1 || number > 65535)
    return badAddress("has port '" + port +
                      "': expects a whole number from 1 to 65535");
  options.port = static_cast<int>(number);
  return Status::ok();
}

StatusOr<std::unique_ptr<Store>> openStore(const std::string &address,
                                           std::chrono::seconds timeout,
                                           std::chrono::seconds retry) {
  size_t colon = address.find("://");
  if (address.find('@') != std::string::npos)
    return badAddress("has an '@': a password is given by the variable "
                      "DYNA_STORE_PASSWORD alone, and never in the address");
  if (colon == std::string::npos)
    return badAddress(
        "expects an address such as redis://host:6379, but got '" + address +
        "'");
  std::string scheme = address.substr(0, colon);
  if (!&dyna_remote_store)
    return badAddress(address + ": this program was compiled without stores: "
                                "give dynac --with=redis");
  if (scheme != dyna_remote_store.scheme)
    return badAddress(address + ": this program knows only " +
                      dyna_remote_store.scheme + "://");
  StoreOptions options;
  options.port = dyna_remote_store.port;
  options.timeout = timeout;
  options.retry = retry;
  DYNA_RETURN_IF_ERROR(parseHost(address.substr(colon + 3), options));
  if (const char *password = std::getenv("DYNA_STORE_PASSWORD"))
    options.password = password;
  DYNA_ASSIGN_OR_RETURN(auto store, dyna_remote_store.open(options));
  DYNA_RETURN_IF_ERROR(checkStoreFormat(*store));
  return store;
}

Status checkStoreFormat(Store &store) {
  const std::string key = "dyna:format", own = std::to_string(storeFormat);
  DYNA_ASSIGN_OR_RETURN(auto found, store.find(key));
  if (!found)
    return store.put(key, own, std::chrono::hours(24 * 365));
  if (*found == own)
    return Status::ok();
  return Status::invalidArgument(
      store.describe() + " holds plans of format " + found->substr(0, 20) +
      ", but this program's are of format " + own +
      ": start planners and executors with one version, on another server if "
      "the others still run; if none does, remove the key " +
      key);
}

Status tooLargeFor(const Store &store, const std::string &key, uint64_t bytes) {
  return Status::invalidArgument(formatText(
      "the store %s has a value of %d bytes under %s, but values have at most "
      "%d: something else has written it, so remove the key or use another "
      "server",
      store.describe(), bytes, key, mostStoredBytes));
}

} // namespace dyna
