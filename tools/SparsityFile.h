//===- SparsityFile.h - Reads states of layers from a table -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_SPARSITYFILE_H
#define DYNA_TOOLS_SPARSITYFILE_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/model/LayerState.h"

#include <string>

namespace dyna {

/// Returns the number of the layer that has this name, or this number from 0; -1 if there is
/// none.
int findLayer(const Model &model, const std::string &field);

/// Returns the states that a file gives the layers of a model. Layers that it does not
/// name are dense and train. A line is
///
///     LAYER, SPARSITY [, frozen]
///
/// A layer is given by its name, or by its number from 0. A first line that begins with
/// "layer" names the columns, and is skipped. So are empty lines, and what follows a #.
/// Fails with the file and line if a line is malformed or names a layer that the model
/// lacks. Fails, too, if a layer comes twice, or a sparsity is outside [0, 1).
StatusOr<LayerStates> readLayerStates(const std::string &path,
                                      const Model &model);

/// Returns the same for the text of a file; `name` stands for the file in messages.
StatusOr<LayerStates> parseLayerStates(const std::string &text,
                                       const std::string &name,
                                       const Model &model);

/// Returns one line for people: how many layers have which form, and their sparsity.
std::string describeStates(const LayerStates &states);

} // namespace dyna

#endif // DYNA_TOOLS_SPARSITYFILE_H
