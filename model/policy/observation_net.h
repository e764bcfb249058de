#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/cnn.h"
#include "model/policy/gru.h"
#include "model/policy/mlp.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// From an observation to a vector: images through one Cnn each, their features and the state side by side through an
/// Mlp. With policy.kind mlp the state alone. With policy.memory gru the Mlp's last hidden layer feeds a Gru, whose
/// memory the last layer reads. Immutable.
class ObservationNet {
 public:
  /// Parameters are called "<prefix>.<image>.<i>..." and "<prefix>.<i>...", of a Gru and the layer behind it
  /// "<prefix>.gru..." and "<prefix>.head.0...". MlpShape::inputs is set here.
  /// Errors: invalid_argument, as Cnn::make; mlp over images alone, or cnn without images, naming policy.kind; a Gru
  /// without a hidden layer before it.
  static Result<ObservationNet> make(const PolicyConfig& policy, const PolicyShape& shape, MlpShape mlp);

  std::vector<ParamSpec> params() const;
  /// [N,outputs] f32. `observation` has rl_keys::kState (if state_dim > 0) and, with cnn, the images. Of a state that
  /// is wider than state_dim the first columns count. With a memory the rows are sequences, step t of sequence s at
  /// t * S + s: the batch has their memory before the first step (memory_key) and may have rl_keys::kBegins.
  at::Tensor forward(const ParamView& view, const Batch& observation) const;
  /// Whether it is no function of the observation alone.
  bool has_memory() const noexcept { return memory_.has_value(); }
  /// What forward() answers, and the memory after each row [N,W]; undefined without one.
  struct Remembered {
    at::Tensor outputs, memory;
  };
  Remembered forward_remembering(const ParamView& view, const Batch& observation) const;
  /// Those columns of rl_keys::kState, a view.
  at::Tensor state(const Batch& observation) const;
  /// The Mlp, which is all of it if is_plain_mlp(), and sees state() alone then.
  const Mlp& mlp() const noexcept { return mlp_; }
  bool is_plain_mlp() const noexcept { return images_.empty() && !memory_; }
  /// W of the memory; only with has_memory().
  std::int64_t memory_width() const { return memory_->gru.width(); }
  /// Numbers of forward()'s answer.
  std::int64_t outputs() const noexcept { return memory_ ? memory_->head.shape().outputs : mlp_.shape().outputs; }

 private:
  struct ImageCnn {
    /// of the images [N,H,W,C] in a Batch
    std::string key;
    Cnn cnn;
  };
  struct Memory {
    /// of the memory [S,W] in a Batch
    std::string key;
    Gru gru;
    Mlp head;
  };
  ObservationNet(std::vector<ImageCnn> images, Mlp mlp, std::optional<Memory> memory, std::int64_t columns)
      : images_(std::move(images)), mlp_(std::move(mlp)), memory_(std::move(memory)), columns_(columns) {}
  /// The Mlp's answer.
  at::Tensor features(const ParamView& view, const Batch& observation) const;

  std::vector<ImageCnn> images_;
  Mlp mlp_;
  std::optional<Memory> memory_;
  std::int64_t columns_;
};

/// The first `columns` columns of a state [N,D]: itself where it has no more.
at::Tensor first_columns(const at::Tensor& state, std::int64_t columns);

}  // namespace troupe::model
