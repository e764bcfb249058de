#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// softmax(q k^T / sqrt(D)) v for each head, without a mask.
///
/// Shapes: q_BTHD, k_BSHD, v_BSHD, f32, bf16 or f64; the last axis is dense. Returns [B, T, H, D].
/// Grad:   q, k and v; keeps them, the result and one f32 for each query.
/// CPU:    bf16 in this process' form (kernels/product.h), softmax in f32; a head of a sample is computed on one
///         thread, so the bits do not depend on num_threads(). Other devices take at::scaled_dot_product_attention.
/// Errors: throws c10::Error on a shape or dtype mismatch. Source: arXiv:1706.03762 eq. 1.
at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD);

/// The same into out_BTHD and lse_BHT (f32, f64 for f64: log of the sum that softmax divides by), which the gradients
/// need. Without gradients of its own. out may have any strides and the operands' dtype or, where they are widened, any
/// that f32 converts to.
void attention_out(const at::Tensor& out_BTHD, const at::Tensor& lse_BHT, const at::Tensor& q_BTHD,
                   const at::Tensor& k_BSHD, const at::Tensor& v_BSHD);
/// Gradients of q, k and v from that of the result; `accumulate` adds those of k and v to what is there.
void attention_gradients_out(const at::Tensor& dq_BTHD, const at::Tensor& dk_BSHD, const at::Tensor& dv_BSHD,
                             bool accumulate, const at::Tensor& dout_BTHD, const at::Tensor& q_BTHD,
                             const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& out_BTHD,
                             const at::Tensor& lse_BHT);

}  // namespace troupe::kernels
