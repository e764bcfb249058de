#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Convolutions over one camera image, as in Mnih et al. 2015 ("Human-level control through deep reinforcement
/// learning"): 8x8 by 4, 4x4 by 2, 3x3 by 1, each followed by relu, then flattened; the linear layer after them is the
/// Mlp's that reads the features. Immutable.
/// No padding: a side of n becomes floor((n - k) / stride) + 1.
///
/// Parameters: "<prefix>.<i>.weight" [out,in,k,k], "<prefix>.<i>.bias", orthogonal with gain sqrt 2 and zeros.
class Cnn {
 public:
  /// `channels` of the convolutions: one to three numbers; with fewer than three, the last convolutions are left out.
  /// Errors: invalid_argument for an image too small for them, or another number of channels, naming
  /// policy.cnn_channels.
  static Result<Cnn> make(std::string prefix, const PolicyShape::Image& image,
                          const std::vector<std::int64_t>& channels);

  std::vector<ParamSpec> params() const;
  /// Numbers per image.
  std::int64_t features() const noexcept { return features_; }
  /// Images [N,H,W,C], u8 scaled by 1/255 or f32 as they are, to [N,features] in the dtype of the weights.
  /// Differentiable by autograd.
  at::Tensor forward(const ParamView& view, const at::Tensor& images) const;

 private:
  struct Convolution {
    std::string weight, bias;
    std::int64_t inputs = 0, outputs = 0, size = 0, stride = 1;
  };
  std::vector<Convolution> convolutions_;
  std::int64_t features_ = 0;
};

}  // namespace troupe::model
