#pragma once

#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/vectors.h"

namespace troupe::kernels::cuda {

// out[i] = round(f(in[i], ...)) over dense elements of any of our types, for the .cu files of this folder alone. A
// thread has one vector, 16 bytes of the widest type; threads behind the last whole vector have one element each. Where
// a pointer is not aligned all threads are of that kind. Enough threads are in flight without a loop.

/// Threads of a block.
inline constexpr int kMapThreads = 256;

template <int V, class F, class... Vectors>
__device__ inline Vector<V> mapped(const F& f, const Vectors&... in) {
  Vector<V> out;
#pragma unroll
  for (int e = 0; e < V; ++e) out.v[e] = f(in.v[e]...);
  return out;
}

template <int V, class F, class Out, class... In>
__global__ __launch_bounds__(kMapThreads) void map_elements(std::int64_t count, std::int64_t vectors, F f,
                                                            Out* __restrict__ out, const In* __restrict__... in) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kMapThreads + threadIdx.x;
  if (i < vectors) {
    store<V>(out + i * V, mapped<V>(f, load<V>(in + i * V)...));
    return;
  }
  const std::int64_t at = vectors * V + (i - vectors);
  if (at < count) store<1>(out + at, mapped<1>(f, load<1>(in + at)...));
}

/// Whole vectors of V that `count` elements have, and blocks for them and what is left over.
struct MapShape {
  std::int64_t vectors, blocks;

  MapShape(std::int64_t count, int v, bool aligned)
      : vectors(aligned ? count / v : 0), blocks(parts_of(vectors + (count - vectors * v), kMapThreads)) {}
};

/// f: a trivially copyable object that maps floats to a float on the device. out may not overlap what is read.
/// Enqueues one kernel, or nothing without elements.
template <class F, class Out, class... In>
cudaError_t launch_map(std::int64_t count, const F& f, cudaStream_t stream, Out* out, const In*... in) {
  constexpr int kV = kVectorOf<Out, In...>;
  if (count <= 0) return cudaSuccess;
  const MapShape shape(count, kV, are_aligned(out, in...));
  if (shape.blocks > kMaxBlocks) return cudaErrorInvalidValue;
  map_elements<kV>
      <<<static_cast<unsigned>(shape.blocks), kMapThreads, 0, stream>>>(count, shape.vectors, f, out, in...);
  return cudaGetLastError();
}

}  // namespace troupe::kernels::cuda
