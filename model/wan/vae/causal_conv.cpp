#include "model/wan/vae/causal_conv.h"

#include <ATen/ATen.h>
#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <cmath>

#include "kernels/product.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kHistory = 2;  // frames that a kernel of three sees before the present one
constexpr double kNormFloor = 1e-12;  // of a length, not added to it

bool is_reduced(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf; }

/// Runs `conv` in f32 where bf16 would be slower: on processors without matrix tiles oneDNN's bf16 convolutions take
/// twice as long (measured on avx512_bf16). The same numbers: bf16 products are exact in f32, where either sums.
template <class Conv>
at::Tensor fast_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Conv conv) {
  if (x.scalar_type() != at::kBFloat16 || !x.is_cpu() || has_bf16_tiles()) return conv(x, weight, bias);
  return conv(x.to(at::kFloat), weight.to(at::kFloat), bias.to(at::kFloat)).to(at::kBFloat16);
}

/// A convolution of frames [N, H, W, C] one by one.
at::Tensor conv_images(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, std::int64_t stride,
                       std::int64_t padding) {
  const auto conv = [&](const at::Tensor& in, const at::Tensor& w, const at::Tensor& b) {
    return at::conv2d(in, w, b, {stride, stride}, {padding, padding});
  };
  return fast_conv(x.permute({0, 3, 1, 2}), weight, bias, conv).permute({0, 2, 3, 1}).contiguous();
}

/// A convolution of [B, T, H, W, C] that pads space with zeros and time not at all.
at::Tensor conv_frames(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       std::int64_t time_stride) {
  const auto padding = weight.size(-1) / 2;
  const auto conv = [&](const at::Tensor& in, const at::Tensor& w, const at::Tensor& b) {
    return at::conv3d(in, w, b, {time_stride, 1, 1}, {0, padding, padding});
  };
  return fast_conv(x.permute({0, 4, 1, 2, 3}), weight, bias, conv).permute({0, 2, 3, 4, 1}).contiguous();
}

/// Runs the convolution on what `fill` writes into a tensor shaped like x. The input is built in place behind its
/// history, so that no second copy of the activations is made.
at::Tensor causal_conv_of(const VaePass& pass, const std::string& name, const at::Tensor& x,
                          c10::function_ref<void(at::Tensor)> fill) {
  const auto& weight = pass.params[name + ".weight"];
  const auto& bias = pass.params[name + ".bias"];
  const auto frames = x.size(1);
  const auto more = pass.still_frames > 0 ? std::min(kHistory, pass.still_frames - frames) : 0;
  const auto past = pass.past(name);
  auto in = at::empty({x.size(0), kHistory + frames + more, x.size(2), x.size(3), x.size(4)},
                      x.options().dtype(weight.scalar_type()));
  if (past.defined()) {
    TORCH_CHECK(past.sizes() == in.narrow(1, 0, kHistory).sizes(), name, ": frames ", x.sizes(),
                " do not continue a stream whose last were ", past.sizes(), " ([B, T, H, W, C])");
    in.narrow(1, 0, kHistory).copy_(past);
  } else {
    in.narrow(1, 0, kHistory).zero_();
  }
  fill(in.narrow(1, kHistory, frames));
  if (more > 0) in.narrow(1, kHistory + frames, more).copy_(in.narrow(1, kHistory + frames - 1, 1));
  pass.keep(name, in.narrow(1, frames, kHistory));
  if (past.defined() || frames + more > 1) return conv_frames(in, weight, bias, 1);
  // a lone first frame meets only the kernel's last tap
  return conv_images(in.select(1, kHistory), weight.select(2, kHistory), bias, 1, weight.size(-1) / 2).unsqueeze(1);
}

}  // namespace

at::Tensor VaePass::past(const std::string& name) const {
  if (cache == nullptr) return {};
  const auto it = cache->past.find(name);
  return it == cache->past.end() ? at::Tensor() : it->second;
}

void VaePass::keep(const std::string& name, const at::Tensor& frames) const {
  if (cache != nullptr) cache->past[name] = frames.clone(at::MemoryFormat::Contiguous);
}

at::Tensor channel_norm(const at::Tensor& x, const at::Tensor& gain, NormRounding rounding) {
  const double scale = std::sqrt(static_cast<double>(x.size(-1)));
  const auto row = gain.flatten();
  if (is_reduced(x) && rounding == NormRounding::every_step) {
    const auto length = at::linalg_vector_norm(x, 2, at::IntArrayRef{-1}, /*keepdim=*/true).clamp_min_(kNormFloor);
    return x.div(length).mul_(scale).mul_(row);
  }
  const auto wide = is_reduced(x) ? x.to(at::kFloat) : x;
  const auto length = at::linalg_vector_norm(wide, 2, at::IntArrayRef{-1}, /*keepdim=*/true).clamp_min_(kNormFloor);
  return wide.div(length).mul_(row.to(wide.scalar_type()) * scale);
}

at::Tensor causal_conv(const VaePass& pass, const std::string& name, const at::Tensor& x) {
  return causal_conv_of(pass, name, x, [&x](const at::Tensor& in) { in.copy_(x); });
}

at::Tensor norm_silu_conv(const VaePass& pass, const std::string& norm, const std::string& name, const at::Tensor& x) {
  return causal_conv_of(pass, name, x, [&](at::Tensor in) {
    auto normed = channel_norm(x, pass.params[norm + ".gamma"], pass.rounding);
    if (normed.scalar_type() == in.scalar_type()) {
      at::silu_out(in, normed);
    } else {
      in.copy_(at::silu_(normed));
    }
  });
}

at::Tensor halving_time_conv(const VaePass& pass, const std::string& name, const at::Tensor& x) {
  return conv_frames(x, pass.params[name + ".weight"], pass.params[name + ".bias"], 2);
}

at::Tensor point_conv(const VaePass& pass, const std::string& name, const at::Tensor& x) {
  const auto& weight = pass.params[name + ".weight"];
  return at::linear(x.to(weight.scalar_type()), weight.reshape({weight.size(0), weight.size(1)}),
                    pass.params[name + ".bias"]);
}

at::Tensor frame_conv(const VaePass& pass, const std::string& name, const at::Tensor& x, std::int64_t stride,
                      std::int64_t padding) {
  const auto y =
      conv_images(x.flatten(0, 1), pass.params[name + ".weight"], pass.params[name + ".bias"], stride, padding);
  return y.unflatten(0, {x.size(0), x.size(1)});
}

at::Tensor extend_frames(const at::Tensor& x, std::int64_t frames) {
  const auto missing = frames - x.size(1);
  if (missing <= 0) return x;
  auto sizes = x.sizes().vec();
  sizes[1] = missing;
  return at::cat({x, x.narrow(1, x.size(1) - 1, 1).expand(sizes)}, 1);
}

}  // namespace troupe::model
