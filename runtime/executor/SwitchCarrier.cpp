//===- SwitchCarrier.cpp - Parameters on their way between graphs ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/SwitchCarrier.h"

#include "runtime/abi/Kernels.h"
#include "runtime/base/Text.h"
#include "runtime/plan/program/InstructionTable.h"

namespace dyna {

using plan::Instruction;

/// Both ends start the messages of a pair in one order, so that three tags do.
static int32_t tagOf(bool isGradients, bool isAdded) {
  return Transport::kLargestTag - (!isGradients ? 1 : isAdded ? 2 : 3);
}

SwitchCarrier::SwitchCarrier(RankMachine &machine, GraphSeat &home,
                             std::vector<Phase> phases)
    : machine_(machine), home_(home), phases_(std::move(phases)),
      sent_(machine.ranks()) {}

StatusOr<SwitchCarrier::Way> SwitchCarrier::wayOf(const Instruction &i) const {
  const Phase &phase = phases_[i.phase];
  Way way;
  way.isGradients = exchangeOf(i.op).kind == ExchangeKind::GradientSwitch;
  if (way.isGradients) {
    way.what = phase.switches.gradients;
    way.target = &home_;
    way.sources = {phase.seat};
    way.element = home_.model().gradientType();
    way.isLate = phase.addsLate;
    way.transit = phase.gradientTransit;
  } else {
    way.what = phase.switches.values;
    way.transit = phase.valueTransit;
    way.target = phase.seat;
    if (phase.before)
      way.sources.push_back(phase.before);
    way.sources.push_back(&home_);
  }
  if (!way.what)
    return Status::internal("a switch to or from home");
  return way;
}

Strip SwitchCarrier::Passing::rowsOf(const Box &part) const {
  const Box local = part.relativeTo(box);
  const int64_t stride = box.size[1] * element;
  return {data + local.begin[0] * stride + local.begin[1] * element,
          local.size[0], local.size[1] * element, stride};
}

StatusOr<Strip> SwitchCarrier::sourceOf(const Way &way, const Key &key,
                                        const SwitchTransfer &transfer) const {
  const SwitchTensor &tensor = way.what->tensors[transfer.tensor];
  const Box box = transfer.box;
  if (transfer.source == SwitchPlace::Passing) {
    auto [isGradients, phase, bucket] = key;
    const int after = way.what->plan.buckets[bucket].after;
    auto found = buckets_.find({isGradients, phase, after});
    if (found != buckets_.end())
      for (const Passing &passing : found->second.passing)
        if (passing.tensor == transfer.tensor && passing.box.contains(box))
          return passing.rowsOf(box);
    return Status::internal("nothing to pass on");
  }
  if (transfer.source == SwitchPlace::New)
    return way.target->rowsOf(tensor.parameter, tensor.part, box);
  for (GraphSeat *seat : way.sources)
    if (seat->view().holds(tensor.parameter) &&
        seat->partBox(tensor.parameter, tensor.part).contains(box))
      return seat->rowsOf(tensor.parameter, tensor.part, box);
  return Status::internal("nothing to send: " + box.describe());
}

StatusOr<Strip> SwitchCarrier::targetOf(const Way &way, int number,
                                        Bucket &bucket,
                                        const SwitchTransfer &transfer) {
  const SwitchTensor &tensor = way.what->tensors[transfer.tensor];
  if (transfer.target != SwitchPlace::Passing)
    return way.target->rowsOf(tensor.parameter, tensor.part, transfer.box);
  const int64_t place = way.transit +
                        way.what->sides[machine_.rank()].passed[number] +
                        bucket.passingBytes;
  bucket.passingBytes +=
      dyna_align_block(transfer.box.volume() * tensor.elementBytes);
  const Passing &passing = bucket.passing.emplace_back(
      Passing{transfer.tensor, transfer.box, tensor.elementBytes,
              static_cast<char *>(machine_.persistent(place))});
  return passing.rowsOf(transfer.box);
}

Status SwitchCarrier::start(const Instruction &i) {
  DYNA_ASSIGN_OR_RETURN(Way way, wayOf(i));
  const Key key = {way.isGradients, i.phase, i.bucket};
  Bucket &bucket = buckets_[key];
  const int own = machine_.rank();
  const std::vector<SwitchTransfer> &transfers =
      way.what->plan.buckets[i.bucket].transfers;
  struct Kept {
    int32_t addedAs;
    Strip source, target;
  };
  std::vector<Kept> kept; // what stays here
  for (int number : way.what->sides[own].transfers[i.bucket]) {
    const SwitchTransfer &transfer = transfers[number];
    const bool isAdded =
        way.isGradients && transfer.target != SwitchPlace::Passing;
    Strip source, target;
    if (transfer.from == own) {
      DYNA_ASSIGN_OR_RETURN(source, sourceOf(way, key, transfer));
    }
    if (transfer.to == own) {
      DYNA_ASSIGN_OR_RETURN(target, targetOf(way, i.bucket, bucket, transfer));
    }
    if (transfer.from == transfer.to) {
      kept.push_back({isAdded ? way.element : kReplaces, source, target});
    } else {
      bucket.messages[{transfer.from, transfer.to, isAdded}].strips.push_back(
          transfer.from == own ? source : target);
    }
  }
  // Others need not wait until what stays is in its place.
  const GraphSwitch::Side &side = way.what->sides[own];
  int64_t late = way.transit + side.passedBytes + side.got[i.bucket];
  for (auto &[name, message] : bucket.messages) {
    const auto [from, to, isAdded] = name;
    if (way.isLate && isAdded && to == own) {
      message.late = static_cast<char *>(machine_.persistent(late));
      late += dyna_align_block(totalBytes(message.strips));
    }
    DYNA_RETURN_IF_ERROR(startMessage(way, name, message));
  }
  for (const Kept &one : kept)
    DYNA_RETURN_IF_ERROR(place(one.addedAs, one.source, one.target));
  return Status::ok();
}

Status SwitchCarrier::place(int32_t addedAs, const Strip &source,
                            const Strip &target) {
  const dyna_place rows = {source.data,  target.data,   target.count,
                           target.bytes, source.stride, target.stride,
                           addedAs,      /*reserved=*/0};
  return machine_.outcome(dyna_place_rows(&machine_.context(), &rows));
}

Status SwitchCarrier::startMessage(const Way &way, const MessageKey &key,
                                   Message &message) {
  Transport &transport = *machine_.transport();
  void *stream = machine_.stream().handle();
  const auto [from, to, isAdded] = key;
  const int32_t tag = tagOf(way.isGradients, isAdded);
  const int64_t bytes = totalBytes(message.strips);
  if (from == machine_.rank()) {
    (way.isGradients ? sent_[to].gradients : sent_[to].values) += bytes;
    DYNA_ASSIGN_OR_RETURN(message.ticket,
                          transport.startSend(to, tag, message.strips, stream));
    return Status::ok();
  }
  std::vector<Strip> strips = message.strips;
  if (message.late)
    strips = {{message.late, 1, bytes, bytes}};
  DYNA_ASSIGN_OR_RETURN(
      message.ticket, transport.startReceive(
                          from, tag, std::move(strips), stream,
                          isAdded && !message.late ? way.element : kReplaces));
  return Status::ok();
}

Status SwitchCarrier::wait(const Instruction &i) {
  DYNA_ASSIGN_OR_RETURN(Way way, wayOf(i));
  const Key key = {way.isGradients, i.phase, i.bucket};
  auto found = buckets_.find(key);
  if (found == buckets_.end())
    return Status::internal("waits for a bucket that was not started");
  Transport &transport = *machine_.transport();
  void *stream = machine_.stream().handle();
  for (auto &[name, message] : found->second.messages) {
    DYNA_RETURN_IF_ERROR(
        transport.wait(message.ticket, stream, transport.deadline()));
    if (!message.late)
      continue;
    char *waiting = message.late;
    for (const Strip &strip : message.strips) {
      DYNA_RETURN_IF_ERROR(
          place(way.element, {waiting, strip.count, strip.bytes, strip.bytes},
                strip));
      waiting += strip.totalBytes();
    }
  }
  found->second.messages.clear();
  return Status::ok();
}

std::vector<Strip> SwitchCarrier::arriving() const {
  std::vector<Strip> strips;
  for (const auto &[key, bucket] : buckets_)
    for (const auto &[name, message] : bucket.messages) {
      if (std::get<1>(name) != machine_.rank())
        continue;
      if (const int64_t bytes = totalBytes(message.strips); message.late)
        strips.push_back({message.late, 1, bytes, bytes});
      else
        strips.insert(strips.end(), message.strips.begin(),
                      message.strips.end());
    }
  return strips;
}

} // namespace dyna
