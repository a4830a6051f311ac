//===- Devices.cpp - Opens the devices of a run ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Devices.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {

Status checkDevices(const Model &model, const TrainOptions &options) {
  const std::string &said = model.manifest().target();
  const std::string target = said.empty() ? "cpu" : said;
  if (target != dyna_device_kind.target)
    return Status::invalidArgument(formatText(
        "the layers of this program were compiled for %s, but it was linked "
        "with the runtime for %s: compile it again",
        target, dyna_device_kind.target));
  return dyna_device_kind.checkFlags(model, options);
}

int threadsOfRank(const TrainOptions &options,
                  const std::vector<RankResources> &ranks, int perDevice) {
  const int given = static_cast<int>(options.threads);
  const Transport *transport = ranks.front().hostWires();
  if (!transport)
    return given;
  int all = given > 0 ? given : availableCores();
  int share =
      given > 0 ? static_cast<int>(ranks.size()) : transport->ranksPerCore();
  return std::max(1, all * perDevice / share);
}

} // namespace dyna
