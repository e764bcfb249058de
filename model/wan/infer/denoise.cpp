#include "model/wan/infer/denoise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <variant>

#include "model/wan/infer/action_density.h"
#include "model/wan/infer/euler.h"
#include "model/wan/infer/step_skip.h"
#include "model/wan/layers.h"

namespace troupe::model {
namespace {

/// Denoises one tensor by the sampler of the options.
class Sampler {
 public:
  /// Euler's method where `plan` is null.
  Sampler(const NoiseLevels& levels, const std::shared_ptr<const UniPcPlan>& plan, at::Tensor sample)
      : method_(plan ? Method(UniPcSampler(plan, std::move(sample)))
                     : Method(EulerSampler(levels, std::move(sample)))) {}

  const at::Tensor& sample() const {
    return std::visit([](const auto& method) -> const at::Tensor& { return method.sample(); }, method_);
  }
  void advance(const at::Tensor& velocity) {
    std::visit([&](auto& method) { method.advance(velocity); }, method_);
  }
  /// Of Euler's method alone.
  void advance_to(at::Tensor next) { std::get<EulerSampler>(method_).advance_to(std::move(next)); }

 private:
  using Method = std::variant<UniPcSampler, EulerSampler>;
  Method method_;
};

/// A request on its way from noise to sample.
struct Run {
  Sampler video, actions;
  StepSkipRule skip;
  at::Tensor states;
  at::Tensor v_video, v_action;  ///< of the last evaluated step
  std::vector<bool> evaluated;
  std::optional<ActionTransition> transition = std::nullopt;
};

/// Takes the step of `run` in which the actions are drawn.
void draw(Run& run, const ActionDraw& how, const NoiseLevels& levels) {
  TORCH_CHECK(run.evaluated.back(), "step ", how.step, " draws actions and is skipped");
  const auto x = run.actions.sample();
  const auto steps = at::full({x.size(0)}, how.step, at::TensorOptions().dtype(at::kLong));
  const auto moments = action_moments(x, run.v_action, levels, steps, how.noise_level);
  const auto next = moments.mean + how.noise.to(x.options()) * moments.std;
  run.transition = ActionTransition{how.step, run.video.sample(), x, next,
                                    flow_step_logp(next, moments.mean, moments.std, /*safe=*/false)};
  run.actions.advance_to(next);
}

at::Tensor guided(const at::Tensor& v_by_branch, double cfg_scale) {
  auto cond = v_by_branch.select(1, 0);
  if (v_by_branch.size(1) == 1) return cond;
  const auto uncond = v_by_branch.select(1, 1);
  return uncond + (cond - uncond) * cfg_scale;
}

at::Tensor join(const std::vector<at::Tensor>& parts) { return parts.size() == 1 ? parts.front() : at::cat(parts, 0); }

/// One forward for the runs that `indices` names; returns each one's velocities in that order.
std::vector<Velocities> evaluate(DitInference& dit, std::span<const DenoiseRequest> requests,
                                 const std::vector<Run>& runs, const std::vector<std::size_t>& indices, double t_video,
                                 double t_action) {
  std::vector<DitEpisode*> episodes;
  std::vector<at::Tensor> video, actions, states;
  for (const auto i : indices) {
    episodes.push_back(requests[i].episode);
    video.push_back(runs[i].video.sample());
    actions.push_back(runs[i].actions.sample());
    states.push_back(runs[i].states);
  }
  const auto all = dit.evaluate(episodes, {join(video), join(actions), join(states), t_video, t_action});
  std::vector<Velocities> out;
  std::int64_t begin = 0;
  for (const auto* episode : episodes) {
    const auto count = episode->samples();
    out.push_back({all.video.narrow(0, begin, count), all.actions.narrow(0, begin, count)});
    begin += count;
  }
  return out;
}

}  // namespace

at::Tensor seeded_noise(std::uint64_t seed, at::IntArrayRef shape) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kFloat));
}

Denoiser::Denoiser(const InferOptions& options)
    : options_(options),
      action_levels_(shifted_levels(options.steps, options.shift)),
      video_levels_(options.decouple_noise ? decoupled_levels(action_levels_, options.video_final_noise)
                                           : action_levels_) {
  if (options.sampler == DenoiseSampler::euler) return;
  action_plan_ = std::make_shared<const UniPcPlan>(action_levels_);
  video_plan_ = options.decouple_noise ? std::make_shared<const UniPcPlan>(video_levels_) : action_plan_;
}

std::vector<Denoised> Denoiser::run(DitInference& dit, std::span<const DenoiseRequest> requests,
                                    const DenoiseObserver& observer) const {
  const c10::NoGradGuard no_grad;
  // rounding a sample to bf16 at every step would cost more than the network's own rounding
  const auto wide = accumulate_type(dit.dtype());
  std::vector<Run> runs;
  for (const auto& request : requests) {
    TORCH_CHECK(request.episode->branches() == options_.branches(), "an episode of ", request.episode->branches(),
                " branches; cfg_scale ", options_.cfg_scale, " wants ", options_.branches());
    runs.push_back({Sampler(video_levels_, video_plan_, request.video_noise.to(wide)),
                    Sampler(action_levels_, action_plan_, request.action_noise.to(wide)),
                    StepSkipRule(options_.skip),
                    request.states.to(dit.dtype()),
                    {},
                    {},
                    {}});
    TORCH_CHECK(!request.draw || options_.sampler == DenoiseSampler::euler,
                "actions are drawn by Euler's method alone");
  }
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].evaluated.push_back(runs[i].skip.evaluates());
      if (runs[i].evaluated.back()) indices.push_back(i);
    }
    std::vector<Velocities> velocities;
    if (!indices.empty()) {
      const auto at_step = static_cast<std::size_t>(step);
      velocities = evaluate(dit, requests, runs, indices, static_cast<double>(video_levels().timesteps[at_step]),
                            static_cast<double>(action_levels().timesteps[at_step]));
    }
    for (std::size_t k = 0; k < indices.size(); ++k) {
      auto& run = runs[indices[k]];
      run.v_video = guided(velocities[k].video.to(wide), options_.cfg_scale);
      run.v_action = velocities[k].actions.select(1, 0).to(wide);
      run.skip.record(run.v_video);
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      // before the video moves: a transition holds the video that the velocity was computed from
      if (const auto& how = requests[i].draw; how && how->step == step)
        draw(runs[i], *how, action_levels_);
      else
        runs[i].actions.advance(runs[i].v_action);
      runs[i].video.advance(runs[i].v_video);
      const auto* seen = runs[i].evaluated.back() ? &velocities[next++] : nullptr;
      if (observer) observer({i, step, seen, runs[i].video.sample(), runs[i].actions.sample()});
    }
  }
  std::vector<Denoised> out;
  for (auto& run : runs) {
    out.push_back({run.video.sample(), run.actions.sample(), std::move(run.evaluated), std::move(run.transition)});
  }
  return out;
}

}  // namespace troupe::model
