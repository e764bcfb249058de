#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Convolutions over one camera image, without padding: a side of n becomes floor((n - k) / stride) + 1. Immutable.
///     Vision::cnn        8x8 by 4, 4x4 by 2, 3x3 by 1, each followed by relu, then flattened, as in Mnih et al. 2015
///                        ("Human-level control through deep reinforcement learning"); the linear layer after them is
///                        the Mlp's that reads the features
///     Vision::keypoints  5x5 by 2, 3x3 by 2, 3x3 by 1, relu between them; each channel's place in the picture
///                        (spatial_keypoints of 10 times the maps), as in Levine et al. 2016 (arXiv:1504.00702)
///
/// Parameters: "<prefix>.<i>.weight" [out,in,k,k], "<prefix>.<i>.bias", orthogonal with gain sqrt 2 and zeros.
class Cnn {
 public:
  /// `vision` is not none. `channels` of the convolutions: one to three numbers; with fewer than three, the last
  /// convolutions are left out. Errors: invalid_argument for an image too small for them, or another number of
  /// channels, naming policy.cnn_channels.
  static Result<Cnn> make(std::string prefix, Vision vision, const PolicyShape::Image& image,
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
  bool finds_keypoints_ = false;
  std::int64_t features_ = 0;
};

/// Where each channel of maps [N,C,H,W] is: the mean place under softmax over its H W numbers, [N,2C], first all x (to
/// the right), then all y (down), -1 at the middle of the first column or row and 1 at that of the last. Differentiable
/// by autograd.
at::Tensor spatial_keypoints(const at::Tensor& maps);

}  // namespace troupe::model
