#include "workers/pipeline/learning_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/wan/encoder_cost.h"
#include "model/wan/model_cost.h"
#include "placement/memory_model.h"
#include "placement/rl_shape.h"

namespace troupe::workers {

namespace {

/// Cores that a role computes on.
double cores_of(const Plan& plan, const std::string& role) {
  double cores = 0;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.role == role) cores += std::max(actor.cpus, static_cast<double>(actor.threads));
  }
  return cores;
}

bool is_on_devices(const Plan& plan, const std::string& role) {
  const PlannedActor* first = find_actor(plan, role + "/0");
  return first != nullptr && !first->devices.empty();
}

/// "8 GPUs" or "2 cores".
std::string computes_on(const Plan& plan, const std::string& role) {
  if (!is_on_devices(plan, role)) {
    const double cores = cores_of(plan, role);
    return fmt::format("{:.0f} {}", cores, cores == 1 ? "core" : "cores");
  }
  const auto count = std::ranges::count(plan.actors, role, &PlannedActor::role);
  return fmt::format("{} {}", count, count == 1 ? "GPU" : "GPUs");
}

}  // namespace

LearningWork learning_work(const JobConfig& job, const Plan& plan) {
  const std::int64_t bytes = gathered_bytes_per_param(job);
  const DitCost dit = dit_cost(job.model, job.data.window, bytes);
  const EncoderCost encoders = encoder_cost(job.model, job.data.window, bytes);
  const SequenceLayout layout = planned_layout(job.model, job.data.window, /*trimmed=*/true);
  const RlShape shape = rl_shape(job);
  const std::int64_t whole_rows = shape.env_steps_per_step() / shape.exec_steps;
  const auto rows = static_cast<double>(whole_rows);
  const double forward = dit.executed_forward_flops();

  // a call runs the tokens of one block in every step, and before them the first frame's and those of the blocks that
  // its window has seen, half of them on average; a forward of a window judges all of its calls
  const auto share = [&](std::int64_t tokens) {
    return static_cast<double>(tokens) / static_cast<double>(dit.executed_tokens);
  };
  const double block = share(layout.group_tokens());
  const auto calls = static_cast<double>(job.data.window.chunks);
  const double seen_before = share(layout.frame_tokens()) + (calls - 1) / 2 * share(layout.block_video_tokens());
  const double steps = static_cast<double>(job.policy.flow.denoise_steps) * block + seen_before;

  // a window's first call looks at one frame, the others at a block each; i2v models encode the still of a whole window
  const double codec_frame = encoders.codec_flops / static_cast<double>(layout.frames);
  const double later_frames = (calls - 1) * static_cast<double>(layout.frames_per_block);
  const double still = job.model.dit.concat_first_frame_latent ? encoders.codec_flops : 0;
  const double seen = (encoders.image_flops + codec_frame * (1 + later_frames) + still) / calls;

  // gradients of inputs, and of weights where they are trained
  const bool is_adapted = job.model.train_architecture == "lora";
  const bool runs_again = plan.recompute_counts.empty() && plan.activation_checkpoint == "full";
  const double passes = 2.0 + (is_adapted ? 0.0 : 1.0) + (runs_again ? 1.0 : 0.0);
  const double judged = forward / calls;
  const double reference = job.algorithm.policy_gradient.kl_beta > 0 ? judged + seen : 0;
  const auto epochs = static_cast<double>(job.algorithm.policy_gradient.update_epochs);
  return {.acting = rows * (steps * forward + seen),
          .learning = rows * (epochs * (passes * judged + seen) + reference)};
}

std::string work_line(const JobConfig& job, const Plan& plan) {
  const LearningWork work = learning_work(job, plan);
  const bool acts_on_devices = is_on_devices(plan, "rollout"), learns_on_devices = is_on_devices(plan, "learner");
  const auto count = [&](const std::string& role, bool on_devices) {
    return on_devices ? static_cast<double>(std::ranges::count(plan.actors, role, &PlannedActor::role))
                      : cores_of(plan, role);
  };
  const double acting = work.acting / count("rollout", acts_on_devices),
               learning = work.learning / count("learner", learns_on_devices);
  // a core is slower than any device
  const bool acts_longer = acts_on_devices == learns_on_devices ? acting > learning : learns_on_devices;
  return fmt::format(
      "  {:<13} a step: acting {:.3g} TFLOP on {}, learning {:.3g} TFLOP on {}; the bottleneck "
      "is {}\n",
      "work", work.acting / 1e12, computes_on(plan, "rollout"), work.learning / 1e12, computes_on(plan, "learner"),
      acts_longer ? "acting" : "learning");
}

}  // namespace troupe::workers
