//===- SparseIndex.cpp - Builds the index of a sparse weight --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/SparseIndex.h"

#include <algorithm>
#include <array>

using namespace dyna;

namespace {

constexpr int64_t kTile = DYNA_SPARSE_TILE;

/// Survivors of each line of a tile.
using Counts = std::array<uint8_t, kTile>;

/// Lines of a tile: most survivors first, equal ones in their order.
std::array<uint8_t, kTile> orderOf(const Counts &counts) {
  std::array<int, kTile + 2> next = {};
  for (uint8_t count : counts)
    ++next[static_cast<size_t>(kTile - count + 1)];
  for (size_t i = 1; i < next.size(); ++i)
    next[i] += next[i - 1];
  std::array<uint8_t, kTile> order;
  for (size_t line = 0; line < counts.size(); ++line)
    order[static_cast<size_t>(
        next[static_cast<size_t>(kTile - counts[line])]++)] =
        static_cast<uint8_t>(line);
  return order;
}

/// Returns the first survivor of each line of a tile, as an index in the tile.
std::array<int, kTile> beginsOf(const uint8_t *lines, const uint8_t *counts) {
  std::array<int, kTile> begins = {};
  int at = 0;
  for (int64_t slot = 0; slot < kTile; at += counts[slot++])
    begins[lines[slot]] = at;
  return begins;
}

int64_t tilesOf(int64_t rows, int64_t columns) {
  return dyna_sparse_tiles(rows) * dyna_sparse_tiles(columns);
}

} // namespace

StatusOr<SparseIndex> SparseIndex::build(int64_t rows, int64_t columns,
                                         const uint8_t *mask) {
  if (rows < 1 || columns < 1 || !mask)
    return Status::invalidArgument(
        "the index of a sparse weight of " + std::to_string(rows) + " x " +
        std::to_string(columns) + (mask ? "" : " without a mask") +
        ": expected at least one row and column and a mask");
  SparseIndex index(rows, columns);
  index.buildByRow(mask);
  index.buildByColumn();
  return index;
}

void SparseIndex::buildByRow(const uint8_t *mask) {
  Side &side = byRow_;
  const size_t slots = static_cast<size_t>(tilesOf(rows_, columns_) * kTile);
  side.lines.reserve(slots);
  side.counts.reserve(slots);
  side.starts.push_back(0);
  for (int64_t column = 0; column < columns_; column += kTile)
    for (int64_t row = 0; row < rows_; row += kTile) {
      const int64_t width = std::min(kTile, columns_ - column);
      const uint8_t *corner = mask + row * columns_ + column;
      Counts counts = {};
      for (int64_t r = 0; r < std::min(kTile, rows_ - row); ++r)
        counts[static_cast<size_t>(r)] = static_cast<uint8_t>(
            width - std::count(corner + r * columns_,
                               corner + r * columns_ + width, uint8_t(0)));
      for (uint8_t line : orderOf(counts)) {
        side.lines.push_back(line);
        side.counts.push_back(counts[line]);
        if (counts[line] == 0)
          continue; // perhaps behind the last row
        for (int64_t c = 0; c < width; ++c)
          if (corner[line * columns_ + c])
            side.depths.push_back(static_cast<uint8_t>(c));
      }
      side.starts.push_back(static_cast<int64_t>(side.depths.size()));
    }
}

void SparseIndex::buildByColumn() {
  Side &side = byColumn_;
  const int64_t rowTiles = dyna_sparse_tiles(rows_);
  const int64_t columnTiles = dyna_sparse_tiles(columns_);
  side.lines.reserve(byRow_.lines.size());
  side.counts.reserve(byRow_.counts.size());
  side.depths.resize(byRow_.depths.size());
  side.places.resize(byRow_.depths.size());
  side.starts.push_back(0);
  for (int64_t r = 0; r < rowTiles; ++r)
    for (int64_t c = 0; c < columnTiles; ++c) {
      const int64_t other = c * rowTiles + r;
      const uint8_t *lines = &byRow_.lines[static_cast<size_t>(other * kTile)];
      const uint8_t *countsOfRows =
          &byRow_.counts[static_cast<size_t>(other * kTile)];
      const int64_t from = byRow_.starts[static_cast<size_t>(other)];
      const int64_t end = byRow_.starts[static_cast<size_t>(other) + 1];
      Counts counts = {};
      for (int64_t i = from; i < end; ++i)
        ++counts[byRow_.depths[static_cast<size_t>(i)]];
      for (uint8_t line : orderOf(counts)) {
        side.lines.push_back(line);
        side.counts.push_back(counts[line]);
      }
      auto next = beginsOf(&side.lines[side.lines.size() - kTile],
                           &side.counts[side.counts.size() - kTile]);
      const auto begins = beginsOf(lines, countsOfRows);
      std::array<uint8_t, kTile> ofRow = {};
      for (int64_t slot = 0; slot < kTile; ++slot)
        ofRow[lines[slot]] = countsOfRows[slot];
      const int64_t to = side.starts.back();
      for (size_t row = 0; row < ofRow.size(); ++row)
        for (int place = begins[row]; place < begins[row] + ofRow[row];
             ++place) {
          const uint8_t column =
              byRow_.depths[static_cast<size_t>(from + place)];
          const auto at = static_cast<size_t>(to + next[column]++);
          side.depths[at] = static_cast<uint8_t>(row);
          side.places[at] = static_cast<uint16_t>(place);
        }
      side.starts.push_back(to + end - from);
    }
}

int64_t SparseIndex::Side::bytes() const {
  return static_cast<int64_t>(starts.size() * sizeof(int64_t) + lines.size() +
                              counts.size() + depths.size() +
                              places.size() * sizeof(uint16_t));
}

dyna_sparse_side SparseIndex::Side::view() const {
  return {starts.data(), lines.data(), counts.data(), depths.data(),
          places.empty() ? nullptr : places.data()};
}

int64_t SparseIndex::bytes() const {
  return byRow_.bytes() + byColumn_.bytes();
}

dyna_sparse_weight SparseIndex::view() const {
  return {rows_, columns_, survivors(), byRow_.view(), byColumn_.view()};
}

std::vector<int64_t> SparseIndex::positions() const {
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(survivors()));
  const int64_t rowTiles = dyna_sparse_tiles(rows_);
  size_t at = 0;
  for (int64_t tile = 0; tile < tilesOf(rows_, columns_); ++tile) {
    const int64_t row = tile % rowTiles * kTile;
    const int64_t column = tile / rowTiles * kTile;
    for (size_t slot = static_cast<size_t>(tile * kTile);
         slot < static_cast<size_t>((tile + 1) * kTile); ++slot)
      for (int i = 0; i < byRow_.counts[slot]; ++i)
        result.push_back((row + byRow_.lines[slot]) * columns_ + column +
                         byRow_.depths[at++]);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

namespace {

/// One tile of a side, for checks.
struct TileToCheck {
  const dyna_sparse_side &side;
  const char *name;
  int64_t number;
  int64_t lines, depths; ///< of the tile
};

Status failTile(const TileToCheck &tile, const std::string &what) {
  return Status::invalidArgument("the index by " + std::string(tile.name) +
                                 ", tile " + std::to_string(tile.number) +
                                 ": " + what);
}

/// Checks lines, counts and depths of a tile, whose survivors are before the
/// end of the arrays.
Status checkTile(const TileToCheck &tile) {
  const dyna_sparse_side &side = tile.side;
  const int64_t begin = side.starts[tile.number];
  const int64_t end = side.starts[tile.number + 1];
  std::array<bool, kTile> seen = {};
  int64_t at = begin, last = kTile;
  for (int64_t slot = 0; slot < kTile; ++slot) {
    const int64_t line = side.lines[tile.number * kTile + slot];
    const int64_t count = side.counts[tile.number * kTile + slot];
    if (line >= kTile || seen[static_cast<size_t>(line)] ||
        (count > 0 && line >= tile.lines))
      return failTile(tile, "line " + std::to_string(line) +
                                " comes twice or lies outside of the weight");
    seen[static_cast<size_t>(line)] = true;
    if (count > last || at + count > end)
      return failTile(tile, "counts rise, or exceed the tile's " +
                                std::to_string(end - begin) + " survivors");
    last = count;
    for (int64_t i = 0; i < count; ++i, ++at)
      if (side.depths[at] >= tile.depths ||
          (i > 0 && side.depths[at] <= side.depths[at - 1]))
        return failTile(tile, "depths of line " + std::to_string(line) +
                                  " do not rise, or lie outside of the weight");
  }
  if (at != end)
    return failTile(tile, "lines have " + std::to_string(at - begin) +
                              " survivors, the tile has " +
                              std::to_string(end - begin));
  return Status::ok();
}

Status checkSide(const dyna_sparse_side &side, const char *name,
                 int64_t survivors, int64_t lines, int64_t depths) {
  const int64_t lineTiles = dyna_sparse_tiles(lines);
  const int64_t tiles = lineTiles * dyna_sparse_tiles(depths);
  for (int64_t t = 0; t < tiles; ++t)
    if (side.starts[t] > side.starts[t + 1])
      return failTile({side, name, t, 0, 0}, "ends before it starts");
  if (side.starts[0] != 0 || side.starts[tiles] != survivors)
    return Status::invalidArgument(
        "the index by " + std::string(name) + " goes from " +
        std::to_string(side.starts[0]) + " to " +
        std::to_string(side.starts[tiles]) + ": expected 0 to " +
        std::to_string(survivors) + " survivors");
  for (int64_t t = 0; t < tiles; ++t)
    DYNA_RETURN_IF_ERROR(checkTile(
        {side, name, t, std::min(kTile, lines - t % lineTiles * kTile),
         std::min(kTile, depths - t / lineTiles * kTile)}));
  return Status::ok();
}

/// Calls `body(line, depth, i)` for survivor number i of a tile.
template <typename Body>
void forSurvivors(const dyna_sparse_side &side, int64_t tile, Body body) {
  int64_t at = side.starts[tile];
  for (int64_t slot = tile * kTile; slot < (tile + 1) * kTile; ++slot)
    for (int64_t i = 0; i < side.counts[slot]; ++i, ++at)
      body(side.lines[slot], side.depths[at], at);
}

/// Fails if the index by columns gives a value another row or column than the index by
/// rows does.
Status checkPlaces(const dyna_sparse_weight &w) {
  const int64_t rowTiles = dyna_sparse_tiles(w.rows);
  const int64_t columnTiles = dyna_sparse_tiles(w.columns);
  std::vector<int> positions;
  for (int64_t t = 0; t < rowTiles * columnTiles; ++t) {
    const int64_t other = t % columnTiles * rowTiles + t / columnTiles;
    positions.clear();
    forSurvivors(w.by_row, other, [&](int row, int column, int64_t) {
      positions.push_back(row * static_cast<int>(kTile) + column);
    });
    const dyna_sparse_side &side = w.by_column;
    bool isSame = side.starts[t + 1] - side.starts[t] ==
                  static_cast<int64_t>(positions.size());
    forSurvivors(side, t, [&](int column, int row, int64_t at) {
      isSame =
          isSame && side.places[at] < positions.size() &&
          positions[side.places[at]] == row * static_cast<int>(kTile) + column;
    });
    if (!isSame)
      return failTile({side, "columns", t, 0, 0},
                      "its survivors are not those by rows");
  }
  return Status::ok();
}

} // namespace

Status dyna::checkSparseIndex(const dyna_sparse_weight &w) {
  if (w.rows < 1 || w.columns < 1)
    return Status::invalidArgument(
        "a sparse weight of " + std::to_string(w.rows) + " x " +
        std::to_string(w.columns) + ": expected at least one row and column");
  DYNA_RETURN_IF_ERROR(
      checkSide(w.by_row, "rows", w.survivors, w.rows, w.columns));
  DYNA_RETURN_IF_ERROR(
      checkSide(w.by_column, "columns", w.survivors, w.columns, w.rows));
  return checkPlaces(w);
}
