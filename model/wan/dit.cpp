#include "model/wan/dit.h"

#include <ATen/ATen.h>

#include "kernels/modulated_norm.h"
#include "model/loss/sampled_label.h"
#include "model/wan/batch_keys.h"
#include "model/wan/dit_parts.h"
#include "model/wan/dit_program.h"
#include "model/wan/layers.h"
#include "model/wan/lora.h"
#include "model/wan/text_rows.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

/// The ids of a batch must obey what the time rows assume. Looked at on the CPU only: elsewhere it would stall the
/// stream.
void check_ids(const at::Tensor& video_ids, const at::Tensor& action_ids, const SequenceLayout& layout,
               bool decoupled) {
  if (!video_ids.device().is_cpu()) return;
  TORCH_CHECK(at::equal(video_ids, tie_video_ids(video_ids, layout.frames_per_block)),
              "video_ids differ inside a block; tie them with tie_video_ids");
  TORCH_CHECK(decoupled || at::equal(action_ids,
                                     coupled_action_ids(video_ids, layout.frames_per_block, layout.actions_per_block)),
              "action_ids are not their block's video ids; that needs DitOptions::decoupled_action_timesteps");
}

/// [clean copy or noisy copy | mask and first-frame latent] along channels.
at::Tensor input_channels(const Batch& batch, const char* latents, bool concat_first_frame) {
  const auto& x = batch_tensor(batch, latents);
  if (!concat_first_frame) return x;
  return at::cat({x, batch_tensor(batch, key::kFirstFrame).to(x.scalar_type())}, 1);
}

/// What stands before the names of a block's parameters.
std::string prefix_of(std::int64_t index) { return "blocks." + std::to_string(index) + "."; }

}  // namespace

DitNetwork::DitNetwork(const ModelConfig& config, std::int64_t max_blocks, DitOptions options)
    : config_(config),
      max_blocks_(max_blocks),
      options_(options),
      units_(training_units(config)),
      schedule_(make_flow_schedule()),
      programs_(std::make_unique<BlockPrograms>()) {
  TORCH_CHECK(max_blocks >= 1, "the window has ", max_blocks, " blocks, want at least 1 (data.window.chunks)");
  TORCH_CHECK(config.dit.dim % config.dit.num_heads == 0 && (config.dit.dim / config.dit.num_heads) % 2 == 0,
              "model.dit.dim is ", config.dit.dim, "; want num_heads (", config.dit.num_heads,
              ") times an even number");
}

DitNetwork::~DitNetwork() = default;

SequenceLayout DitNetwork::layout(const Batch& batch) const {
  const auto& latents = batch_tensor(batch, key::kNoisyLatents);
  const auto& actions = batch_tensor(batch, key::kNoisyActions);
  const auto& states = batch_tensor(batch, key::kState);
  TORCH_CHECK(latents.dim() == 5 && actions.dim() == 3 && states.dim() == 3, "noisy_latents ", latents.sizes(),
              ", noisy_actions ", actions.sizes(), ", state ", states.sizes(), ": want 5, 3 and 3 axes");
  SequenceLayout layout;
  layout.frames = latents.size(2);
  layout.grid_rows = latents.size(3) / 2;
  layout.grid_cols = latents.size(4) / 2;
  layout.frames_per_block = config_.latent_frames_per_block;
  layout.blocks = (layout.frames - 1) / layout.frames_per_block;
  layout.max_blocks = max_blocks_;
  layout.trimmed = options_.trim;
  TORCH_CHECK(layout.blocks >= 1 && (layout.frames - 1) % layout.frames_per_block == 0, "noisy_latents has ",
              layout.frames, " frames, want 1 plus a multiple of model.latent_frames_per_block (",
              layout.frames_per_block, ")");
  TORCH_CHECK(layout.frame_tokens() > 0, "noisy_latents ", latents.sizes(), " is smaller than one patch of 2 x 2");
  TORCH_CHECK(actions.size(1) > 0 && actions.size(1) % layout.blocks == 0 && states.size(1) % layout.blocks == 0,
              "noisy_actions has ", actions.size(1), " tokens and state ", states.size(1), "; want multiples of the ",
              layout.blocks, " blocks");
  layout.actions_per_block = actions.size(1) / layout.blocks;
  layout.states_per_block = states.size(1) / layout.blocks;
  TORCH_CHECK(layout.states_per_block == config_.states_per_block, "state has ", layout.states_per_block,
              " tokens per block; model.states_per_block is ", config_.states_per_block);
  return layout;
}

std::shared_ptr<const BlockPlan> DitNetwork::plan(const SequenceLayout& layout, at::ScalarType dtype, at::Device device,
                                                  bool outputs_only) const {
  const PlanKey cache_key{layout.frames,
                          layout.grid_rows,
                          layout.grid_cols,
                          layout.actions_per_block,
                          layout.states_per_block,
                          static_cast<int>(dtype),
                          static_cast<int>(device.type()),
                          device.index(),
                          outputs_only};
  const std::lock_guard lock(plan_mutex_);
  auto& found = plans_[cache_key];
  if (!found) {
    const auto tables = make_rope_tables(layout, config_.dit.dim / config_.dit.num_heads, dtype);
    found = std::make_shared<const BlockPlan>(make_block_plan(config_.dit, layout,
                                                              {tables.cos.to(device), tables.sin.to(device)},
                                                              options_.decoupled_action_timesteps, outputs_only));
  }
  return found;
}

Carry DitNetwork::prologue(const ParamView& params, const Batch& batch) const {
  const auto layout = this->layout(batch);
  const auto& video_ids = batch_tensor(batch, key::kVideoIds);
  const auto& action_ids = batch_tensor(batch, key::kActionIds);
  const bool decoupled = options_.decoupled_action_timesteps;
  check_ids(video_ids, action_ids, layout, decoupled);
  auto timesteps = schedule_.timesteps.to(video_ids.device());
  if (options_.round_timesteps) timesteps = timesteps.to(at::kBFloat16).to(at::kFloat);
  const auto t_video = timesteps.index({video_ids}), t_action = timesteps.index({action_ids});

  // time rows: clean (t = 0), noisy frame 0, one per block, and in the decoupled mode one per action
  std::vector<at::Tensor> rows{at::zeros_like(t_video.narrow(1, 0, 1)), t_video.narrow(1, 0, 1),
                               t_video.slice(1, 1, layout.frames, layout.frames_per_block)};
  if (decoupled) rows.push_back(t_action);
  const auto sinusoid = time_sinusoid(at::cat(rows, 1), config_.dit.freq_dim);
  const auto e = linear(params, "time_embedding.2", at::silu(linear(params, "time_embedding.0", sinusoid)));
  const auto e0 = linear(params, "time_projection.1", at::silu(e)).unflatten(-1, {6, config_.dit.dim});

  const bool concat = config_.dit.concat_first_frame_latent;
  const auto clean_in = input_channels(batch, key::kCleanLatents, concat);
  const auto clean = embed_patches(params, clean_in.narrow(2, 0, layout.clean_frames()));
  const auto noisy = embed_patches(params, input_channels(batch, key::kNoisyLatents, concat));
  const auto per_block = [&layout](const at::Tensor& x) { return x.unflatten(1, {layout.blocks, -1}); };
  const auto groups = at::cat({per_block(noisy.narrow(1, layout.frame_tokens(), noisy.size(1) - layout.frame_tokens())),
                               per_block(embed_actions(params, batch_tensor(batch, key::kNoisyActions), t_action)),
                               per_block(embed_states(params, batch_tensor(batch, key::kState)))},
                              2);
  Carry carry;
  carry.x = at::cat({clean, noisy.narrow(1, 0, layout.frame_tokens()), groups.flatten(1, 2)}, 1);
  const auto text = distinct_text_rows(batch_tensor(batch, key::kContext), options_.collapse_text_pads);
  carry.conditioning = {embed_text(params, text.rows_1TC), embed_image(params, batch_tensor(batch, key::kClip)), e, e0,
                        text.of_sample_B3};
  return carry;
}

std::shared_ptr<const BlockPlan> DitNetwork::plan_of_block(std::int64_t index, const Carry& carry,
                                                           const Batch& batch) const {
  const bool last = index + 1 == config_.dit.num_layers;
  return plan(layout(batch), accumulate_type(carry.x.scalar_type()), carry.x.device(), last && options_.trim);
}

at::Tensor DitNetwork::block(std::int64_t index, const ParamView& params, const Carry& carry,
                             const Batch& batch) const {
  const auto shape = plan_of_block(index, carry, batch);
  return transformer_block(*shape, params, prefix_of(index), carry.x, carry.conditioning);
}

BlockProgram DitNetwork::block_program(std::int64_t index, const ParamView& params, const Carry& carry,
                                       const Batch& batch, RecomputeLevel level,
                                       const std::set<std::string>& trained) const {
  const auto prefix = prefix_of(index);
  std::set<std::string> own;
  for (const auto& name : trained) own.insert(name.substr(prefix.size()));
  const auto shape = plan_of_block(index, carry, batch);
  return {programs_->find(*shape, params, prefix, carry, level, own), prefix};
}

Outputs DitNetwork::epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const {
  const auto layout = this->layout(batch);
  const auto blocks = layout.blocks, fs = layout.frame_tokens(), video = layout.block_video_tokens();
  const auto actions = layout.actions_per_block;
  // noisy frame 0 and the groups; a trimmed last block has dropped the rest already
  const auto from = options_.trim ? 0 : layout.clean_tokens();
  const auto groups = carry.x.narrow(1, from + fs, carry.x.size(1) - from - fs).unflatten(1, {blocks, -1});
  const auto action_x = groups.narrow(2, video, actions).flatten(1, 2);
  const auto video_x = at::cat({carry.x.narrow(1, from, fs), groups.narrow(2, 0, video).flatten(1, 2)}, 1);

  const auto& table = params["head.modulation"];
  const auto& e = carry.conditioning[dit_conditioning::kTimeRows];
  const auto rows = table.unsqueeze(1) + e.narrow(1, 1, 1 + blocks).unsqueeze(2).to(table.scalar_type());
  // rows of the time table: noisy frame 0, then one per block
  const auto time_row = at::arange(1 + blocks, at::TensorOptions().dtype(at::kInt).device(video_x.device()));
  const auto lengths = at::full({1 + blocks}, video, at::TensorOptions().dtype(at::kLong).device(video_x.device()));
  lengths.narrow(0, 0, 1).fill_(fs);
  const auto h = modulated_layer_norm(video_x, 1.0 + rows.select(2, 1), rows.select(2, 0),
                                      time_row.repeat_interleave(lengths), config_.dit.eps);

  Outputs outputs;
  outputs.predictions[key::kVideoVelocity] = unpatchify(linear(params, "head.head", h), layout);
  outputs.predictions[key::kActionVelocity] = category_linear(
      params, "action_decoder.layer2", at::relu(category_linear(params, "action_decoder.layer1", action_x)));
  add_losses(outputs, batch);
  return outputs;
}

void DitNetwork::add_losses(Outputs& outputs, const Batch& batch) const {
  if (batch.count(key::kVideoTarget) == 0 || batch.count(key::kActionTarget) == 0) return;
  const auto& v_video = outputs.predictions.at(key::kVideoVelocity);
  const auto& v_action = outputs.predictions.at(key::kActionVelocity);
  const auto table = schedule_.weights.to(v_video.device());
  // a void sample weighs nothing; the means still divide by the whole micro-batch
  const auto weights_of = [&](const char* ids) {
    const auto weights = table.index({batch_tensor(batch, ids)});
    const auto of_sample = batch.find(key::kSampleWeight);
    return of_sample == batch.end() ? weights : weights * of_sample->second.unsqueeze(1).to(weights.options());
  };
  if (batch.count(key::kVideoLabelNoise) != 0) {
    const auto noise = batch_tensor(batch, key::kVideoLabelNoise).narrow(3, 0, v_video.size(3));
    outputs.loss = sampled_label_loss(v_video, video_flow_coefficients(v_video, weights_of(key::kVideoIds)),
                                      noise.narrow(4, 0, v_video.size(4))) +
                   sampled_label_loss(
                       v_action,
                       action_flow_coefficients(v_action, batch_tensor(batch, key::kActionMask),
                                                batch_tensor(batch, key::kHasRealAction), weights_of(key::kActionIds)),
                       batch_tensor(batch, key::kActionLabelNoise));
    return;
  }
  const auto video_loss = video_flow_loss(v_video, batch_tensor(batch, key::kVideoTarget), weights_of(key::kVideoIds));
  const auto action_loss =
      action_flow_loss(v_action, batch_tensor(batch, key::kActionTarget), batch_tensor(batch, key::kActionMask),
                       batch_tensor(batch, key::kHasRealAction), weights_of(key::kActionIds));
  outputs.loss = video_loss + action_loss;
  outputs.metrics = {
      {"loss", outputs.loss.detach()}, {"dynamics_loss", video_loss.detach()}, {"action_loss", action_loss.detach()}};
}

}  // namespace troupe::model
