#include "image/augmentation.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace troupe::image {

namespace {

ImageAugmentation cropped(const ImageConfig& config, std::int64_t height, std::int64_t width) {
  const auto kept = [&](std::int64_t side) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(side) * config.crop), 1, side);
  };
  return {.height = kept(height), .width = kept(width)};
}

std::int64_t half_to_even(std::int64_t twice) { return twice / 2 + (twice % 2 != 0 ? twice / 2 % 2 : 0); }

ColorJitter draw_jitter(CounterRng& rng, const ImageConfig& config) {
  std::array<std::uint8_t, 4> order{0, 1, 2, 3};
  for (std::uint32_t i = 3; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
  ColorJitter jitter;
  // every factor is drawn, so that switching one operation off leaves the others as they were
  const auto around_one = [&](double range) { return rng.uniform(std::max(0.0, 1 - range), 1 + range); };
  jitter.brightness_factor = around_one(config.brightness);
  jitter.contrast_factor = around_one(config.contrast);
  jitter.saturation_factor = around_one(config.saturation);
  jitter.hue_shift = rng.uniform(-config.hue, config.hue);
  const double ranges[4] = {config.brightness, config.contrast, config.saturation, config.hue};
  for (const std::uint8_t operation : order) {
    if (ranges[operation] > 0) jitter.order[static_cast<std::size_t>(jitter.operations++)] = operation;
  }
  return jitter;
}

}  // namespace

ImageAugmentation draw_augmentation(std::uint64_t seed, std::uint64_t position, const ImageConfig& config,
                                    std::int64_t source_height, std::int64_t source_width) {
  ImageAugmentation drawn = cropped(config, source_height, source_width);
  CounterRng crop(seed, rng_stream::crop, position), jitter(seed, rng_stream::jitter, position);
  drawn.top = crop.below(static_cast<std::uint32_t>(source_height - drawn.height + 1));
  drawn.left = crop.below(static_cast<std::uint32_t>(source_width - drawn.width + 1));
  drawn.jitter = draw_jitter(jitter, config);
  return drawn;
}

ImageAugmentation centre_augmentation(const ImageConfig& config, std::int64_t source_height,
                                      std::int64_t source_width) {
  ImageAugmentation centred = cropped(config, source_height, source_width);
  centred.top = half_to_even(source_height - centred.height);
  centred.left = half_to_even(source_width - centred.width);
  return centred;
}

}  // namespace troupe::image
