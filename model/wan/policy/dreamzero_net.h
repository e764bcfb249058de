#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/data_config.h"
#include "configs/model_config.h"
#include "configs/policy_config.h"
#include "kernels/device_names.h"
#include "model/policy/policy_net.h"
#include "model/policy/policy_shape.h"
#include "model/wan/infer/denoise.h"
#include "model/wan/infer/dit_infer.h"
#include "model/wan/policy/dit_policy_network.h"
#include "model/wan/policy/dreamzero_observer.h"
#include "model/wan/policy/dreamzero_window.h"
#include "model/wan/policy/frozen_transformer.h"

namespace troupe::model {

/// What a DreamZeroNet acts with, and where.
struct DreamZeroActing {
  /// Asked with model.train_architecture lora alone. A policy without it has units and objective, and cannot act.
  std::shared_ptr<const FrozenTransformer> frozen = nullptr;
  /// of published weights
  at::ScalarType dtype = at::kFloat;
  /// That the transformer of act() computes on, with heads of a size that it takes (kernels/attention_plan.h). Null:
  /// cores, where all else computes.
  std::shared_ptr<kernels::ComputeDevice> device = nullptr;
  /// InferDevice::graphs
  bool graphs = true;
};

/// DreamZero as a policy: a call denoises the next block of a window (DreamZeroWindow) behind the clean frames that the
/// window has shown, in policy.flow.denoise_steps Euler steps over the noise levels of training, without guidance. One
/// step a row draws its actions by Flow-SDE; the row's log-probability is that step's density. The video follows the
/// flow from keyed noise. Shape legend: dreamzero_observer.h.
///
/// A call makes the keys of all frames of its window again, by the weights that it acts with: call k costs k forwards
/// of a block more than the first, beside the denoise_steps of its own. Keys of earlier calls would be those of earlier
/// weights, with which no learner's density agrees. The learner trains a whole window as fine-tuning does, each block
/// as one call.
///
/// Units: the transformer's, by the names of its checkpoints, all of group "actor". With model.train_architecture full
/// all act. With lora kReplicatedUnit alone does, so that adapters and what is trained whole beside them are published
/// alone; a FrozenTransformer has the rest. No critic. Memory: dreamzero_memory, none with data.window.chunks 1.
/// Extras, all of the step that drew: "video" [Cz,nfpb,h,w] and "actions" [napb,D] before it, "next" [napb,D], the
/// drawn actions, and "step" [1] (integer), -1 where none drew. L = K*A. Phase: "policy" (dit_policy_network.h).
/// Thread-safe, as its observer is; calls of act() take turns.
class DreamZeroNet final : public PolicyNet {
 public:
  /// Loads nothing: `observer` is first asked by act(), logp() or prepare(), and what is frozen by act() or logp().
  /// Errors: invalid_argument for what this policy does not do, naming the key: algorithms with a critic or that are
  /// off-policy (algorithm.name), a chunk of another length than the block's (env.chunk, data.window.action_horizon),
  /// discrete actions and more numbers than the model has (model.dit.action_dim), another sampler than sde
  /// (policy.flow.sampler) or joint, logprob_reduce per_step, safe_logprob, no step that draws, a memory of
  /// another kind (policy.memory), a distribution (policy.distribution); and what WanInference::check and
  /// check_policy_sizes refuse.
  static Result<std::shared_ptr<const PolicyNet>> make(const ModelConfig& model, const WindowConfig& window,
                                                       const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                       const PolicyShape& shape,
                                                       std::shared_ptr<const DreamZeroObserver> observer,
                                                       DreamZeroActing acting = {});

  const std::vector<UnitSpec>& units() const override { return objective_->units(); }
  const std::vector<std::string>& acting_units() const override { return acting_units_; }
  at::ScalarType acting_dtype() const override { return acting_.dtype; }
  const std::vector<ExtraField>& extras() const override { return extras_; }
  const std::vector<MemoryField>& memory() const override { return window_.memory(); }
  std::int64_t logp_width() const override { return objective_->logp_width(); }
  std::int64_t value_width() const override { return 0; }
  /// CounterRng(seed, rng_stream::policy_action, keys[i]) gives row i, in this order: the video's noise, the actions',
  /// the step that draws, that step's noise. `deterministic`: no step draws, log-probabilities are 0; so are those of
  /// noise level 0, whose actions are the same.
  ActResult act(const UnitViews& views, const ActRequest& request) const override;
  /// Throws c10::Error: there is no critic.
  at::Tensor value(const UnitViews& views, const Batch& observation) const override;
  /// `batch` as trajectories keep it, with rl_keys::kNoiseLevel. Some rows at a time go through the training forward.
  at::Tensor logp(const UnitViews& views, const Batch& batch) const override;
  /// Adds the transformer's inputs of the observations and the extras (DitPolicyNetwork). Of a window in which a frame
  /// is not finite no row is.
  Batch prepare(Batch batch) const override;
  bool needs_preparing() const override { return true; }
  /// Throws c10::Error on another phase than "policy".
  std::shared_ptr<const Network> objective(const std::string& phase) const override;

 private:
  /// The random part of N chains.
  struct Draws {
    at::Tensor video;    ///< [N,Cz,nfpb,h,w]
    at::Tensor actions;  ///< [N,napb,D]
    at::Tensor noise;    ///< [N,napb,D], of the step that draws
    std::vector<std::int64_t> step;
  };
  /// What calls run, one at a time.
  struct Transformer {
    std::mutex mutex;
    /// made by the first
    std::unique_ptr<DitInference> dit;
    std::optional<WeightsVersion> version;
  };
  DreamZeroNet(const ModelConfig& model, const WindowConfig& window, const PolicyConfig& policy,
               std::shared_ptr<const DitPolicyNetwork> objective, std::shared_ptr<const DreamZeroObserver> observer,
               DreamZeroActing acting);
  /// The whole transformer by name of unit.
  UnitViews transformer(const UnitViews& acting) const;
  /// With these weights. Transformer::mutex is held.
  DitInference& inference(const UnitViews& acting, const std::optional<WeightsVersion>& version) const;
  Draws draw(const ActRequest& request) const;

  const ModelConfig model_;
  const DreamZeroWindow window_;
  const std::int64_t actions_per_block_;
  const FlowPolicyConfig flow_;
  const Denoiser denoiser_;
  const std::shared_ptr<const DitPolicyNetwork> objective_;
  const std::shared_ptr<const DreamZeroObserver> observer_;
  const DreamZeroActing acting_;
  const std::unique_ptr<Transformer> transformer_;
  std::vector<std::string> acting_units_;
  std::vector<ExtraField> extras_;
};

}  // namespace troupe::model
