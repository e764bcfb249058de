#include "env/block_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "env/action_mask.h"
#include "env/episode_seed.h"

namespace troupe::env {

namespace {

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

/// One agent's action.
Result<void> admit_one(const ActionSpace& space, const float* wanted, float* to) {
  if (space.is_discrete()) {
    const float a = *to = *wanted;
    if (a >= 0 && a < static_cast<float>(space.choices) && a == std::floor(a)) return {};
    return invalid_argument(fmt::format("the action is {}; wanted a whole number from 0 to {}", a, space.choices - 1));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(space.size); ++i) {
    if (std::isnan(wanted[i])) return invalid_argument(fmt::format("action[{}] is NaN", i));
    to[i] = space.clipped(i, wanted[i]);
  }
  return {};
}

/// Statistics, replay and gradients keep what is not finite for ever.
Result<void> check_observation(const BlockRules& rules, const std::vector<std::byte*>& observation) {
  for (std::size_t f = 0; f < observation.size(); ++f) {
    const EnvField& field = rules.factory->spec().observation[f];
    const bool fine = field.dtype == EnvDType::f32   ? all_finite<float>(observation[f], rules.field_bytes[f])
                      : field.dtype == EnvDType::f64 ? all_finite<double>(observation[f], rules.field_bytes[f])
                                                     : true;
    if (!fine)
      return Error{Errc::data_loss, fmt::format("observation '{}' holds a number that is not finite", field.name)};
  }
  return {};
}

}  // namespace

BlockRow::BlockRow(const BlockRules& rules, std::int64_t index, RowCounters& counters)
    : rules_(rules),
      spec_(rules.factory->spec()),
      counters_(counters),
      env_id_(rules.options.first_env + index),
      index_(static_cast<std::size_t>(index)),
      agents_(static_cast<std::size_t>(spec_.agents)),
      alive_(agents_, 1),
      acted_(agents_),
      own_(agents_),
      trained_(agents_),
      observation_(spec_.observation.size()),
      of_agent_(spec_.observation.size()) {
  if (!rules.options.reward.is_own()) {
    for (std::size_t agent = 0; agent < agents_; ++agent)
      reward_.emplace_back(rules.options.reward, rules.agent_field_bytes);
  }
  const ResetMode mode = rules.options.reset_mode;
  if (mode == ResetMode::episode || mode == ResetMode::fixed)
    frozen_.resize(static_cast<std::size_t>(rules.observation_bytes));
}

void BlockRow::open(const BlockView& out) {
  out_ = &out;
  for (std::size_t f = 0; f < observation_.size(); ++f)
    observation_[f] =
        out.memory + out.layout->observation[f] + static_cast<std::int64_t>(index_) * rules_.field_bytes[f];
}

void BlockRow::close() {
  fill(out_->episode(), episode_);
  fill(out_->step(), length_);
  if (!ended_ && own(out_->done())[0] == 0) fill(out_->episode_return(), return_);
  if (agents_ > 1) std::copy(alive_.begin(), alive_.end(), own(out_->alive()).begin());
  out_ = nullptr;
}

void BlockRow::idle() {
  if (waits()) {
    const std::byte* frozen = frozen_.data();
    for (std::size_t f = 0; f < observation_.size(); ++f) {
      const auto bytes = static_cast<std::size_t>(rules_.field_bytes[f]);
      std::memcpy(observation_[f], frozen, bytes);
      frozen += bytes;
    }
  } else if (rules_.is_same_step()) {
    fill<std::uint8_t>(out_->lost(), 1);
    fill<std::uint8_t>(out_->done(), 1);
    for (std::size_t agent = 0; agent < agents_; ++agent) out_->truncated()[cell(agent, 0)] = 1;
  }
}

std::uint64_t BlockRow::seed_of(std::int64_t number) const {
  const EnvBlock::Options& options = rules_.options;
  return episode_seed(options.seed, options.group_size > 1 ? env_id_ / options.group_size : env_id_, number);
}

StepSlot BlockRow::begin(std::int64_t number, bool staggers) {
  const EnvBlock::Options& options = rules_.options;
  episode_ = number;
  length_ = 0;
  return_ = 0;
  success_once_ = success_last_ = false;
  limit_ = options.max_steps;
  if (staggers && options.stagger && limit_ > 0 && number == 0) limit_ -= env_id_ % limit_;
  ended_ = false;
  has_env_ = true;
  RowCounters::add(counters_.resets, 1);
  step_ = {};
  std::fill(alive_.begin(), alive_.end(), std::uint8_t{1});
  return {.observation = observation_,
          .success = &step_.success,
          .info = {},
          .alive = alive_flags(),
          .failure = &step_.failure};
}

Result<void> BlockRow::has_begun() {
  if (step_.failure) return *step_.failure;
  TROUPE_TRY(check_observation(rules_, observation_));
  TROUPE_TRY(check_action_mask(spec_, observation_, alive_));
  for (std::size_t agent = 0; agent < reward_.size(); ++agent) reward_[agent].begin(observation_of(agent));
  return {};
}

std::span<std::byte* const> BlockRow::observation_of(std::size_t agent) {
  for (std::size_t f = 0; f < observation_.size(); ++f)
    of_agent_[f] = observation_[f] + static_cast<std::int64_t>(agent) * spec_.observation[f].bytes();
  return of_agent_;
}

void BlockRow::fail_to_begin(const Error& why) {
  mark_lost(why);
  ended_ = true;
  std::fill(frozen_.begin(), frozen_.end(), std::byte{0});
}

Result<void> BlockRow::admit(const float* wanted, float* to) const {
  const ActionSpace& space = spec_.action;
  for (std::size_t agent = 0; agent < agents_; ++agent, to += space.size, wanted += rules_.options.chunk * space.size) {
    if (alive_[agent] == 0) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(space.size); ++i) to[i] = space.clipped(i, 0);
      continue;
    }
    TROUPE_TRY(admit_one(space, wanted, to));
  }
  return {};
}

StepSlot BlockRow::slot(bool last) {
  step_ = {};
  acted_ = alive_;
  std::fill(own_.begin(), own_.end(), 0.0);
  step_.observed =
      last || is_at_limit() || !spec_.observes_on_demand || (!reward_.empty() && reward_[0].wants_every_observation());
  StepSlot slot = observation_slot();
  if (!step_.observed) slot.observation = {};
  return slot;
}

Result<bool> BlockRow::accept(std::span<const float> action, std::int64_t k) {
  // Nothing of the cell is written before nothing can fail any more.
  if (step_.failure) return *step_.failure;
  for (std::size_t agent = 0; agent < agents_; ++agent) {
    if (acted_[agent] == 0) own_[agent] = 0;
    if (!std::isfinite(own_[agent])) return Error{Errc::data_loss, fmt::format("the reward is {}", own_[agent])};
  }
  const bool terminated = is_terminated(), over = terminated || step_.truncated || is_at_limit();
  if (step_.observed || over) TROUPE_TRY(check_observation(rules_, observation_));
  if (step_.observed && !over && !step_.terminated) TROUPE_TRY(check_action_mask(spec_, observation_, alive_));
  TROUPE_TRY(reward_agents(action, terminated, over));
  ++length_;
  RowCounters::add(counters_.env_steps, 1);
  return_ += std::accumulate(own_.begin(), own_.end(), 0.0) / static_cast<double>(agents_);
  success_last_ = step_.success;
  success_once_ |= step_.success;
  for (std::size_t agent = 0; agent < agents_; ++agent) {
    const std::size_t at = cell(agent, k);
    out_->reward()[at] = static_cast<float>(trained_[agent]);
    out_->valid()[at] = acted_[agent];
    out_->success()[at] = step_.success;
    const bool ended = terminated || has_died(agent);
    out_->terminated()[at] = ended;
    out_->truncated()[at] = over && !ended;
  }
  for (std::int32_t& executed : own(out_->executed())) ++executed;
  for (std::size_t agent = 1; agent < agents_; ++agent)
    std::ranges::copy(info(), infos().subspan(agent * info().size()).begin());
  return over;
}

Result<void> BlockRow::reward_agents(std::span<const float> action, bool terminated, bool over) {
  trained_ = own_;
  const std::size_t size = action.size() / agents_;
  for (std::size_t agent = 0; agent < reward_.size(); ++agent) {
    if (acted_[agent] == 0) continue;
    const RewardStep step{.observation = {},
                          .action = action.subspan(agent * size, size),
                          .next_observation = observation_of(agent),
                          .is_terminated = terminated || has_died(agent),
                          .is_truncated = over && !terminated && !has_died(agent),
                          .is_success = step_.success};
    TROUPE_ASSIGN(trained_[agent], reward_[agent].of(own_[agent], step));
  }
  return {};
}

void BlockRow::end() {
  std::byte* frozen = frozen_.data();
  for (std::size_t f = 0; f < observation_.size(); ++f) {
    const auto bytes = static_cast<std::size_t>(rules_.field_bytes[f]);
    std::memcpy(out_->memory + out_->layout->final_observation[f] + index_ * bytes, observation_[f], bytes);
    if (frozen_.empty()) continue;
    std::memcpy(frozen, observation_[f], bytes);
    frozen += bytes;
  }
  fill<std::uint8_t>(out_->done(), 1);
  fill(out_->episode_return(), return_);
  fill(out_->episode_length(), length_);
  fill(out_->episode_success(), static_cast<std::uint8_t>(success_once_ | success_last_ << 1));
  ended_ = true;
}

void BlockRow::lose(const Error& why, std::int64_t k) {
  mark_lost(why);
  std::ranges::fill(infos(), 0.0);
  for (std::size_t agent = 0; agent < agents_; ++agent) out_->truncated()[cell(agent, k)] = 1;
  end();
}

void BlockRow::mark_lost(const Error& why) {
  RowCounters::add(counters_.lost, 1);
  log_loss(spec_, env_id_, episode_, length_, why);
  why_lost_ = why.message();
  has_env_ = false;
  fill<std::uint8_t>(out_->lost(), 1);
  for (std::size_t f = 0; f < observation_.size(); ++f)
    std::memset(observation_[f], 0, static_cast<std::size_t>(rules_.field_bytes[f]));
}

std::span<double> BlockRow::infos() const {
  const auto count = agents_ * static_cast<std::size_t>(out_->layout->info_count);
  return out_->info().subspan(index_ * count, count);
}

}  // namespace troupe::env
