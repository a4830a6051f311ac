//===- GraphSeat.cpp - Holds the data of one graph on a rank --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/GraphSeat.h"

#include "runtime/abi/Kernels.h"
#include "runtime/plan/graph/ValuesAtHome.h"

namespace dyna {

GraphSeat::GraphSeat(const ExecutableGraph &graph, Persistent persistent,
                     RankMachine &machine, int64_t begin)
    : graph_(graph), view_(graph.rankView(machine.rank())),
      persistent_(persistent), machine_(machine),
      layout_(persistentLayout(view_, persistent, begin)),
      groups_(DYNA_GROUP_COUNT, dyna_group{1, 0, nullptr}),
      forms_(view_.parameters()) {}

GraphSeat::GraphSeat(const ExecutableGraph &graph, Persistent persistent,
                     RankMachine &machine, const GraphSeat &home)
    : graph_(graph), view_(graph.rankView(machine.rank())),
      persistent_(persistent), machine_(machine), home_(&home),
      rowsAtHome_(rowsAtHome(home.graph(), graph)[machine.rank()]),
      layout_(persistentLayout(view_, persistent, 0, rowsAtHome_)),
      groups_(DYNA_GROUP_COUNT, dyna_group{1, 0, nullptr}),
      forms_(view_.parameters()) {}

Status GraphSeat::connect(SharedGroups &groups) {
  if (graph_.ranks() == 1)
    return Status::ok();
  if (!machine_.transport())
    return Status::internal("several ranks need a transport");
  DYNA_ASSIGN_OR_RETURN(
      auto exchange,
      RankExchange::create(graph_, view_, *machine_.transport(), groups));
  exchange_ = std::move(exchange);
  groups_ = exchange_->groups();
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static int64_t offsetOf(const ParameterPlace &place, ParameterPart part) {
  switch (part) {
  case ParameterPart::Master:
    return place.master;
  case ParameterPart::Copy:
    return place.copy;
  case ParameterPart::Gradient:
    return place.gradient;
  case ParameterPart::FirstMoment:
    return place.m;
  case ParameterPart::SecondMoment:
    return place.v;
  case ParameterPart::Mask:
    return place.mask;
  case ParameterPart::Score:
    return place.score;
  }
  return -1;
}

int64_t GraphSeat::placeOf(int parameter, ParameterPart part) const {
  if (home_ && rowsAtHome_[parameter] >= 0 &&
      part == valuePart(model(), parameter))
    return home_->placeOf(parameter, part) +
           rowsAtHome_[parameter] * rowBytes(parameter, part);
  const int64_t offset = offsetOf(layout_.parameters[parameter], part);
  if (offset < 0)
    return -1;
  return offset +
         (part == ParameterPart::Gradient ? gradientsBegin_ : valuesBegin_);
}

void GraphSeat::moveTo(int64_t values, int64_t gradients) {
  valuesBegin_ = values;
  // In the layout the gradients follow the values.
  gradientsBegin_ =
      gradients -
      persistentLayout(view_, Persistent::Values, 0, rowsAtHome_).bytes;
}

RowRange GraphSeat::partRows(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  bool updatedOnly =
      part == ParameterPart::FirstMoment ||
      part == ParameterPart::SecondMoment || part == ParameterPart::Mask ||
      part == ParameterPart::Score ||
      (part == ParameterPart::Master && view_.hasCopy(parameter));
  if (placeOf(parameter, part) < 0)
    return {};
  if (updatedOnly)
    return {place.updateBegin, place.updateEnd};
  return {0, view_.rows(parameter)};
}

int64_t GraphSeat::rowBytes(int parameter, ParameterPart part) const {
  return view_.rowElements(parameter) *
         partElementBytes(model(), parameter, part);
}

int64_t GraphSeat::partBytes(int parameter, ParameterPart part) const {
  return partRows(parameter, part).count() * rowBytes(parameter, part);
}

Box GraphSeat::partBox(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  RowRange rows = partRows(parameter, part);
  return {{place.firstRow + rows.begin, place.firstColumn},
          {rows.count(), place.rowElements}};
}

StatusOr<Strip> GraphSeat::rowsOf(int parameter, ParameterPart part,
                                  const Box &box) const {
  int64_t place = placeOf(parameter, part);
  Box own = partBox(parameter, part);
  if (place < 0 || !own.contains(box))
    return Status::internal("parameter '" + view_.parameter(parameter).name() +
                            "' has no such part or rows: " + box.describe() +
                            " of " + own.describe());
  Box local = box.relativeTo(own);
  int64_t stride = rowBytes(parameter, part);
  int64_t element = partElementBytes(model(), parameter, part);
  place += local.begin[0] * stride + local.begin[1] * element;
  return Strip{machine_.persistent(place), local.size[0],
               local.size[1] * element, stride};
}

StatusOr<GraphSeat::Pieces> GraphSeat::find(int parameter, ParameterPart part,
                                            const Box &box) const {
  DYNA_ASSIGN_OR_RETURN(Strip rows, rowsOf(parameter, part, box));
  const int64_t place = static_cast<char *>(rows.data) -
                        static_cast<char *>(machine_.persistent(0));
  // Whole rows are one piece.
  if (rows.bytes == rows.stride)
    return Pieces{place, 1, rows.totalBytes(), 0};
  return Pieces{place, rows.count, rows.bytes, rows.stride};
}

Status GraphSeat::readBox(int parameter, ParameterPart part, const Box &box,
                          void *target) {
  DYNA_ASSIGN_OR_RETURN(Pieces rows, find(parameter, part, box));
  for (int64_t r = 0; r < rows.count; ++r)
    DYNA_RETURN_IF_ERROR(
        machine_.toHost(static_cast<char *>(target) + r * rows.bytes,
                        rows.place + r * rows.stride, rows.bytes));
  return machine_.synchronize();
}

Status GraphSeat::writeBox(int parameter, ParameterPart part, const Box &box,
                           const void *source) {
  DYNA_ASSIGN_OR_RETURN(Pieces rows, find(parameter, part, box));
  for (int64_t r = 0; r < rows.count; ++r)
    DYNA_RETURN_IF_ERROR(machine_.toDevice(
        rows.place + r * rows.stride,
        static_cast<const char *>(source) + r * rows.bytes, rows.bytes));
  return machine_.synchronize();
}

Status GraphSeat::clearGradients() {
  for (int p = 0; p < view_.parameters(); ++p)
    if (int64_t place = placeOf(p, ParameterPart::Gradient); place >= 0)
      DYNA_RETURN_IF_ERROR(
          machine_.fill(place, partBytes(p, ParameterPart::Gradient), 0));
  return Status::ok();
}

Status GraphSeat::zeroPruned(int parameter, ParameterPart part) {
  const int64_t mask = updatedPlace(parameter, ParameterPart::Mask);
  const int64_t begin = updatedPlace(parameter, part);
  if (mask < 0 || begin < 0)
    return Status::ok();
  return machine_.zeroWhere(begin, mask, view_.updatedElements(parameter),
                            partElementBytes(model(), parameter, part));
}

Status GraphSeat::addScores(int parameter, bool ofPruned) {
  const int64_t scores = updatedPlace(parameter, ParameterPart::Score);
  if (scores < 0)
    return Status::ok();
  ScoredWeights scored;
  scored.count = view_.updatedElements(parameter);
  scored.scores = scores;
  scored.weights =
      ofPruned ? -1 : updatedPlace(parameter, ParameterPart::Master);
  scored.gradients = updatedPlace(parameter, ParameterPart::Gradient);
  scored.mask = updatedPlace(parameter, ParameterPart::Mask);
  scored.scoreBytes =
      partElementBytes(model(), parameter, ParameterPart::Score);
  scored.gradientBytes =
      partElementBytes(model(), parameter, ParameterPart::Gradient);
  scored.scale = ofPruned ? nullptr : machine_.gradientScale();
  return machine_.addScores(scored);
}

Status GraphSeat::clearMasks() {
  for (int p = 0; p < view_.parameters(); ++p)
    if (const int64_t place = placeOf(p, ParameterPart::Mask); place >= 0)
      DYNA_RETURN_IF_ERROR(
          machine_.fill(place, partBytes(p, ParameterPart::Mask), 1));
  return clearScores();
}

Status GraphSeat::clearScores() {
  for (int p = 0; p < view_.parameters(); ++p)
    if (const int64_t place = placeOf(p, ParameterPart::Score); place >= 0)
      DYNA_RETURN_IF_ERROR(
          machine_.fill(place, partBytes(p, ParameterPart::Score), 0));
  return Status::ok();
}

Status GraphSeat::clearOtherRows(int layer) {
  const auto &list = view_.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    if (!view_.updates(layer, slot))
      continue;
    int64_t row = rowBytes(p, ParameterPart::Gradient);
    int64_t place = placeOf(p, ParameterPart::Gradient);
    int64_t begin = view_.place(p).updateBegin * row;
    int64_t end = view_.place(p).updateEnd * row;
    DYNA_RETURN_IF_ERROR(machine_.fill(place, begin, 0));
    DYNA_RETURN_IF_ERROR(machine_.fill(
        place + end, partBytes(p, ParameterPart::Gradient) - end, 0));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Arguments of layer functions
//===----------------------------------------------------------------------===//

dyna_tensor GraphSeat::tensorOf(int parameter, ParameterPart part) const {
  int64_t place = placeOf(parameter, part);
  if (place < 0)
    return {nullptr, 0};
  return {machine_.persistent(place), partRows(parameter, part).count()};
}

int64_t GraphSeat::updatedPlace(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  const int64_t begin = placeOf(parameter, part);
  if (begin < 0 || place.updateBegin == place.updateEnd)
    return -1;
  const int64_t skipped = place.updateBegin - partRows(parameter, part).begin;
  return begin + skipped * rowBytes(parameter, part);
}

dyna_tensor GraphSeat::updatedRows(int parameter, ParameterPart part) const {
  const RankPart::Parameter &place = view_.place(parameter);
  const int64_t begin = updatedPlace(parameter, part);
  if (begin < 0)
    return {nullptr, 0};
  return {machine_.persistent(begin), place.updateEnd - place.updateBegin};
}

std::vector<dyna_tensor> GraphSeat::values(int layer) const {
  std::vector<dyna_tensor> tensors;
  for (int p : view_.layer(layer).parameters())
    tensors.push_back(tensorOf(p, valuePart(model(), p)));
  if (view_.kind(layer).sparse_parameters_size() > 0)
    for (int p : view_.layer(layer).parameters())
      tensors.push_back({const_cast<dyna_sparse_form *>(forms_.find(p)), 0});
  return tensors;
}

std::vector<dyna_tensor> GraphSeat::gradients(int layer) const {
  std::vector<dyna_tensor> tensors;
  for (int p : view_.layer(layer).parameters())
    tensors.push_back(tensorOf(p, ParameterPart::Gradient));
  return tensors;
}

std::vector<dyna_tensor> GraphSeat::updatedGradients(int layer,
                                                     bool countedOnly) const {
  std::vector<dyna_tensor> tensors;
  const auto &list = view_.layer(layer).parameters();
  for (int slot = 0; slot < list.size(); ++slot) {
    int p = list.Get(slot);
    bool here =
        view_.updates(layer, slot) && (!countedOnly || view_.place(p).counts);
    tensors.push_back(here ? updatedRows(p, ParameterPart::Gradient)
                           : dyna_tensor{nullptr, 0});
  }
  return tensors;
}

//===----------------------------------------------------------------------===//
// Forms of weights
//===----------------------------------------------------------------------===//

Status GraphSeat::chooseForm(int parameter, const uint8_t *mask,
                             double sparseFrom) {
  const ParameterPart part = valuePart(model(), parameter);
  const MaskedBox box = {view_.rows(parameter), view_.rowElements(parameter),
                         mask, partElementBytes(model(), parameter, part)};
  return forms_.choose(parameter, box, sparseFrom);
}

Status GraphSeat::takeSparseValues(int parameter) {
  const dyna_sparse_form *form = forms_.find(parameter);
  if (!form)
    return Status::ok();
  const ParameterPart part = valuePart(model(), parameter);
  const dyna_sparse_values take = {form, tensorOf(parameter, part).data,
                                   view_.rowElements(parameter),
                                   partElementBytes(model(), parameter, part)};
  return machine_.outcome(dyna_take_sparse_values(&machine_.context(), &take));
}

} // namespace dyna
