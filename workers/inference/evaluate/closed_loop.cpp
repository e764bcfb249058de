#include "workers/inference/evaluate/closed_loop.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "workers/inference/agent/episode_record.h"
#include "workers/inference/evaluate/open_loop.h"
#include "workers/record/record_demonstrations.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kFrameBytes = static_cast<std::size_t>(kFrameSide * kFrameSide * 3);

Error refuse(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

/// Numbers of an observation as recordings have them, field after field. Errors: invalid_argument (other fields than
/// vectors of f32).
Result<std::int64_t> state_width(const EnvSpec& env) {
  std::int64_t width = 0;
  for (const EnvField& field : env.observation) {
    if (field.dtype != EnvDType::f32 || field.shape.size() != 1) {
      return refuse(
          fmt::format("{}: its field {} is no vector of f32, and recordings hold vectors alone", env.id, field.name));
    }
    width += field.numel();
  }
  return width;
}

/// The calls of a window follow each other without a gap, and frames come before the next call.
Result<void> check_window(const WindowConfig& window) {
  if (window.macro_stride > window.action_horizon) {
    return refuse(fmt::format("the policy plans {} actions and is asked every {} control steps (data.window)",
                              window.action_horizon, window.macro_stride));
  }
  if (window.video_offsets.empty() || window.video_offsets.back() >= window.macro_stride) {
    return refuse(fmt::format("data.window.video_offsets [{}] do not lie below macro_stride {}",
                              fmt::join(window.video_offsets, ", "), window.macro_stride));
  }
  return {};
}

}  // namespace

ClosedLoopPlayer::ClosedLoopPlayer(Policy& policy, const EnvSpec& env, const WindowConfig& window)
    : policy_(policy), env_(env), window_(window) {}

Result<void> ClosedLoopPlayer::find_views(const PolicySpec& spec) {
  for (const std::string& view : spec.embodiment.views) {
    const std::string camera = camera_of(spec, view);
    if (std::find(env_.cameras.begin(), env_.cameras.end(), camera) == env_.cameras.end()) {
      return refuse(fmt::format("the policy sees '{}', and {} has no camera '{}'; it has {}", view, env_.id, camera,
                                env_.cameras.empty() ? "none" : fmt::format("{}", fmt::join(env_.cameras, ", "))));
    }
    views_.push_back({view, camera});
  }
  return {};
}

Result<std::unique_ptr<ClosedLoopPlayer>> ClosedLoopPlayer::make(Policy& policy, const PolicySpec& spec,
                                                                 const EnvSpec& env, std::string instruction) {
  TROUPE_TRY(check_window(spec.window));
  if (env.agents != 1)
    return refuse(fmt::format("{} has {} agents; this policy plays where there is one", env.id, env.agents));
  if (env.action.is_discrete()) return refuse(fmt::format("{} takes one of {} actions", env.id, env.action.choices));
  std::unique_ptr<ClosedLoopPlayer> player(new ClosedLoopPlayer(policy, env, spec.window));
  TROUPE_ASSIGN(player->later_frames_, later_frames(policy.info(), spec.window));
  TROUPE_TRY(player->find_views(spec));
  TROUPE_ASSIGN(const std::int64_t width, state_width(env));
  TROUPE_ASSIGN(player->state_, state_columns(spec, width));
  TROUPE_ASSIGN(player->action_, action_columns(spec, env));
  player->instruction_ = std::move(instruction);
  if (!player->instruction_.empty()) return player;
  auto expert = make_expert(env.id);
  if (!expert) return expert.error().with("what the policy is told");
  player->expert_ = std::move(*expert);
  return player;
}

bool ClosedLoopPlayer::is_drawn(std::int64_t step) const {
  const auto& offsets = window_.video_offsets;
  return std::find(offsets.begin(), offsets.end(), step) != offsets.end();
}

void ClosedLoopPlayer::begin(const EpisodeSeat& seat, std::size_t index) {
  policy_.reset(episode_of(index));
  turns_[index] = {.step = window_.macro_stride,
                   .calls = 0,
                   .instruction = expert_ ? expert_->instruction(evaluation_seed(seat.seed)) : instruction_,
                   .frames = std::vector<std::vector<std::byte>>(views_.size()),
                   .actions = {}};
}

Result<void> ClosedLoopPlayer::draw(const EpisodeSeat& seat, Turn& turn) const {
  for (std::size_t v = 0; v < views_.size(); ++v) {
    std::vector<std::byte>& frames = turn.frames[v];
    frames.resize(frames.size() + kFrameBytes);
    auto* const pixels = reinterpret_cast<std::uint8_t*>(frames.data() + frames.size() - kFrameBytes);
    TROUPE_TRY(seat.render(views_[v].camera,
                           {.width = kFrameSide, .height = kFrameSide, .rgb = std::span(pixels, kFrameBytes)}));
  }
  return {};
}

Observation ClosedLoopPlayer::observe(const EpisodeSeat& seat, std::size_t index) const {
  const Turn& turn = turns_[index];
  Observation seen{.episode = episode_of(index), .prompt = turn.instruction, .images = {}, .state = {}};
  // behind a full window the next one starts, as the first did, with the newest frame alone
  const std::int64_t count = turn.calls % window_.chunks == 0 ? 1 : later_frames_;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    NdArray array{.dtype = "|u1", .shape = {kFrameSide, kFrameSide, 3}, .data = {}};
    if (count > 1) array.shape.insert(array.shape.begin(), count);
    const auto bytes = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * kFrameBytes);
    array.data.assign(turn.frames[v].end() - bytes, turn.frames[v].end());
    seen.images[views_[v].name] = std::move(array);
  }
  std::vector<std::byte> state;
  for (std::size_t i = 0; i < env_.observation.size(); ++i) {
    const std::byte* field = seat.field(i);
    state.insert(state.end(), field, field + env_.observation[i].bytes());
  }
  for (const EnvColumns& key : state_) {
    const auto from = state.begin() + static_cast<std::ptrdiff_t>(sizeof(float)) * key.first;
    seen.state[key.name] = {.dtype = "<f4",
                            .shape = {key.width},
                            .data = {from, from + static_cast<std::ptrdiff_t>(sizeof(float)) * key.width}};
  }
  return seen;
}

void ClosedLoopPlayer::take(const ActionChunk& chunk, Turn& turn) const {
  turn.actions.assign(static_cast<std::size_t>(window_.macro_stride * env_.action.size), 0.0F);
  place_actions(chunk, action_, window_.macro_stride, env_.action.size, turn.actions.data());
  turn.step = 0;
  ++turn.calls;
  // The frame of this call is the next one's first, where the window has it.
  for (auto& frames : turn.frames) {
    if (is_drawn(0))
      frames.erase(frames.begin(), frames.end() - static_cast<std::ptrdiff_t>(kFrameBytes));
    else
      frames.clear();
  }
}

Result<at::Tensor> ClosedLoopPlayer::act(std::span<const EpisodeSeat> seats) {
  turns_.resize(std::max(turns_.size(), seats.size()));
  std::vector<Observation> observations;
  std::vector<std::size_t> asking;
  const auto where = [&](std::size_t i) { return fmt::format("{}, evaluation seed {}", env_.id, seats[i].seed); };
  for (std::size_t i = 0; i < seats.size(); ++i) {
    if (!seats[i].is_playing) continue;
    if (seats[i].length == 0) begin(seats[i], i);
    const bool asks = turns_[i].step == window_.macro_stride;
    if (!asks && !is_drawn(turns_[i].step)) continue;
    if (auto drawn = draw(seats[i], turns_[i]); !drawn) return drawn.error().with(where(i));
    if (!asks) continue;
    observations.push_back(observe(seats[i], i));
    asking.push_back(i);
  }
  if (!asking.empty()) {
    const auto answers = policy_.act(observations);
    for (std::size_t k = 0; k < asking.size(); ++k) {
      if (!answers[k]) return answers[k].error().with(where(asking[k]));
      take(*answers[k], turns_[asking[k]]);
    }
  }
  at::Tensor actions = at::zeros({static_cast<std::int64_t>(seats.size()), env_.action.size}, at::kFloat);
  for (std::size_t i = 0; i < seats.size(); ++i) {
    if (!seats[i].is_playing) continue;
    Turn& turn = turns_[i];
    std::copy_n(turn.actions.data() + turn.step * env_.action.size, env_.action.size,
                actions.mutable_data_ptr<float>() + static_cast<std::int64_t>(i) * env_.action.size);
    ++turn.step;
  }
  return actions;
}

}  // namespace troupe::workers
