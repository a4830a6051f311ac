//===- MasterRows.cpp - Reads and writes rows of parameters ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/MasterRows.h"

#include <vector>

namespace dyna {
namespace {

DType dtypeOf(plan::ElementType type) {
  return type == plan::F64    ? DType::F64
         : type == plan::BF16 ? DType::BF16
                              : DType::F32;
}

} // namespace

DType masterDType(const Model &model) { return dtypeOf(model.masterType()); }

Status writeMasterRows(RankTeam &ranks, int parameter, RowRange rows,
                       const void *source) {
  const Model &model = ranks.model();
  const DType given = masterDType(model);
  const DType kept = dtypeOf(model.masterType(parameter));
  if (kept == given)
    return ranks.writeRows(parameter, ParameterPart::Master, rows, source);
  const int64_t count = rows.count() * model.rowElements(parameter);
  std::vector<unsigned char> rounded(count * dtypeBytes(kept));
  convertElements(given, source, kept, rounded.data(), count);
  return ranks.writeRows(parameter, ParameterPart::Master, rows,
                         rounded.data());
}

Status readMasterRows(RankTeam &ranks, int parameter, RowRange rows,
                      void *target) {
  const Model &model = ranks.model();
  const DType wanted = masterDType(model);
  const DType kept = dtypeOf(model.masterType(parameter));
  if (kept == wanted)
    return ranks.readRows(parameter, ParameterPart::Master, rows, target);
  const int64_t count = rows.count() * model.rowElements(parameter);
  std::vector<unsigned char> narrow(count * dtypeBytes(kept));
  DYNA_RETURN_IF_ERROR(
      ranks.readRows(parameter, ParameterPart::Master, rows, narrow.data()));
  if (ranks.hasRankZero())
    convertElements(kept, narrow.data(), wanted, target, count);
  return Status::ok();
}

} // namespace dyna
