//===- Status.h - Represents errors as values -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime reports failures as values; no exception crosses one of its
// interfaces. A `Status` holds a code and a sentence for a person: what was
// given, what was expected, what to do. `StatusOr<T>` holds either a value or
// such a failure.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_ERROR_STATUS_H
#define DYNA_RUNTIME_BASE_ERROR_STATUS_H

#include "runtime/abi/Abi.h"

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace dyna {

/// Failure classes; the numeric values are those of `dyna_status`.
enum class StatusCode : int32_t {
  Ok = DYNA_OK,
  /// The caller gave something unusable: a flag, a file, a plan.
  InvalidArgument = DYNA_INVALID_ARGUMENT,
  /// Memory, disk or another resource ran out.
  ResourceExhausted = DYNA_RESOURCE_EXHAUSTED,
  /// A device or library call failed.
  DeviceError = DYNA_DEVICE_ERROR,
  /// A wait passed its deadline.
  DeadlineExceeded = DYNA_DEADLINE_EXCEEDED,
  /// Another rank failed first.
  PeerFailed = DYNA_PEER_FAILED,
  /// The work was asked to stop.
  Cancelled = DYNA_CANCELLED,
  /// A broken invariant of ours.
  Internal = DYNA_INTERNAL,
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  static Status ok() { return Status(); }
  static Status invalidArgument(std::string message) {
    return Status(StatusCode::InvalidArgument, std::move(message));
  }
  static Status resourceExhausted(std::string message) {
    return Status(StatusCode::ResourceExhausted, std::move(message));
  }
  static Status deviceError(std::string message) {
    return Status(StatusCode::DeviceError, std::move(message));
  }
  static Status internal(std::string message) {
    return Status(StatusCode::Internal, std::move(message));
  }

  bool isOk() const { return code_ == StatusCode::Ok; }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
};

template <typename T> class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) {
    assert(!status_.isOk() && "a StatusOr without value needs a failure");
  }

  bool isOk() const { return value_.has_value(); }
  const Status &status() const { return status_; }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  Status status_;
  std::optional<T> value_;
};

} // namespace dyna

/// Returns the failure of `expression`, a Status, from the enclosing function.
/// The enclosing function must return a Status or a StatusOr.
#define DYNA_RETURN_IF_ERROR(expression)                                       \
  do {                                                                         \
    if (::dyna::Status dynaStatus = (expression); !dynaStatus.isOk())          \
      return dynaStatus;                                                       \
  } while (false)

/// Assigns the value of a StatusOr expression to `target`, which is declared
/// here or before. Returns a failure from the enclosing function:
///
///     DYNA_ASSIGN_OR_RETURN(std::string text, readFile(path));
///
/// The macro is several statements, so it must not stand alone below an `if`.
/// For a type with a comma, write `auto`.
#define DYNA_ASSIGN_OR_RETURN(target, ...)                                     \
  DYNA_ASSIGN_OR_RETURN_FROM(DYNA_STATUS_NAME(dynaResult, __LINE__), target,   \
                             __VA_ARGS__)
#define DYNA_ASSIGN_OR_RETURN_FROM(result, target, ...)                        \
  auto result = __VA_ARGS__;                                                   \
  if (!result.isOk())                                                          \
    return result.status();                                                    \
  target = std::move(*result)
#define DYNA_STATUS_NAME(name, line) DYNA_STATUS_JOIN(name, line)
#define DYNA_STATUS_JOIN(name, line) name##line

#endif // DYNA_RUNTIME_BASE_ERROR_STATUS_H
