#include "model/policy/flow_imitation.h"

#include <ATen/ATen.h>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/loss/rl_keys.h"

namespace troupe::model {

void draw_flow_targets(std::uint64_t seed, std::span<const std::uint64_t> positions, std::int64_t width, bool held_out,
                       Batch& batch) {
  batch[rl_keys::kActionNoise] =
      keyed_noise(seed, held_out ? rng_stream::eval_action_noise : rng_stream::action_noise, positions, {width});
  const std::uint64_t stream = held_out ? rng_stream::eval_action_timestep : rng_stream::action_timestep;
  auto times = at::empty({static_cast<std::int64_t>(positions.size()), 1}, at::kFloat);
  float* out = times.data_ptr<float>();
  // 1 - u: pure noise is drawn, the finished action never is
  for (const auto position : positions) *out++ = 1.0F - CounterRng(seed, stream, position).uniform();
  batch[flow_keys::kTime] = times;
}

Carry FlowImitationObjective::prologue(const ParamView& actor, const Batch& batch) const {
  const auto clean = model_->from_action(batch.at(rl_keys::kAction));
  const auto& time = batch.at(flow_keys::kTime);
  const auto mix = mix_noise(clean, batch.at(rl_keys::kActionNoise), time);
  return {model_->network(actor, batch)(mix.noisy, time.view({-1})).velocity, {}};
}

Outputs FlowImitationObjective::epilogue(const ParamView&, const Carry& carry, const Batch& batch) const {
  const auto clean = model_->from_action(batch.at(rl_keys::kAction));
  auto error = (carry.x - (batch.at(rl_keys::kActionNoise) - clean)).square();
  if (const auto mask = batch.find(rl_keys::kMask); mask != batch.end()) {
    // [N,K] over the K actions of a chunk
    error = error.view({error.size(0), model_->chunk(), -1}) * mask->second.to(error.scalar_type()).unsqueeze(2);
  }
  const auto loss = error.mean();
  return {loss, {{"action_loss", loss.detach()}}, {}};
}

}  // namespace troupe::model
