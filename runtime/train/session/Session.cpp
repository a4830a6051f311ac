//===- Session.cpp - Holds one run of a compiled binary -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Session.h"

#include "runtime/base/text/Text.h"
#include "runtime/data/Padding.h"
#include "runtime/planner/divide/CutMiniBatch.h"

namespace dyna {

int64_t Session::peakBytes() const {
  int64_t bytes =
      ranks->takenBytes() + fileBytes + dataBytes + batchBytes + programBytes;
  for (const Device *device : devices)
    bytes += device->scratchBytes();
  return bytes;
}

std::string Session::costsMark() const {
  return hasCosts() ? formatText("%016x",
                                 home().planner->costs().table().fingerprint())
                    : "";
}

BatchOptions Session::batchOptions() const {
  BatchOptions batch;
  batch.shuffle = *parseShuffle(options.shuffle);
  batch.seed = static_cast<uint64_t>(options.seed);
  return batch;
}

StatusOr<MiniBatch> Session::readBatch(BatchReader &reader) const {
  DYNA_ASSIGN_OR_RETURN(MiniBatch batch, reader.next(options.tokensPerBatch));
  if (options.pad)
    padSamples(batch, options.chosenMicroBatch);
  joinSamples(batch, joinedSamples(*model, batch.lengths(), home().options));
  return batch;
}

} // namespace dyna
