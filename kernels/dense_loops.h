#pragma once

// The inner loops of a dense layer, written once in dense_lanes.h's vectors; dense_{plain,avx2,avx512}.cpp include
// them. A product keeps a tile of sums in registers: kTileRows rows of a, each number of them broadcast, times up to
// kTileVectors vectors of b. Rows + vectors loads then feed rows * vectors multiply-adds. A processor makes two of each
// in a cycle, so the multiply-adds are the limit.
//
// No function of the standard library: a copy compiled for AVX could be linked elsewhere. No vector as an argument of a
// function that is not inline: g++ 12 leaves the upper halves of the registers in use when such a function ends, and
// all SSE code behind it is slow.
#include "kernels/dense_activation.h"
#include "kernels/dense_code.h"

namespace troupe::kernels {
namespace {

/// Rows [row, row + kRows) of p over kVectors vectors. kDenseRows: p.a_column is 1, otherwise p.a_row is. kWhole: the
/// last vector is whole.
template <int kRows, int kVectors, bool kDenseRows, bool kWhole>
void product_tile(const PanelProduct& p, std::int64_t row) {
  const Mask last = first_lanes(p.n - (kVectors - 1) * kLanes);
  constexpr int kPlain = kWhole ? kVectors : kVectors - 1;
  Floats sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      if (p.column_start != nullptr)
        sums[m][n] = n < kPlain ? load(p.column_start + n * kLanes) : load(p.column_start + n * kLanes, last);
      else
        sums[m][n] = all(p.row_start != nullptr ? p.row_start[row + m] : 0.0F);
    }
  }
  const std::int64_t a_row = kDenseRows ? p.a_row : 1, a_column = kDenseRows ? 1 : p.a_column;
  const float* a = p.a + row * a_row;
  const float* b = p.b;
  for (std::int64_t k = 0; k < p.k; ++k, a += a_column, b += p.b_row) {
    Floats vectors[kVectors];
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) vectors[n] = n < kPlain ? load(b + n * kLanes) : load(b + n * kLanes, last);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) {
      const Floats factor = all(a[m * a_row]);
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) sums[m][n] = fused(factor, vectors[n], sums[m][n]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m) {
    float* c = p.c + (row + m) * p.c_row;
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n, c += kLanes) {
      if (n < kPlain)
        store(c, p.add ? load(c) + sums[m][n] : sums[m][n]);
      else
        store(c, p.add ? load(c, last) + sums[m][n] : sums[m][n], last);
    }
  }
}

using Tile = void (*)(const PanelProduct& p, std::int64_t row);
/// Tiles of 1 to kTileRows[kVectors] rows.
template <int kVectors, bool kDenseRows, bool kWhole>
struct Tiles {
  Tile of_rows[kTileRows[kVectors]];
  constexpr Tiles() : of_rows{} { fill<kTileRows[kVectors]>(); }
  template <int kRows>
  constexpr void fill() {
    of_rows[kRows - 1] = product_tile<kRows, kVectors, kDenseRows, kWhole>;
    if constexpr (kRows > 1) fill<kRows - 1>();
  }
};

template <int kVectors, bool kDenseRows, bool kWhole>
void product_of_vectors(const PanelProduct& p) {
  static constexpr Tiles<kVectors, kDenseRows, kWhole> kTiles;
  constexpr int kMost = kTileRows[kVectors];
  // equal tiles: a short one at the end would not hide the latency of its sums
  const std::int64_t tiles = (p.m + kMost - 1) / kMost;
  for (std::int64_t t = 0, row = 0; t < tiles; ++t) {
    const std::int64_t end = p.m * (t + 1) / tiles;
    kTiles.of_rows[end - row - 1](p, row);
    row = end;
  }
}

template <int kVectors>
void product_in(const PanelProduct& p, std::int64_t vectors) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) return product_in<kVectors - 1>(p, vectors);
  }
  const bool is_whole = p.n == kVectors * kLanes;
  if (p.a_column == 1)
    return is_whole ? product_of_vectors<kVectors, true, true>(p) : product_of_vectors<kVectors, true, false>(p);
  is_whole ? product_of_vectors<kVectors, false, true>(p) : product_of_vectors<kVectors, false, false>(p);
}

void product(const PanelProduct& p) {
  if (p.n > 0) product_in<kTileVectors>(p, (p.n + kLanes - 1) / kLanes);
}

/// Four columns, or with kWhole false as many as `columns` says, of kLanes rows or of `rows`.
template <bool kWhole>
TROUPE_INLINE void transpose_tile(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_row,
                                  float* to, std::int64_t to_row) {
  const auto piece = [&](std::int64_t i) TROUPE_LAMBDA {
    if constexpr (kWhole) return load_four(from + i * from_row);
    return i < rows ? load_four(from + i * from_row, columns) : Four{};
  };
  // vectors are gathered from pieces in memory, which takes no shuffle; only the blocks of 4 x 4 are shuffled
  Floats vectors[4];
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4; ++i) vectors[i] = gather_rows(i, piece);
  transpose_quarters(vectors);
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < 4; ++j, to += to_row) {
    if constexpr (kWhole)
      store(to, vectors[j]);
    else if (j < columns)
      store(to, vectors[j], first_lanes(rows));
  }
}

void transpose(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_row, float* to,
               std::int64_t to_row) {
  for (std::int64_t i = 0; i < rows; i += kLanes) {
    const std::int64_t tile_rows = rows - i < kLanes ? rows - i : kLanes;
    const float* const source = from + i * from_row;
    std::int64_t j = 0;
    if (tile_rows == kLanes) {
      for (; j + 4 <= columns; j += 4)
        transpose_tile<true>(kLanes, 4, source + j, from_row, to + j * to_row + i, to_row);
    } else {
      for (; j + 4 <= columns; j += 4)
        transpose_tile<false>(tile_rows, 4, source + j, from_row, to + j * to_row + i, to_row);
    }
    if (j < columns) transpose_tile<false>(tile_rows, columns - j, source + j, from_row, to + j * to_row + i, to_row);
  }
}

/// Columns [column, end), which are kVectors vectors.
template <int kVectors>
void sum_vectors(std::int64_t rows, std::int64_t columns, const float* d, std::int64_t column, std::int64_t end,
                 float* sums) {
  const Mask last = first_lanes(end - column - (kVectors - 1) * kLanes);
  using Doubles = SimdVector<double, kLanes>;
  Doubles total[kVectors] = {};
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t block_end = rows - row < kDenseRowBlock ? rows : row + kDenseRowBlock;
    Floats sum[kVectors] = {};
    for (const float* from = d + row * columns + column; row < block_end; ++row, from += columns) {
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n)
        sum[n] = sum[n] + (n + 1 < kVectors ? load(from + n * kLanes) : load(from + n * kLanes, last));
    }
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) total[n] = total[n] + __builtin_convertvector(sum[n], Doubles);
  }
#pragma GCC unroll 4
  for (int n = 0; n < kVectors; ++n) {
    const Floats rounded = __builtin_convertvector(total[n], Floats);
    if (n + 1 < kVectors)
      store(sums + column + n * kLanes, rounded);
    else
      store(sums + column + n * kLanes, rounded, last);
  }
}

void sum_columns(std::int64_t rows, std::int64_t columns, const float* d, float* sums) {
  constexpr std::int64_t kStep = 4 * kLanes;
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) sum_vectors<4>(rows, columns, d, j, j + kStep, sums);
  for (; j < columns; j += kLanes)
    sum_vectors<1>(rows, columns, d, j, columns - j < kLanes ? columns : j + kLanes, sums);
}

constexpr DenseCode code_of(const char* name) {
  return {name, kLanes, kTileVectors, product, transpose, activate, multiply_slope, sum_columns};
}

}  // namespace
}  // namespace troupe::kernels
