#include "workers/record/demonstration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "env/episode_seed.h"

namespace troupe::workers {

namespace {

/// The expert reads vectors of f32, one after the other.
Result<void> check_fit(const EnvSpec& spec, const Expert& expert) {
  std::int64_t numbers = 0;
  bool vectors = true;
  for (const EnvField& field : spec.observation) {
    numbers += field.numel();
    vectors = vectors && field.dtype == EnvDType::f32 && field.shape.size() == 1;
  }
  if (!vectors || numbers != static_cast<std::int64_t>(expert.state_names().size())) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: its controller reads vectors of {} numbers, the profile `state`; leave `profile` out",
                             spec.id, expert.state_names().size())};
  }
  if (spec.action.is_discrete() || spec.action.size != static_cast<std::int64_t>(expert.action_names().size())) {
    return Error{Errc::invalid_argument, fmt::format("{}: its controller gives {} numbers, an action has {}", spec.id,
                                                     expert.action_names().size(), spec.action.size)};
  }
  if (spec.max_steps <= 0)
    return Error{Errc::invalid_argument, fmt::format("{} has no time limit; set max_episode_steps", spec.id)};
  if (!spec.has_success)
    return Error{Errc::invalid_argument,
                 fmt::format("{} does not say what is solved, so nothing can be judged", spec.id)};
  return {};
}

Result<void> check_cameras(const EnvSpec& spec, const std::vector<std::string>& cameras) {
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    if (std::find(spec.cameras.begin(), spec.cameras.end(), cameras[i]) == spec.cameras.end()) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} has no camera '{}'; it has {}", spec.id, cameras[i], fmt::join(spec.cameras, ", "))};
    }
    if (std::count(cameras.begin(), cameras.end(), cameras[i]) > 1) {
      return Error{Errc::invalid_argument, fmt::format("camera {} is named twice", cameras[i])};
    }
  }
  return {};
}

}  // namespace

std::uint64_t demonstration_seed(std::uint64_t seed, std::int64_t k) { return episode_seed(seed, -1, k); }

Result<Demonstrator> Demonstrator::make(std::shared_ptr<const EnvFactory> envs, std::unique_ptr<Expert> expert,
                                        std::vector<std::string> cameras, std::int64_t side) {
  const EnvSpec& spec = envs->spec();
  TROUPE_TRY(check_fit(spec, *expert));
  TROUPE_TRY(check_cameras(spec, cameras));
  Demonstrator d;
  TROUPE_ASSIGN(auto env, SingleEnv::make(envs));
  d.env_.emplace(std::move(env));
  d.action_.resize(static_cast<std::size_t>(spec.action.size));
  d.envs_ = std::move(envs);
  d.expert_ = std::move(expert);
  d.cameras_ = std::move(cameras);
  d.side_ = side;
  return d;
}

std::vector<float> Demonstrator::observed() const {
  std::vector<float> all;
  for (std::size_t i = 0; i < spec().observation.size(); ++i) {
    const auto field = env_->field(i);
    const std::size_t at = all.size();
    all.resize(at + field.size() / sizeof(float));
    std::memcpy(all.data() + at, field.data(), field.size());
  }
  return all;
}

Result<void> Demonstrator::act() {
  const std::vector<float> state = observed();
  const std::span<const float> asked = expert_->act(state);
  const ActionSpace& space = spec().action;
  for (std::size_t i = 0; i < action_.size(); ++i) {
    if (std::isnan(asked[i]))
      return Error{Errc::internal, fmt::format("{}: its controller gave an action that is no number", spec().id)};
    action_[i] = space.clipped(i, asked[i]);
  }
  return {};
}

Result<void> Demonstrator::draw(Demonstration& into) {
  const auto bytes = static_cast<std::size_t>(side_ * side_ * 3);
  into.images.resize(cameras_.size());
  for (std::size_t c = 0; c < cameras_.size(); ++c) {
    std::vector<std::uint8_t>& pixels = into.images[c];
    pixels.resize(pixels.size() + bytes);
    TROUPE_TRY(env_->render(cameras_[c], {.width = side_, .height = side_, .rgb = std::span(pixels).last(bytes)}));
  }
  return {};
}

Result<Demonstration> Demonstrator::play(std::uint64_t seed) {
  Demonstration demo;
  demo.instruction = expert_->instruction(seed);
  expert_->reset();
  TROUPE_TRY(env_->begin(seed));
  for (std::int64_t held = 0; held <= kHoldSteps && demo.length < spec().max_steps; ++demo.length) {
    const std::vector<float> state = observed();
    TROUPE_TRY(draw(demo));
    TROUPE_TRY(act());
    TROUPE_TRY(env_->step(action_));
    demo.states.insert(demo.states.end(), state.begin(), state.end());
    demo.actions.insert(demo.actions.end(), action_.begin(), action_.end());
    demo.rewards.push_back(env_->view().reward()[0]);
    demo.success.push_back(env_->view().success()[0] != 0 ? 1.0F : 0.0F);
    demo.done.push_back(0.0F);
    demo.terminated.push_back(env_->view().terminated()[0] != 0 ? 1.0F : 0.0F);
    held = demo.terminated.back() != 0 ? kHoldSteps + 1 : demo.success.back() != 0 ? held + 1 : 0;
  }
  demo.done.back() = 1.0F;
  return demo;
}

}  // namespace troupe::workers
