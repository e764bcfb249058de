#include "model/wan/infer/dit_infer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "kernels/modulated_norm.h"
#include "model/wan/dit_parts.h"
#include "model/wan/infer/episode_cost.h"
#include "model/wan/layers.h"

namespace troupe::model {
namespace {

/// Timesteps whose rows are kept; a run has at most two per step.
constexpr std::size_t kMaxTimeRows = 4096;

RopeTables rope_rows(const RopeTables& tables, std::int64_t begin, std::int64_t count) {
  return {tables.cos.narrow(0, begin, count), tables.sin.narrow(0, begin, count)};
}

}  // namespace

DitInference::DitInference(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block,
                           ParamView params, bool state_self_only)
    : config_(config),
      max_blocks_(max_blocks),
      actions_per_block_(actions_per_block),
      params_(std::move(params)),
      state_self_only_(state_self_only) {
  TORCH_CHECK(max_blocks >= 1 && actions_per_block >= 1, "DitInference: ", max_blocks, " blocks of ", actions_per_block,
              " actions, want at least one of each");
}

at::TensorOptions DitInference::options() const { return params_["patch_embedding.weight"].options(); }

const DitInference::TimeRow& DitInference::time_row(double t) {
  auto it = time_rows_.find(t);
  if (it == time_rows_.end()) {
    if (time_rows_.size() >= kMaxTimeRows) time_rows_.clear();
    const auto sinusoid = time_sinusoid(at::full({1}, t, options().dtype(at::kDouble)), config_.dit.freq_dim);
    const auto e = linear(params_, "time_embedding.2", at::silu(linear(params_, "time_embedding.0", sinusoid)));
    const auto e0 = linear(params_, "time_projection.1", at::silu(e)).unflatten(-1, {6, config_.dit.dim});
    it = time_rows_.emplace(t, TimeRow{e, e0}).first;
  }
  return it->second;
}

const DitInference::Window& DitInference::window(std::int64_t height, std::int64_t width) {
  const std::pair key{height, width};
  auto it = windows_.find(key);
  if (it == windows_.end()) {
    SequenceLayout layout;
    layout.frames = 1 + max_blocks_ * config_.latent_frames_per_block;
    layout.grid_rows = height / 2;
    layout.grid_cols = width / 2;
    layout.frames_per_block = config_.latent_frames_per_block;
    layout.blocks = max_blocks_;
    layout.actions_per_block = actions_per_block_;
    layout.states_per_block = config_.states_per_block;
    layout.max_blocks = max_blocks_;
    layout.trimmed = false;
    const auto dtype = accumulate_type(options().dtype().toScalarType());
    const auto tables = make_rope_tables(layout, config_.dit.dim / config_.dit.num_heads, dtype);
    const auto device = options().device();
    it = windows_.emplace(key, Window{layout, {tables.cos.to(device), tables.sin.to(device)}}).first;
  }
  return it->second;
}

std::shared_ptr<const TextKeys> DitInference::text_keys(const at::Tensor& context_BLC) const {
  const c10::NoGradGuard no_grad;
  return std::make_shared<const TextKeys>(make_text_keys(config_.dit, params_, context_BLC.to(options())));
}

std::unique_ptr<DitEpisode> DitInference::begin(const EpisodeContext& context) const {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(context.height % 2 == 0 && context.width % 2 == 0 && context.height > 0 && context.width > 0,
              "latents have ", context.height, " x ", context.width,
              " rows and columns, want even numbers (model.target_height and target_width multiples of twice the "
              "codec's stride)");
  TORCH_CHECK(!context.text.empty() && context.clip.dim() == 3, "an episode needs text keys and image features");
  const auto samples = context.clip.size(0), fs = (context.height / 2) * (context.width / 2);
  for (const auto& text : context.text) {
    const auto rows = text->layers.front().k.size(0);
    TORCH_CHECK(rows == samples || rows == 1, "text keys of ", rows, " prompts for ", samples, " samples");
  }
  at::Tensor first_frame;
  if (config_.dit.concat_first_frame_latent) {
    first_frame = context.first_frame.to(options());
    TORCH_CHECK(first_frame.dim() == 5 && first_frame.size(0) == samples &&
                    first_frame.size(2) >= config_.latent_frames_per_block && first_frame.size(3) == context.height &&
                    first_frame.size(4) == context.width,
                "first_frame ", first_frame.sizes(), " does not fit ", samples, " samples of latents ", context.height,
                " x ", context.width);
  }
  KvCacheShape shape = window_cache(config_, max_blocks_, actions_per_block_, fs);
  shape.samples = samples;
  shape.branches = static_cast<std::int64_t>(context.text.size());
  return std::make_unique<DitEpisode>(KvCache(shape, options()), context.text,
                                      make_image_keys(config_.dit, params_, context.clip.to(options())), first_frame);
}

InferPass DitInference::make_pass(std::span<DitEpisode* const> episodes, const at::Tensor& latents,
                                  bool with_register) {
  TORCH_CHECK(!episodes.empty() && latents.dim() == 5, "inference wants episodes and latents [B, C, n, h, w], got ",
              latents.sizes());
  const auto& [layout, rope] = window(latents.size(3), latents.size(4));
  const auto fs = layout.frame_tokens(), nfpb = layout.frames_per_block;
  InferPass pass;
  pass.branches = episodes.front()->branches();
  pass.video_tokens = latents.size(2) * fs;
  pass.action_tokens = with_register ? layout.actions_per_block : 0;
  pass.state_tokens = with_register ? layout.states_per_block : 0;
  pass.state_self_only = state_self_only_;
  std::int64_t begin = 0;
  for (auto* episode : episodes) {
    const auto frames = episode->frames, block = (frames - 1) / nfpb + 1;
    TORCH_CHECK(episode->branches() == pass.branches, "episodes with and without guidance in one batch");
    TORCH_CHECK(latents.size(2) == (frames == 0 ? 1 : nfpb) && (frames > 0 || !with_register),
                "an episode that has seen ", frames, " frames was given ", latents.size(2), " more");
    TORCH_CHECK(frames + latents.size(2) <= layout.frames, "an episode of ", frames, " frames cannot take ",
                latents.size(2), " more: the window has ", layout.frames, " (data.window.chunks)");
    const auto from = with_register ? layout.group_begin(block) : frames * fs;
    pass.parts.push_back({episode, begin, rope_rows(rope, from, pass.tokens())});
    begin += episode->samples();
  }
  TORCH_CHECK(begin == latents.size(0), "latents of ", latents.size(0), " samples for ", begin);
  return pass;
}

at::Tensor DitInference::embed_video(std::span<DitEpisode* const> episodes, const at::Tensor& latents) const {
  if (!config_.dit.concat_first_frame_latent) return embed_patches(params_, input_patches(latents));
  std::vector<at::Tensor> stills;
  for (const auto* episode : episodes) {
    const auto& still = episode->first_frame;
    // past the still's end its last frames serve again
    const auto from = std::min(episode->frames, still.size(2) - latents.size(2));
    stills.push_back(still.narrow(2, from, latents.size(2)));
  }
  return embed_patches(params_, input_patches(at::cat({latents.to(options()), at::cat(stills, 0)}, 1)));
}

void DitInference::prefill(std::span<DitEpisode* const> episodes, const at::Tensor& latents) {
  const c10::NoGradGuard no_grad;
  auto pass = make_pass(episodes, latents, false);
  pass.modulation_R6d = time_row(0).e0_16d;
  auto x = embed_video(episodes, latents);
  for (std::int64_t i = 0; i < config_.dit.num_layers; ++i) {
    // of the last layer only the keys and values are ever read
    x = infer_block(config_.dit, params_, i, x, pass, i + 1 == config_.dit.num_layers);
  }
  for (auto* episode : episodes) {
    episode->cache.commit(pass.tokens());
    episode->frames += latents.size(2);
  }
}

Velocities DitInference::evaluate(std::span<DitEpisode* const> episodes, const NoisyBlock& noisy) {
  const c10::NoGradGuard no_grad;
  auto pass = make_pass(episodes, noisy.video, true);
  TORCH_CHECK(noisy.actions.dim() == 3 && noisy.actions.size(1) == pass.action_tokens && noisy.states.dim() == 3 &&
                  noisy.states.size(1) == pass.state_tokens,
              "actions ", noisy.actions.sizes(), " and states ", noisy.states.sizes(), ", want ", pass.action_tokens,
              " and ", pass.state_tokens, " tokens");
  const auto video_row = time_row(noisy.t_video), action_row = time_row(noisy.t_action);
  pass.modulation_R6d = video_row.e0_16d;
  if (noisy.t_video != noisy.t_action) {
    pass.modulation_R6d = at::cat({video_row.e0_16d, action_row.e0_16d}, 0);
    pass.time_row_T = at::ones({pass.tokens()}, options().dtype(at::kInt));
    pass.time_row_T.narrow(0, 0, pass.video_tokens).zero_();
  }
  const auto t_action =
      at::full({noisy.actions.size(0), pass.action_tokens}, noisy.t_action, options().dtype(at::kFloat));
  auto x = at::cat({embed_video(episodes, noisy.video),
                    embed_actions(params_, noisy.actions, action_sinusoid(t_action, config_.dit.dim)),
                    embed_states(params_, noisy.states)},
                   1);
  for (std::int64_t i = 0; i < config_.dit.num_layers; ++i) x = infer_block(config_.dit, params_, i, x, pass, false);

  const auto& table = params_["head.modulation"];
  const auto rows = table + video_row.e_1d.unsqueeze(0).to(table.scalar_type());  // shift, scale
  const auto h = modulated_layer_norm(x.narrow(1, 0, pass.video_tokens), 1.0 + rows.narrow(1, 1, 1),
                                      rows.narrow(1, 0, 1), {}, config_.dit.eps);
  SequenceLayout block = window(noisy.video.size(3), noisy.video.size(4)).layout;
  block.frames = noisy.video.size(2);
  const auto video = unpatchify(linear(params_, "head.head", h), block);
  const auto actions = category_linear(
      params_, "action_decoder.layer2",
      at::relu(category_linear(params_, "action_decoder.layer1", x.narrow(1, pass.video_tokens, pass.action_tokens))));
  return {video.unflatten(0, {-1, pass.branches}), actions.unflatten(0, {-1, pass.branches})};
}

}  // namespace troupe::model
