//===- Head.cu - Computes head and loss -------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Everything of the head but its products. Sums are taken in an order that depends
// on sizes alone: no atomics.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Elements.h"

#include <cmath>

namespace dyna {
namespace gpu {
namespace head {

//===----------------------------------------------------------------------===//
// Rows with a target
//===----------------------------------------------------------------------===//

/// Returns how many of the block's threads before this one have a 1. `total`
/// gets the number of all.
DYNA_GPU int32_t countBefore(HeadListShared &shared, int32_t one,
                             int32_t &total) {
  const int lane = threadIndex() % 32, warp = threadIndex() / 32;
  int32_t sum = one;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    int32_t other = shuffle(sum, lane >= distance ? lane - distance : lane);
    if (lane >= distance)
      sum += other;
  }
  if (lane == 31)
    shared.sums[warp] = sum;
  barrier();
  int32_t before = 0;
  total = 0;
  for (int i = 0; i < kHeadListThreads / 32; ++i) {
    before += i < warp ? shared.sums[i] : 0;
    total += shared.sums[i];
  }
  barrier();
  return before + sum - one;
}

DYNA_GPU void listRows(const HeadListArguments &args, HeadListShared &shared) {
  int64_t count = 0;
  for (int64_t begin = 0; begin < args.rows; begin += kHeadListThreads) {
    const int64_t row = begin + threadIndex();
    const int32_t target = row < args.rows ? args.targets[row] : args.ignored;
    const bool isUsed = target != args.ignored;
    int32_t total;
    const int32_t before = countBefore(shared, isUsed, total);
    if (isUsed)
      args.used[count + before] = static_cast<int32_t>(row);
    count += total;
  }
  if (args.announced >= 0 && count != args.announced)
    fail("another number of rows has a target than was announced");
  for (int64_t i = count + threadIndex(); i < args.rows; i += kHeadListThreads)
    args.used[i] = -1;
}

struct alignas(16) Word16 {
  uint32_t parts[4];
};

template <typename Word>
DYNA_GPU void copyRow(const HeadRowsArguments &args, int64_t from, int64_t to) {
  const Word *source = static_cast<const Word *>(args.from) + from * args.words;
  Word *target = static_cast<Word *>(args.to) + to * args.words;
  for (int64_t i = threadIndex(); i < args.words; i += kHeadRowsThreads)
    target[i] = from < 0 ? Word() : source[i];
}

DYNA_GPU void copyRows(const HeadRowsArguments &args) {
  const int64_t here = blockIndex(), there = args.used[here];
  if (args.isBack && there < 0)
    return;
  const int64_t from = args.isBack ? here : there;
  const int64_t to = args.isBack ? there : here;
  switch (args.wordBytes) {
  case 16:
    return copyRow<Word16>(args, from, to);
  case 8:
    return copyRow<uint64_t>(args, from, to);
  case 4:
    return copyRow<uint32_t>(args, from, to);
  default:
    return copyRow<uint16_t>(args, from, to);
  }
}

//===----------------------------------------------------------------------===//
// Loss and gradient
//===----------------------------------------------------------------------===//

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// A piece's elements, as they are computed with.
template <typename T, int count> struct Values {
  T of[count];
};

DYNA_GPU float widen(float value) { return value; }
DYNA_GPU double widen(double value) { return value; }
DYNA_GPU float widen(uint16_t value) { return widenBf16(value); }

/// The largest of some logits and the sum of 2^((logit - largest) log2 e).
template <typename T> struct Softmax {
  T most = -INFINITY;
  double sum = 0;

  template <int size>
  DYNA_GPU void add(const Values<T, size> &values, int count) {
    T here = most;
#pragma unroll
    for (int i = 0; i < size; ++i)
      here = i < count && values.of[i] > here ? values.of[i] : here;
    T added = 0;
#pragma unroll
    for (int i = 0; i < size; ++i)
      if (i < count)
        added += exp2((values.of[i] - here) * T(kLog2E));
    rescale(here);
    sum += static_cast<double>(added);
  }
  DYNA_GPU void add(T otherMost, double otherSum) {
    const T here = otherMost > most ? otherMost : most;
    rescale(here);
    sum += factor(otherMost, here) * otherSum;
    most = here;
  }

private:
  /// Returns the factor for a sum relative to another largest value. Equal
  /// values may be infinite.
  static DYNA_GPU double factor(T before, T now) {
    return before == now
               ? 1.0
               : static_cast<double>(exp2((before - now) * T(kLog2E)));
  }
  DYNA_GPU void rescale(T now) {
    sum *= factor(most, now);
    most = now;
  }
};

/// Joins the results of all threads of the block, and returns the same to every
/// thread.
template <typename T>
DYNA_GPU Softmax<T> join(Softmax<T> mine, HeadLossShared &shared) {
  const int lane = threadIndex() % 32, warp = threadIndex() / 32;
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    const T most = shuffleXor(mine.most, mask);
    const double sum = shuffleXor(mine.sum, mask);
    mine.add(most, sum);
  }
  if (lane == 0) {
    shared.most[warp] = static_cast<double>(mine.most);
    shared.sums[warp] = mine.sum;
  }
  barrier();
  Softmax<T> all;
  for (int i = 0; i < kHeadLossThreads / 32; ++i)
    all.add(static_cast<T>(shared.most[i]), shared.sums[i]);
  return all;
}

/// Writes the first `count` of a piece's values.
template <typename T>
DYNA_GPU void store(T *to, const Values<T, Piece<T>::size> &values, int count) {
  constexpr int size = Piece<T>::size;
  if (count == size) {
    Piece<T> piece;
#pragma unroll
    for (int i = 0; i < size; ++i)
      piece.values[i] = values.of[i];
    *reinterpret_cast<Piece<T> *>(aligned<16>(to)) = piece;
    return;
  }
#pragma unroll
  for (int i = 0; i < size; ++i)
    if (i < count)
      to[i] = values.of[i];
}
template <int size>
DYNA_GPU void store(uint16_t *to, const Values<float, size> &values,
                    int count) {
  struct alignas(2 * size) Pairs {
    uint32_t of[size / 2];
  };
  Pairs pairs;
#pragma unroll
  for (int i = 0; i < size / 2; ++i)
    pairs.of[i] = packBf16(values.of[2 * i], values.of[2 * i + 1]);
  if (count == size) {
    *reinterpret_cast<Pairs *>(aligned<2 * size>(to)) = pairs;
    return;
  }
#pragma unroll
  for (int i = 0; i < size; ++i)
    if (i < count)
      to[i] = static_cast<uint16_t>(pairs.of[i / 2] >> (i % 2 * 16));
}

/// A row of logits, whose pieces the threads of the block have in turn. As many
/// pieces as fit are copied to shared memory, all at once, and read there. Only
/// the thread that copied a piece ever reads it. Rows begin at multiples of 32
/// bytes, and have room for whole pieces.
template <typename T, typename Logit> class Row {
public:
  static constexpr int size = Piece<Logit>::size;

  DYNA_GPU Row(const Logit *logits, int vocab, HeadLossShared &shared)
      : logits(logits), vocab(vocab), shared(shared),
        kept(least((vocab + size - 1) / size, kHeadKeptPieces)) {
    // Copies in groups, so that the first is processed while the last is being
    // copied.
    for (int group = 0; group < kGroups; ++group) {
      for (int piece = begin(group); piece < begin(group + 1);
           piece += kHeadLossThreads)
        if (piece < kept)
          copyAsync(shared.kept[piece], logits + piece * size, true);
      commitCopies();
    }
  }

  /// Calls work(column, values, number of elements), as pieces arrive.
  template <typename Work> DYNA_GPU void forComing(Work work) {
    forGroups<0>(work);
    forRest(work);
  }
  /// Calls `work` again for all pieces.
  template <typename Work> DYNA_GPU void forPieces(Work work) {
    forKept(begin(0), kept, work);
    forRest(work);
  }

private:
  static constexpr int kGroups = 4;

  /// Returns the thread's first piece of a group.
  DYNA_GPU int begin(int group) const {
    constexpr int share = kGroups * kHeadLossThreads;
    return threadIndex() +
           (kept + share - 1) / share * kHeadLossThreads * group;
  }

  template <int group, typename Work> DYNA_GPU void forGroups(Work work) {
    awaitCopies<kGroups - 1 - group>();
    forKept(begin(group), least(begin(group + 1), kept), work);
    if constexpr (group + 1 < kGroups)
      forGroups<group + 1>(work);
  }
  template <typename Work>
  DYNA_GPU void forKept(int begin, int end, Work work) {
#pragma unroll(1)
    for (int piece = begin; piece < end; piece += kHeadLossThreads)
      forPiece(reinterpret_cast<const Logit *>(shared.kept[piece]), piece,
               work);
  }
  template <typename Work> DYNA_GPU void forRest(Work work) {
    const int first = begin(0) + (kept + kHeadLossThreads - 1 - begin(0)) /
                                     kHeadLossThreads * kHeadLossThreads;
#pragma unroll(1)
    for (int piece = first; piece * size < vocab; piece += kHeadLossThreads)
      forPiece(logits + piece * size, piece, work);
  }
  template <typename Work>
  DYNA_GPU void forPiece(const Logit *from, int piece, Work work) {
    const int count = least(vocab - piece * size, size);
    Values<T, size> values;
    if (count == size) {
      const Piece<Logit> read =
          *reinterpret_cast<const Piece<Logit> *>(aligned<16>(from));
#pragma unroll
      for (int i = 0; i < size; ++i)
        values.of[i] = widen(read.values[i]);
    } else
#pragma unroll
      for (int i = 0; i < size; ++i)
        values.of[i] = i < count ? widen(from[i]) : T(0);
    work(piece * size, values, count);
  }

  const Logit *logits;
  const int vocab;
  HeadLossShared &shared;
  const int kept; ///< pieces
};

/// Computes the loss of a row. `T` is the type of arithmetic.
template <typename T, typename Logit, typename Gradient>
DYNA_GPU void computeLoss(const HeadLossArguments &args,
                          HeadLossShared &shared) {
  const int64_t i = blockIndex();
  const int64_t row = args.used ? args.used[args.first + i] : args.first + i;
  const Logit *logits =
      static_cast<const Logit *>(args.logits) + i * args.stride;
  Gradient *gradient =
      args.gradient ? static_cast<Gradient *>(args.gradient) + i * args.stride
                    : nullptr;
  if (row < 0) { // the same for the whole block
    if (threadIndex() == 0)
      args.losses[i] = 0;
    if (gradient)
      for (int64_t at = threadIndex(); at < args.vocab; at += kHeadLossThreads)
        gradient[at] = Gradient(0);
    return;
  }
  const int64_t target = args.targets[row];
  if (target < 0 || target >= args.vocab) { // the same for the whole block
    if (threadIndex() != 0)
      return;
    args.bad->rows = args.vocab;
    args.bad->target =
        static_cast<uint64_t>(row) << 32 | static_cast<uint32_t>(target);
    args.bad->kind = BadRow::Target;
    fenceForHost();
    fail("a target id that the vocabulary does not have");
  }
  constexpr int size = Piece<Logit>::size;
  const int vocab = static_cast<int>(args.vocab);
  const int column = static_cast<int>(target);
  Softmax<T> mine;
  Row<T, Logit> pieces(logits, vocab, shared);
  pieces.forComing([&](int, const Values<T, size> &values, int count) {
    mine.add(values, count);
  });
  const T atTarget = widen(logits[column]);
  // After the barrier inside, no thread needs the logits of others any more.
  const Softmax<T> all = join(mine, shared);
  if (threadIndex() == 0)
    args.losses[i] = log2(all.sum) * kLn2 + (static_cast<double>(all.most) -
                                             static_cast<double>(atTarget));
  if (!gradient)
    return;
  const T factor = static_cast<T>(args.scale / all.sum);
  const T scale = static_cast<T>(args.scale);
  pieces.forPieces([&](int at, const Values<T, size> &values, int count) {
    Values<T, size> result;
#pragma unroll
    for (int e = 0; e < size; ++e) {
      const T value = exp2((values.of[e] - all.most) * T(kLog2E)) * factor;
      result.of[e] = at + e == column ? value - scale : value;
    }
    store(gradient + at, result, count);
  });
}

DYNA_GPU void sumLosses(const HeadSumArguments &args, HeadSumShared &shared) {
  double sum = 0;
  for (int64_t i = threadIndex(); i < args.count; i += kHeadSumThreads)
    sum += args.losses[i];
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    sum += shuffleXor(sum, mask);
  if (threadIndex() % 32 == 0)
    shared.sums[threadIndex() / 32] = sum;
  barrier();
  if (threadIndex() != 0)
    return;
  double all = args.isFirst ? 0 : *args.sum;
  for (int i = 0; i < kHeadSumThreads / 32; ++i)
    all += shared.sums[i];
  *args.sum = all;
}

//===----------------------------------------------------------------------===//
// A gradient of bf16
//===----------------------------------------------------------------------===//

union FloatBits {
  float value;
  uint32_t bits;
};

DYNA_GPU void addSplit(const HeadSplitArguments &args) {
  const int64_t begin =
      int64_t(blockIndex()) * kHeadSplitThreads * kHeadSplitElements +
      threadIndex();
#pragma unroll
  for (int i = 0; i < kHeadSplitElements; ++i) {
    const int64_t at = begin + i * kHeadSplitThreads;
    if (at >= args.elements)
      return;
    FloatBits sum;
    sum.bits = static_cast<uint32_t>(args.upper[at]) << 16;
    if (!args.isFirst)
      sum.bits |= args.lower[at];
    sum.value += args.source[at];
    if (args.isLast) {
      args.upper[at] = static_cast<uint16_t>(packBf16(sum.value, 0));
      continue;
    }
    args.upper[at] = static_cast<uint16_t>(sum.bits >> 16);
    args.lower[at] = static_cast<uint16_t>(sum.bits);
  }
}

} // namespace head
} // namespace gpu
} // namespace dyna

DYNA_KERNEL(head_list) { dyna::gpu::head::listRows(args, shared); }
DYNA_KERNEL(head_rows) { dyna::gpu::head::copyRows(args); }
DYNA_KERNEL(head_loss_f32) {
  dyna::gpu::head::computeLoss<float, float, float>(args, shared);
}
DYNA_KERNEL(head_loss_f64) {
  dyna::gpu::head::computeLoss<double, double, double>(args, shared);
}
DYNA_KERNEL(head_loss_bf16) {
  dyna::gpu::head::computeLoss<float, uint16_t, uint16_t>(args, shared);
}
DYNA_KERNEL(head_loss_wide) {
  dyna::gpu::head::computeLoss<float, float, uint16_t>(args, shared);
}
DYNA_KERNEL(head_sum) { dyna::gpu::head::sumLosses(args, shared); }
DYNA_KERNEL(head_split) { dyna::gpu::head::addSplit(args); }
