#include "model/wan/layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/linear.h"
#include "kernels/rms_norm.h"

namespace troupe::model {

at::ScalarType accumulate_type(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor linear(const ParamView& params, const std::string& prefix, const at::Tensor& x) {
  const auto& weight = params[prefix + ".weight"];
  const auto bias = params.tensors().find(prefix + ".bias");
  const auto in = x.to(weight.scalar_type());
  auto y = linear_product(in, weight, bias == params.tensors().end() ? at::Tensor() : bias->second);
  const auto lora_a = params.tensors().find(prefix + ".lora_A.default.weight");
  if (lora_a == params.tensors().end()) return y;
  const auto update =
      linear_product(linear_product(in, lora_a->second, {}), params[prefix + ".lora_B.default.weight"], {});
  return y + (params.adapter_scale() == 1.0 ? update : update * params.adapter_scale());
}

at::Tensor category_linear(const ParamView& params, const std::string& prefix, const at::Tensor& x) {
  const auto& weight = params[prefix + ".W"];
  return linear_product(x.to(weight.scalar_type()), weight.select(0, 0).t(), params[prefix + ".b"].select(0, 0));
}

at::Tensor affine_layer_norm(const ParamView& params, const std::string& prefix, const at::Tensor& x, double eps) {
  const auto& weight = params[prefix + ".weight"];
  const auto dtype = accumulate_type(weight.scalar_type());
  return at::layer_norm(x.to(dtype), {x.size(-1)}, weight.to(dtype), params[prefix + ".bias"].to(dtype), eps);
}

at::Tensor rms_norm(const ParamView& params, const std::string& name, const at::Tensor& x, double eps) {
  const auto& gain = params[name];
  const auto in = x.to(gain.scalar_type());
  return rms_norm_rotated(in.reshape({1, -1, in.size(-1)}), gain, eps, {}, {}).view(in.sizes());
}

at::Tensor time_sinusoid(const at::Tensor& t, std::int64_t channels) {
  const auto half = channels / 2;
  const auto exponent = at::arange(half, t.options().dtype(at::kDouble)) / -static_cast<double>(half);
  const auto angle = t.to(at::kDouble).unsqueeze(-1) * at::pow(10000.0, exponent);
  return at::cat({angle.cos(), angle.sin()}, -1);
}

at::Tensor action_sinusoid(const at::Tensor& t, std::int64_t channels) {
  const auto half = channels / 2;
  // rounding matters: t * frequency reaches 1000 rad, where one ulp of the frequency is 6e-5 rad
  const float step = std::log(10000.0F) / static_cast<float>(half);
  const auto frequency = at::exp(at::arange(half, t.options().dtype(at::kFloat)) * -step);
  const auto angle = t.to(at::kFloat).unsqueeze(-1) * frequency;
  return at::cat({angle.sin(), angle.cos()}, -1);
}

double xavier_bound(std::int64_t fan_in, std::int64_t fan_out) {
  return std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
}

void add_linear(ParamList& list, const std::string& prefix, std::int64_t in, std::int64_t out, double std) {
  const Init init = std > 0 ? Init{Init::Kind::normal, std} : Init{Init::Kind::uniform, xavier_bound(in, out)};
  list.push_back({prefix + ".weight", {out, in}, init});
  list.push_back({prefix + ".bias", {out}, {Init::Kind::zeros, 0}});
}

void add_joined_linears(ParamList& list, const std::string& prefix, const std::vector<std::string>& parts,
                        std::int64_t in, std::int64_t out) {
  ParamList biases;
  for (const auto& part : parts) {
    ParamList one;
    add_linear(one, prefix + part, in, out);
    for (auto& param : one) param.follows = part != parts.front();
    list.push_back(std::move(one[0]));
    biases.push_back(std::move(one[1]));
  }
  list.insert(list.end(), biases.begin(), biases.end());
}

void add_category_linear(ParamList& list, const std::string& prefix, std::int64_t in, std::int64_t out) {
  list.push_back({prefix + ".W", {1, in, out}, {Init::Kind::normal, 0.02}});
  list.push_back({prefix + ".b", {1, out}, {Init::Kind::zeros, 0}});
}

void add_layer_norm(ParamList& list, const std::string& prefix, std::int64_t channels) {
  list.push_back({prefix + ".weight", {channels}, {Init::Kind::ones, 0}});
  list.push_back({prefix + ".bias", {channels}, {Init::Kind::zeros, 0}});
}

void add_gain(ParamList& list, const std::string& name, std::int64_t channels) {
  list.push_back({name, {channels}, {Init::Kind::ones, 0}});
}

}  // namespace troupe::model
