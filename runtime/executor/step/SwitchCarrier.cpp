//===- SwitchCarrier.cpp - Carries parameters and gradients between graphs ===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/step/SwitchCarrier.h"

#include "runtime/abi/Kernels.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

/// Both ends start the messages of a pair in one order, so that three tags do.
static int32_t tagOf(bool isGradients, bool isAdded) {
  return Transport::kLargestTag - (!isGradients ? 1 : isAdded ? 2 : 3);
}

SwitchCarrier::SwitchCarrier(RankMachine &machine, GraphSeat &home,
                             std::vector<Phase> phases)
    : machine_(machine), home_(&home), phases_(std::move(phases)),
      sent_(machine.ranks()) {}

SwitchCarrier::SwitchCarrier(RankMachine &machine)
    : machine_(machine), home_(nullptr), sent_(machine.ranks()) {}

StatusOr<SwitchCarrier::Way> SwitchCarrier::wayOf(const Instruction &i) const {
  const Phase &phase = phases_[i.phase];
  Way way;
  way.isGradients = exchangeOf(i.op).kind == ExchangeKind::GradientSwitch;
  if (way.isGradients) {
    way.what = phase.switches.gradients;
    way.target = home_;
    way.sources = {phase.seat};
    way.element = home_->model().gradientType();
    way.isLate = phase.addsLate;
    way.transit = phase.gradientTransit;
  } else {
    way.what = phase.switches.values;
    way.transit = phase.valueTransit;
    way.target = phase.seat;
    if (phase.before)
      way.sources.push_back(phase.before);
    way.sources.push_back(home_);
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
  return startBucket(way, {way.isGradients, i.phase, i.bucket});
}

Status SwitchCarrier::startBucket(const Way &way, const Key &key) {
  Bucket &bucket = buckets_[key];
  const int number = std::get<2>(key);
  const int own = machine_.rank();
  const std::vector<SwitchTransfer> &transfers =
      way.what->plan.buckets[number].transfers;
  struct Kept {
    int32_t addedAs;
    Strip source, target;
  };
  std::vector<Kept> kept; // boxes that stay on this rank
  for (int index : way.what->sides[own].transfers[number]) {
    const SwitchTransfer &transfer = transfers[index];
    const bool isAdded =
        way.isGradients && transfer.target != SwitchPlace::Passing;
    Strip source, target;
    if (transfer.from == own) {
      DYNA_ASSIGN_OR_RETURN(source, sourceOf(way, key, transfer));
    }
    if (transfer.to == own) {
      DYNA_ASSIGN_OR_RETURN(target, targetOf(way, number, bucket, transfer));
    }
    if (transfer.from == transfer.to) {
      kept.push_back({isAdded ? way.element : kReplaces, source, target});
    } else {
      bucket.messages[{transfer.from, transfer.to, isAdded}].strips.push_back(
          transfer.from == own ? source : target);
    }
  }
  // Start messages before moving the boxes that stay, so that nobody waits for
  // these.
  const GraphSwitch::Side &side = way.what->sides[own];
  int64_t late = way.transit + side.passedBytes + side.got[number];
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
  return waitBucket(way, {way.isGradients, i.phase, i.bucket});
}

Status SwitchCarrier::waitBucket(const Way &way, const Key &key) {
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

/// Bytes that a rank sends, or those that it gets, in a bucket: whichever is more.
static int64_t bytesOfBucket(const GraphSwitch &way, int bucket, int rank) {
  int64_t sent = 0, got = 0;
  const std::vector<SwitchTransfer> &transfers =
      way.plan.buckets[bucket].transfers;
  for (int index : way.sides[rank].transfers[bucket]) {
    const SwitchTransfer &one = transfers[index];
    const int64_t bytes =
        one.box.volume() * way.tensors[one.tensor].elementBytes;
    if (one.from != one.to)
      (one.from == rank ? sent : got) += bytes;
  }
  return std::max(sent, got);
}

Status SwitchCarrier::carryState(const GraphSwitch &state, GraphSeat *before,
                                 GraphSeat *behind, int64_t transit,
                                 int64_t bytesUnderWay) {
  Way way;
  way.what = &state;
  way.transit = transit;
  way.target = behind;
  if (before)
    way.sources.push_back(before);
  const int own = machine_.rank();
  std::map<int, int64_t> underWay; // sent bytes by bucket
  int64_t bytes = 0;
  auto wait = [&](int bucket) -> Status {
    auto found = underWay.find(bucket);
    if (found == underWay.end())
      return Status::ok();
    bytes -= found->second;
    underWay.erase(found);
    return waitBucket(way, {/*gradients=*/false, /*phase=*/0, bucket});
  };
  // All ranks handle buckets in the same order, and wait only for earlier ones.
  for (int bucket = 0; bucket < state.buckets(); ++bucket) {
    if (!state.sides[own].takesPart(bucket))
      continue;
    for (int after = state.plan.buckets[bucket].after; after >= 0;
         after = state.plan.buckets[after].after)
      DYNA_RETURN_IF_ERROR(wait(after));
    const int64_t next = bytesOfBucket(state, bucket, own);
    while (!underWay.empty() && bytes + next > bytesUnderWay)
      DYNA_RETURN_IF_ERROR(wait(underWay.begin()->first));
    DYNA_RETURN_IF_ERROR(
        startBucket(way, {/*gradients=*/false, /*phase=*/0, bucket}));
    underWay[bucket] = next;
    bytes += next;
  }
  while (!underWay.empty())
    DYNA_RETURN_IF_ERROR(wait(underWay.begin()->first));
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
