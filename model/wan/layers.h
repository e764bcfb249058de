#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/shard/network.h"

namespace troupe::model {

// Layers as functions over named parameters. The dtype of a layer is its parameters' dtype; statistics of norms are f32
// (f64 when the parameters are f64). Shapes: any leading axes, channels last.

/// f64 for f64, f32 for every other dtype: what norms and losses are computed in.
at::ScalarType accumulate_type(at::ScalarType dtype);

/// y = x W^T + b with `prefix.weight` [out, in] and, where present, `prefix.bias` [out]; x is cast to the weight's
/// dtype. With adapters `prefix.lora_A.default.weight` [r, in] and `prefix.lora_B.default.weight` [out, r]
/// + (x A^T) B^T * params.adapter_scale().
at::Tensor linear(const ParamView& params, const std::string& prefix, const at::Tensor& x);

/// y = x W + b with `prefix.W` [1, in, out] and `prefix.b` [1, out]: the reference's "category
/// specific" linear, of which there is always one category. x is cast to W's dtype.
at::Tensor category_linear(const ParamView& params, const std::string& prefix, const at::Tensor& x);

/// Layer normalisation with `prefix.weight` and `prefix.bias`; the result stays in accumulate_type.
at::Tensor affine_layer_norm(const ParamView& params, const std::string& prefix, const at::Tensor& x, double eps);

/// RMS normalisation over channels with gain `name`: cast(x * rsqrt(mean(x^2) + eps)) * gain, statistic in
/// accumulate_type.
at::Tensor rms_norm(const ParamView& params, const std::string& name, const at::Tensor& x, double eps);

/// [cos | sin] of t * 10000^(-i/half), i < half = channels/2, in f64; t of any shape, result [..., channels] f64.
at::Tensor time_sinusoid(const at::Tensor& t, std::int64_t channels);

/// [sin | cos] of t * exp(-k * (ln 10000 / half)), k < half = channels/2, every operation in f32; result [...,
/// channels] f32.
at::Tensor action_sinusoid(const at::Tensor& t, std::int64_t channels);

// Parameter lists of the same layers, for UnitSpec. Each call appends to `list` in the order of the checkpoint.
using ParamList = std::vector<ParamSpec>;

/// Half width of Xavier's uniform distribution: sqrt(6 / (fan_in + fan_out)).
double xavier_bound(std::int64_t fan_in, std::int64_t fan_out);
/// weight Xavier-uniform (or N(0, std) with std > 0), bias zero.
void add_linear(ParamList& list, const std::string& prefix, std::int64_t in, std::int64_t out, double std = 0);
/// Linears of the same input, called prefix + each of `parts`: their weights lie one behind the other, and behind them
/// their biases, so that one product computes all.
void add_joined_linears(ParamList& list, const std::string& prefix, const std::vector<std::string>& parts,
                        std::int64_t in, std::int64_t out);
/// W 0.02 N(0,1), b zero.
void add_category_linear(ParamList& list, const std::string& prefix, std::int64_t in, std::int64_t out);
/// weight one, bias zero.
void add_layer_norm(ParamList& list, const std::string& prefix, std::int64_t channels);
/// The gain of an RMS norm: one.
void add_gain(ParamList& list, const std::string& name, std::int64_t channels);

}  // namespace troupe::model
