#include "model/wan/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

namespace troupe::model {
namespace {

/// Appends position * 10000^(-2j/width) for j < width/2.
void append_angles(std::vector<double>& angles, std::int64_t position, std::int64_t width) {
  for (std::int64_t j = 0; j < width / 2; ++j) {
    angles.push_back(static_cast<double>(position) *
                     std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(width)));
  }
}

void append_frame(std::vector<double>& angles, const SequenceLayout& layout, std::int64_t frame,
                  std::int64_t head_dim) {
  const std::int64_t side = 2 * (head_dim / 6), time = head_dim - 2 * side;
  for (std::int64_t r = 0; r < layout.grid_rows; ++r) {
    for (std::int64_t c = 0; c < layout.grid_cols; ++c) {
      append_angles(angles, frame, time);
      append_angles(angles, r, side);
      append_angles(angles, c, side);
    }
  }
}

}  // namespace

RopeTables make_rope_tables(const SequenceLayout& layout, std::int64_t head_dim, at::ScalarType dtype) {
  TORCH_CHECK(head_dim % 2 == 0, "RoPE rotates pairs; dim / num_heads is ", head_dim, ", want an even number");
  std::vector<double> angles;
  angles.reserve(static_cast<std::size_t>(layout.tokens() * head_dim / 2));
  for (std::int64_t f = 0; f < layout.clean_frames(); ++f) append_frame(angles, layout, f, head_dim);
  append_frame(angles, layout, 0, head_dim);
  for (std::int64_t k = 0; k < layout.blocks; ++k) {
    for (std::int64_t i = 0; i < layout.frames_per_block; ++i) {
      append_frame(angles, layout, 1 + k * layout.frames_per_block + i, head_dim);
    }
    for (std::int64_t i = 0; i < layout.actions_per_block; ++i) {
      append_angles(angles, k * layout.actions_per_block + i, head_dim);
    }
    for (std::int64_t i = 0; i < layout.states_per_block; ++i) {
      append_angles(angles, k * layout.states_per_block + i, head_dim);
    }
  }
  const auto table = at::tensor(angles, at::TensorOptions().dtype(at::kDouble)).view({layout.tokens(), head_dim / 2});
  return {table.cos().to(dtype), table.sin().to(dtype)};
}

}  // namespace troupe::model
