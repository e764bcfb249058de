#include "workers/data/sample.h"

#include <algorithm>

#include "workers/data/image/canvas.h"
#include "workers/data/sampling/multi_anchor.h"

namespace troupe {

namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void append(SampleLayout& layout, std::string name, FieldType type, std::vector<std::int64_t> shape) {
  std::int64_t bytes = bytes_of(type);
  for (std::int64_t n : shape) bytes *= n;
  layout.fields.push_back({std::move(name), type, std::move(shape), layout.bytes, bytes});
  layout.bytes = aligned(layout.bytes + bytes);
}

}  // namespace

const TensorField& SampleLayout::field(std::string_view name) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const TensorField& f) { return f.name == name; });
  TROUPE_CHECK(it != fields.end(), name);
  return *it;
}

Result<SampleLayout> sample_layout(const DataConfig& data, const ModelConfig& model, std::int64_t num_views) {
  if (const auto defect = window_defect(data.window)) return Error{Errc::invalid_argument, *defect};
  TROUPE_ASSIGN(const CanvasLayout canvas,
                CanvasLayout::make(data.embodiment.layout, num_views, data.image.height, data.image.width));
  const std::int64_t chunks = data.window.chunks, actions = chunks * data.window.action_horizon;
  const std::int64_t frames = chunks * static_cast<std::int64_t>(data.window.video_offsets.size()) + 1;
  const std::int64_t tokens = model.text_encoder.max_length;
  const std::int64_t state_dim = model.dit.max_state_dim, action_dim = model.dit.action_dim;

  SampleLayout layout;
  append(layout, "images", FieldType::u8, {frames, canvas.height, canvas.width, 3});
  append(layout, "text", FieldType::i64, {tokens});
  append(layout, "text_mask", FieldType::i64, {tokens});
  append(layout, "state", FieldType::f32, {chunks, state_dim});
  append(layout, "state_mask", FieldType::u8, {chunks, state_dim});
  append(layout, "action", FieldType::f32, {actions, action_dim});
  append(layout, "action_mask", FieldType::u8, {actions, action_dim});
  append(layout, "embodiment_id", FieldType::i64, {1});
  append(layout, "has_real_action", FieldType::u8, {1});
  append(layout, "position", FieldType::i64, {1});
  return layout;
}

}  // namespace troupe
