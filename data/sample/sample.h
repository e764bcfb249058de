#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"

namespace troupe::data {

/// Element types of a sample's fields: unsigned bytes, 64-bit integers, float32, as they lie in memory.
enum class FieldType : std::uint8_t { u8, i64, f32 };

/// Bytes of one element.
constexpr std::int64_t bytes_of(FieldType type) { return type == FieldType::u8 ? 1 : type == FieldType::i64 ? 8 : 4; }

/// One tensor inside a slot: contiguous, row-major, little-endian.
struct TensorField {
  /// "images", "text" and so on; see sample_layout.
  std::string name;
  FieldType type = FieldType::u8;
  /// Slowest dimension first.
  std::vector<std::int64_t> shape;
  /// Bytes from the start of the slot; a multiple of 64, a cache line.
  std::int64_t offset = 0;
  /// Product of the shape times bytes_of(type); gaps up to the next field are zero.
  std::int64_t bytes = 0;
};

/// Where everything of one training sample lies in a slot of fixed size. A function of the configuration alone, so that
/// decoder, feed and learner agree without talking (docs/data.md has the table). K chunks, H actions a chunk; T frames
/// and N states are those of window_shape: K*F + 1 and K with multi_anchor, num_frames and K*state_horizon with
/// fixed_window.
struct SampleLayout {
  /// In the order of their offsets, which is the order of append().
  std::vector<TensorField> fields;
  /// Size of the slot; a multiple of 64, so that slots that follow each other stay aligned.
  std::int64_t bytes = 0;

  /// Adds a field behind the others, at the next multiple of 64.
  /// Requires a name that is not taken.
  void append(std::string name, FieldType type, std::vector<std::int64_t> shape);
  /// The field of that name; valid until the next append(). Requires that it exists.
  const TensorField& field(std::string_view name) const;
};

/// images u8 [T,h,w,3], text i64 [max_length], text_mask i64 [max_length], state f32 [N,max_state_dim], state_mask u8,
/// action f32 [K*H,action_dim], action_mask u8, embodiment_id i64 [1], has_real_action u8 [1], position i64 [1].
/// `num_views` picks the canvas (image/canvas.h). Errors: invalid_argument (a window or canvas that cannot
/// be).
Result<SampleLayout> sample_layout(const DataConfig& data, const ModelConfig& model, std::int64_t num_views);
/// The same with the views of the embodiments: that of every entry of data.sets, or data.embodiment without one.
/// Errors: also invalid_argument when an embodiment lists no views or two entries fill canvases of different sizes, and
/// those of dataset_spec.
Result<SampleLayout> sample_layout(const DataConfig& data, const ModelConfig& model);

/// The elements of one field of a slot, row-major. T must be the field's type; the view is valid as long as the slot.
template <class T>
std::span<T> field_values(std::span<std::byte> slot, const TensorField& field) {
  return {reinterpret_cast<T*>(slot.data() + field.offset), static_cast<std::size_t>(field.bytes) / sizeof(T)};
}
template <class T>
std::span<const T> field_values(std::span<const std::byte> slot, const TensorField& field) {
  return {reinterpret_cast<const T*>(slot.data() + field.offset), static_cast<std::size_t>(field.bytes) / sizeof(T)};
}

}  // namespace troupe::data
