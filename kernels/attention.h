#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// softmax(q k^T / sqrt(D)) v for each head, without a mask.
///
/// With `key_rows` samples share keys: k and v are [1, S, H, D], and key_rows_B3 (i64, on the CPU) says for each sample
/// which rows [begin, end) it sees and how many equal rows the last of these stands for, n >= 1:
///     o = sum_j n_j exp(q k_j / sqrt(D)) v_j / sum_j n_j exp(q k_j / sqrt(D)),   n_j = n for the last row, else 1
/// computed by adding ln(n) to the last row's logit. The rows of two samples are the same or disjoint.
///
/// Shapes: q_BTHD, k_BSHD, v_BSHD, f32, bf16 or f64; the last axis is dense. Returns [B, T, H, D].
/// Grad:   q, k and v; keeps them, the result and one f32 for each query. Those of a row that stands for n are the sums
///         over the n, those of shared rows are summed over the samples in f32 (f64 for f64), in order.
/// CPU:    bf16 in this process' form (kernels/product.h), softmax in f32; a head of a sample is computed on one
///         thread, so the bits do not depend on num_threads(). Other devices take at::scaled_dot_product_attention.
/// Errors: throws c10::Error on a shape or dtype mismatch, or rows outside the keys. Source: arXiv:1706.03762 eq. 1.
at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD,
                     const at::Tensor& key_rows_B3 = {});

/// The same into out_BTHD and lse_BHT (f32, f64 for f64: log of the sum that softmax divides by), which the gradients
/// need. Without gradients of its own. out may have any strides and the operands' dtype or, where they are widened, any
/// that f32 converts to.
void attention_out(const at::Tensor& out_BTHD, const at::Tensor& lse_BHT, const at::Tensor& q_BTHD,
                   const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& key_rows_B3 = {});
/// Gradients of q, k and v from that of the result; `accumulate` adds those of k and v to what is there. Rows that no
/// sample sees get zeros.
void attention_gradients_out(const at::Tensor& dq_BTHD, const at::Tensor& dk_BSHD, const at::Tensor& dv_BSHD,
                             bool accumulate, const at::Tensor& dout_BTHD, const at::Tensor& q_BTHD,
                             const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& out_BTHD,
                             const at::Tensor& lse_BHT, const at::Tensor& key_rows_B3 = {});

}  // namespace troupe::kernels
