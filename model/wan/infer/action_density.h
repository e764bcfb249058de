#pragma once

#include <ATen/core/Tensor.h>

#include "model/loss/flow_matching.h"
#include "model/policy/flow_step.h"
#include "model/wan/infer/noise_levels.h"

namespace troupe::model {

// The density of one drawn step of DreamZero's actions (ActionDraw of denoise.h); rollout and learner both compute it
// here. The times of flow_step.h are the noise levels: sigma = 1 is noise, v = noise - action.

/// Mean and standard deviation of the actions after a step of Flow-SDE, shaped like x, the actions before it.
struct ActionMoments {
  at::Tensor mean, std;
};
/// Row b of x [B,...] takes step step_B[b], i64 [B] on the CPU. Grad: x and velocity. Errors: throws c10::Error on a
/// step outside of the levels.
ActionMoments action_moments(const at::Tensor& x, const at::Tensor& velocity, const NoiseLevels& levels,
                             const at::Tensor& step_B, double noise_level);

/// A schedule for DitNetwork whose timestep ids are the steps of these levels: the training forward is then given the
/// timesteps of the policy call. Its loss weights are 1.
FlowSchedule schedule_of(const NoiseLevels& levels);

}  // namespace troupe::model
