#include "workers/inference/policy/observation_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace troupe::workers {

namespace {

/// Larger frames and longer clips are no robot's; sizes are checked before anything is multiplied.
constexpr std::int64_t kMostPixels = 16'384;

Error refuse(const std::string& text) { return Error{Errc::invalid_argument, text}; }

std::string shape_text(const NdArray& array) {
  return fmt::format("{} [{}]", array.dtype, fmt::join(array.shape, ", "));
}

/// One view as frames of one size.
struct Clip {
  std::int64_t frames = 0, height = 0, width = 0;
  const std::uint8_t* data = nullptr;

  Rgb8View frame(std::int64_t i) const { return {data + i * height * width * 3, height, width, 3 * width}; }
};

Result<Clip> read_clip(const std::string& view, const NdArray& array) {
  const std::size_t dims = array.shape.size();
  if (array.dtype != "|u1" || (dims != 3 && dims != 4) || array.shape.back() != 3) {
    return refuse(fmt::format("image '{}' is {}; wanted |u1 [H, W, 3] or [T, H, W, 3]", view, shape_text(array)));
  }
  Clip clip{.frames = dims == 4 ? array.shape[0] : 1, .height = array.shape[dims - 3], .width = array.shape[dims - 2]};
  for (const std::int64_t d : {clip.frames, clip.height, clip.width}) {
    if (d < 1 || d > kMostPixels) return refuse(fmt::format("image '{}' is {}", view, shape_text(array)));
  }
  if (static_cast<std::int64_t>(array.data.size()) != clip.frames * clip.height * clip.width * 3) {
    return refuse(fmt::format("image '{}' is {} and has {} bytes", view, shape_text(array), array.data.size()));
  }
  clip.data = reinterpret_cast<const std::uint8_t*>(array.data.data());
  return clip;
}

/// Values of a state vector as rows of its width.
Result<std::vector<float>> read_rows(const PolicyKey& key, const NdArray& array) {
  const bool f32 = array.dtype == "<f4", f64 = array.dtype == "<f8";
  const std::size_t dims = array.shape.size();
  if ((!f32 && !f64) || (dims != 1 && dims != 2) || array.shape.back() != key.width ||
      (dims == 2 && array.shape[0] < 1)) {
    return refuse(fmt::format("state '{}' is {}; wanted <f4 or <f8 [{}]", key.name, shape_text(array), key.width));
  }
  const std::size_t size = f32 ? sizeof(float) : sizeof(double), count = array.data.size() / size;
  const std::int64_t rows = dims == 2 ? array.shape[0] : 1;
  if (array.data.size() % size != 0 || static_cast<std::int64_t>(count) / key.width != rows ||
      static_cast<std::int64_t>(count) % key.width != 0) {
    return refuse(fmt::format("state '{}' is {} and has {} bytes", key.name, shape_text(array), array.data.size()));
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = 0;
    if (f32) {
      std::memcpy(&values[i], array.data.data() + i * size, size);
    } else {
      std::memcpy(&value, array.data.data() + i * size, size);
      values[i] = static_cast<float>(value);
    }
    if (!std::isfinite(values[i])) return refuse(fmt::format("state '{}' holds a value that is not finite", key.name));
  }
  return values;
}

std::string key_list(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

ObservationReader::ObservationReader(const PolicySpec& spec, std::vector<std::int64_t> frames_per_call,
                                     ImageChain chain)
    : image_(spec.image),
      views_(spec.embodiment.views),
      state_keys_(spec.state),
      state_rows_(spec.model.states_per_block),
      state_stride_(spec.model.dit.max_state_dim),
      frames_per_call_(std::move(frames_per_call)),
      chain_(std::move(chain)) {
  for (const PolicyKey& key : state_keys_) normalizers_.emplace_back(key.mode, key.statistics.front());
}

Result<ObservationReader> ObservationReader::make(const PolicySpec& spec, std::vector<std::int64_t> frames_per_call) {
  TROUPE_ASSIGN(ImageChain chain, ImageChain::make(spec.image, spec.embodiment.layout,
                                                   static_cast<std::int64_t>(spec.embodiment.views.size())));
  return ObservationReader(spec, std::move(frames_per_call), std::move(chain));
}

Result<void> ObservationReader::read_images(const Observation& observation, PreparedObservation& out) {
  for (const auto& [name, array] : observation.images) {
    if (std::find(views_.begin(), views_.end(), name) != views_.end()) continue;
    return refuse(fmt::format("image '{}' is unknown; wanted {}", name, key_list(views_)));
  }
  std::vector<Clip> clips;
  for (const std::string& view : views_) {
    const auto it = observation.images.find(view);
    if (it == observation.images.end()) return refuse(fmt::format("image '{}' is missing", view));
    TROUPE_ASSIGN(const Clip clip, read_clip(view, it->second));
    clips.push_back(clip);
  }
  out.frames = clips.front().frames;
  for (std::size_t v = 0; v < clips.size(); ++v) {
    if (clips[v].frames == out.frames) continue;
    return refuse(
        fmt::format("image '{}' has {} frames where '{}' has {}", views_[v], clips[v].frames, views_[0], out.frames));
  }
  if (std::find(frames_per_call_.begin(), frames_per_call_.end(), out.frames) == frames_per_call_.end()) {
    return refuse(fmt::format("image '{}' has {} frames; a call brings {}", views_[0], out.frames,
                              fmt::join(frames_per_call_, ", ")));
  }
  const auto bytes = static_cast<std::size_t>(chain_.canvas_bytes());
  out.canvases.resize(static_cast<std::size_t>(out.frames) * bytes);
  for (std::size_t v = 0; v < clips.size(); ++v) {
    const ImageAugmentation crop = centre_augmentation(image_, clips[v].height, clips[v].width);
    for (std::int64_t f = 0; f < out.frames; ++f) {
      const auto canvas = std::span(out.canvases).subspan(static_cast<std::size_t>(f) * bytes, bytes);
      auto placed = chain_.run_view(static_cast<std::int64_t>(v), clips[v].frame(f), crop, canvas);
      if (!placed) return placed.error().with(fmt::format("image '{}'", views_[v]));
    }
  }
  return {};
}

Result<void> ObservationReader::read_state(const Observation& observation, PreparedObservation& out) const {
  for (const auto& entry : observation.state) {
    const std::string& name = entry.first;
    if (std::any_of(state_keys_.begin(), state_keys_.end(), [&](const PolicyKey& k) { return k.name == name; }))
      continue;
    std::vector<std::string> names;
    for (const PolicyKey& key : state_keys_) names.push_back(key.name);
    return refuse(fmt::format("state '{}' is unknown; wanted {}", name, key_list(names)));
  }
  out.state.assign(static_cast<std::size_t>(state_rows_ * state_stride_), 0.0F);
  std::size_t at = 0;
  for (std::size_t k = 0; k < state_keys_.size(); ++k) {
    const PolicyKey& key = state_keys_[k];
    const auto it = observation.state.find(key.name);
    if (it == observation.state.end()) return refuse(fmt::format("state '{}' is missing", key.name));
    TROUPE_ASSIGN(std::vector<float> values, read_rows(key, it->second));
    const auto width = static_cast<std::size_t>(key.width), rows = values.size() / width;
    out.newest[key.name].assign(values.end() - static_cast<std::ptrdiff_t>(width), values.end());
    (void)normalizers_[k].forward(values);
    for (std::size_t r = 0; r < static_cast<std::size_t>(state_rows_); ++r) {
      // The last row given is the last row wanted; before the first one given, that one again.
      const std::size_t missing = static_cast<std::size_t>(state_rows_) - 1 - r;
      const std::size_t row = missing < rows ? rows - 1 - missing : 0;
      std::copy_n(values.data() + row * width, width,
                  out.state.data() + r * static_cast<std::size_t>(state_stride_) + at);
    }
    at += width;
  }
  return {};
}

Result<PreparedObservation> ObservationReader::read(const Observation& observation) {
  PreparedObservation out;
  TROUPE_TRY(read_state(observation, out));
  TROUPE_TRY(read_images(observation, out));
  return out;
}

}  // namespace troupe::workers
