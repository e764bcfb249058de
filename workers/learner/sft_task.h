#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/sample/sample.h"
#include "model/wan/dit.h"
#include "model/wan/predict.h"
#include "model/wan/training_inputs.h"
#include "workers/encoder/cached_encoder.h"
#include "workers/learner/task.h"

namespace troupe::workers {

/// Supervised fine-tuning of DreamZero: samples become latents, text and image features (frozen, no gradients), then
/// noisy inputs and velocity targets whose noise and timesteps are keyed by (seed, position). With
/// data.features.encode encoder the items have the features already (workers/encoder/encoded_sample.h) and no frozen
/// network is held.
class SftTask final : public TrainingTask {
 public:
  /// Frozen encoders from model.init or job.seed, in precision.encoders (load_features), with the cache of
  /// data.features.cache. Errors: those of load_features and FeatureCache::open; invalid_argument (a window or canvas
  /// that cannot be).
  static Result<std::unique_ptr<SftTask>> make(const JobConfig& job);
  /// Content hashes of those encoders by name, for manifests; none is kept in memory (frozen_content_hashes).
  static Result<std::map<std::string, std::string>> encoder_hashes(const JobConfig& job);

  std::shared_ptr<const Network> network() const override { return network_; }
  /// The two parts of the flow-matching loss: video (dynamics) and action.
  std::vector<std::string> metrics() const override { return {"dynamics_loss", "action_loss"}; }
  Result<Batch> train_batch(const std::vector<Feed::Sample>& samples) override;
  bool runs_encoders() const override { return features_ != nullptr; }
  Result<void> draw_labels(const std::vector<Feed::Sample>& samples, Batch& batch) const override;
  Result<Batch> eval_batch(const std::vector<Feed::Sample>& samples, std::size_t real) override;
  /// Writes `true_frames`, `predicted_frames` u8 [T,H,W,3] and `true_actions`, `predicted_actions` f32 [A, used
  /// dims], Euler with 10 steps on the training forward (model/wan/predict.h). True frames of encoded items are what
  /// the codec makes of their latents; the codec is loaded for that call.
  Result<void> predict(const Feed::Sample& sample, const Forward& forward, const std::string& file,
                       bool write) override;
  std::int64_t resident_bytes() const override { return features_ ? features_->bytes() : 0; }

 private:
  SftTask(JobConfig job, SampleLayout layout, std::unique_ptr<CachedEncoder> features);
  /// Samples side by side: each field of the layout with a batch dimension [B] in front.
  Batch collate(const std::vector<Feed::Sample>& samples) const;
  /// Adds latents, text and image features to a collated batch, from the encoders or out of encoded items.
  Batch condition(const Batch& collated);
  /// Writes the safetensors file of predict().
  Result<void> write_prediction(const Batch& collated, const Batch& batch, const Prediction& predicted,
                                const std::string& file) const;
  /// Collates, conditions and adds noise; the first `real` samples without void_reason count, the others get weight
  /// 0.
  Result<Batch> make_batch(const std::vector<Feed::Sample>& samples, std::size_t real, NoiseMode mode);

  const JobConfig job_;
  const SampleLayout layout_;
  // None with encoded items.
  std::unique_ptr<CachedEncoder> features_;
  std::shared_ptr<const DitNetwork> network_;
};

}  // namespace troupe::workers
