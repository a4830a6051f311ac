//===- SparseKernels.cpp - Multiplies with survivors ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiled once per instruction set (see CMakeLists.txt), each time with its own flags
// and DYNA_ISA. runtime/abi/Sparse.h has the layout.
//
// A product keeps one line x 64 tokens in registers. Each survivor is one value,
// broadcast, times the activations of its depth: 4 multiply-adds with AVX-512, whose
// operands come from the first-level cache. Sparse Register Tiling (PLDI'23) describes
// the scheme for one panel. Here lines of equal counts follow each other.
//
// A gradient is the scalar product of two lines over the tokens (SparseProp, ICML'23, has
// it in one pass with the gradient of the input). Sums of 16 survivors stay vectors
// until one tree adds up the lanes of all 16.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/sparse/SparsePanels.h"
#include "runtime/device/host/sparse/SparseTable.h"

namespace dyna {
namespace DYNA_ISA {

constexpr int64_t kTile = DYNA_SPARSE_TILE;
/// Most vectors of a line of a panel: 64 tokens of f32, except with vectors of 16 bytes.
constexpr int kPanelVectors = kVectorBytes == 64 ? 4 : 8;
template <typename T>
constexpr int64_t kPanelTokens = kPanelVectors * kLanes<T>;

/// One tile of a side of the index.
struct Tile {
  const uint8_t *lines, *counts, *depths;
};

inline Tile tileOf(const dyna_sparse_side &side, int64_t number) {
  return {side.lines + number * kTile, side.counts + number * kTile,
          side.depths + side.starts[number]};
}

/// Loads four depths at once.
DYNA_INLINE uint32_t loadFour(const uint8_t *depths) {
  uint32_t four;
  __builtin_memcpy(&four, depths, 4);
  return four;
}

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds to Y[l] the sum of values times X[depth], for the lines of a tile. `x`
/// and `y` are panels with lines of V vectors.
template <typename T, int V>
void multiplyTile(const Tile &tile, const T *values, const T *x, T *y) {
  constexpr int w = kLanes<T>;
  constexpr int64_t stride = V * w;
  const uint8_t *depths = tile.depths;
  for (int64_t slot = 0; slot < kTile; ++slot) {
    const int64_t count = tile.counts[slot];
    if (count == 0)
      return;
    T *line = y + tile.lines[slot] * stride;
    Vec<T> sums[V];
    DYNA_UNROLL
    for (int v = 0; v < V; ++v)
      sums[v] = load(line + v * w);
    auto add = [&](int64_t depth, T value) __attribute__((always_inline)) {
      const T *from = x + depth * stride;
      const Vec<T> factor = splat(value);
      DYNA_UNROLL
      for (int v = 0; v < V; ++v)
        sums[v] += factor * load(from + v * w);
    };
    int64_t at = 0;
    for (; at + 4 <= count; at += 4) {
      const uint32_t four = loadFour(depths + at);
      DYNA_UNROLL
      for (int i = 0; i < 4; ++i)
        add(four >> (8 * i) & 255, values[at + i]);
    }
    for (; at < count; ++at)
      add(depths[at], values[at]);
    DYNA_UNROLL
    for (int v = 0; v < V; ++v)
      store(line + v * w, sums[v]);
    depths += count;
    values += count;
  }
}

template <typename E, int V>
void multiplyPanel(const dyna_sparse_product &p, const SparseProductTask &task,
                   typename E::Sum *scratch) {
  using Storage = typename E::Storage;
  using Sum = typename E::Sum;
  constexpr int64_t stride = V * kLanes<Sum>;
  const SparseShape shape = shapeOf(p);
  const auto *x = static_cast<const Storage *>(p.x) + task.firstToken * p.ldx;
  const auto *values = static_cast<const Sum *>(task.values);
  Sum *block = scratch;
  Sum *panel = block + kTile * stride;
  __builtin_memset(
      panel, 0, static_cast<size_t>(task.tiles * kTile * stride) * sizeof(Sum));
  for (int64_t d = 0; d < shape.depthTiles; ++d) {
    pack(x + d * kTile, p.ldx, task.tokens,
         least(kTile, shape.depths - d * kTile), block, stride);
    for (int64_t t = 0; t < task.tiles; ++t) {
      const int64_t number = d * shape.lineTiles + task.firstTile + t;
      multiplyTile<Sum, V>(tileOf(*shape.side, number),
                           values + shape.side->starts[number], block,
                           panel + t * kTile * stride);
    }
  }
  const int64_t first = task.firstTile * kTile;
  const int64_t width = least(shape.lines - first, task.tiles * kTile);
  auto *y = static_cast<Storage *>(p.y) + task.firstToken * p.ldy + first;
  if (p.accumulate)
    unpack<true>(panel, stride, task.tokens, width, y, p.ldy);
  else
    unpack<false>(panel, stride, task.tokens, width, y, p.ldy);
}

/// Calls `body` with a number of vectors that has room for the tokens.
template <typename T, typename Body>
DYNA_INLINE void withVectors(int64_t tokens, Body body) {
  if (tokens <= kLanes<T>)
    body(std::integral_constant<int, 1>());
  else if (tokens <= 2 * kLanes<T>)
    body(std::integral_constant<int, 2>());
  else if (kPanelVectors == 4 || tokens <= 4 * kLanes<T>)
    body(std::integral_constant<int, 4>());
  else
    body(std::integral_constant<int, kPanelVectors>());
}

template <typename E>
void sparseProduct(const dyna_sparse_product &p, const SparseProductTask &task,
                   void *scratch) {
  using Sum = typename E::Sum;
  auto *memory = static_cast<Sum *>(scratch);
  withVectors<Sum>(task.tokens, [&](auto vectors) {
    multiplyPanel<E, vectors.value>(p, task, memory);
  });
}

template <typename T> int64_t productScratch(int64_t tiles) {
  return (tiles + 1) * kTile * kPanelTokens<T> *
         static_cast<int64_t>(sizeof(T));
}

/// Values of one tile, as products take them.
template <typename E>
void orderValues(const dyna_sparse_product &p, int64_t number, void *ordered) {
  const SparseShape shape = shapeOf(p);
  const int64_t start = shape.side->starts[number];
  const int64_t count = shape.side->starts[number + 1] - start;
  const auto *values = static_cast<const typename E::Storage *>(p.values) +
                       valuesBefore(p, shape, number);
  auto *to = static_cast<typename E::Sum *>(ordered) + start;
  if (!p.by_column)
    return convertRow(values, to, count);
  const uint16_t *places = shape.side->places + start;
  for (int64_t i = 0; i < count; ++i)
    to[i] = widen(values[places[i]]);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Vectors of sums that wait for their lanes to be added up.
constexpr int64_t kWaiting = 64;

/// Sums of the lanes of `Count` vectors, in lanes; v is overwritten. Half of the vectors
/// are left after each round, with the lanes of two in turn.
template <typename T, int Count> DYNA_INLINE Vec<T> sumEach(Vec<T> *v) {
  constexpr int w = kLanes<T>;
  using Sequence = std::make_integer_sequence<int, w>;
  if constexpr (Count > 1) {
    DYNA_UNROLL
    for (int i = 0; i < Count / 2; ++i) {
      const Vec<T> a = v[i], b = v[i + Count / 2];
      v[i] = interleave<T, 0>(a, b, Sequence()) +
             interleave<T, 1>(a, b, Sequence());
    }
    return sumEach<T, Count / 2>(v);
  }
  return v[0];
}

/// Writes the sums of the lanes of `count` vectors, or adds them.
template <typename T>
void flush(const T *waiting, int64_t count, T *gradient, bool adds) {
  constexpr int w = kLanes<T>;
  for (int64_t at = 0; at < count; at += w) {
    Vec<T> v[w];
    DYNA_UNROLL
    for (int i = 0; i < w; ++i)
      v[i] = load(waiting + (at + i) * w);
    Vec<T> sums = sumEach<T, w>(v);
    if (at + w <= count) {
      store(gradient + at, adds ? load(gradient + at) + sums : sums);
      continue;
    }
    for (int64_t i = at; i < count; ++i)
      gradient[i] = adds ? gradient[i] + sums[i - at] : sums[i - at];
  }
}

/// Computes the gradients of one tile. `x` and `dy` are panels with lines of V
/// vectors.
template <typename T, int V>
void gradientTile(const Tile &tile, const T *x, const T *dy, T *waiting,
                  T *gradient, bool adds) {
  constexpr int w = kLanes<T>;
  constexpr int64_t stride = V * w;
  const uint8_t *depths = tile.depths;
  int64_t filled = 0;
  for (int64_t slot = 0; slot < kTile; ++slot) {
    const int64_t count = tile.counts[slot];
    if (count == 0)
      break;
    const T *line = dy + tile.lines[slot] * stride;
    Vec<T> factors[V];
    DYNA_UNROLL
    for (int v = 0; v < V; ++v)
      factors[v] = load(line + v * w);
    T *to = waiting + filled * w;
    auto add = [&](int64_t depth, int64_t at) __attribute__((always_inline)) {
      const T *from = x + depth * stride;
      Vec<T> sum = factors[0] * load(from);
      DYNA_UNROLL
      for (int v = 1; v < V; ++v)
        sum += factors[v] * load(from + v * w);
      store(to + at * w, sum);
    };
    int64_t at = 0;
    for (; at + 4 <= count; at += 4) {
      const uint32_t four = loadFour(depths + at);
      DYNA_UNROLL
      for (int i = 0; i < 4; ++i)
        add(four >> (8 * i) & 255, at + i);
    }
    for (; at < count; ++at)
      add(depths[at], at);
    depths += count;
    filled += count;
    if (filled < kWaiting)
      continue;
    flush(waiting, filled, gradient, adds);
    gradient += filled;
    filled = 0;
  }
  flush(waiting, filled, gradient, adds);
}

template <typename E, int V>
void gradientPanel(const dyna_sparse_gradient &p,
                   const SparseGradientTask &task, int64_t firstToken,
                   int64_t tokens, typename E::Sum *scratch) {
  using Storage = typename E::Storage;
  using Sum = typename E::Sum;
  constexpr int64_t stride = V * kLanes<Sum>;
  const dyna_sparse_weight &w = *p.weight;
  const int64_t rowTiles = dyna_sparse_tiles(w.rows);
  const auto *x = static_cast<const Storage *>(p.x) + firstToken * p.ldx;
  const auto *dy = static_cast<const Storage *>(p.dy) + firstToken * p.lddy;
  Sum *waiting = scratch;
  Sum *block = waiting + (kWaiting + kTile) * kLanes<Sum>;
  Sum *panel = block + kTile * stride;
  const int64_t firstRow = task.rowTile * kTile;
  const int64_t rows = least(w.rows - firstRow, task.rowTiles * kTile);
  pack(dy + firstRow, p.lddy, tokens, rows, panel, stride);
  for (int64_t c = task.columnTile; c < task.columnTile + task.columnTiles;
       ++c) {
    pack(x + c * kTile, p.ldx, tokens, least(kTile, w.columns - c * kTile),
         block, stride);
    for (int64_t r = 0; r < task.rowTiles; ++r) {
      const int64_t number = c * rowTiles + task.rowTile + r;
      gradientTile<Sum, V>(
          tileOf(w.by_row, number), block, panel + r * kTile * stride, waiting,
          static_cast<Sum *>(p.gradient) + w.by_row.starts[number],
          p.accumulate || firstToken > 0);
    }
  }
}

template <typename E>
void sparseGradient(const dyna_sparse_gradient &p,
                    const SparseGradientTask &task, void *scratch) {
  using Sum = typename E::Sum;
  auto *memory = static_cast<Sum *>(scratch);
  // Lanes of vectors that no survivor filled are added up too, and dropped.
  __builtin_memset(memory, 0,
                   static_cast<size_t>(kWaiting + kTile) * kVectorBytes);
  constexpr int64_t most = kPanelTokens<Sum>;
  for (int64_t first = 0; first < p.tokens; first += most) {
    const int64_t tokens = least(most, p.tokens - first);
    withVectors<Sum>(tokens, [&](auto vectors) {
      gradientPanel<E, vectors.value>(p, task, first, tokens, memory);
    });
  }
}

template <typename T> int64_t gradientScratch(int64_t rowTiles) {
  return (kWaiting + kTile) * kVectorBytes +
         (rowTiles + 1) * kTile * kPanelTokens<T> *
             static_cast<int64_t>(sizeof(T));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

template <typename E>
constexpr TypedSparseKernels typedSparseKernels() noexcept {
  using Sum = typename E::Sum;
  return {kPanelTokens<Sum>, productScratch<Sum>, gradientScratch<Sum>,
          orderValues<E>,    sparseProduct<E>,    sparseGradient<E>};
}

extern const SparseTable sparseTable;
const SparseTable sparseTable = {typedSparseKernels<F32>(),
                                 typedSparseKernels<F64>(),
                                 typedSparseKernels<Bf16>()};

} // namespace DYNA_ISA
} // namespace dyna
