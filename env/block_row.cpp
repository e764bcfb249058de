#include "env/block_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>

#include "base/log.h"
#include "base/trace.h"
#include "env/action_mask.h"
#include "env/episode_seed.h"

namespace troupe::env {

namespace {

using Clock = std::chrono::steady_clock;

void add(std::atomic<std::int64_t>& counter, std::int64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

/// No exception leaves an environment.
template <class Call>
Result<void> guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return Error{Errc::internal, fmt::format("threw: {}", e.what())};
  } catch (...) {
    return Error{Errc::internal, "threw something that is no std::exception"};
  }
}

/// A broken simulator fails every step: the first ten and then every doubling are enough to read.
void log_loss(const EnvSpec& spec, std::int64_t env_id, std::int64_t episode, std::int32_t step, const Error& why) {
  static std::atomic<std::uint64_t> count{0};
  const std::uint64_t n = ++count;
  if (n > 10 && (n & (n - 1)) != 0) return;
  log::warn("env {} ({}) episode {} step {} is lost: {} ({} so far in this process)", env_id, spec.id, episode, step,
            why.message(), n);
}

template <class T>
bool all_finite(const std::byte* memory, std::int64_t bytes) {
  const auto* const values = reinterpret_cast<const T*>(memory);
  T sum = 0;  // a product with zero is NaN for what is not finite, and the sum keeps it
  for (std::int64_t i = 0, n = bytes / static_cast<std::int64_t>(sizeof(T)); i < n; ++i) sum += values[i] * T{0};
  return sum == T{0};
}

/// Statistics, replay and gradients keep what is not finite for ever.
Result<void> check_observation(const EnvSpec& spec, const std::vector<std::byte*>& observation) {
  for (std::size_t f = 0; f < observation.size(); ++f) {
    const EnvField& field = spec.observation[f];
    const bool fine = field.dtype == EnvDType::f32   ? all_finite<float>(observation[f], field.bytes())
                      : field.dtype == EnvDType::f64 ? all_finite<double>(observation[f], field.bytes())
                                                     : true;
    if (!fine)
      return Error{Errc::data_loss, fmt::format("observation '{}' holds a number that is not finite", field.name)};
  }
  return {};
}

std::int64_t seed_id(const EnvBlock::Options& options, std::int64_t env_id) {
  return options.group_size > 1 ? env_id / options.group_size : env_id;
}

}  // namespace

BlockRow::BlockRow(const BlockRules& rules, std::int64_t index, std::unique_ptr<Env> env)
    : rules_(rules),
      spec_(rules.factory->spec()),
      index_(index),
      env_id_(rules.options.first_env + index),
      env_(std::move(env)),
      action_(static_cast<std::size_t>(spec_.action.size)),
      observation_(spec_.observation.size()) {
  if (!rules.options.reward.is_own()) reward_.emplace(rules.options.reward, rules.field_bytes);
  const ResetMode mode = rules.options.reset_mode;
  if (mode == ResetMode::episode || mode == ResetMode::fixed)
    frozen_.resize(static_cast<std::size_t>(rules.observation_bytes));
}

EnvBlock::Counters BlockRow::counters() const {
  constexpr auto order = std::memory_order_relaxed;
  return {env_steps_.load(order), resets_.load(order), lost_.load(order),
          1e-9 * static_cast<double>(nanoseconds_.load(order))};
}

void BlockRow::reset(std::int64_t episode, const BlockView& out) {
  const Span span("env reset");
  const auto start = Clock::now();
  prepare_reset(out);
  episode_ = episode;
  if (!have_env(out) || !begin_numbered(episode, out)) begin_anew(out);
  finish_reset(out);
  add(nanoseconds_, (Clock::now() - start) / std::chrono::nanoseconds(1));
}

void BlockRow::reset_to_seed(std::uint64_t seed, const BlockView& out) {
  const Span span("env reset");
  const auto start = Clock::now();
  prepare_reset(out);
  ended_ = true;
  if (have_env(out)) begin(0, seed, out);
  finish_reset(out);
  add(nanoseconds_, (Clock::now() - start) / std::chrono::nanoseconds(1));
}

void BlockRow::prepare_reset(const BlockView& out) {
  clear(out);
  aim(out);
}

void BlockRow::finish_reset(const BlockView& out) {
  write_place(out);
  if (ended_) std::fill(frozen_.begin(), frozen_.end(), std::byte{0});
}

void BlockRow::step(const float* actions, const BlockView& out) {
  const Span span("env step");
  const auto start = Clock::now();
  clear(out);
  aim(out);
  const ResetMode mode = rules_.options.reset_mode;
  if (!ended_) {
    play(actions, out);
  } else if (!frozen_.empty()) {
    show_frozen();
  } else {
    // next_step's reset, or one more attempt at an environment that could not be made anew
    const bool again = mode == ResetMode::same_step;
    begin_anew(out);
    if (again) {
      const auto row = static_cast<std::size_t>(index_);
      out.lost()[row] = out.done()[row] = 1;
      out.truncated()[row * static_cast<std::size_t>(rules_.options.chunk)] = 1;
    }
  }
  write_place(out);
  add(nanoseconds_, (Clock::now() - start) / std::chrono::nanoseconds(1));
}

void BlockRow::clear(const BlockView& out) {
  const auto row = static_cast<std::size_t>(index_), chunk = static_cast<std::size_t>(rules_.options.chunk),
             cell = row * chunk;
  for (std::size_t k = cell; k < cell + chunk; ++k) {
    out.reward()[k] = 0;
    out.terminated()[k] = out.truncated()[k] = out.valid()[k] = out.success()[k] = 0;
  }
  out.executed()[row] = out.episode_length()[row] = 0;
  out.done()[row] = out.lost()[row] = out.episode_success()[row] = 0;
  out.episode_return()[row] = 0;
  const auto count = static_cast<std::size_t>(out.layout->info_count);
  std::fill_n(out.info().begin() + static_cast<std::ptrdiff_t>(row * count), count, 0.0);
}

void BlockRow::aim(const BlockView& out) {
  for (std::size_t f = 0; f < observation_.size(); ++f) {
    observation_[f] = out.memory + out.layout->observation[f] + index_ * rules_.field_bytes[f];
  }
}

void BlockRow::write_place(const BlockView& out) {
  out.episode()[static_cast<std::size_t>(index_)] = episode_;
  out.step()[static_cast<std::size_t>(index_)] = step_;
  if (!ended_ && out.done()[static_cast<std::size_t>(index_)] == 0)
    out.episode_return()[static_cast<std::size_t>(index_)] = return_;
}

void BlockRow::play(const float* actions, const BlockView& out) {
  const EnvBlock::Options& options = rules_.options;
  const auto first = static_cast<std::size_t>(index_ * options.chunk);
  for (std::int64_t k = 0; k < options.exec_steps; ++k) {
    const std::size_t cell = first + static_cast<std::size_t>(k);
    const auto over = play_one(actions + k * spec_.action.size, k + 1 == options.exec_steps, out, cell);
    if (!over) return lose(over.error(), out, cell);
    ++out.executed()[static_cast<std::size_t>(index_)];
    if (*over) return end(out);
  }
}

/// One control step; true when the episode is over. Nothing of the cell is written before nothing can fail any more.
Result<bool> BlockRow::play_one(const float* action, bool last, const BlockView& out, std::size_t cell) {
  TROUPE_ASSIGN(action, admit(action));
  double reward = 0;
  bool terminated = false, success = false;
  const auto info = out.info().subspan(static_cast<std::size_t>(index_ * out.layout->info_count),
                                       static_cast<std::size_t>(out.layout->info_count));
  StepSlot slot{observation_, &reward, &terminated, &success, info};
  const bool at_limit = limit_ > 0 && step_ + 1 >= limit_;
  const bool observed =
      last || at_limit || !spec_.observes_on_demand || (reward_ && reward_->wants_every_observation());
  if (!observed) slot.observation = {};
  TROUPE_TRY(guarded([&] { return env_->step({action, action_.size()}, slot); }));
  if (!std::isfinite(reward)) return Error{Errc::data_loss, fmt::format("the reward is {}", reward)};
  if (rules_.options.reset_mode == ResetMode::fixed) terminated = false;
  const bool over = terminated || at_limit;
  if (over && !observed) {
    slot.observation = observation_;
    TROUPE_TRY(guarded([&] { return env_->observe(slot); }));
  }
  if (observed || over) TROUPE_TRY(check_observation(spec_, observation_));
  if (observed && !over) TROUPE_TRY(check_action_mask(spec_, observation_));
  double trained = reward;
  if (reward_) {
    const RewardStep step{.observation = {},
                          .action = {action, action_.size()},
                          .next_observation = slot.observation,
                          .is_terminated = terminated,
                          .is_truncated = over && !terminated,
                          .is_success = success};
    TROUPE_ASSIGN(trained, reward_->of(reward, step));
  }
  ++step_;
  add(env_steps_, 1);
  return_ += reward;
  success_last_ = success;
  success_once_ |= success;
  out.reward()[cell] = static_cast<float>(trained);
  out.valid()[cell] = 1;
  out.success()[cell] = success;
  out.terminated()[cell] = terminated;
  out.truncated()[cell] = over && !terminated;
  return over;
}

/// The action as the environment may have it.
Result<const float*> BlockRow::admit(const float* action) {
  const ActionSpace& space = spec_.action;
  if (space.is_discrete()) {
    const float a = *action;
    if (a >= 0 && a < static_cast<float>(space.choices) && a == std::floor(a)) return action;
    return invalid_argument(fmt::format("the action is {}; wanted a whole number from 0 to {}", a, space.choices - 1));
  }
  for (std::size_t i = 0; i < action_.size(); ++i) {
    if (std::isnan(action[i])) return invalid_argument(fmt::format("action[{}] is NaN", i));
    action_[i] = space.clipped(i, action[i]);
  }
  return static_cast<const float*>(action_.data());
}

/// The episode is over, its last observation is in place.
void BlockRow::end(const BlockView& out) {
  const auto row = static_cast<std::size_t>(index_);
  std::byte* frozen = frozen_.data();
  for (std::size_t f = 0; f < observation_.size(); ++f) {
    const auto bytes = static_cast<std::size_t>(rules_.field_bytes[f]);
    std::memcpy(out.memory + out.layout->final_observation[f] + row * bytes, observation_[f], bytes);
    if (frozen_.empty()) continue;
    std::memcpy(frozen, observation_[f], bytes);
    frozen += bytes;
  }
  out.done()[row] = 1;
  out.episode_return()[row] = return_;
  out.episode_length()[row] = step_;
  out.episode_success()[row] = static_cast<std::uint8_t>(success_once_ | success_last_ << 1);
  ended_ = true;
  if (rules_.options.reset_mode == ResetMode::same_step) begin_anew(out);
}

void BlockRow::mark_lost(const Error& why, const BlockView& out) {
  add(lost_, 1);
  log_loss(spec_, env_id_, episode_, step_, why);
  why_lost_ = why.message();
  env_.reset();
  out.lost()[static_cast<std::size_t>(index_)] = 1;
  blank_observation();
}

void BlockRow::lose(const Error& why, const BlockView& out, std::size_t cell) {
  mark_lost(why, out);
  const auto row = static_cast<std::size_t>(index_), count = static_cast<std::size_t>(out.layout->info_count);
  std::fill_n(out.info().begin() + static_cast<std::ptrdiff_t>(row * count), count, 0.0);
  out.truncated()[cell] = 1;
  end(out);
}

/// Begins an episode with the environment there is; on failure the row is lost and has ended.
bool BlockRow::begin(std::int64_t episode, std::uint64_t seed, const BlockView& out) {
  const EnvBlock::Options& options = rules_.options;
  episode_ = episode;
  step_ = 0;
  return_ = 0;
  success_once_ = success_last_ = false;
  limit_ = options.max_steps;
  ended_ = false;
  add(resets_, 1);
  bool success = false;
  const StepSlot slot{observation_, nullptr, nullptr, &success, {}};
  const auto begun = guarded([&]() -> Result<void> {
    TROUPE_TRY(env_->reset(seed, slot));
    TROUPE_TRY(check_observation(spec_, observation_));
    return check_action_mask(spec_, observation_);
  });
  if (begun && reward_) reward_->begin(observation_);
  if (begun) return true;
  mark_lost(begun.error(), out);
  ended_ = true;
  return false;
}

/// Makes the environment anew where it was lost; false when that fails.
bool BlockRow::have_env(const BlockView& out) {
  if (env_) return true;
  const auto made = guarded([this]() -> Result<void> {
    TROUPE_ASSIGN(env_, rules_.factory->make());
    return {};
  });
  if (made) return true;
  mark_lost(made.error().with("could not be made"), out);
  return false;
}

bool BlockRow::begin_numbered(std::int64_t episode, const BlockView& out) {
  const EnvBlock::Options& options = rules_.options;
  const bool begun = begin(episode, episode_seed(options.seed, seed_id(options, env_id_), episode), out);
  if (options.stagger && limit_ > 0 && episode == 0) limit_ -= env_id_ % limit_;
  return begun;
}

bool BlockRow::begin_anew(const BlockView& out) { return have_env(out) && begin_numbered(episode_ + 1, out); }

void BlockRow::show_frozen() {
  const std::byte* frozen = frozen_.data();
  for (std::size_t f = 0; f < observation_.size(); ++f) {
    const auto bytes = static_cast<std::size_t>(rules_.field_bytes[f]);
    std::memcpy(observation_[f], frozen, bytes);
    frozen += bytes;
  }
}

void BlockRow::blank_observation() {
  for (std::size_t f = 0; f < observation_.size(); ++f)
    std::memset(observation_[f], 0, static_cast<std::size_t>(rules_.field_bytes[f]));
}

}  // namespace troupe::env
