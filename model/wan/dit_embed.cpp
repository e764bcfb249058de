#include <ATen/ATen.h>

#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"

namespace troupe {
namespace {

constexpr double kContextEps = 1e-5;  // of the image embedding's layer norms, whatever the model's eps is

}  // namespace

const at::Tensor& batch_tensor(const Batch& batch, const char* key) {
  const auto it = batch.find(key);
  TORCH_CHECK(it != batch.end(), "the batch has no tensor \"", key, "\"");
  return it->second;
}

at::Tensor embed_patches(const ParamView& params, const at::Tensor& latents) {
  const auto& weight = params["patch_embedding.weight"];
  TORCH_CHECK(latents.dim() == 5 && latents.size(1) == weight.size(1), "patch embedding: latents ", latents.sizes(),
              " want ", weight.size(1), " channels in axis 1 (model.dit.in_dim)");
  const auto rows = latents.size(3) / 2, cols = latents.size(4) / 2;
  const auto patches = latents.to(weight.scalar_type())
                           .narrow(3, 0, 2 * rows)
                           .narrow(4, 0, 2 * cols)
                           .unflatten(3, {rows, 2})
                           .unflatten(5, {cols, 2})
                           .permute({0, 2, 3, 5, 1, 4, 6})  // frame, row, column | channel, row offset, column offset
                           .reshape({latents.size(0), -1, weight.size(1) * 4});
  return at::linear(patches, weight.flatten(1), params["patch_embedding.bias"]);
}

at::Tensor unpatchify(const at::Tensor& tokens, const SequenceLayout& layout) {
  const auto channels = tokens.size(2) / 4;
  return tokens.view({tokens.size(0), layout.frames, layout.grid_rows, layout.grid_cols, 2, 2, channels})
      .permute({0, 6, 1, 2, 4, 3, 5})
      .reshape({tokens.size(0), channels, layout.frames, 2 * layout.grid_rows, 2 * layout.grid_cols});
}

at::Tensor embed_text(const ParamView& params, const at::Tensor& context) {
  return linear(params, "text_embedding.2", at::gelu(linear(params, "text_embedding.0", context), "tanh"));
}

at::Tensor embed_image(const ParamView& params, const at::Tensor& clip) {
  const auto dtype = params["img_emb.proj.1.weight"].scalar_type();
  const auto normed = affine_layer_norm(params, "img_emb.proj.0", clip.to(dtype), kContextEps);
  const auto hidden = at::gelu(linear(params, "img_emb.proj.1", normed));
  return affine_layer_norm(params, "img_emb.proj.4", linear(params, "img_emb.proj.3", hidden), kContextEps).to(dtype);
}

at::Tensor embed_actions(const ParamView& params, const at::Tensor& noisy_actions, const at::Tensor& timesteps) {
  const auto actions = category_linear(params, "action_encoder.W1", noisy_actions);
  const auto tau = action_sinusoid(timesteps, actions.size(2)).to(actions.scalar_type());
  const auto hidden = category_linear(params, "action_encoder.W2", at::cat({actions, tau}, 2));
  return category_linear(params, "action_encoder.W3", at::silu(hidden));
}

at::Tensor embed_states(const ParamView& params, const at::Tensor& states) {
  return category_linear(params, "state_encoder.layer2",
                         at::relu(category_linear(params, "state_encoder.layer1", states)));
}

at::Tensor spread_time_rows(const at::Tensor& rows_BRd, const SequenceLayout& layout, bool decoupled,
                            bool outputs_only) {
  const auto batch = rows_BRd.size(0), channels = rows_BRd.size(2), blocks = layout.blocks;
  const auto actions = layout.actions_per_block, states = outputs_only ? 0 : layout.states_per_block;
  std::vector<at::Tensor> parts;
  if (!outputs_only) parts.push_back(rows_BRd.narrow(1, 0, 1).expand({batch, layout.clean_tokens(), channels}));
  parts.push_back(rows_BRd.narrow(1, 1, 1).expand({batch, layout.frame_tokens(), channels}));
  const auto block_rows = rows_BRd.narrow(1, 2, blocks).unsqueeze(2);
  if (!decoupled) {
    const auto group = layout.block_video_tokens() + actions + states;
    parts.push_back(block_rows.expand({batch, blocks, group, channels}).reshape({batch, blocks * group, channels}));
    return at::cat(parts, 1);
  }
  const auto action_rows = rows_BRd.narrow(1, 2 + blocks, blocks * actions).view({batch, blocks, actions, channels});
  std::vector<at::Tensor> group{block_rows.expand({batch, blocks, layout.block_video_tokens(), channels}), action_rows};
  if (states > 0) {
    // a state takes the timestep of the action that starts its share of the block
    const auto stride = actions / states;
    group.push_back(action_rows.slice(2, 0, stride * states, stride));
  }
  parts.push_back(at::cat(group, 2).flatten(1, 2));
  return at::cat(parts, 1);
}

}  // namespace troupe
