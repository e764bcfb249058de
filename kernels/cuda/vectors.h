#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/device_runs.h"
#include "kernels/element.h"

namespace troupe::kernels::cuda {

// Vectors of a thread, for the .cu files of this folder alone: read as float or bf16, computed in f32, rounded once
// when they are written.

/// V neighbouring elements of a row, in f32 registers.
template <int V>
struct Vector {
  float v[V];
};

/// Exactly: a bf16 is the upper half of an f32.
__device__ inline float widened(std::uint16_t bf16_bits) {
  return __uint_as_float(static_cast<unsigned>(bf16_bits) << 16);
}
/// Rounded to nearest, ties to even.
__device__ inline std::uint16_t bf16_bits(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }

/// x as it would read back after a store as T.
template <class T>
__device__ inline float rounded(float x) {
  if constexpr (sizeof(T) == 2) return widened(bf16_bits(x));
  return x;
}

/// Whether the kernel that reads also writes there. What it does not write is read through the read-only path.
enum class Access { read_only, also_written };

template <Access kAccess = Access::read_only, class A>
__device__ inline A read(const A* at) {
  if constexpr (kAccess == Access::read_only)
    return __ldg(at);
  else
    return *at;
}

template <Access kAccess = Access::read_only>
__device__ inline float load_element(const float* at) {
  return read<kAccess>(at);
}
template <Access kAccess = Access::read_only>
__device__ inline float load_element(const simd::Bf16* at) {
  return widened(read<kAccess>(reinterpret_cast<const std::uint16_t*>(at)));
}
__device__ inline void store_element(float* at, float x) { *at = x; }
__device__ inline void store_element(simd::Bf16* at, float x) { at->bits = bf16_bits(x); }

/// 4 W bytes as they lie in memory.
template <int W>
struct Words {
  unsigned w[W];
};

/// Reads of at most 16 bytes; `at` is a multiple of what one reads.
template <int W, Access kAccess = Access::read_only>
__device__ inline Words<W> load_words(const void* at) {
  static_assert(W == 1 || W == 2 || W % 4 == 0);
  Words<W> to;
  if constexpr (W == 1) {
    to.w[0] = read<kAccess>(static_cast<const unsigned*>(at));
  } else if constexpr (W == 2) {
    const uint2 two = read<kAccess>(static_cast<const uint2*>(at));
    to.w[0] = two.x, to.w[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < W; i += 4) {
      const uint4 four = read<kAccess>(static_cast<const uint4*>(at) + i / 4);
      to.w[i] = four.x, to.w[i + 1] = four.y, to.w[i + 2] = four.z, to.w[i + 3] = four.w;
    }
  }
  return to;
}

template <int W>
__device__ inline void store_words(void* at, const Words<W>& from) {
  static_assert(W == 1 || W == 2 || W % 4 == 0);
  if constexpr (W == 1) {
    *static_cast<unsigned*>(at) = from.w[0];
  } else if constexpr (W == 2) {
    *static_cast<uint2*>(at) = make_uint2(from.w[0], from.w[1]);
  } else {
#pragma unroll
    for (int i = 0; i < W; i += 4)
      static_cast<uint4*>(at)[i / 4] = make_uint4(from.w[i], from.w[i + 1], from.w[i + 2], from.w[i + 3]);
  }
}

/// Words of V elements of T.
template <class T, int V>
inline constexpr int kWords = V* static_cast<int>(sizeof(T)) / 4;

template <class T, int V>
__device__ inline Vector<V> unpacked(const Words<kWords<T, V>>& words) {
  Vector<V> to;
#pragma unroll
  for (int i = 0; i < kWords<T, V>; ++i) {
    if constexpr (sizeof(T) == 2) {
      to.v[2 * i] = __uint_as_float(words.w[i] << 16);
      to.v[2 * i + 1] = __uint_as_float(words.w[i] & 0xFFFF0000U);
    } else {
      to.v[i] = __uint_as_float(words.w[i]);
    }
  }
  return to;
}

template <class T, int V>
__device__ inline Words<kWords<T, V>> packed(const Vector<V>& from) {
  Words<kWords<T, V>> to;
#pragma unroll
  for (int i = 0; i < kWords<T, V>; ++i) {
    if constexpr (sizeof(T) == 2) {
      const __nv_bfloat162 two = __floats2bfloat162_rn(from.v[2 * i], from.v[2 * i + 1]);
      to.w[i] = *reinterpret_cast<const unsigned*>(&two);
    } else {
      to.w[i] = __float_as_uint(from.v[i]);
    }
  }
  return to;
}

/// V elements from `at`, which is a multiple of their bytes or of 16.
template <int V, Access kAccess = Access::read_only, class T>
__device__ inline Vector<V> load(const T* at) {
  if constexpr (V == 1)
    return {load_element<kAccess>(at)};
  else
    return unpacked<T, V>(load_words<kWords<T, V>, kAccess>(at));
}
template <int V, class T>
__device__ inline void store(T* at, const Vector<V>& from) {
  if constexpr (V == 1)
    store_element(at, from.v[0]);
  else
    store_words<kWords<T, V>>(at, packed<T, V>(from));
}

/// The sum over a warp, the same bits in all of its threads: a tree in which each pair adds the same two numbers.
template <class A>
__device__ inline A warp_sum(A x) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) x += __shfl_xor_sync(0xFFFFFFFFU, x, mask);
  return x;
}

/// Writes a thread's V sums of columns [column, column + V) to a row of `channels`, a multiple of V; what lies beyond
/// the end is dropped. All threads of the warp take part, neighbours with neighbouring vectors.
template <int V>
__device__ inline void store_sums(float* row, int column, int channels, const Vector<V>& sums) {
  if constexpr (V == 8) {
    // 32 bytes a thread: two neighbours swap halves, so that each store of the pair fills a whole sector
    const bool odd = threadIdx.x % 2 != 0;
    Vector<4> kept, got;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      kept.v[e] = odd ? sums.v[4 + e] : sums.v[e];
      got.v[e] = __shfl_xor_sync(0xFFFFFFFFU, odd ? sums.v[e] : sums.v[4 + e], 1);
    }
    Vector<4> low, high;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      low.v[e] = odd ? got.v[e] : kept.v[e];
      high.v[e] = odd ? kept.v[e] : got.v[e];
    }
    // even: the first half of its own vector, then of its neighbour's; odd: the second halves
    const int first = odd ? column - 4 : column, second = first + 8;
    if (first < channels) store<4>(row + first, low);
    if (second < channels) store<4>(row + second, high);
  } else {
    if (column < channels) store<V>(row + column, sums);
  }
}

/// A run of device memory, read at once.
__device__ inline RowRun load_run(const DeviceRun* at) {
  const int4 words = __ldg(reinterpret_cast<const int4*>(at));
  const std::int64_t begin =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(static_cast<unsigned>(words.y)) << 32) |
      static_cast<unsigned>(words.x);
  return {begin, begin + words.z, words.w};
}

}  // namespace troupe::kernels::cuda
