#pragma once

#include <cstdint>
#include <span>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Whose random streams a batch draws from: training steps, or evaluation with the same noise every time.
enum class NoiseMode : std::uint8_t { train, eval };

/// The flow-matching part of a batch (batch_keys.h): noisy_latents, video_target, video_ids, noisy_actions,
/// action_target, action_ids, and clean_latents as given. Timestep ids: one for each block of frames
/// and one for frame 0, shared by the block's actions; uniform, or with noise.high_noise_emphasis from a Beta
/// distribution; with noise.decouple_video_action from another one, and each action has a uniform one of its own (the
/// network then wants DitOptions::decoupled_action_timesteps). Mixing happens in the dtype of the latents and actions,
/// each operation rounding: a caller that computes in bf16 casts both before (cast_inputs).
///
/// Shapes: latents [B, C, F, h, w]; actions [B, A, D], A a multiple of the (F-1)/frames_per_block blocks.
/// Keys:   (seed, position) alone decide a sample's draws. positions[b] is the sample's place in the sampler's order
///         (train) or the index of its window (eval).
/// Errors: throws c10::Error on a shape mismatch.
Batch make_training_inputs(const at::Tensor& latents, const at::Tensor& actions,
                           std::span<const std::uint64_t> positions, std::uint64_t seed, NoiseMode mode,
                           std::int64_t frames_per_block, const NoiseConfig& noise = {});

/// Casts what the network takes (clean_latents, first_frame, context, clip, action, state) to the dtype of its
/// parameters, as the reference does before anything else: targets are then made of rounded actions and latents.
void cast_inputs(Batch& batch, at::ScalarType dtype);

}  // namespace troupe::model
