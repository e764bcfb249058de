#include <ATen/ATen.h>

#include "kernels/linear.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"

namespace troupe::model {
at::Tensor input_patches(const at::Tensor& latents) {
  const auto rows = latents.size(3) / 2, cols = latents.size(4) / 2;
  return latents.narrow(3, 0, 2 * rows)
      .narrow(4, 0, 2 * cols)
      .unflatten(3, {rows, 2})
      .unflatten(5, {cols, 2})
      .permute({0, 2, 3, 5, 1, 4, 6})  // frame, row, column | channel, row offset, column offset
      .reshape({latents.size(0), -1, latents.size(1) * 4});
}

at::Tensor embed_patches(const ParamView& params, const at::Tensor& patches) {
  const auto weight = params["patch_embedding.weight"].flatten(1);
  TORCH_CHECK(patches.size(-1) == weight.size(1), "patch embedding: latents have ", patches.size(-1) / 4,
              " channels, want ", weight.size(1) / 4, " (model.dit.in_dim)");
  return linear_product(patches.to(weight.scalar_type()), weight, params["patch_embedding.bias"]);
}

at::Tensor unpatchify(const at::Tensor& tokens, const SequenceLayout& layout) {
  const auto channels = tokens.size(2) / 4;
  return tokens.view({tokens.size(0), layout.frames, layout.grid_rows, layout.grid_cols, 2, 2, channels})
      .permute({0, 6, 1, 2, 4, 3, 5})
      .reshape({tokens.size(0), channels, layout.frames, 2 * layout.grid_rows, 2 * layout.grid_cols});
}

at::Tensor patchify(const at::Tensor& latents) {
  const auto rows = latents.size(3) / 2, cols = latents.size(4) / 2;
  return latents.unflatten(3, {rows, 2})
      .unflatten(5, {cols, 2})
      .permute({0, 2, 3, 5, 4, 6, 1})  // frame, row, column | row offset, column offset, channel
      .reshape({latents.size(0), -1, latents.size(1) * 4});
}

at::Tensor embed_text(const ParamView& params, const at::Tensor& context) {
  return linear(params, "text_embedding.2", at::gelu(linear(params, "text_embedding.0", context), "tanh"));
}

at::Tensor embed_image(const ParamView& params, const at::Tensor& clip) {
  const auto dtype = params["img_emb.proj.1.weight"].scalar_type();
  const auto normed = affine_layer_norm(params, "img_emb.proj.0", clip.to(dtype), kImageEps);
  const auto hidden = at::gelu(linear(params, "img_emb.proj.1", normed));
  return affine_layer_norm(params, "img_emb.proj.4", linear(params, "img_emb.proj.3", hidden), kImageEps).to(dtype);
}

at::Tensor embed_actions(const ParamView& params, const at::Tensor& noisy_actions, const at::Tensor& sinusoid) {
  const auto actions = category_linear(params, "action_encoder.W1", noisy_actions);
  const auto hidden =
      category_linear(params, "action_encoder.W2", at::cat({actions, sinusoid.to(actions.scalar_type())}, 2));
  return category_linear(params, "action_encoder.W3", at::silu(hidden));
}

at::Tensor embed_states(const ParamView& params, const at::Tensor& states) {
  return category_linear(params, "state_encoder.layer2",
                         at::relu(category_linear(params, "state_encoder.layer1", states)));
}

at::Tensor time_row_of(const SequenceLayout& layout, bool decoupled) {
  std::vector<std::int32_t> rows;
  const auto append = [&rows](std::int64_t row, std::int64_t count) {
    rows.insert(rows.end(), static_cast<std::size_t>(count), static_cast<std::int32_t>(row));
  };
  const auto blocks = layout.blocks, actions = layout.actions_per_block, states = layout.states_per_block;
  append(0, layout.clean_tokens());
  append(1, layout.frame_tokens());
  for (std::int64_t k = 0; k < blocks; ++k) {
    const auto action_row = [&](std::int64_t i) { return decoupled ? 2 + blocks + k * actions + i : 2 + k; };
    append(2 + k, layout.block_video_tokens());
    for (std::int64_t i = 0; i < actions; ++i) append(action_row(i), 1);
    // a state takes the timestep of the action that starts its share of the block
    for (std::int64_t i = 0; i < states; ++i) append(action_row(i * (actions / states)), 1);
  }
  return at::tensor(rows, at::TensorOptions().dtype(at::kInt));
}

}  // namespace troupe::model
