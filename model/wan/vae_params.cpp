#include "model/wan/vae_params.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "model/wan/vae_structure.h"

namespace troupe::model {
namespace {

using Kind = VaeLayer::Kind;
using Params = std::vector<ParamSpec>;

/// Weight [out, in, kernel...] and bias of a convolution.
void add_conv(Params& list, const std::string& name, std::int64_t in, std::int64_t out,
              const std::vector<std::int64_t>& kernel) {
  std::vector<std::int64_t> shape{out, in};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  auto fan_in = in;
  for (const auto side : kernel) fan_in *= side;
  const Init init{Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
  list.push_back({name + ".weight", shape, init});
  list.push_back({name + ".bias", {out}, init});
}

void add_causal_conv(Params& list, const std::string& name, std::int64_t in, std::int64_t out) {
  add_conv(list, name, in, out, {3, 3, 3});
}

void add_channel_gain(Params& list, const std::string& name, std::int64_t channels) {
  list.push_back({name + ".gamma", {channels, 1, 1, 1}, {Init::Kind::ones, 0}});
}

void add_layer(Params& list, const VaeLayer& layer) {
  switch (layer.kind) {
    case Kind::conv:
      add_causal_conv(list, layer.name, layer.in, layer.out);
      break;
    case Kind::residual:
      add_channel_gain(list, layer.name + ".residual.0", layer.in);
      add_causal_conv(list, layer.name + ".residual.2", layer.in, layer.out);
      add_channel_gain(list, layer.name + ".residual.3", layer.out);
      add_causal_conv(list, layer.name + ".residual.6", layer.out, layer.out);
      if (layer.in != layer.out) add_conv(list, layer.name + ".shortcut", layer.in, layer.out, {1, 1, 1});
      break;
    case Kind::attention:
      list.push_back({layer.name + ".norm.gamma", {layer.in, 1, 1}, {Init::Kind::ones, 0}});
      add_conv(list, layer.name + ".to_qkv", layer.in, 3 * layer.in, {1, 1});
      add_conv(list, layer.name + ".proj", layer.in, layer.in, {1, 1});
      break;
    case Kind::down_both:
      add_conv(list, layer.name + ".time_conv", layer.in, layer.in, {3, 1, 1});
      [[fallthrough]];
    case Kind::down_space:
      add_conv(list, layer.name + ".resample.1", layer.in, layer.out, {3, 3});
      break;
    case Kind::up_both:
      add_conv(list, layer.name + ".time_conv", layer.in, 2 * layer.in, {3, 1, 1});
      [[fallthrough]];
    case Kind::up_space:
      add_conv(list, layer.name + ".resample.1", layer.in, layer.out, {3, 3});
      break;
    case Kind::head:
      add_channel_gain(list, layer.name + ".0", layer.in);
      add_causal_conv(list, layer.name + ".2", layer.in, layer.out);
      break;
    case Kind::down_unit:
    case Kind::up_unit:
      for (const auto& inner : layer.layers) add_layer(list, inner);
      break;
  }
}

}  // namespace

std::vector<ParamSpec> vae_params(const LatentCodecConfig& config) {
  Params list;
  if (config.type != "wan21" && config.type != "wan22") return list;
  for (const auto& layer : vae_encoder_layers(config)) add_layer(list, layer);
  const auto z = config.channels;
  add_conv(list, "conv1", 2 * z, 2 * z, {1, 1, 1});
  add_conv(list, "conv2", z, z, {1, 1, 1});
  for (const auto& layer : vae_decoder_layers(config)) add_layer(list, layer);
  return list;
}

}  // namespace troupe::model
