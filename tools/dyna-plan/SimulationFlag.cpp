//===- SimulationFlag.cpp - Parses the conditions of a simulation ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SimulationFlag.h"

#include "runtime/base/text/Text.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

namespace dyna {
namespace {

using llvm::StringRef;

Status refuse(StringRef word, const std::string &expected) {
  return Status::invalidArgument(
      formatText("--simulate: '%s': expects %s", word.str(), expected));
}

StatusOr<double> readReal(StringRef word, StringRef text, double most) {
  double value = 0;
  if (text.getAsDouble(value) || !std::isfinite(value) || value < 0 ||
      value > most)
    return refuse(word, formatText("a number from 0 to %g", most));
  return value;
}

StatusOr<int64_t> readWhole(StringRef word, StringRef text, int64_t least) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < least)
    return refuse(word, formatText("a whole number of at least %d", least));
  return value;
}

Status readWord(StringRef word, SimulationOptions &options) {
  auto [name, value] = word.split('=');
  if (word == "host") {
    options.ranks = SimulationOptions::Ranks::Host;
  } else if (word == "one-stream") {
    options.streams = SimulationOptions::Streams::One;
  } else if (word == "links=devices") {
    options.sharing = SimulationOptions::Sharing::Devices;
  } else if (word == "links=nodes") {
    options.sharing = SimulationOptions::Sharing::Nodes;
  } else if (name == "eager") {
    DYNA_ASSIGN_OR_RETURN(options.eagerBytes, readWhole(word, value, 0));
  } else if (name == "noise") {
    DYNA_ASSIGN_OR_RETURN(options.noise, readReal(word, value, 10));
  } else if (name == "delay") {
    auto [seconds, every] = value.split('/');
    if (every.empty())
      return refuse(
          word,
          "delay=SECONDS/N, where one function in N takes SECONDS longer");
    DYNA_ASSIGN_OR_RETURN(options.delaySeconds, readReal(word, seconds, 1e6));
    DYNA_ASSIGN_OR_RETURN(options.delayEvery, readWhole(word, every, 1));
  } else if (name == "seed") {
    DYNA_ASSIGN_OR_RETURN(int64_t seed, readWhole(word, value, 0));
    options.seed = static_cast<uint64_t>(seed);
  } else {
    return refuse(word, "host, one-stream, links=devices, links=nodes, "
                        "eager=BYTES, noise=SHARE, delay=SECONDS/N or seed=N");
  }
  return Status::ok();
}

} // namespace

StatusOr<SimulationOptions> parseSimulation(const std::string &text) {
  SimulationOptions options;
  llvm::SmallVector<StringRef> words;
  StringRef(text).split(words, ',', -1, /*KeepEmpty=*/!text.empty());
  llvm::StringSet<> said;
  for (StringRef word : words) {
    DYNA_RETURN_IF_ERROR(readWord(word, options));
    const StringRef what = word.split('=').first;
    if (!said.insert(what).second)
      return Status::invalidArgument(
          formatText("--simulate says '%s' twice: give it once", what.str()));
  }
  const bool ofDevices = options.streams != SimulationOptions::Streams::Lines ||
                         options.sharing != SimulationOptions::Sharing::None ||
                         options.eagerBytes >= 0;
  if (options.ranks == SimulationOptions::Ranks::Host && ofDevices)
    return Status::invalidArgument("--simulate: host ranks have no streams, "
                                   "links or eager messages");
  return options;
}

} // namespace dyna
