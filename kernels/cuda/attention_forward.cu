// Attention forward. A block of threads computes 64 queries of one head: keys and values come through shared memory,
// 64 (f32: 32) at a time, and meet the queries in an online softmax, so that scores never leave the registers.
// Bound by the products: 4 * queries * keys * head size operations for a tile's 2 * (queries + 2 keys) * head size
// bytes. bf16: four warps of 16 queries each, mma.sync; 48 KiB of shared memory at head size 128, so that four blocks
// share a multiprocessor. f32: four threads a query, fused multiply-adds.
#include "kernels/cuda/attention_f32.h"
#include "kernels/cuda/attention_tile.h"

namespace troupe::kernels::cuda {
namespace {

constexpr float kLn2 = 0.6931471805599453f;
constexpr int kTile = kAttentionTile;

/// Rows of 16 queries in a lane: the running largest logit (base 2) and sum of each of its two rows.
struct RowState {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};
};

/// Logits to probabilities against the largest so far; returns by what earlier results are to be scaled.
template <int kBlocks>
__device__ void soften(float (&s)[kBlocks][4], const MetRows& keys, int first, float scale, RowState& state,
                       float (&rescale)[2]) {
  const int column = first + 2 * (static_cast<int>(threadIdx.x) % 4);
  float largest[2] = {state.largest[0], state.largest[1]};
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = column + 8 * n + e % 2;
      s[n][e] = i >= keys.count ? -INFINITY : s[n][e] * scale + (i == keys.count - 1 ? keys.last_bias * kLog2E : 0.0f);
      largest[e / 2] = fmaxf(largest[e / 2], s[n][e]);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    largest[r] = quad_max(largest[r]);
    rescale[r] = exp2f(state.largest[r] - largest[r]);
    state.largest[r] = largest[r];
    state.sum[r] *= rescale[r];
  }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      s[n][e] = exp2f(s[n][e] - largest[e / 2]);
      state.sum[e / 2] += s[n][e];
    }
  }
}

template <int kDim>
__global__ void __launch_bounds__(128, kDim == 128  ? 2
                                       : kDim == 64 ? 3
                                                    : 4)
    forward_bf16(DeviceAttentionPlan plan, AttentionSizes sizes, AttentionRows<const simd::Bf16> q,
                 AttentionRows<const simd::Bf16> k, AttentionRows<const simd::Bf16> v, AttentionRows<simd::Bf16> out,
                 float* __restrict__ lse) {
  __shared__ BfTile<kTile, kDim> q_tile, k_tile, v_tile;
  const AttentionTile tile = plan.query_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int rows = tile.end - tile.begin;
  const MetRows keys = keys_met(tile, plan.ranges, sizes, sample);
  const int key_sample = sizes.key_rows == nullptr ? sample : 0;
  const float scale = kLog2E * rsqrtf(static_cast<float>(kDim));

  const auto k_rows = head_of(k, sizes.keys, key_sample, head, kDim);
  const auto v_rows = head_of(v, sizes.keys, key_sample, head, kDim);

  fill_own(q_tile, head_of(q, sizes.queries, sample, head, kDim), tile);
  float o[kDim / 8][4] = {};
  RowState state;
  for (int first = 0; first < keys.count; first += kTile) {
    __syncthreads();
    fill_met(k_tile, k_rows, keys, first);
    fill_met(v_tile, v_rows, keys, first);
    __syncthreads();
    float s[kTile / 8][4] = {};
    multiply_rows(s, q_tile, 16 * warp, k_tile);
    float rescale[2];
    soften(s, keys, first, scale, state, rescale);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[n][e] *= rescale[e / 2];
    }
    add_product(o, s, v_tile);
  }

  // each warp hands its rows through its own part of the queries' tile, so that whole sectors are written
  float sum[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] = quad_sum(state.sum[r]);
    const int row = 16 * warp + 8 * r + lane / 4;
    if (lane % 4 == 0 && row < rows)
      lse[place_of(sizes, sample, head, tile.begin + row)] = (state.largest[r] + log2f(sum[r])) * kLn2;
  }
  // every lane has read the queries: the sums above took the whole warp
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      auto* words = reinterpret_cast<unsigned*>(q_tile.pieces + q_tile.place(16 * warp + 8 * r + lane / 4, n));
      words[lane % 4] = pack(o[n][2 * r] / sum[r], o[n][2 * r + 1] / sum[r]);
    }
  }
  __syncwarp();
  const auto out_rows = head_of(out, sizes.queries, sample, head, kDim);
  for (int i = lane; i < 2 * kDim; i += kWarp) {
    const int row = 16 * warp + i / (kDim / 8), piece = i % (kDim / 8);
    if (row >= rows) break;
    reinterpret_cast<uint4*>(out_rows[tile.begin + row])[piece] = q_tile.pieces[q_tile.place(row, piece)];
  }
}

template <int kDim>
__global__ void __launch_bounds__(256)
    forward_f32(DeviceAttentionPlan plan, AttentionSizes sizes, AttentionRows<const float> q,
                AttentionRows<const float> k, AttentionRows<const float> v, AttentionRows<float> out,
                float* __restrict__ lse) {
  __shared__ FloatTile<kDim> k_tile, v_tile;
  const AttentionTile tile = plan.query_tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), sample = static_cast<int>(blockIdx.z);
  const int row = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  const bool is_row = row < tile.end - tile.begin;
  const MetRows keys = keys_met(tile, plan.ranges, sizes, sample);
  const int key_sample = sizes.key_rows == nullptr ? sample : 0;
  const float scale = rsqrtf(static_cast<float>(kDim));

  RowPart<kDim> q_part, o = {};
  const auto k_rows = head_of(k, sizes.keys, key_sample, head, kDim);
  const auto v_rows = head_of(v, sizes.keys, key_sample, head, kDim);
  q_part.load(is_row ? head_of(q, sizes.queries, sample, head, kDim)[tile.begin + row] : nullptr, part);
  float largest = -INFINITY, sum = 0.0f;
  for (int first = 0; first < keys.count; first += kFloatRows) {
    __syncthreads();
    fill_met(k_tile, k_rows, keys, first);
    fill_met(v_tile, v_rows, keys, first);
    __syncthreads();
    for (int group = 0; group < kFloatRows; group += 8) {
      float s[8], above = largest;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int i = first + group + j;
        s[j] = quad_sum(q_part.dot(k_tile, group + j, part)) * scale;
        s[j] = i >= keys.count ? -INFINITY : i == keys.count - 1 ? s[j] + keys.last_bias : s[j];
        above = fmaxf(above, s[j]);
      }
      const float rescale = expf(largest - above);
      largest = above;
      sum *= rescale;
      o.scale(rescale);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float p = expf(s[j] - above);
        sum += p;
        o.add(p, v_tile, group + j, part);
      }
    }
  }
  if (!is_row) return;
  o.scale(1.0f / sum);
  o.store(head_of(out, sizes.queries, sample, head, kDim)[tile.begin + row], part);
  if (part == 0) lse[place_of(sizes, sample, head, tile.begin + row)] = largest + logf(sum);
}

template <int kDim>
void launch(const DeviceAttentionPlan& plan, const AttentionSizes& sizes, AttentionRows<const float> q,
            AttentionRows<const float> k, AttentionRows<const float> v, AttentionRows<float> out, float* lse, dim3 grid,
            cudaStream_t stream) {
  forward_f32<kDim><<<grid, 256, 0, stream>>>(plan, sizes, q, k, v, out, lse);
}
template <int kDim>
void launch(const DeviceAttentionPlan& plan, const AttentionSizes& sizes, AttentionRows<const simd::Bf16> q,
            AttentionRows<const simd::Bf16> k, AttentionRows<const simd::Bf16> v, AttentionRows<simd::Bf16> out,
            float* lse, dim3 grid, cudaStream_t stream) {
  forward_bf16<kDim><<<grid, 128, 0, stream>>>(plan, sizes, q, k, v, out, lse);
}

}  // namespace

template <class T>
cudaError_t launch_attention_forward(const DeviceAttentionPlan& plan, const AttentionSizes& sizes,
                                     AttentionRows<const T> q, AttentionRows<const T> k, AttentionRows<const T> v,
                                     AttentionRows<T> out, float* lse, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(plan.num_query_tiles), static_cast<unsigned>(sizes.heads),
                  static_cast<unsigned>(sizes.samples));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  switch (sizes.head_dim) {
    case 16:
      launch<16>(plan, sizes, q, k, v, out, lse, grid, stream);
      break;
    case 32:
      launch<32>(plan, sizes, q, k, v, out, lse, grid, stream);
      break;
    case 64:
      launch<64>(plan, sizes, q, k, v, out, lse, grid, stream);
      break;
    case 128:
      launch<128>(plan, sizes, q, k, v, out, lse, grid, stream);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

template cudaError_t launch_attention_forward(const DeviceAttentionPlan&, const AttentionSizes&,
                                              AttentionRows<const float>, AttentionRows<const float>,
                                              AttentionRows<const float>, AttentionRows<float>, float*, cudaStream_t);
template cudaError_t launch_attention_forward(const DeviceAttentionPlan&, const AttentionSizes&,
                                              AttentionRows<const simd::Bf16>, AttentionRows<const simd::Bf16>,
                                              AttentionRows<const simd::Bf16>, AttentionRows<simd::Bf16>, float*,
                                              cudaStream_t);

}  // namespace troupe::kernels::cuda
