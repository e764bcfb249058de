// The clipped objective. A warp an entry, of some 7 to 200 numbers. A few thousand numbers a step: bound by latency.
#include "kernels/cuda/clipped_ratio.h"
#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/vectors.h"
#include "kernels/cuda/weighted_sum.h"

namespace troupe::kernels::cuda {

namespace {

constexpr int kWarps = 8;

/// RatioClip in f32.
struct Cuts {
  float log_min, log_max, lower, upper, dual;
};

/// RatioShape as a kernel counts.
struct Sizes {
  std::int64_t entries;
  int of_row, per_entry, width;
  std::int64_t channels, block;
};

struct Judged {
  float loss, slope;
};

/// As the host form.
__device__ Judged judge(const Cuts& cuts, float base, float half, float advantage, float weight) {
  if (weight == 0.0F) return {0.0F, 0.0F};
  const float free_log = base - half;
  const float log_ratio = free_log < cuts.log_min ? cuts.log_min : free_log > cuts.log_max ? cuts.log_max : free_log;
  const float ratio = expf(log_ratio);
  const float clipped = ratio < cuts.lower ? cuts.lower : ratio > cuts.upper ? cuts.upper : ratio;
  const float of_ratio = -advantage * ratio, of_clipped = -advantage * clipped;
  Judged judged{of_ratio, of_ratio};
  if (of_ratio < of_clipped) judged = {of_clipped, 0.0F};
  const float bound = cuts.dual * fabsf(advantage);
  if (cuts.dual > 0.0F && bound < judged.loss) judged = {bound, 0.0F};
  if (free_log < cuts.log_min || free_log > cuts.log_max) judged.slope = 0.0F;
  return {weight * judged.loss, weight * judged.slope};
}

/// An entry and what its warp knows of it.
struct Entry {
  std::int64_t number, at;
  Judged judged;
};

/// Of a number: its place among its row's predictions.
__device__ std::int64_t place_of(const Sizes& sizes, int i) {
  return i / sizes.width * sizes.channels + i % sizes.width;
}

__device__ float z_of(float scale, float offset, float v) { return scale == 0.0F ? 0.0F : offset + scale * v; }

/// `entry` is the same for a warp.
template <class T>
__device__ Entry read_entry(const Sizes& sizes, const Cuts& cuts, std::int64_t entry, const T* v,
                            const RatioTerms<float>& terms) {
  const std::int64_t row = entry / sizes.of_row;
  const int first = static_cast<int>(entry % sizes.of_row) * sizes.per_entry;
  Entry found{row * sizes.of_row * sizes.per_entry + first, __ldg(terms.block + row) * sizes.block, {}};
  float sum = 0.0F;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < sizes.per_entry; i += kWarp) {
    const float z = z_of(__ldg(terms.scale + found.number + i), __ldg(terms.offset + found.number + i),
                         load_element(v + found.at + place_of(sizes, first + i)));
    sum += z * z;
  }
  found.judged = judge(cuts, __ldg(terms.base + entry), warp_sum(sum) / 2.0F, __ldg(terms.advantage + entry),
                       __ldg(terms.weight + entry));
  return found;
}

__device__ std::int64_t warp_entry() {
  return std::int64_t{blockIdx.x} * kWarps + static_cast<int>(threadIdx.x) / kWarp;
}

template <class T>
__global__ __launch_bounds__(kWarps* kWarp) void clipped_ratio_entries(Sizes sizes, Cuts cuts, const T* __restrict__ v,
                                                                       RatioTerms<float> terms,
                                                                       float* __restrict__ losses) {
  const std::int64_t entry = warp_entry();
  if (entry >= sizes.entries) return;  // the same for a warp
  const Entry found = read_entry(sizes, cuts, entry, v, terms);
  if (threadIdx.x % kWarp == 0) losses[entry] = found.judged.loss;
}

template <class T>
__global__ __launch_bounds__(kWarps* kWarp) void clipped_ratio_gradient(Sizes sizes, Cuts cuts, const T* __restrict__ v,
                                                                        RatioTerms<float> terms,
                                                                        const float* __restrict__ dloss,
                                                                        T* __restrict__ dv) {
  const std::int64_t entry = warp_entry();
  if (entry >= sizes.entries) return;
  const Entry found = read_entry(sizes, cuts, entry, v, terms);
  if (found.judged.slope == 0.0F) return;
  const float down = -(__ldg(dloss) * found.judged.slope);
  const int first = static_cast<int>(entry % sizes.of_row) * sizes.per_entry;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < sizes.per_entry; i += kWarp) {
    const std::int64_t at = found.at + place_of(sizes, first + i);
    const float scale = __ldg(terms.scale + found.number + i);
    store_element(dv + at, down * z_of(scale, __ldg(terms.offset + found.number + i), load_element(v + at)) * scale);
  }
}

unsigned blocks_of(const RatioShape& shape) { return static_cast<unsigned>(parts_of(shape.entries(), kWarps)); }

bool is_valid(const RatioShape& shape) { return parts_of(shape.entries(), kWarps) <= kMaxBlocks; }

Sizes sizes_of(const RatioShape& shape) {
  return {shape.entries(),
          static_cast<int>(shape.numbers / shape.per_entry),
          static_cast<int>(shape.per_entry),
          static_cast<int>(shape.width),
          shape.channels,
          shape.actions * shape.channels};
}

Cuts cuts_of(const RatioClip& clip) {
  return {static_cast<float>(clip.log_min), static_cast<float>(clip.log_max), static_cast<float>(clip.lower),
          static_cast<float>(clip.upper), static_cast<float>(clip.dual)};
}

}  // namespace

template <class T>
cudaError_t launch_clipped_ratio_forward(const RatioShape& shape, const RatioClip& clip, const T* v,
                                         const RatioTerms<float>& terms, float* losses, float* loss,
                                         cudaStream_t stream) {
  if (!is_valid(shape)) return cudaErrorInvalidValue;
  if (shape.rows > 0) {
    clipped_ratio_entries<<<blocks_of(shape), kWarps * kWarp, 0, stream>>>(sizes_of(shape), cuts_of(clip), v, terms,
                                                                           losses);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return launch_total(shape.rows > 0 ? shape.entries() : 0, losses, loss, stream);
}

template <class T>
cudaError_t launch_clipped_ratio_backward(const RatioShape& shape, const RatioClip& clip, const T* v,
                                          const RatioTerms<float>& terms, const float* dloss, T* dv,
                                          cudaStream_t stream) {
  if (!is_valid(shape)) return cudaErrorInvalidValue;
  const auto bytes = static_cast<std::size_t>(shape.predictions()) * sizeof(T);
  if (bytes > 0) {
    if (const auto error = cudaMemsetAsync(dv, 0, bytes, stream); error != cudaSuccess) return error;
  }
  if (shape.rows <= 0) return cudaSuccess;
  clipped_ratio_gradient<<<blocks_of(shape), kWarps * kWarp, 0, stream>>>(sizes_of(shape), cuts_of(clip), v, terms,
                                                                          dloss, dv);
  return cudaGetLastError();
}

#define TROUPE_CLIPPED_RATIO(T)                                                                                 \
  template cudaError_t launch_clipped_ratio_forward<T>(const RatioShape&, const RatioClip&, const T*,           \
                                                       const RatioTerms<float>&, float*, float*, cudaStream_t); \
  template cudaError_t launch_clipped_ratio_backward<T>(const RatioShape&, const RatioClip&, const T*,          \
                                                        const RatioTerms<float>&, const float*, T*, cudaStream_t);
TROUPE_CLIPPED_RATIO(float)
TROUPE_CLIPPED_RATIO(simd::Bf16)
#undef TROUPE_CLIPPED_RATIO

}  // namespace troupe::kernels::cuda
