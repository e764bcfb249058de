#pragma once

#include <ATen/core/Tensor.h>

#include "model/loss/flow_matching.h"
#include "model/shard/network.h"
#include "model/wan/dit.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// What the prologue and the loss read of a micro-batch, in the form in which they multiply it: rows of channels,
/// tokens in the order of the sequence. Nothing of it depends on a parameter.
namespace unit_data {
// B samples, R time rows (dit_conditioning), V video tokens, C the trimmed clean ones, A actions, S states.
inline constexpr char kTimeSinusoid[] = "time_sinusoid";      ///< [B, R, freq_dim]
inline constexpr char kActionSinusoid[] = "action_sinusoid";  ///< [B, A, d]
inline constexpr char kPatches[] = "patches";                 ///< [B, C + V, 4 Cin], clean ones first
inline constexpr char kActions[] = "actions";                 ///< [B, A, action_dim]
inline constexpr char kStates[] = "states";                   ///< [B, S, max_state_dim]
inline constexpr char kText[] = "text";                       ///< [1, T, text width] (model/wan/text_rows.h)
inline constexpr char kTextOfSample[] = "text_of_sample";     ///< i64 [B, 3]
inline constexpr char kImage[] = "image";                     ///< [B, 257, image width]

// f32 (f64 where predictions are). What squared errors compare with and are weighted by:
inline constexpr char kVideoTarget[] = "video_target";                ///< [B, V, 4 C]
inline constexpr char kVideoCoefficients[] = "video_coefficients";    ///< [B, V]
inline constexpr char kActionTarget[] = "action_target";              ///< [B, A, action_dim]
inline constexpr char kActionCoefficients[] = "action_coefficients";  ///< [B, A, action_dim]
// of labels drawn from the model (model/loss/sampled_label.h), by which predictions are weighted:
inline constexpr char kVideoSeed[] = "video_seed";    ///< [B, V, 4 C]
inline constexpr char kActionSeed[] = "action_seed";  ///< [B, A, action_dim]
}  // namespace unit_data

/// In `dtype`, the parameters'. Errors: throws c10::Error on what is missing or does not fit, naming it.
Batch prologue_data(const Batch& batch, const SequenceLayout& layout, const ModelConfig& config,
                    const DitOptions& options, const FlowSchedule& schedule, at::ScalarType dtype);

/// For predictions of `dtype`; empty where the batch has no targets. Errors as above.
Batch loss_data(const Batch& batch, const SequenceLayout& layout, const FlowSchedule& schedule, at::ScalarType dtype);

/// The weights of a batch's losses by the ids under `ids`: [B, ...] f32. A void sample weighs nothing; means still
/// divide by the whole micro-batch.
at::Tensor loss_weights(const Batch& batch, const char* ids, const FlowSchedule& schedule);

}  // namespace troupe::model
