#include "model/wan/dit.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/device_tensor.h"
#include "kernels/modulated_norm.h"
#include "model/loss/sampled_label.h"
#include "model/program/program_cache.h"
#include "model/wan/batch_keys.h"
#include "model/wan/block_program.h"
#include "model/wan/dit_parts.h"
#include "model/wan/head_program.h"
#include "model/wan/layers.h"
#include "model/wan/lora.h"
#include "model/wan/prologue_program.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

/// What stands before the names of a block's parameters.
std::string prefix_of(std::int64_t index) { return "blocks." + std::to_string(index) + "."; }

at::ScalarType dtype_of(const ParamView& params) {
  TORCH_CHECK(!params.tensors().empty(), "a unit of the DiT has parameters");
  return params.tensors().begin()->second.scalar_type();
}

/// Whether all tensors that a unit reads lie dense on the CPU or a device of ours, and those of floating-point numbers
/// have one dtype that the kernels know.
bool is_dense(const ParamView& params, const Carry& carry) {
  const auto dtype = dtype_of(params);
  if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kDouble) return false;
  const auto fits = [dtype](const at::Tensor& tensor) {
    return tensor.defined() && (tensor.is_cpu() || kernels::is_on_device(tensor)) && tensor.is_contiguous() &&
           (tensor.scalar_type() == dtype || !tensor.is_floating_point());
  };
  const auto& shared = carry.conditioning;
  return (!carry.x.defined() || (fits(carry.x) && carry.x.dim() == 3 && carry.x.numel() > 0)) &&
         std::all_of(shared.begin(), shared.end(), fits) &&
         std::all_of(params.tensors().begin(), params.tensors().end(),
                     [&](const auto& entry) { return fits(entry.second); });
}

// What a program depends on, as text.
std::string text_of(const SequenceLayout& l) {
  return fmt::format(" {} {} {} {} {} {} {} {} {}", l.frames, l.grid_rows, l.grid_cols, l.frames_per_block, l.blocks,
                     l.actions_per_block, l.states_per_block, l.max_blocks, l.trimmed);
}
std::string text_of(const at::Tensor& tensor) {
  return fmt::format(" {}:{}", static_cast<int>(tensor.scalar_type()), fmt::join(tensor.sizes(), ","));
}
std::string text_of(const Carry& carry) {
  std::string key = carry.x.defined() ? text_of(carry.x) : "";
  for (const auto& tensor : carry.conditioning) key += text_of(tensor);
  return key;
}
std::string text_of(const Batch& data) {
  std::string key;
  for (const auto& [name, tensor] : data) key += " " + name + text_of(tensor);
  return key;
}
/// Numbers of elements tell the rank of adapters.
std::string text_of(const ParamView& params, const std::string& prefix) {
  std::string key = fmt::format(" {} {}", static_cast<int>(dtype_of(params)), params.adapter_scale());
  for (const auto& [name, tensor] : params.tensors())
    key += fmt::format(" {}{}{}", name.substr(prefix.size()), params.follows(name) ? "+" : "", tensor.numel());
  return key;
}

}  // namespace

DitNetwork::DitNetwork(const ModelConfig& config, std::int64_t max_blocks, DitOptions options, FlowSchedule schedule)
    : config_(config),
      max_blocks_(max_blocks),
      options_(options),
      units_(training_units(config)),
      schedule_(std::move(schedule)),
      programs_(std::make_unique<ProgramCache>()) {
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

Batch DitNetwork::data_for_prologue(const ParamView& params, const Batch& batch) const {
  return prologue_data(batch, layout(batch), config_, options_, schedule_, dtype_of(params));
}

Carry DitNetwork::prologue(const ParamView& params, const Batch& batch) const {
  const auto layout = this->layout(batch);
  const auto data = data_for_prologue(params, batch);
  const auto e = linear(params, "time_embedding.2",
                        at::silu(linear(params, "time_embedding.0", data.at(unit_data::kTimeSinusoid))));
  const auto e0 = linear(params, "time_projection.1", at::silu(e)).unflatten(-1, {6, config_.dit.dim});

  const auto video = embed_patches(params, data.at(unit_data::kPatches));
  const auto actions = embed_actions(params, data.at(unit_data::kActions), data.at(unit_data::kActionSinusoid));
  const auto states = embed_states(params, data.at(unit_data::kStates));
  const auto first = layout.clean_tokens() + layout.frame_tokens();
  const auto per_block = [&layout](const at::Tensor& x) { return x.unflatten(1, {layout.blocks, -1}); };
  const auto groups =
      at::cat({per_block(video.narrow(1, first, video.size(1) - first)), per_block(actions), per_block(states)}, 2);
  Carry carry;
  carry.x = at::cat({video.narrow(1, 0, first), groups.flatten(1, 2)}, 1);
  carry.conditioning = {embed_text(params, data.at(unit_data::kText)), embed_image(params, data.at(unit_data::kImage)),
                        e, e0, data.at(unit_data::kTextOfSample)};
  return carry;
}

std::shared_ptr<const BlockPlan> DitNetwork::plan_of_block(std::int64_t index, const Carry& carry, const Batch& batch,
                                                           at::Device device) const {
  const bool last = index + 1 == config_.dit.num_layers;
  return plan(layout(batch), accumulate_type(carry.x.scalar_type()), device, last && options_.trim);
}

at::Tensor DitNetwork::block(std::int64_t index, const ParamView& params, const Carry& carry,
                             const Batch& batch) const {
  const auto shape = plan_of_block(index, carry, batch, carry.x.device());
  return transformer_block(*shape, params, prefix_of(index), carry.x, carry.conditioning);
}

BoundProgram DitNetwork::unit_program(std::size_t unit, const ParamView& params, const Carry& carry, const Batch& batch,
                                      RecomputeLevel level, const Differentiated& differentiated) const {
  const bool is_block = unit > 0 && unit + 1 < units_.size();
  const auto index = static_cast<std::int64_t>(unit) - 1;
  BoundProgram bound{nullptr, is_block ? prefix_of(index) : std::string(), {}};
  if (!is_dense(params, carry)) return bound;
  if (unit == 0) bound.data = data_for_prologue(params, batch);
  Differentiated own{{}, differentiated.conditioning};
  for (const auto& name : differentiated.parameters) own.parameters.insert(name.substr(bound.prefix.size()));
  const auto layout = this->layout(batch);
  const bool has_outputs_only = options_.trim && index + 1 == config_.dit.num_layers;
  const char* kind = unit == 0 ? "prologue" : !is_block ? "head" : has_outputs_only ? "last block" : "block";
  const auto key = kind + text_of(layout) + text_of(carry) + text_of(bound.data) + text_of(params, bound.prefix);
  bound.program = programs_->find(key, own, level, [&] {
    if (unit == 0) return record_prologue(config_.dit, layout, params, bound.data);
    if (!is_block) return record_head(config_.dit, layout, params, carry);
    // constants of a program lie on the host; a device that runs it has copies
    return record_block(*plan_of_block(index, carry, batch, at::kCPU), params, bound.prefix, carry);
  });
  return bound;
}

BoundProgram DitNetwork::loss_program(const std::vector<at::Tensor>& velocities, const Batch& batch) const {
  const auto layout = this->layout(batch);
  BoundProgram bound{nullptr, "", loss_data(batch, layout, schedule_, velocities.front().scalar_type())};
  if (bound.data.empty()) return bound;
  const auto key = "loss" + text_of(layout) + text_of(velocities.front()) + text_of(bound.data);
  bound.program = programs_->find(key, {}, RecomputeLevel::none, [&] { return record_loss(velocities, bound.data); });
  return bound;
}

Outputs DitNetwork::outputs(const std::vector<at::Tensor>& velocities, const std::vector<at::Tensor>& losses,
                            const Batch& batch) const {
  Outputs outputs;
  outputs.predictions[key::kVideoVelocity] = unpatchify(velocities[0], layout(batch));
  outputs.predictions[key::kActionVelocity] = velocities[1];
  if (losses.empty()) return outputs;
  outputs.loss = losses[0] + losses[1];
  // a loss of drawn labels means nothing
  if (batch.count(key::kVideoLabelNoise) == 0)
    outputs.metrics = {{"loss", outputs.loss}, {"dynamics_loss", losses[0]}, {"action_loss", losses[1]}};
  return outputs;
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
  const auto weights_of = [&](const char* ids) { return loss_weights(batch, ids, schedule_); };
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
