//===- WholeParts.h - All that a seat or a team has of a part ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_WHOLEPARTS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_WHOLEPARTS_H

#include "runtime/executor/run/RankTeam.h"

namespace dyna {

inline Status readPart(GraphSeat &seat, int parameter, ParameterPart part,
                       void *target) {
  return seat.readBox(parameter, part, seat.partBox(parameter, part), target);
}
inline Status writePart(GraphSeat &seat, int parameter, ParameterPart part,
                        const void *source) {
  return seat.writeBox(parameter, part, seat.partBox(parameter, part), source);
}

inline Status readPart(RankTeam &team, int parameter, ParameterPart part,
                       void *target) {
  return team.readRows(parameter, part, {0, team.model().rows(parameter)},
                       target);
}
inline Status writePart(RankTeam &team, int parameter, ParameterPart part,
                        const void *source) {
  return team.writeRows(parameter, part, {0, team.model().rows(parameter)},
                        source);
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_WHOLEPARTS_H
