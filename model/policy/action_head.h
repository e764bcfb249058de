#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Log-probability and entropy of action chunks, unreduced, both [N,L].
struct ActionDensity {
  at::Tensor logp;
  at::Tensor entropy;
};

/// What an actor network's outputs [N,outputs] mean: a distribution over chunks of actions. Immutable, so thread-safe.
///   categorical: outputs are logits [N,K*C]; actions are indices [N,K]; L = K. With a mask K is 1, and a choice that
///                it does not allow has probability 0: it is never drawn, has no part in the entropy, and density()
///                gives it the logarithm -inf. A row that allows nothing (a lost one) counts as one without a mask.
///   gaussian:    outputs are means [N,K*A]; the logarithm of the standard deviation is a parameter "actor.log_std"
///                [K*A], the same for all states; actions are real numbers [N,K*A]; L = K*A. Actions are what was
///                drawn, unclipped, since their density is that of the draw: an environment clips what it gets to its
///                bounds, which counts as part of the environment.
class ActionHead {
 public:
  enum class Kind : std::uint8_t { categorical, gaussian };

  /// Errors: invalid_argument where policy.distribution and the actions do not fit, naming it.
  static Result<ActionHead> make(const PolicyConfig& policy, const PolicyShape& shape);

  Kind kind() const noexcept { return kind_; }
  /// Width of the network's last layer: K*C or K*A.
  std::int64_t outputs() const noexcept { return chunk_ * per_action_; }
  std::int64_t chunk() const noexcept { return chunk_; }
  /// C of the categorical; A of the gaussian.
  std::int64_t choices() const noexcept { return per_action_; }
  /// Whether density() and sample() want a mask.
  bool is_masked() const noexcept { return is_masked_; }
  /// L, numbers of a row's log-probability: one per action or per dimension of it, unreduced
  /// (model/loss/granularity.h).
  std::int64_t logp_width() const noexcept { return kind_ == Kind::categorical ? chunk_ : outputs(); }
  /// Numbers of a row's action: as many.
  std::int64_t action_width() const noexcept { return logp_width(); }
  /// Parameters beside the network's: of the gaussian "actor.log_std", which starts at policy.init_log_std.
  std::vector<ParamSpec> params() const;
  static constexpr const char* kLogStd = "actor.log_std";

  /// Of given actions [N,action_width] f32; differentiable by autograd in `outputs` and the parameters. `mask` [N,C],
  /// 0 where a choice is not allowed, if is_masked().
  /// Errors: throws c10::Error on an index that is not a choice.
  ActionDensity density(const ParamView& view, const at::Tensor& outputs, const at::Tensor& action,
                        const at::Tensor& mask) const;

  /// Actions for some observations, in plain memory.
  struct Draw {
    /// [N,outputs()], the network's.
    const float* outputs = nullptr;
    /// Of the first row, and from row to row, if is_masked().
    const float* mask = nullptr;
    std::int64_t mask_stride = 0;
    /// Row i is drawn with CounterRng(seed, rng_stream::policy_action, keys[i]); as many as rows.
    std::uint64_t seed = 0;
    std::span<const std::uint64_t> keys;
    /// The mode.
    bool deterministic = false;
    /// [N,action_width()] and [N,logp_width()]: the answer, what density() says of it.
    float *action = nullptr, *logp = nullptr;
  };
  void draw(const ParamView& view, std::int64_t rows, const Draw& draw) const;

  struct Sample {
    /// [N,action_width] f32: drawn, or the mode
    at::Tensor action;
    /// [N,L]: what density() says of it
    at::Tensor logp;
  };
  /// draw() of tensors. Records no gradient.
  Sample sample(const ParamView& view, const at::Tensor& outputs, std::uint64_t seed,
                std::span<const std::uint64_t> keys, bool deterministic, const at::Tensor& mask) const;

 private:
  void draw_choices(std::int64_t rows, const Draw& draw) const;
  void draw_gaussians(const ParamView& view, std::int64_t rows, const Draw& draw) const;

  ActionHead(Kind kind, std::int64_t chunk, std::int64_t per_action, double init_log_std, bool is_masked)
      : kind_(kind), chunk_(chunk), per_action_(per_action), init_log_std_(init_log_std), is_masked_(is_masked) {}

  Kind kind_;
  std::int64_t chunk_, per_action_;
  double init_log_std_;
  bool is_masked_;
};

}  // namespace troupe::model
