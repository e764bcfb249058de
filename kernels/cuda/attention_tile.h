#pragma once

#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/launch_shape.h"

// Device code that the attention kernels share; for .cu files alone. Tiles of bf16 rows in shared memory, and the
// products of 16 x 16 by 16 x 8 on them. Source: PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16", "ldmatrix".

namespace troupe::kernels::cuda {

inline constexpr unsigned kWarpMask = 0xFFFFFFFFu;
inline constexpr float kLog2E = 1.4426950408889634f;

/// Place of a query's number in [samples, heads, queries].
__device__ inline std::int64_t place_of(const AttentionSizes& sizes, int sample, int head, int query) {
  return (static_cast<std::int64_t>(sample) * sizes.heads + head) * sizes.queries + query;
}

/// One head of the rows of one sample.
template <class T>
struct HeadRows {
  T* first;
  std::int64_t stride;

  __device__ T* operator[](int row) const { return first + row * stride; }
};
template <class T>
__device__ HeadRows<T> head_of(const AttentionRows<T>& rows, int rows_of_sample, int sample, int head, int head_dim) {
  return {rows.data + static_cast<std::int64_t>(sample) * rows_of_sample * rows.stride + head * head_dim, rows.stride};
}

/// The rows of the other side that a tile meets, one behind the other, numbered from 0.
struct MetRows {
  const AttentionRange* ranges;
  int num_ranges;
  /// Of all.
  int count;
  /// Without ranges: the first of `count` rows in order.
  int first;
  /// Added to the logit of the last one: the log of how many equal keys it stands for.
  float last_bias;

  /// Row of the sample, i < count.
  __device__ int row(int i) const {
    if (num_ranges == 0) return first + i;
    int range = 0;
    while (i >= ranges[range].end - ranges[range].begin) {
      i -= ranges[range].end - ranges[range].begin;
      ++range;
    }
    return ranges[range].begin + i;
  }
};

/// The queries that a tile of keys meets, or the keys that a tile of queries meets where samples have their own.
__device__ inline MetRows rows_met(const AttentionTile& tile, const AttentionRange* ranges) {
  MetRows met{ranges + tile.first_range, tile.ranges, 0, 0, 0.0f};
  for (int i = 0; i < tile.ranges; ++i) met.count += met.ranges[i].end - met.ranges[i].begin;
  return met;
}

/// The keys that a tile of queries of a sample meets.
__device__ inline MetRows keys_met(const AttentionTile& tile, const AttentionRange* ranges, const AttentionSizes& sizes,
                                   int sample) {
  if (sizes.key_rows == nullptr) return rows_met(tile, ranges);
  const std::int64_t* rows = sizes.key_rows + 3 * sample;
  const int begin = static_cast<int>(rows[0]), end = static_cast<int>(rows[1]);
  return {nullptr, 0, end - begin, begin, logf(static_cast<float>(rows[2]))};
}

/// kRows rows of kDim bf16 in shared memory. Pieces of 16 bytes are exchanged within a row by the row's number, so that
/// the eight rows of a matrix lie in eight different groups of banks.
template <int kRows, int kDim>
struct alignas(16) BfTile {
  static constexpr int kPieces = kDim / 8;
  uint4 pieces[kRows * kPieces];

  __device__ static int place(int row, int piece) {
    // eight pieces fill all banks once: 8 / kFilled rows lie side by side in them
    constexpr int kFilled = kPieces < 8 ? kPieces : 8;
    return row * kPieces + (piece ^ (row * kFilled / 8 & (kFilled - 1)));
  }
  /// Address for ldmatrix of the row that holds elements [8 * piece, 8 * piece + 8).
  __device__ unsigned address(int row, int piece) const {
    return static_cast<unsigned>(__cvta_generic_to_shared(pieces + place(row, piece)));
  }
};

/// Fills a tile: row i from the address that `row_of(i)` gives, or zeros where that is null. All threads of the block;
/// a barrier must come before the first use.
template <int kRows, int kDim, class RowOf>
__device__ void fill_tile(BfTile<kRows, kDim>& tile, const RowOf& row_of) {
  constexpr int kPieces = BfTile<kRows, kDim>::kPieces;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += static_cast<int>(blockDim.x)) {
    const int row = i / kPieces, piece = i % kPieces;
    const auto* from = reinterpret_cast<const uint4*>(row_of(row));
    tile.pieces[tile.place(row, piece)] = from == nullptr ? make_uint4(0, 0, 0, 0) : __ldg(from + piece);
  }
}
/// With the rows of an AttentionTile, in order.
template <class Tile, class T>
__device__ void fill_own(Tile& tile, const HeadRows<T>& rows, const AttentionTile& own) {
  fill_tile(tile, [&](int i) { return own.begin + i < own.end ? rows[own.begin + i] : nullptr; });
}
/// With the rows from the `first` of those that are met.
template <class Tile, class T>
__device__ void fill_met(Tile& tile, const HeadRows<T>& rows, const MetRows& met, int first) {
  fill_tile(tile, [&](int i) { return first + i < met.count ? rows[met.row(first + i)] : nullptr; });
}

/// Four 8 x 8 matrices; lane l names the row l % 8 of matrix l / 8.
__device__ inline void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// sum += a b: a [16, 16], b [16, 8], sum [16, 8] in f32.
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two f32 rounded to bf16, the first in the lower half.
__device__ inline unsigned pack(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// The left operand: rows [row, row + 16) of a tile, elements [16 * step, 16 * step + 16).
template <int kRows, int kDim>
__device__ void load_left(unsigned (&a)[4], const BfTile<kRows, kDim>& tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices(a, tile.address(row + lane % 16, 2 * step + lane / 16));
}

/// The right operand as rows of a tile, transposed: b[e][n] = tile[row + n][16 * step + e], n < 16: two operands of
/// eight columns, {b[0], b[1]} and {b[2], b[3]}.
template <int kRows, int kDim>
__device__ void load_right_rows(unsigned (&b)[4], const BfTile<kRows, kDim>& tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices(b, tile.address(row + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2));
}

/// The right operand as it lies: b[e][n] = tile[row + e][16 * columns + n], n < 16: two operands of eight columns.
template <int kRows, int kDim>
__device__ void load_right(unsigned (&b)[4], const BfTile<kRows, kDim>& tile, int row, int columns) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_transposed(b, tile.address(row + lane % 16, 2 * columns + lane / 16));
}

/// to [16, kOthers] += rows [row, row + 16) of the one tile times the rows of the other.
template <int kRows, int kOthers, int kDim>
__device__ void multiply_rows(float (&to)[kOthers / 8][4], const BfTile<kRows, kDim>& rows, int row,
                              const BfTile<kOthers, kDim>& others) {
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    unsigned a[4], b[4];
    load_left(a, rows, row, step);
#pragma unroll
    for (int n = 0; n < kOthers / 16; ++n) {
      load_right_rows(b, others, 16 * n, step);
      multiply_add(to[2 * n], a, b[0], b[1]);
      multiply_add(to[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// to [16, kDim] += from [16, kOthers], rounded to bf16, times the rows of the tile.
template <int kOthers, int kDim>
__device__ void add_product(float (&to)[kDim / 8][4], const float (&from)[kOthers / 8][4],
                            const BfTile<kOthers, kDim>& tile) {
#pragma unroll
  for (int step = 0; step < kOthers / 16; ++step) {
    const unsigned a[4] = {pack(from[2 * step][0], from[2 * step][1]), pack(from[2 * step][2], from[2 * step][3]),
                           pack(from[2 * step + 1][0], from[2 * step + 1][1]),
                           pack(from[2 * step + 1][2], from[2 * step + 1][3])};
    unsigned b[4];
#pragma unroll
    for (int n = 0; n < kDim / 16; ++n) {
      load_right(b, tile, 16 * step, n);
      multiply_add(to[2 * n], a, b[0], b[1]);
      multiply_add(to[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// Sum, or largest, of the four lanes that share a row of a product.
__device__ inline float quad_sum(float value) {
  value += __shfl_xor_sync(kWarpMask, value, 1);
  return value + __shfl_xor_sync(kWarpMask, value, 2);
}
__device__ inline float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWarpMask, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWarpMask, value, 2));
}

}  // namespace troupe::kernels::cuda
