#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/cnn.h"
#include "model/policy/mlp.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// From an observation to a vector: images through one Cnn each, their features and the state side by side through an
/// Mlp. With policy.kind mlp the state alone. Immutable.
class ObservationNet {
 public:
  /// Parameters are called "<prefix>.<image>.<i>..." and "<prefix>.<i>...". MlpShape::inputs is set here.
  /// Errors: invalid_argument, as Cnn::make; mlp over images alone, or cnn without images, naming policy.kind.
  static Result<ObservationNet> make(const PolicyConfig& policy, const PolicyShape& shape, MlpShape mlp);

  std::vector<ParamSpec> params() const;
  /// [N,outputs] f32. `observation` has rl_keys::kState (if state_dim > 0) and, with cnn, the images. Of a state that
  /// is wider than state_dim the first columns count.
  at::Tensor forward(const ParamView& view, const Batch& observation) const;
  /// Those columns of rl_keys::kState, a view.
  at::Tensor state(const Batch& observation) const;
  /// The Mlp, which sees state() alone if reads_state_only().
  const Mlp& mlp() const noexcept { return mlp_; }
  bool reads_state_only() const noexcept { return images_.empty(); }

 private:
  struct ImageCnn {
    /// of the images [N,H,W,C] in a Batch
    std::string key;
    Cnn cnn;
  };
  ObservationNet(std::vector<ImageCnn> images, Mlp mlp, std::int64_t columns)
      : images_(std::move(images)), mlp_(std::move(mlp)), columns_(columns) {}

  std::vector<ImageCnn> images_;
  Mlp mlp_;
  std::int64_t columns_;
};

/// The first `columns` columns of a state [N,D]: itself where it has no more.
at::Tensor first_columns(const at::Tensor& state, std::int64_t columns);

}  // namespace troupe::model
