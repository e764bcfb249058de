#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/language/tokenizer.h"
#include "env/env_spec.h"
#include "model/policy/policy_shape.h"
#include "model/wan/features.h"
#include "model/wan/policy/dreamzero_observer.h"
#include "workers/inference/policy/action_decoder.h"
#include "workers/inference/policy/env_columns.h"
#include "workers/inference/policy/observation_reader.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// What DreamZero makes of an environment's observations: the statistics and the image chain of the checkpoint, and the
/// job's frozen encoders, which are loaded when it is first asked. A view is the picture whose name is its camera's or
/// ends in it ("rgb.front"); the state keys are columns of the vectors that the policy reads, side by side as `troupe
/// record` writes them. The instruction is the job's, the same in every episode. Thread-safe: calls wait for each
/// other.
class EnvObserver final : public DreamZeroObserver {
 public:
  /// Loads nothing but the tokenizer. Errors: invalid_argument for an environment that lacks what the policy was
  /// trained with (a picture, frames between calls, columns of the state or the action) and for actions whose
  /// normalisation has no inverse, saying what there is; those of make_tokenizer and prompt_from_task.
  static Result<std::shared_ptr<const EnvObserver>> make(const JobConfig& job, PolicySpec policy, const EnvSpec& env,
                                                         const PolicyShape& shape, const std::string& instruction);

  /// The state of a row whose numbers are not all finite is NaN.
  Batch encode(const Batch& observation) const override;
  /// The frames are those of closed loop: the newest and, above it, those at the window's video_offsets since the call
  /// before. Encoded as a clip by itself, whose first frame's latent is left out.
  Batch encode_later(const Batch& observation) const override;
  at::Tensor actions(const at::Tensor& normalised, const Batch& observation) const override;

 private:
  /// What the policy calls a camera, and the observation's tensor.
  struct View {
    std::string name, key;
  };
  EnvObserver(const JobConfig& job, PolicySpec policy, ObservationReader reader, ActionDecoder decoder);
  /// What a window of several calls is made of.
  static Result<void> check_frames(const JobConfig& job, const WindowConfig& window);
  static Result<std::vector<View>> find_views(const PolicySpec& policy, const EnvSpec& env, const PolicyShape& shape);
  /// Row i as robots show themselves: its newest frame, or all.
  Observation read(const Batch& observation, std::int64_t i, bool all_frames) const;
  /// Rows as the network wants them.
  struct Seen {
    at::Tensor canvases;  ///< u8 [N,frames,H,W,3]
    at::Tensor state;     ///< f32 [N,nspb,max_state_dim]
  };
  Seen see(const Batch& observation, bool all_frames) const;
  at::Tensor context(FeatureEncoder& encoder, std::int64_t rows) const;
  /// Loads them at the first call.
  FeatureEncoder& features() const;

  const PolicySpec policy_;
  /// Of the encoders: "fp32" or "bf16", and the seed of those without a file.
  const std::string precision_;
  const std::uint64_t seed_;
  std::vector<View> views_;
  std::vector<EnvColumns> state_, action_;
  std::int64_t action_size_ = 0;
  /// Of a picture of the environment: 1, or those of a chunk.
  const std::int64_t frames_;
  /// i64 [1,L]: the instruction, and 1 on its real tokens.
  at::Tensor ids_, mask_;
  const ActionDecoder decoder_;

  mutable std::mutex mutex_;  ///< of what follows
  mutable ObservationReader reader_;
  mutable std::unique_ptr<FeatureEncoder> features_;
};

}  // namespace troupe::workers
