#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/policy/flow_model.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Keys of a Batch for behaviour cloning, beside the observation, kAction (chunks in the environment's units),
/// kActionNoise and, if not every action counts, kMask.
namespace flow_keys {
inline constexpr const char* kTime = "flow.time";  ///< [N,1] in (0,1]
}

/// Adds what the loss draws for the rows of a batch: rl_keys::kActionNoise, standard normal [N,width], and
/// flow_keys::kTime, uniform. Row i depends on (seed, positions[i]) alone: its place in the sampler's order (CounterRng
/// streams action_noise and action_timestep; of held-out samples eval_action_noise and eval_action_timestep).
void draw_flow_targets(std::uint64_t seed, std::span<const std::uint64_t> positions, std::int64_t width, bool held_out,
                       Batch& batch);

/// objective("sft") of a flow policy: flow-matching behaviour cloning of demonstrations, before reinforcement learning
/// (arXiv:2210.02747 eq. 23, here with t = 1 for noise):
///     x_t = t noise + (1 - t) a     loss = mean of (v(x_t, t, observation) - (noise - a))^2
/// with a the demonstrated chunk scaled to [-1, 1]. Actions that do not count are zeros in that mean, so that the
/// losses of parts of a batch add up to the batch's. The critic is not trained. Residual stream: [N,W], the velocity.
/// Metrics: action_loss. Stateless and thread-safe.
class FlowImitationObjective final : public Network {
 public:
  explicit FlowImitationObjective(std::shared_ptr<const FlowModel> model) : model_(std::move(model)) {}
  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  Carry prologue(const ParamView& actor, const Batch& batch) const override;
  at::Tensor block(std::int64_t, const ParamView&, const Carry& carry, const Batch&) const override { return carry.x; }
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

 private:
  const std::shared_ptr<const FlowModel> model_;
};

}  // namespace troupe::model
