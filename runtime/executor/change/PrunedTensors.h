//===- PrunedTensors.h - Reads and prunes tensors of a rank -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEDTENSORS_H
#define DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEDTENSORS_H

#include "runtime/executor/rank/GraphSeat.h"

#include <deque>
#include <vector>

namespace dyna {

/// Tensors of a rank in memory that the host reads: in the arena, or copied from there.
class HostTensors {
public:
  explicit HostTensors(RankMachine &machine) : machine_(machine) {}

  template <typename T> StatusOr<const T *> read(int64_t place, int64_t count) {
    if (machine_.device().sharesMemory())
      return static_cast<const T *>(machine_.persistent(place));
    const auto bytes = count * static_cast<int64_t>(sizeof(T));
    std::vector<uint64_t> &copy =
        copies_.emplace_back(static_cast<size_t>((bytes + 7) / 8));
    DYNA_RETURN_IF_ERROR(machine_.toHost(copy.data(), place, bytes));
    DYNA_RETURN_IF_ERROR(machine_.synchronize());
    return reinterpret_cast<const T *>(copy.data());
  }

private:
  RankMachine &machine_;
  std::deque<std::vector<uint64_t>> copies_;
};

/// Makes masters, copies and moments zero where the mask of the parameter is 0, in the rows
/// that the rank updates.
inline Status zeroPrunedState(GraphSeat &seat, int parameter) {
  for (ParameterPart part :
       {ParameterPart::Master, ParameterPart::Copy, ParameterPart::FirstMoment,
        ParameterPart::SecondMoment})
    DYNA_RETURN_IF_ERROR(seat.zeroPruned(parameter, part));
  return Status::ok();
}

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEDTENSORS_H
