#pragma once

namespace troupe::model::batch_keys {

// Names of the tensors of one micro-batch. B samples, C latent channels, F latent frames, h w latent rows and columns,
// A action tokens, D padded action dimensions, S state tokens, L text tokens.
// A name that a collated sample has too (data/sample) means the same tensor. Floating tensors whose dtype is not given
// have the dtype of the network's parameters; no tensor here is differentiated.

/// What the decoder delivers: the collated sample of B windows.
inline constexpr char kImages[] = "images";                  ///< u8 [B, T, H, W, 3], views already on one canvas
inline constexpr char kText[] = "text";                      ///< i64 [B, L] token ids
inline constexpr char kTextMask[] = "text_attention_mask";   ///< i64 [B, L], 1 on real tokens, which come first
inline constexpr char kAction[] = "action";                  ///< f32 [B, A, D] in [-1, 1]
inline constexpr char kActionMask[] = "action_mask";         ///< bool [B, A, D], true on real dimensions
inline constexpr char kHasRealAction[] = "has_real_action";  ///< bool [B]
inline constexpr char kState[] = "state";                    ///< f32 [B, S, state dimensions]

/// What the frozen encoders add (model/wan/features.h).
inline constexpr char kContext[] = "context";             ///< [B, L, text width], tail zeroed
inline constexpr char kClip[] = "clip";                   ///< [B, 257, image width]
inline constexpr char kCleanLatents[] = "clean_latents";  ///< [B, C, F, h, w]
inline constexpr char kFirstFrame[] = "first_frame";      ///< [B, 4 + C, F, h, w], only with concat_first_frame_latent

/// What the flow-matching draw adds (model/wan/training_inputs.h). With sigma of the id:
///     noisy = (1 - sigma) clean + sigma eps,   target = eps - clean
inline constexpr char kNoisyLatents[] = "noisy_latents";  ///< [B, C, F, h, w]
inline constexpr char kNoisyActions[] = "noisy_actions";  ///< [B, A, D]
inline constexpr char kVideoIds[] = "video_ids";          ///< i64 [B, F] timestep ids, tied inside blocks
inline constexpr char kActionIds[] = "action_ids";        ///< i64 [B, A] timestep ids
inline constexpr char kVideoTarget[] = "video_target";    ///< [B, C, F, h, w]; absent: no loss
inline constexpr char kActionTarget[] = "action_target";  ///< [B, A, D]; absent: no loss

/// What the learner adds.
inline constexpr char kSampleWeight[] = "sample_weight";  ///< f32 [B], factor of the sample's losses; absent: ones

/// Standard normal, drawn for an estimate of the curvature: with them the loss is that of labels drawn from the model
/// (model/loss/sampled_label.h) instead of the targets.
inline constexpr char kVideoLabelNoise[] = "video_label_noise";    ///< f32, as video_target; cropped as it is
inline constexpr char kActionLabelNoise[] = "action_label_noise";  ///< f32 [B, A, D]

/// What the network predicts (Outputs::predictions).
inline constexpr char kVideoVelocity[] = "video";     ///< [B, C, F, 2*(h/2), 2*(w/2)]
inline constexpr char kActionVelocity[] = "actions";  ///< [B, A, D]

}  // namespace troupe::model::batch_keys
