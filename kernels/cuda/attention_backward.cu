// Attention backward in three kernels. First delta[query] = sum(dout * out); then the gradient of q, a block for 64
// queries that goes through their keys; then those of k and v, a block for 64 keys that goes through the queries that
// see them. Probabilities are recomputed from the logits and the forward's log of sums. Scores are thus computed twice:
// 7 products of queries * keys * head size in place of 5, and no sum crosses blocks, so that there are no atomics and
// one order. bf16: four warps of 16 rows each, mma.sync, the other side in tiles of 32; f32: four threads a row, fused
// multiply-adds.
#include "kernels/cuda/attention_f32.h"
#include "kernels/cuda/attention_tile.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kTile = kAttentionTile, kOther = 32;
using simd::Bf16;

/// What both kernels of gradients read.
template <class T>
struct Inputs {
  AttentionRows<const T> dout, q, k, v;
  const float* lse;
  const float* delta;
};

__device__ float product(uint4 a, uint4 b) {
  const unsigned x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum += __uint_as_float(x[i] << 16) * __uint_as_float(y[i] << 16);
    sum += __uint_as_float(x[i] & 0xFFFF0000u) * __uint_as_float(y[i] & 0xFFFF0000u);
  }
  return sum;
}
__device__ float product(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

/// One thread for 16 bytes; the threads of a head are neighbours in a warp.
template <class T, class Piece, int kDim>
__global__ void __launch_bounds__(256) sum_products(AttentionSizes sizes, AttentionRows<const T> dout,
                                                    AttentionRows<const T> out, float* __restrict__ delta) {
  constexpr int kPieces = kDim * static_cast<int>(sizeof(T)) / 16;
  const std::int64_t count = std::int64_t{sizes.samples} * sizes.queries * sizes.heads * kPieces;
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int piece = static_cast<int>(index % kPieces);
  const int head = static_cast<int>(index / kPieces % sizes.heads);
  const std::int64_t row = index / kPieces / sizes.heads;
  float sum = 0.0f;
  if (index < count) {
    const auto at = [&](const AttentionRows<const T>& rows) {
      return __ldg(reinterpret_cast<const Piece*>(rows.data + row * rows.stride + head * kDim) + piece);
    };
    sum = product(at(dout), at(out));
  }
#pragma unroll
  for (int other = 1; other < kPieces; other *= 2) sum += __shfl_xor_sync(kWarpMask, sum, other);
  if (index < count && piece == 0) {
    const int sample = static_cast<int>(row / sizes.queries), query = static_cast<int>(row % sizes.queries);
    delta[place_of(sizes, sample, head, query)] = sum;
  }
}

/// Writes a lane's part of 16 rows of kDim values, `count` of which are rows.
template <int kDim>
__device__ void store_rows(const float (&value)[kDim / 8][4], float scale, int count, float* first,
                           std::int64_t stride) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = 8 * r + lane / 4;
    if (row >= count) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const float2 pair = make_float2(value[n][2 * r] * scale, value[n][2 * r + 1] * scale);
      *reinterpret_cast<float2*>(first + row * stride + 8 * n + 2 * (lane % 4)) = pair;
    }
  }
}

template <int kDim>
__global__ void __launch_bounds__(128, kDim == 128 ? 2 : 4)
    query_gradient_bf16(DeviceAttentionPlan plan, AttentionSizes sizes, Inputs<Bf16> in, AttentionRows<float> dq) {
  __shared__ BfTile<kTile, kDim> q_tile, dout_tile;
  __shared__ BfTile<kOther, kDim> k_tile, v_tile;
  const AttentionTile tile = plan.query_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int rows = tile.end - tile.begin;
  const MetRows keys = keys_met(tile, plan.ranges, sizes, sample);
  const int key_sample = sizes.key_rows == nullptr ? sample : 0;
  const float scale = rsqrtf(static_cast<float>(kDim));

  const auto k_rows = head_of(in.k, sizes.keys, key_sample, head, kDim);
  const auto v_rows = head_of(in.v, sizes.keys, key_sample, head, kDim);

  fill_own(q_tile, head_of(in.q, sizes.queries, sample, head, kDim), tile);
  fill_own(dout_tile, head_of(in.dout, sizes.queries, sample, head, kDim), tile);
  float lse[2] = {}, delta[2] = {};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = 16 * warp + 8 * r + lane / 4;
    if (row >= rows) continue;
    const auto at = place_of(sizes, sample, head, tile.begin + row);
    lse[r] = __ldg(in.lse + at) * kLog2E;
    delta[r] = __ldg(in.delta + at);
  }
  float dq_part[kDim / 8][4] = {};
  for (int first = 0; first < keys.count; first += kOther) {
    __syncthreads();
    fill_met(k_tile, k_rows, keys, first);
    fill_met(v_tile, v_rows, keys, first);
    __syncthreads();
    float s[kOther / 8][4] = {}, dp[kOther / 8][4] = {};
    multiply_rows(s, q_tile, 16 * warp, k_tile);
    multiply_rows(dp, dout_tile, 16 * warp, v_tile);
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = first + 8 * n + 2 * (lane % 4) + e % 2;
        const float bias = i == keys.count - 1 ? keys.last_bias * kLog2E : 0.0f;
        const float p = i < keys.count ? exp2f(s[n][e] * (scale * kLog2E) + bias - lse[e / 2]) : 0.0f;
        s[n][e] = p * (dp[n][e] - delta[e / 2]);
      }
    }
    add_product(dq_part, s, k_tile);
  }
  store_rows<kDim>(dq_part, scale, rows - 16 * warp,
                   head_of(dq, sizes.queries, sample, head, kDim)[tile.begin + 16 * warp], dq.stride);
}

/// What a sample's queries see of a tile of keys.
struct SeenTile {
  int begin, end;
  float last_bias;
  bool is_seen;

  __device__ SeenTile(const AttentionTile& tile, const AttentionSizes& sizes, int sample)
      : begin(0), end(sizes.keys), last_bias(0.0f), is_seen(true) {
    if (sizes.key_rows == nullptr) return;
    const std::int64_t* rows = sizes.key_rows + 3 * sample;
    begin = static_cast<int>(rows[0]), end = static_cast<int>(rows[1]);
    last_bias = logf(static_cast<float>(rows[2]));
    is_seen = tile.begin < end && tile.end > begin;
  }
  /// Added to the logits of a key.
  __device__ float bias(const AttentionTile& tile, int key) const {
    return key < begin || key >= end || key >= tile.end ? -INFINITY : key == end - 1 ? last_bias : 0.0f;
  }
};

template <int kDim>
__global__ void __launch_bounds__(128)
    key_gradients_bf16(DeviceAttentionPlan plan, AttentionSizes sizes, Inputs<Bf16> in, AttentionRows<float> dk,
                       AttentionRows<float> dv) {
  __shared__ BfTile<kTile, kDim> k_tile, v_tile;
  __shared__ BfTile<kOther, kDim> q_tile, dout_tile;
  const AttentionTile tile = plan.key_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), key_sample = static_cast<int>(blockIdx.z);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int rows = tile.end - tile.begin;
  const MetRows queries = rows_met(tile, plan.ranges);
  const float scale = rsqrtf(static_cast<float>(kDim));

  fill_own(k_tile, head_of(in.k, sizes.keys, key_sample, head, kDim), tile);
  fill_own(v_tile, head_of(in.v, sizes.keys, key_sample, head, kDim), tile);
  float dk_part[kDim / 8][4] = {}, dv_part[kDim / 8][4] = {};
  const bool shares = sizes.key_rows != nullptr;
  for (int sample = shares ? 0 : key_sample; sample < (shares ? sizes.samples : key_sample + 1); ++sample) {
    const SeenTile seen(tile, sizes, sample);
    if (!seen.is_seen) continue;
    const auto q_rows = head_of(in.q, sizes.queries, sample, head, kDim);
    const auto dout_rows = head_of(in.dout, sizes.queries, sample, head, kDim);
    const int key = tile.begin + 16 * warp + lane / 4;
    const float bias[2] = {seen.bias(tile, key) * kLog2E, seen.bias(tile, key + 8) * kLog2E};
    for (int first = 0; first < queries.count; first += kOther) {
      __syncthreads();
      fill_met(q_tile, q_rows, queries, first);
      fill_met(dout_tile, dout_rows, queries, first);
      // each lane holds the numbers of one query; past the last one the weight exp(-inf) is zero
      float lse = INFINITY, delta = 0.0f;
      if (first + lane < queries.count) {
        const auto at = place_of(sizes, sample, head, queries.row(first + lane));
        lse = __ldg(in.lse + at) * kLog2E;
        delta = __ldg(in.delta + at);
      }
      __syncthreads();
      float p[kOther / 8][4] = {}, ds[kOther / 8][4] = {};
      multiply_rows(p, k_tile, 16 * warp, q_tile);
      multiply_rows(ds, v_tile, 16 * warp, dout_tile);
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = 8 * n + 2 * (lane % 4) + e % 2;
          const float own_lse = __shfl_sync(kWarpMask, lse, i), own_delta = __shfl_sync(kWarpMask, delta, i);
          p[n][e] = exp2f(p[n][e] * (scale * kLog2E) + bias[e / 2] - own_lse);
          ds[n][e] = p[n][e] * (ds[n][e] - own_delta);
        }
      }
      add_product(dv_part, p, dout_tile);
      add_product(dk_part, ds, q_tile);
    }
  }
  const int first = tile.begin + 16 * warp;
  store_rows<kDim>(dk_part, scale, rows - 16 * warp, head_of(dk, sizes.keys, key_sample, head, kDim)[first], dk.stride);
  store_rows<kDim>(dv_part, 1.0f, rows - 16 * warp, head_of(dv, sizes.keys, key_sample, head, kDim)[first], dv.stride);
}

template <int kDim>
__global__ void __launch_bounds__(256)
    query_gradient_f32(DeviceAttentionPlan plan, AttentionSizes sizes, Inputs<float> in, AttentionRows<float> dq) {
  __shared__ FloatTile<kDim> k_tile, v_tile;
  const AttentionTile tile = plan.query_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int row = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  const bool is_row = row < tile.end - tile.begin;
  const MetRows keys = keys_met(tile, plan.ranges, sizes, sample);
  const int key_sample = sizes.key_rows == nullptr ? sample : 0;
  const float scale = rsqrtf(static_cast<float>(kDim));

  const auto k_rows = head_of(in.k, sizes.keys, key_sample, head, kDim);
  const auto v_rows = head_of(in.v, sizes.keys, key_sample, head, kDim);
  RowPart<kDim> q, dout, dq_part;
  float lse = 0.0f, delta = 0.0f;
  if (is_row) {
    q.load(head_of(in.q, sizes.queries, sample, head, kDim)[tile.begin + row], part);
    dout.load(head_of(in.dout, sizes.queries, sample, head, kDim)[tile.begin + row], part);
    lse = __ldg(in.lse + place_of(sizes, sample, head, tile.begin + row));
    delta = __ldg(in.delta + place_of(sizes, sample, head, tile.begin + row));
  }
  for (int first = 0; first < keys.count; first += kFloatRows) {
    __syncthreads();
    fill_met(k_tile, k_rows, keys, first);
    fill_met(v_tile, v_rows, keys, first);
    __syncthreads();
    for (int j = 0; j < kFloatRows && first + j < keys.count; ++j) {
      const float bias = first + j == keys.count - 1 ? keys.last_bias : 0.0f;
      const float p = expf(quad_sum(q.dot(k_tile, j, part)) * scale + bias - lse);
      dq_part.add(p * (quad_sum(dout.dot(v_tile, j, part)) - delta), k_tile, j, part);
    }
  }
  if (!is_row) return;
  dq_part.scale(scale);
  dq_part.store(head_of(dq, sizes.queries, sample, head, kDim)[tile.begin + row], part);
}

template <int kDim>
__global__ void __launch_bounds__(256)
    key_gradients_f32(DeviceAttentionPlan plan, AttentionSizes sizes, Inputs<float> in, AttentionRows<float> dk,
                      AttentionRows<float> dv) {
  __shared__ FloatTile<kDim> q_tile, dout_tile;
  const AttentionTile tile = plan.key_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), key_sample = static_cast<int>(blockIdx.z);
  const int row = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool is_row = row < tile.end - tile.begin;
  const MetRows queries = rows_met(tile, plan.ranges);
  const float scale = rsqrtf(static_cast<float>(kDim));

  RowPart<kDim> k, v, dk_part, dv_part;
  if (is_row) {
    k.load(head_of(in.k, sizes.keys, key_sample, head, kDim)[tile.begin + row], part);
    v.load(head_of(in.v, sizes.keys, key_sample, head, kDim)[tile.begin + row], part);
  }
  const bool shares = sizes.key_rows != nullptr;
  for (int sample = shares ? 0 : key_sample; sample < (shares ? sizes.samples : key_sample + 1); ++sample) {
    const SeenTile seen(tile, sizes, sample);
    if (!seen.is_seen) continue;
    const auto q_rows = head_of(in.q, sizes.queries, sample, head, kDim);
    const auto dout_rows = head_of(in.dout, sizes.queries, sample, head, kDim);
    const float bias = seen.bias(tile, tile.begin + row);
    for (int first = 0; first < queries.count; first += kFloatRows) {
      __syncthreads();
      fill_met(q_tile, q_rows, queries, first);
      fill_met(dout_tile, dout_rows, queries, first);
      float lse = 0.0f, delta = 0.0f;
      if (first + lane < queries.count) {
        const auto at = place_of(sizes, sample, head, queries.row(first + lane));
        lse = __ldg(in.lse + at);
        delta = __ldg(in.delta + at);
      }
      __syncthreads();
      for (int j = 0; j < kFloatRows && first + j < queries.count; ++j) {
        const float own_lse = __shfl_sync(kWarpMask, lse, j), own_delta = __shfl_sync(kWarpMask, delta, j);
        const float p = expf(quad_sum(k.dot(q_tile, j, part)) * scale + bias - own_lse);
        const float ds = p * (quad_sum(v.dot(dout_tile, j, part)) - own_delta);
        dv_part.add(p, dout_tile, j, part);
        dk_part.add(ds, q_tile, j, part);
      }
    }
  }
  if (!is_row) return;
  dk_part.scale(scale);
  dk_part.store(head_of(dk, sizes.keys, key_sample, head, kDim)[tile.begin + row], part);
  dv_part.store(head_of(dv, sizes.keys, key_sample, head, kDim)[tile.begin + row], part);
}

/// The three kernels of an element type and head size.
template <class T, int kDim>
void launch(const DeviceAttentionPlan& plan, const AttentionSizes& sizes, const Inputs<T>& in,
            AttentionRows<const T> out, float* delta, AttentionRows<float> dq, AttentionRows<float> dk,
            AttentionRows<float> dv, cudaStream_t stream) {
  constexpr bool kIsBf16 = sizeof(T) == 2;
  const auto heads = static_cast<unsigned>(sizes.heads), samples = static_cast<unsigned>(sizes.samples);
  const auto pieces = static_cast<std::int64_t>(sizes.queries) * sizes.samples * sizes.heads * kDim *
                      static_cast<std::int64_t>(sizeof(T)) / 16;
  const auto blocks = static_cast<unsigned>((pieces + 255) / 256);
  const dim3 queries(static_cast<unsigned>(plan.num_query_tiles), heads, samples);
  const dim3 keys(static_cast<unsigned>(plan.num_key_tiles), heads, sizes.key_rows == nullptr ? samples : 1);
  if constexpr (kIsBf16) {
    sum_products<T, uint4, kDim><<<blocks, 256, 0, stream>>>(sizes, in.dout, out, delta);
    query_gradient_bf16<kDim><<<queries, 128, 0, stream>>>(plan, sizes, in, dq);
    key_gradients_bf16<kDim><<<keys, 128, 0, stream>>>(plan, sizes, in, dk, dv);
  } else {
    sum_products<T, float4, kDim><<<blocks, 256, 0, stream>>>(sizes, in.dout, out, delta);
    query_gradient_f32<kDim><<<queries, 256, 0, stream>>>(plan, sizes, in, dq);
    key_gradients_f32<kDim><<<keys, 256, 0, stream>>>(plan, sizes, in, dk, dv);
  }
}

}  // namespace

std::int64_t attention_backward_scratch_bytes(const AttentionSizes& sizes) {
  return std::int64_t{4} * sizes.samples * sizes.heads * sizes.queries;
}

template <class T>
cudaError_t launch_attention_backward(const DeviceAttentionPlan& plan, const AttentionSizes& sizes,
                                      AttentionRows<const T> dout, AttentionRows<const T> q, AttentionRows<const T> k,
                                      AttentionRows<const T> v, AttentionRows<const T> out, const float* lse,
                                      AttentionRows<float> dq, AttentionRows<float> dk, AttentionRows<float> dv,
                                      void* scratch, cudaStream_t stream) {
  if (plan.num_query_tiles == 0 || plan.num_key_tiles == 0 || sizes.heads == 0 || sizes.samples == 0)
    return cudaSuccess;
  auto* delta = static_cast<float*>(scratch);
  const Inputs<T> in{dout, q, k, v, lse, delta};
  switch (sizes.head_dim) {
    case 16:
      launch<T, 16>(plan, sizes, in, out, delta, dq, dk, dv, stream);
      break;
    case 32:
      launch<T, 32>(plan, sizes, in, out, delta, dq, dk, dv, stream);
      break;
    case 64:
      launch<T, 64>(plan, sizes, in, out, delta, dq, dk, dv, stream);
      break;
    case 128:
      launch<T, 128>(plan, sizes, in, out, delta, dq, dk, dv, stream);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

template cudaError_t launch_attention_backward(const DeviceAttentionPlan&, const AttentionSizes&,
                                               AttentionRows<const float>, AttentionRows<const float>,
                                               AttentionRows<const float>, AttentionRows<const float>,
                                               AttentionRows<const float>, const float*, AttentionRows<float>,
                                               AttentionRows<float>, AttentionRows<float>, void*, cudaStream_t);
template cudaError_t launch_attention_backward(const DeviceAttentionPlan&, const AttentionSizes&,
                                               AttentionRows<const Bf16>, AttentionRows<const Bf16>,
                                               AttentionRows<const Bf16>, AttentionRows<const Bf16>,
                                               AttentionRows<const Bf16>, const float*, AttentionRows<float>,
                                               AttentionRows<float>, AttentionRows<float>, void*, cudaStream_t);

}  // namespace troupe::kernels::cuda
