#include "model/wan/vae_structure.h"

#include <array>
#include <utility>

namespace troupe::model {
namespace {

using Kind = VaeLayer::Kind;

constexpr std::int64_t kColours = 3;
constexpr std::size_t kStages = 4;
constexpr std::array<std::int64_t, kStages> kStageWidths{1, 2, 4, 4};  // in units of the base width
constexpr std::array<bool, kStages - 1> kHalvesTime{false, true, true};
constexpr int kEncoderBlocks = 2, kDecoderBlocks = 3;

bool is_wan22(const LatentCodecConfig& config) { return config.type == "wan22"; }

std::string at_index(const std::string& prefix, std::size_t index) { return prefix + "." + std::to_string(index); }

VaeLayer layer(Kind kind, std::string name, std::int64_t in, std::int64_t out) {
  VaeLayer made;
  made.kind = kind;
  made.name = std::move(name);
  made.in = in;
  made.out = out;
  return made;
}

void add_middle(std::vector<VaeLayer>& layers, const std::string& prefix, std::int64_t width) {
  layers.push_back(layer(Kind::residual, at_index(prefix, 0), width, width));
  layers.push_back(layer(Kind::attention, at_index(prefix, 1), width, width));
  layers.push_back(layer(Kind::residual, at_index(prefix, 2), width, width));
}

/// Appends a stage's residual blocks, numbered on from `list.size()`.
void add_blocks(std::vector<VaeLayer>& list, const std::string& prefix, int count, std::int64_t in, std::int64_t out) {
  for (int i = 0; i < count; ++i) {
    list.push_back(layer(Kind::residual, at_index(prefix, list.size()), i == 0 ? in : out, out));
  }
}

}  // namespace

std::int64_t vae_pixel_block(const LatentCodecConfig& config) { return is_wan22(config) ? 2 : 1; }

std::vector<VaeLayer> vae_encoder_layers(const LatentCodecConfig& config) {
  const auto block = vae_pixel_block(config), base = config.encoder_dim;
  std::vector<VaeLayer> layers{layer(Kind::conv, "encoder.conv1", kColours * block * block, base)};
  std::vector<VaeLayer> flat;
  auto width = base;
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto next = base * kStageWidths[i];
    const bool shrinks = i + 1 < kStages, halves_time = shrinks && kHalvesTime[i];
    const auto down = halves_time ? Kind::down_both : Kind::down_space;
    if (is_wan22(config)) {
      auto stage = layer(Kind::down_unit, at_index("encoder.downsamples", i), width, next);
      const auto prefix = stage.name + ".downsamples";
      add_blocks(stage.layers, prefix, kEncoderBlocks, width, next);
      if (shrinks) stage.layers.push_back(layer(down, at_index(prefix, stage.layers.size()), next, next));
      stage.time = halves_time ? 2 : 1;
      stage.space = shrinks ? 2 : 1;
      layers.push_back(std::move(stage));
    } else {
      add_blocks(flat, "encoder.downsamples", kEncoderBlocks, width, next);
      if (shrinks) flat.push_back(layer(down, at_index("encoder.downsamples", flat.size()), next, next));
    }
    width = next;
  }
  layers.insert(layers.end(), flat.begin(), flat.end());
  add_middle(layers, "encoder.middle", width);
  layers.push_back(layer(Kind::head, "encoder.head", width, 2 * config.channels));
  return layers;
}

std::vector<VaeLayer> vae_decoder_layers(const LatentCodecConfig& config) {
  const auto block = vae_pixel_block(config), base = config.decoder_dim;
  auto width = base * kStageWidths.back();
  std::vector<VaeLayer> layers{layer(Kind::conv, "decoder.conv1", config.channels, width)};
  add_middle(layers, "decoder.middle", width);
  std::vector<VaeLayer> flat;
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto next = base * kStageWidths[kStages - 1 - i];
    const bool grows = i + 1 < kStages, doubles_time = grows && kHalvesTime[kStages - 2 - i];
    const auto up = doubles_time ? Kind::up_both : Kind::up_space;
    if (is_wan22(config)) {
      auto stage = layer(Kind::up_unit, at_index("decoder.upsamples", i), width, next);
      const auto prefix = stage.name + ".upsamples";
      add_blocks(stage.layers, prefix, kDecoderBlocks, width, next);
      if (grows) stage.layers.push_back(layer(up, at_index(prefix, stage.layers.size()), next, next));
      stage.time = doubles_time ? 2 : 1;
      stage.space = grows ? 2 : 1;
      layers.push_back(std::move(stage));
      width = next;
    } else {
      add_blocks(flat, "decoder.upsamples", kDecoderBlocks, width, next);
      // the 2.1 decoder halves the channels where it doubles the image, so the next stage starts from half of them
      if (grows) flat.push_back(layer(up, at_index("decoder.upsamples", flat.size()), next, next / 2));
      width = grows ? next / 2 : next;
    }
  }
  layers.insert(layers.end(), flat.begin(), flat.end());
  layers.push_back(layer(Kind::head, "decoder.head", width, kColours * block * block));
  return layers;
}

}  // namespace troupe::model
