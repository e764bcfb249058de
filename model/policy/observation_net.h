#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/gru.h"
#include "model/policy/mlp.h"
#include "model/policy/observation_features.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// From an observation to a vector: ObservationFeatures through an Mlp. With policy.memory gru the Mlp's last hidden
/// layer feeds a Gru, whose memory the last layer reads. Immutable.
class ObservationNet {
 public:
  /// Parameters are called "<prefix>.<image>.<i>...", "<prefix>.<text>.words" and "<prefix>.<i>...", of a Gru and the
  /// layer behind it "<prefix>.gru..." and "<prefix>.head.0...". MlpShape::inputs is set here.
  /// Errors: as ObservationFeatures::make; invalid_argument for a Gru without a hidden layer before it.
  static Result<ObservationNet> make(const PolicyConfig& policy, Vision vision, const PolicyShape& shape, MlpShape mlp);

  std::vector<ParamSpec> params() const;
  /// [N,outputs] f32, of what ObservationFeatures::forward reads. With a memory the rows are sequences, step t of
  /// sequence s at t * S + s: the batch has their memory before the first step (memory_key) and may have
  /// rl_keys::kBegins.
  at::Tensor forward(const ParamView& view, const Batch& observation) const;
  /// True if the outputs also depend on a memory.
  bool has_memory() const noexcept { return memory_.has_value(); }
  /// What forward() answers, and the memory after each row [N,W]; undefined without one.
  struct Remembered {
    at::Tensor outputs, memory;
  };
  Remembered forward_remembering(const ParamView& view, const Batch& observation) const;
  /// The columns of rl_keys::kState that it reads, a view.
  at::Tensor state(const Batch& observation) const { return features_.state(observation); }
  /// The Mlp. If is_plain_mlp(), it is the whole network, reads state() alone and has no layer norm: MlpPass takes it.
  const Mlp& mlp() const noexcept { return mlp_; }
  bool is_plain_mlp() const noexcept { return features_.reads_state_only() && !memory_ && !mlp_.shape().layer_norm; }
  /// W of the memory; only with has_memory().
  std::int64_t memory_width() const { return memory_->gru.width(); }
  /// Numbers of forward()'s answer.
  std::int64_t outputs() const noexcept { return memory_ ? memory_->head.shape().outputs : mlp_.shape().outputs; }

 private:
  struct Memory {
    /// of the memory [S,W] in a Batch
    std::string key;
    Gru gru;
    Mlp head;
  };
  ObservationNet(ObservationFeatures features, Mlp mlp, std::optional<Memory> memory)
      : features_(std::move(features)), mlp_(std::move(mlp)), memory_(std::move(memory)) {}

  ObservationFeatures features_;
  Mlp mlp_;
  std::optional<Memory> memory_;
};

}  // namespace troupe::model
