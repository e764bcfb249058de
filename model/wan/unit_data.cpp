#include "model/wan/unit_data.h"

#include <ATen/ATen.h>

#include <vector>

#include "model/loss/sampled_label.h"
#include "model/wan/batch_keys.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"
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

/// Of each video token, a number of its frame [B, F].
at::Tensor of_tokens(const at::Tensor& of_frames, const SequenceLayout& layout) {
  const auto samples = of_frames.size(0), frames = of_frames.size(1);
  return of_frames.unsqueeze(2).expand({samples, frames, layout.frame_tokens()}).reshape({samples, -1});
}

}  // namespace

Batch prologue_data(const Batch& batch, const SequenceLayout& layout, const ModelConfig& config,
                    const DitOptions& options, const FlowSchedule& schedule, at::ScalarType dtype) {
  const auto& video_ids = batch_tensor(batch, key::kVideoIds);
  const auto& action_ids = batch_tensor(batch, key::kActionIds);
  const bool decoupled = options.decoupled_action_timesteps;
  check_ids(video_ids, action_ids, layout, decoupled);
  auto timesteps = schedule.timesteps.to(video_ids.device());
  if (options.round_timesteps) timesteps = timesteps.to(at::kBFloat16).to(at::kFloat);
  const auto t_video = timesteps.index({video_ids}), t_action = timesteps.index({action_ids});
  // clean (t = 0), noisy frame 0, one per block, and in the decoupled mode one per action
  std::vector<at::Tensor> rows{at::zeros_like(t_video.narrow(1, 0, 1)), t_video.narrow(1, 0, 1),
                               t_video.slice(1, 1, layout.frames, layout.frames_per_block)};
  if (decoupled) rows.push_back(t_action);

  const bool concat = config.dit.concat_first_frame_latent;
  const auto clean = input_channels(batch, key::kCleanLatents, concat).narrow(2, 0, layout.clean_frames());
  const auto noisy = input_channels(batch, key::kNoisyLatents, concat);
  for (const auto& latents : {clean, noisy}) {
    TORCH_CHECK(latents.dim() == 5 && latents.size(1) == config.dit.in_dim, "patch embedding: latents ",
                latents.sizes(), " want ", config.dit.in_dim, " channels in axis 1 (model.dit.in_dim)");
  }
  const auto text = distinct_text_rows(batch_tensor(batch, key::kContext), options.collapse_text_pads);
  const auto dense = [dtype](const at::Tensor& x) { return x.to(dtype).contiguous(); };
  return {{unit_data::kTimeSinusoid, dense(time_sinusoid(at::cat(rows, 1), config.dit.freq_dim))},
          {unit_data::kActionSinusoid, dense(action_sinusoid(t_action, config.dit.dim))},
          {unit_data::kPatches, at::cat({input_patches(clean.to(dtype)), input_patches(noisy.to(dtype))}, 1)},
          {unit_data::kActions, dense(batch_tensor(batch, key::kNoisyActions))},
          {unit_data::kStates, dense(batch_tensor(batch, key::kState))},
          {unit_data::kText, dense(text.rows_1TC)},
          {unit_data::kTextOfSample, text.of_sample_B3},
          {unit_data::kImage, dense(batch_tensor(batch, key::kClip))}};
}

at::Tensor loss_weights(const Batch& batch, const char* ids, const FlowSchedule& schedule) {
  const auto& of_ids = batch_tensor(batch, ids);
  const auto weights = schedule.weights.to(of_ids.device()).index({of_ids});
  const auto of_sample = batch.find(key::kSampleWeight);
  return of_sample == batch.end() ? weights : weights * of_sample->second.unsqueeze(1).to(weights.options());
}

Batch loss_data(const Batch& batch, const SequenceLayout& layout, const FlowSchedule& schedule, at::ScalarType dtype) {
  if (batch.count(key::kVideoTarget) == 0 || batch.count(key::kActionTarget) == 0) return {};
  const auto loss_dtype = accumulate_type(dtype);
  const auto rows = 2 * layout.grid_rows, cols = 2 * layout.grid_cols;
  const auto cropped = [&](const char* name) {
    const auto& latents = batch_tensor(batch, name);
    TORCH_CHECK(latents.dim() == 5 && latents.size(3) >= rows && latents.size(4) >= cols, name, " ", latents.sizes(),
                " is smaller than ", rows, " x ", cols);
    return patchify(latents.narrow(3, 0, rows).narrow(4, 0, cols).to(loss_dtype));
  };
  const auto video = cropped(key::kVideoTarget);
  const auto action = batch_tensor(batch, key::kActionTarget).to(loss_dtype).contiguous();
  // as the coefficients take a velocity: [B, 1, F, tokens of a frame, channels]
  const auto frames = video.view({video.size(0), 1, layout.frames, layout.frame_tokens(), video.size(2)});
  const auto of_frames = video_flow_coefficients(frames, loss_weights(batch, key::kVideoIds, schedule));
  const auto of_video = of_tokens(of_frames.view({of_frames.size(0), layout.frames}), layout);
  const auto of_action =
      action_flow_coefficients(action, batch_tensor(batch, key::kActionMask), batch_tensor(batch, key::kHasRealAction),
                               loss_weights(batch, key::kActionIds, schedule));
  if (batch.count(key::kVideoLabelNoise) == 0) {
    return {{unit_data::kVideoTarget, video},
            {unit_data::kVideoCoefficients, of_video},
            {unit_data::kActionTarget, action},
            {unit_data::kActionCoefficients, of_action}};
  }
  return {{unit_data::kVideoSeed, sampled_label_seed(of_video.unsqueeze(2), cropped(key::kVideoLabelNoise))},
          {unit_data::kActionSeed, sampled_label_seed(of_action, batch_tensor(batch, key::kActionLabelNoise))}};
}

}  // namespace troupe::model
