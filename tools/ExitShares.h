//===- ExitShares.h - Reads shares of tokens that leave at exits *- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_EXITSHARES_H
#define DYNA_TOOLS_EXITSHARES_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/model/LayerState.h"

#include <string>

namespace dyna {

/// Sets the share of tokens that reach each layer (LayerState.h). The text has the shares of
/// all tokens that leave, as in
///
///     h.3:0.3; h.7:0.2
///
/// A layer is given by its name, or by its number from 0. Tokens leave behind it. If the next
/// layer is its exit, they leave behind that one. `unit` is "tokens" or "samples". Empty
/// `states` become those of dense layers. Fails if the text is malformed, if a layer comes
/// twice or does not exist, or if no token would reach the last layer.
Status setExitShares(const std::string &text, const std::string &unit,
                     const Model &model, LayerStates &states);

/// Returns one line for people: how many layers see how many of the tokens, and what of a
/// plan counts all of them.
std::string describeExits(const LayerStates &states);

} // namespace dyna

#endif // DYNA_TOOLS_EXITSHARES_H
