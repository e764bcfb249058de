#include "data/sample/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/sampling/dataset_spec.h"
#include "data/sampling/window.h"
#include "image/canvas.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void SampleLayout::append(std::string name, FieldType type, std::vector<std::int64_t> shape) {
  std::int64_t size = bytes_of(type);
  for (const std::int64_t n : shape) size *= n;
  fields.push_back({std::move(name), type, std::move(shape), bytes, size});
  bytes = aligned(bytes + size);
}

const TensorField& SampleLayout::field(std::string_view name) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const TensorField& f) { return f.name == name; });
  TROUPE_CHECK(it != fields.end(), name);
  return *it;
}

namespace {

Result<SampleLayout> layout_on(const CanvasLayout& canvas, const DataConfig& data, const ModelConfig& model) {
  DatasetSpec spec;
  spec.window = data.window;
  spec.sampling = data.sampling;
  if (const auto defect = window_defect(spec)) return invalid_argument(*defect);
  const WindowShape window = window_shape(data.sampling, data.window);
  const std::int64_t tokens = model.text_encoder.max_length;
  const std::int64_t state_dim = model.dit.max_state_dim, action_dim = model.dit.action_dim;

  SampleLayout layout;
  layout.append("images", FieldType::u8, {window.frames, canvas.height, canvas.width, 3});
  layout.append("text", FieldType::i64, {tokens});
  layout.append("text_mask", FieldType::i64, {tokens});
  layout.append("state", FieldType::f32, {window.states, state_dim});
  layout.append("state_mask", FieldType::u8, {window.states, state_dim});
  layout.append("action", FieldType::f32, {window.actions, action_dim});
  layout.append("action_mask", FieldType::u8, {window.actions, action_dim});
  layout.append("embodiment_id", FieldType::i64, {1});
  layout.append("has_real_action", FieldType::u8, {1});
  layout.append("position", FieldType::i64, {1});
  return layout;
}

Result<CanvasLayout> canvas_of(const EmbodimentConfig& embodiment, const ImageConfig& image) {
  if (embodiment.views.empty()) {
    return invalid_argument(
        fmt::format("the embodiment {} lists no views; list the cameras in canvas order", embodiment.tag));
  }
  return CanvasLayout::make(embodiment.layout, static_cast<std::int64_t>(embodiment.views.size()), image.height,
                            image.width);
}

}  // namespace

Result<SampleLayout> sample_layout(const DataConfig& data, const ModelConfig& model, std::int64_t num_views) {
  TROUPE_ASSIGN(const CanvasLayout canvas,
                CanvasLayout::make(data.embodiment.layout, num_views, data.image.height, data.image.width));
  return layout_on(canvas, data, model);
}

Result<SampleLayout> sample_layout(const DataConfig& data, const ModelConfig& model) {
  if (data.sets.empty()) {
    TROUPE_ASSIGN(const CanvasLayout canvas, canvas_of(data.embodiment, data.image));
    return layout_on(canvas, data, model);
  }
  std::optional<CanvasLayout> first;
  for (std::size_t i = 0; i < data.sets.size(); ++i) {
    TROUPE_ASSIGN(const DatasetSpec spec, dataset_spec(data, model, i));
    auto canvas = canvas_of(spec.embodiment, data.image);
    if (!canvas) return canvas.error().with(fmt::format("data.sets[{}]", i));
    if (!first) first = *canvas;
    if (canvas->height == first->height && canvas->width == first->width) continue;
    return invalid_argument(
        fmt::format("data.sets[0] fills a canvas of {}x{} pixels and data.sets[{}] one of {}x{} (layout {}, {} views); "
                    "samples of one job have one size: change the views or layout of an embodiment",
                    first->height, first->width, i, canvas->height, canvas->width, spec.embodiment.layout,
                    spec.embodiment.views.size()));
  }
  return layout_on(*first, data, model);
}

}  // namespace troupe::data
