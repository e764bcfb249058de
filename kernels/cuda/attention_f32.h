#pragma once

#include "kernels/cuda/attention_tile.h"

// Device code of the attention kernels in f32; for .cu files alone. Four threads share a row: each holds every fourth
// piece of 16 bytes, so that the four read 64 bytes side by side.

namespace troupe::kernels::cuda {

/// Rows of the other side in shared memory at a time.
inline constexpr int kFloatRows = 32;

template <int kDim>
struct alignas(16) FloatTile {
  static constexpr int kPieces = kDim / 4;
  float4 pieces[kFloatRows * kPieces];
};

/// As for BfTile.
template <int kDim, class RowOf>
__device__ void fill_tile(FloatTile<kDim>& tile, const RowOf& row_of) {
  constexpr int kPieces = FloatTile<kDim>::kPieces;
  for (int i = static_cast<int>(threadIdx.x); i < kFloatRows * kPieces; i += static_cast<int>(blockDim.x)) {
    const auto* from = reinterpret_cast<const float4*>(row_of(i / kPieces));
    tile.pieces[i] = from == nullptr ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : __ldg(from + i % kPieces);
  }
}

/// A thread's part of a row of kDim values.
template <int kDim>
struct RowPart {
  static constexpr int kPieces = kDim / 16;
  float4 pieces[kPieces] = {};

  /// Zeros where `row` is null.
  __device__ void load(const float* row, int part) {
    if (row == nullptr) return;
#pragma unroll
    for (int c = 0; c < kPieces; ++c) pieces[c] = __ldg(reinterpret_cast<const float4*>(row) + 4 * c + part);
  }
  __device__ void store(float* row, int part) const {
#pragma unroll
    for (int c = 0; c < kPieces; ++c) reinterpret_cast<float4*>(row)[4 * c + part] = pieces[c];
  }
  /// This part of the product with a row of the tile.
  __device__ float dot(const FloatTile<kDim>& tile, int row, int part) const {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kPieces; ++c) {
      const float4 other = tile.pieces[row * FloatTile<kDim>::kPieces + 4 * c + part];
      sum += pieces[c].x * other.x + pieces[c].y * other.y + pieces[c].z * other.z + pieces[c].w * other.w;
    }
    return sum;
  }
  /// Adds `factor` times a row of the tile.
  __device__ void add(float factor, const FloatTile<kDim>& tile, int row, int part) {
#pragma unroll
    for (int c = 0; c < kPieces; ++c) {
      const float4 other = tile.pieces[row * FloatTile<kDim>::kPieces + 4 * c + part];
      pieces[c].x += factor * other.x;
      pieces[c].y += factor * other.y;
      pieces[c].z += factor * other.z;
      pieces[c].w += factor * other.w;
    }
  }
  __device__ void scale(float factor) {
#pragma unroll
    for (int c = 0; c < kPieces; ++c) {
      pieces[c].x *= factor;
      pieces[c].y *= factor;
      pieces[c].z *= factor;
      pieces[c].w *= factor;
    }
  }
};

}  // namespace troupe::kernels::cuda
