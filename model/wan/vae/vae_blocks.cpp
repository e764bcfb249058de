#include "model/wan/vae/vae_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/wan/vae/causal_conv.h"

namespace troupe::model {
namespace {

using Kind = VaeLayer::Kind;

at::Tensor residual(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  auto h = norm_silu_conv(pass, layer.name + ".residual.0", layer.name + ".residual.2", x);
  h = norm_silu_conv(pass, layer.name + ".residual.3", layer.name + ".residual.6", h);
  const auto shortcut = layer.in == layer.out ? x : point_conv(pass, layer.name + ".shortcut", x);
  return h.add_(extend_frames(shortcut, h.size(1)));
}

/// One head over the positions of each frame.
at::Tensor attention(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  const auto normed = channel_norm(x, pass.params[layer.name + ".norm.gamma"], pass.rounding);
  const auto qkv = point_conv(pass, layer.name + ".to_qkv", normed).flatten(0, 1).flatten(1, 2).unsqueeze(1);
  const auto parts = qkv.chunk(3, -1);
  const auto seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return point_conv(pass, layer.name + ".proj", seen.reshape(x.sizes())).add_(x);
}

/// Frames that a still sequence must store so that what halving its rate makes of the last two is steady.
std::int64_t frames_to_halve(const VaePass& pass, std::int64_t stored) {
  return pass.still_frames > 0 ? std::min(2 * (stored / 2 + 1) + 1, pass.still_frames) : stored;
}

/// Frame 0 as it is, then every second frame from three taps.
at::Tensor halve_time(const VaeLayer& layer, const at::Tensor& x, VaePass& pass) {
  const auto name = layer.name + ".time_conv";
  const auto past = pass.past(name);
  pass.keep(name, x.narrow(1, x.size(1) - 1, 1));
  if (past.defined()) return halving_time_conv(pass, name, at::cat({past, x}, 1));
  const auto whole = extend_frames(x, frames_to_halve(pass, x.size(1)));
  TORCH_CHECK(whole.size(1) % 2 == 1, layer.name, ": a sequence starts with an odd number of frames, not ",
              whole.size(1));
  if (pass.still_frames > 0) pass.still_frames = (pass.still_frames + 1) / 2;
  if (whole.size(1) == 1) return x;
  return at::cat({whole.narrow(1, 0, 1), halving_time_conv(pass, name, whole)}, 1);
}

at::Tensor halve_space(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  // one zero row below and one zero column to the right, none before
  return frame_conv(pass, layer.name + ".resample.1", at::constant_pad_nd(x, {0, 0, 0, 1, 0, 1}), 2, 0);
}

/// Frames from three taps, each giving two: the first and the second half of its channels.
at::Tensor pairs_of_frames(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  const auto y = causal_conv(pass, layer.name + ".time_conv", x);
  return y.unflatten(-1, {2, x.size(4)}).permute({0, 1, 4, 2, 3, 5}).flatten(1, 2);
}

/// Frame 0 as it is and outside the history of the others, which double.
at::Tensor double_time(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  if (!pass.starts()) return pairs_of_frames(layer, x, pass).contiguous();
  if (x.size(1) == 1) return x;
  return at::cat({x.narrow(1, 0, 1), pairs_of_frames(layer, x.narrow(1, 1, x.size(1) - 1), pass)}, 1);
}

at::Tensor double_space(const VaeLayer& layer, const at::Tensor& x, const VaePass& pass) {
  const auto batch = x.size(0), frames = x.size(1), height = x.size(2), width = x.size(3), channels = x.size(4);
  const auto twice = x.reshape({batch * frames, height, 1, width, 1, channels})
                         .expand({batch * frames, height, 2, width, 2, channels})
                         .reshape({batch, frames, 2 * height, 2 * width, channels});
  return frame_conv(pass, layer.name + ".resample.1", twice, 1, 1);
}

at::Tensor run_layers(const std::vector<VaeLayer>& layers, const at::Tensor& x, VaePass& pass) {
  auto y = x;
  for (const auto& layer : layers) y = run_layer(layer, y, pass);
  return y;
}

at::Tensor down_unit(const VaeLayer& layer, const at::Tensor& x, VaePass& pass) {
  const auto whole = layer.time > 1 ? extend_frames(x, frames_to_halve(pass, x.size(1))) : x;
  const auto shortcut = average_blocks(whole, layer.out, layer.time, layer.space);
  auto y = run_layers(layer.layers, x, pass);
  return y.add_(extend_frames(shortcut, y.size(1)));
}

at::Tensor up_unit(const VaeLayer& layer, const at::Tensor& x, VaePass& pass) {
  auto y = run_layers(layer.layers, x, pass);
  if (layer.space == 1) return y;
  return y.add_(repeat_blocks(x, layer.out, layer.time, layer.space, pass.starts()));
}

}  // namespace

at::Tensor run_layer(const VaeLayer& layer, const at::Tensor& x, VaePass& pass) {
  TORCH_CHECK(x.dim() == 5 && x.size(4) == layer.in, layer.name, ": input ", x.sizes(), " wants [B, T, H, W, ",
              layer.in, "]");
  switch (layer.kind) {
    case Kind::conv:
      return causal_conv(pass, layer.name, x);
    case Kind::residual:
      return residual(layer, x, pass);
    case Kind::attention:
      return attention(layer, x, pass);
    case Kind::down_space:
      return halve_space(layer, x, pass);
    case Kind::down_both:
      return halve_time(layer, halve_space(layer, x, pass), pass);
    case Kind::up_space:
      return double_space(layer, x, pass);
    case Kind::up_both:
      return double_space(layer, double_time(layer, x, pass), pass);
    case Kind::head:
      return norm_silu_conv(pass, layer.name + ".0", layer.name + ".2", x);
    case Kind::down_unit:
      return down_unit(layer, x, pass);
    case Kind::up_unit:
      return up_unit(layer, x, pass);
  }
  TORCH_CHECK(false, layer.name, ": unknown kind of layer");
}

at::Tensor average_blocks(const at::Tensor& x, std::int64_t out, std::int64_t time, std::int64_t space) {
  const auto in = x.size(4);
  if (time == 1 && space == 1 && in == out) return x;
  const auto early = (time - x.size(1) % time) % time;
  const auto whole = early == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, 0, 0, 0, early, 0});
  const auto batch = x.size(0), frames = whole.size(1) / time, rows = x.size(2) / space, columns = x.size(3) / space;
  return whole.reshape({batch, frames, time, rows, space, columns, space, in})
      .permute({0, 1, 3, 5, 7, 2, 4, 6})
      .reshape({batch, frames, rows, columns, out, in * time * space * space / out})
      .mean(-1);
}

at::Tensor repeat_blocks(const at::Tensor& x, std::int64_t out, std::int64_t time, std::int64_t space, bool starts) {
  const auto batch = x.size(0), frames = x.size(1), rows = x.size(2), columns = x.size(3), in = x.size(4);
  const auto repeats = out * time * space * space / in;
  const auto y = x.unsqueeze(-1)
                     .expand({batch, frames, rows, columns, in, repeats})
                     .reshape({batch, frames, rows, columns, out, time, space, space})
                     .permute({0, 1, 5, 2, 6, 3, 7, 4})
                     .reshape({batch, frames * time, rows * space, columns * space, out});
  return starts ? y.narrow(1, time - 1, y.size(1) - (time - 1)) : y;
}

at::Tensor pixels_to_channels(const at::Tensor& video, std::int64_t block) {
  const auto batch = video.size(0), colours = video.size(1), frames = video.size(2);
  const auto rows = video.size(3) / block, columns = video.size(4) / block;
  return video.reshape({batch, colours, frames, rows, block, columns, block})
      .permute({0, 2, 3, 5, 1, 6, 4})
      .reshape({batch, frames, rows, columns, colours * block * block})
      .contiguous();
}

at::Tensor channels_to_pixels(const at::Tensor& x, std::int64_t block) {
  const auto batch = x.size(0), frames = x.size(1), rows = x.size(2), columns = x.size(3);
  const auto colours = x.size(4) / (block * block);
  return x.reshape({batch, frames, rows, columns, colours, block, block})
      .permute({0, 4, 1, 2, 6, 3, 5})
      .reshape({batch, colours, frames, rows * block, columns * block})
      .contiguous();
}

}  // namespace troupe::model
