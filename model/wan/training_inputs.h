#pragma once

#include <cstdint>
#include <span>

#include "model/shard/network.h"

namespace troupe {

/// Whose random streams a batch draws from: training steps, or evaluation with the same noise every time.
enum class NoiseMode : std::uint8_t { train, eval };

/// The flow-matching part of a batch (batch_keys.h): noisy_latents, video_target, video_ids, noisy_actions,
/// action_target, action_ids, and clean_latents as given. Timesteps are uniform, one for each block and one for frame
/// 0, shared by the block's actions (dreamzero-model.md 5.2, default mode). Mixing happens in the dtype of the latents
/// and actions.
///
/// Shapes: latents [B, C, F, h, w]; actions [B, A, D], A a multiple of the (F-1)/frames_per_block blocks.
/// Keys:   (seed, position) alone decide a sample's draws. positions[b] is the sample's place in the sampler's order
///         (train) or the index of its window (eval).
/// Errors: throws c10::Error on a shape mismatch.
Batch make_training_inputs(const at::Tensor& latents, const at::Tensor& actions,
                           std::span<const std::uint64_t> positions, std::uint64_t seed, NoiseMode mode,
                           std::int64_t frames_per_block);

}  // namespace troupe
