#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/attention_plan.h"
#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// Rows of [samples, rows, heads * head size] in device memory: a row begins `stride` elements behind the one before,
/// a sample `rows * stride`.
template <class T>
struct AttentionRows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// softmax(q k^T / sqrt(D)) v by the plan's segments: online softmax over the ranges in order, so that nothing is
/// joined or merged. lse[sample, head, query] is the log of what softmax divides by.
///
/// Shapes: q [B, T, H, D], k and v [B, S, H, D], out like q, in T = float or simd::Bf16; lse f32 [B, H, T], dense.
///         Rows begin at 16-byte boundaries.
/// Rounding: products of bf16 add in f32; probabilities are rounded to bf16 before they weigh v; out is rounded once.
/// Stream: enqueues one kernel; never waits.
/// Errors: cudaErrorInvalidValue for another head size; else cudaGetLastError().
/// Source: the order of sums is that of FlashAttention-2 (arXiv:2307.08691, algorithm 1).
template <class T>
cudaError_t launch_attention_forward(const DeviceAttentionPlan& plan, const AttentionSizes& sizes,
                                     AttentionRows<const T> q, AttentionRows<const T> k, AttentionRows<const T> v,
                                     AttentionRows<T> out, float* lse, cudaStream_t stream);

/// Bytes of scratch of the backward: one f32 for each query of each head.
std::int64_t attention_backward_scratch_bytes(const AttentionSizes& sizes);

/// Gradients of q, k and v, f32, from that of the result; written whole. Of a key that stands for n they are sums over
/// the n; of shared keys sums over the samples, in order.
///
/// Shapes: dout and out like q; dq f32 like q, dk and dv f32 like k, whose rows begin at 16-byte boundaries; scratch
///         256-byte aligned.
/// Rounding: bf16 probabilities and their gradients are rounded to bf16 before they are multiplied; all else is f32.
/// Stream: enqueues three kernels; never waits. Errors: as of the forward.
/// Source: FlashAttention-2, algorithm 2, with the sums over keys and over queries in kernels of their own.
template <class T>
cudaError_t launch_attention_backward(const DeviceAttentionPlan& plan, const AttentionSizes& sizes,
                                      AttentionRows<const T> dout, AttentionRows<const T> q, AttentionRows<const T> k,
                                      AttentionRows<const T> v, AttentionRows<const T> out, const float* lse,
                                      AttentionRows<float> dq, AttentionRows<float> dk, AttentionRows<float> dv,
                                      void* scratch, cudaStream_t stream);

}  // namespace troupe::kernels::cuda
