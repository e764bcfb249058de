#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// A linear layer.
///     y = x W^T + b
///
/// Shapes: x [..., in], weight [out, in] with any strides, bias [out] or undefined; one dtype. Returns [..., out].
/// Grad:   x, weight and bias; keeps x and weight.
/// CPU:    bf16 products are exact in f32, so where computes_bf16_in_f32() the operands are widened for an f32 product
///         and the result, with its bias, is rounded once: sums are f32 either way. Other devices take at::linear.
/// Errors: throws c10::Error on a shape or dtype mismatch.
/// Any thread; threads inside are ATen's.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// softmax(q k^T / sqrt(D)) v for each head, without a mask.
///
/// Shapes: q_BTHD, k_BSHD, v_BSHD, f32, bf16 or f64; the last axis is dense. Returns [B, T, H, D].
/// Grad:   q, k and v; keeps them, the result and one f32 for each query.
/// CPU:    as linear_product for bf16; softmax in f32. Other devices take at::scaled_dot_product_attention.
/// Errors: throws c10::Error on a shape or dtype mismatch. Source: arXiv:1706.03762 eq. 1.
at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD);

/// True on a CPU whose f32 products are at least as fast as its bf16 ones: one without matrix tiles (AMX). There a dot
/// product instruction for bf16 has the rate of the f32 multiply-add, and the libraries reach half of it.
/// Asked once of the processor; the same for the life of the process. Any thread.
/// The library's rate is in docs/kernels.md#bf16-products-on-a-cpu.
bool computes_bf16_in_f32();

}  // namespace troupe::kernels
