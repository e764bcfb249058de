#include "workers/record/demonstration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "env/episode_seed.h"

namespace troupe::workers {

namespace {

/// Names for the numbers of an environment that has none for them.
std::vector<std::string> numbered(const std::string& name, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(count == 1 ? name : fmt::format("{}_{}", name, i));
  return names;
}

/// The fields that a row holds, in the order of a policy's state (policy_shape_of.h): what critics alone read is behind
/// the rest, as imitation expects. A text is the recording's task.
std::vector<std::size_t> recorded_fields(const EnvSpec& spec) {
  std::vector<std::size_t> fields;
  for (const EnvReader reader : {EnvReader::policy, EnvReader::critic, EnvReader::action_mask}) {
    for (std::size_t i = 0; i < spec.observation.size(); ++i) {
      if (spec.observation[i].reader == reader) fields.push_back(i);
    }
  }
  return fields;
}

/// Rows hold vectors of f32, one after the other, which an expert reads.
Result<void> check_fit(const EnvSpec& spec, const Expert* expert) {
  std::int64_t numbers = 0;
  bool vectors = true;
  for (const std::size_t i : recorded_fields(spec)) {
    const EnvField& field = spec.observation[i];
    numbers += field.numel();
    vectors = vectors && field.dtype == EnvDType::f32 && field.shape.size() == 1;
  }
  if (expert == nullptr && !vectors) {
    return Error{Errc::invalid_argument, fmt::format("{}: a recording holds vectors of f32 and what `--cameras` draw; "
                                                     "leave other observations out of its options",
                                                     spec.id)};
  }
  if (expert != nullptr && (!vectors || numbers != static_cast<std::int64_t>(expert->state_names().size()))) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: its controller reads vectors of {} numbers, the profile `state`; leave `profile` out",
                             spec.id, expert->state_names().size())};
  }
  if (spec.action.is_discrete())
    return Error{Errc::invalid_argument, fmt::format("{}: its action is a choice; recordings hold vectors", spec.id)};
  if (expert != nullptr && spec.action.size != static_cast<std::int64_t>(expert->action_names().size())) {
    return Error{Errc::invalid_argument, fmt::format("{}: its controller gives {} numbers, an action has {}", spec.id,
                                                     expert->action_names().size(), spec.action.size)};
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
  TROUPE_TRY(check_fit(spec, expert.get()));
  TROUPE_TRY(check_cameras(spec, cameras));
  Demonstrator d;
  TROUPE_ASSIGN(auto env, SingleEnv::make(envs));
  d.env_.emplace(std::move(env));
  d.action_.resize(static_cast<std::size_t>(spec.action.size));
  if (expert) {
    d.robot_ = expert->robot();
    d.state_names_ = expert->state_names();
    d.action_names_ = expert->action_names();
  } else {
    TROUPE_TRY(d.env_->begin(demonstration_seed(0, 0)));
    TROUPE_TRY(d.env_->advise(d.action_));  // whether there is one
    d.robot_ = spec.id;
    for (const std::size_t i : recorded_fields(spec)) {
      const EnvField& field = spec.observation[i];
      const auto names = numbered(field.name, field.numel());
      d.state_names_.insert(d.state_names_.end(), names.begin(), names.end());
    }
    d.action_names_ = numbered("action", spec.action.size);
  }
  d.envs_ = std::move(envs);
  d.expert_ = std::move(expert);
  d.cameras_ = std::move(cameras);
  d.side_ = side;
  return d;
}

std::vector<float> Demonstrator::observed() const {
  std::vector<float> all;
  for (const std::size_t i : recorded_fields(spec())) {
    const auto field = env_->field(i);
    const std::size_t at = all.size();
    all.resize(at + field.size() / sizeof(float));
    std::memcpy(all.data() + at, field.data(), field.size());
  }
  return all;
}

std::string Demonstrator::instruction(std::uint64_t seed) const {
  const auto& fields = spec().observation;
  const auto told = std::ranges::find_if(fields, [](const EnvField& field) { return field.reader == EnvReader::text; });
  if (told != fields.end()) {
    const auto text = env_->field(static_cast<std::size_t>(told - fields.begin()));
    const std::string_view all(reinterpret_cast<const char*>(text.data()), text.size());
    return std::string(all.substr(0, all.find('\0')));
  }
  const std::string& id = spec().id;
  return expert_ ? expert_->instruction(seed) : id.substr(id.rfind(':') + 1);
}

Result<void> Demonstrator::act() {
  if (expert_) {
    const std::span<const float> asked = expert_->act(observed());
    action_.assign(asked.begin(), asked.end());
  } else {
    TROUPE_TRY(env_->advise(action_));
  }
  const ActionSpace& space = spec().action;
  for (std::size_t i = 0; i < action_.size(); ++i) {
    if (std::isnan(action_[i]))
      return Error{Errc::internal, fmt::format("{}: its controller gave an action that is no number", spec().id)};
    action_[i] = space.clipped(i, action_[i]);
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
  if (expert_) expert_->reset();
  TROUPE_TRY(env_->begin(seed));
  demo.instruction = instruction(seed);
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
    held = env_->view().done()[0] != 0 ? kHoldSteps + 1 : demo.success.back() != 0 ? held + 1 : 0;
  }
  demo.done.back() = 1.0F;
  return demo;
}

}  // namespace troupe::workers
