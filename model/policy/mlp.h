#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/policy_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// How the weights of a network start.
enum class MlpInit : std::uint8_t {
  /// hidden layers with gain sqrt 2, biases zero
  orthogonal,
  /// weights and biases uniform within 1 / sqrt(inputs)
  fan_in,
};

/// What a multi-layer perceptron is made of.
struct MlpShape {
  /// of parameter names: "actor", "critic.0"
  std::string prefix;
  std::int64_t inputs = 0;
  /// may be empty: one linear layer
  std::vector<std::int64_t> hidden;
  std::int64_t outputs = 0;
  /// after the layer norm, if any
  configs::Activation activation = configs::Activation::tanh;
  /// before every activation, eps 1e-5
  bool layer_norm = false;
  bool head_bias = true;
  MlpInit init = MlpInit::orthogonal;
  /// of the last layer's weight; none: as the hidden layers
  std::optional<Init> head = {};
};

/// With the activation of `policy` and orthogonal weights; the head's gain is `head_gain`, or that of hidden layers.
/// `inputs` may be 0 where ObservationNet::make sets it.
MlpShape make_mlp_shape(const PolicyConfig& policy, std::string prefix, std::int64_t inputs,
                        std::vector<std::int64_t> hidden, std::int64_t outputs, std::optional<double> head_gain);

/// A multi-layer perceptron as a function over parameter views: y = W_n f(... f(W_0 x + b_0) ...) + b_n, weights
/// [out,in].
///
/// Parameters, in order: "<prefix>.<i>.weight", "<prefix>.<i>.bias" and, with layer_norm, "<prefix>.<i>.norm.weight",
/// "<prefix>.<i>.norm.bias" of the hidden layers i = 0 .. n-1, then "<prefix>.<n>.weight", "<prefix>.<n>.bias".
/// Immutable.
class Mlp {
 public:
  explicit Mlp(MlpShape shape);

  /// Names of one layer's tensors; norm_* only with layer_norm and not of the last layer.
  struct Layer {
    std::int64_t inputs = 0, outputs = 0;
    std::string weight, bias, norm_weight, norm_bias;
    bool is_head = false;
  };

  const MlpShape& shape() const noexcept { return shape_; }
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  /// Specifications of all parameters.
  std::vector<ParamSpec> params() const;
  /// x [N,inputs] to [N,outputs] f32; computed in the dtype of the weights. Differentiable by autograd.
  at::Tensor forward(const ParamView& view, const at::Tensor& x) const;

 private:
  MlpShape shape_;
  std::vector<Layer> layers_;
};

}  // namespace troupe::model
