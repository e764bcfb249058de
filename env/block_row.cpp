#include "env/block_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

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

}  // namespace

BlockRow::BlockRow(const BlockRules& rules, std::int64_t index, RowCounters& counters)
    : rules_(rules),
      spec_(rules.factory->spec()),
      counters_(counters),
      env_id_(rules.options.first_env + index),
      row_(static_cast<std::size_t>(index)),
      first_cell_(static_cast<std::size_t>(index * rules.options.chunk)),
      observation_(spec_.observation.size()) {
  if (!rules.options.reward.is_own()) reward_.emplace(rules.options.reward, rules.field_bytes);
  const ResetMode mode = rules.options.reset_mode;
  if (mode == ResetMode::episode || mode == ResetMode::fixed)
    frozen_.resize(static_cast<std::size_t>(rules.observation_bytes));
}

void BlockRow::open(const BlockView& out) {
  out_ = &out;
  for (std::size_t f = 0; f < observation_.size(); ++f)
    observation_[f] = out.memory + out.layout->observation[f] + static_cast<std::int64_t>(row_) * rules_.field_bytes[f];
}

void BlockRow::close() {
  out_->episode()[row_] = episode_;
  out_->step()[row_] = length_;
  if (!ended_ && out_->done()[row_] == 0) out_->episode_return()[row_] = return_;
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
    out_->lost()[row_] = out_->done()[row_] = 1;
    out_->truncated()[first_cell_] = 1;
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
  return {observation_, nullptr, nullptr, &step_.success, {}, nullptr, &step_.failure};
}

Result<void> BlockRow::has_begun() {
  if (step_.failure) return *step_.failure;
  TROUPE_TRY(check_observation(spec_, observation_));
  TROUPE_TRY(check_action_mask(spec_, observation_));
  if (reward_) reward_->begin(observation_);
  return {};
}

void BlockRow::fail_to_begin(const Error& why) {
  mark_lost(why);
  ended_ = true;
  std::fill(frozen_.begin(), frozen_.end(), std::byte{0});
}

Result<void> BlockRow::admit(const float* wanted, float* to) const {
  const ActionSpace& space = spec_.action;
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

StepSlot BlockRow::slot(bool last) {
  step_ = {};
  step_.observed =
      last || is_at_limit() || !spec_.observes_on_demand || (reward_ && reward_->wants_every_observation());
  StepSlot slot = observation_slot();
  if (!step_.observed) slot.observation = {};
  return slot;
}

Result<bool> BlockRow::accept(std::span<const float> action, std::int64_t k) {
  // Nothing of the cell is written before nothing can fail any more.
  if (step_.failure) return *step_.failure;
  if (!std::isfinite(step_.reward)) return Error{Errc::data_loss, fmt::format("the reward is {}", step_.reward)};
  const bool terminated = is_terminated(), over = terminated || step_.truncated || is_at_limit();
  if (step_.observed || over) TROUPE_TRY(check_observation(spec_, observation_));
  if (step_.observed && !over && !step_.terminated) TROUPE_TRY(check_action_mask(spec_, observation_));
  double trained = step_.reward;
  if (reward_) {
    const RewardStep step{.observation = {},
                          .action = action,
                          .next_observation = observation_,
                          .is_terminated = terminated,
                          .is_truncated = over && !terminated,
                          .is_success = step_.success};
    TROUPE_ASSIGN(trained, reward_->of(step_.reward, step));
  }
  ++length_;
  RowCounters::add(counters_.env_steps, 1);
  return_ += step_.reward;
  success_last_ = step_.success;
  success_once_ |= step_.success;
  const std::size_t cell = first_cell_ + static_cast<std::size_t>(k);
  out_->reward()[cell] = static_cast<float>(trained);
  out_->valid()[cell] = 1;
  out_->success()[cell] = step_.success;
  out_->terminated()[cell] = terminated;
  out_->truncated()[cell] = over && !terminated;
  ++out_->executed()[row_];
  return over;
}

void BlockRow::end() {
  std::byte* frozen = frozen_.data();
  for (std::size_t f = 0; f < observation_.size(); ++f) {
    const auto bytes = static_cast<std::size_t>(rules_.field_bytes[f]);
    std::memcpy(out_->memory + out_->layout->final_observation[f] + row_ * bytes, observation_[f], bytes);
    if (frozen_.empty()) continue;
    std::memcpy(frozen, observation_[f], bytes);
    frozen += bytes;
  }
  out_->done()[row_] = 1;
  out_->episode_return()[row_] = return_;
  out_->episode_length()[row_] = length_;
  out_->episode_success()[row_] = static_cast<std::uint8_t>(success_once_ | success_last_ << 1);
  ended_ = true;
}

void BlockRow::lose(const Error& why, std::int64_t k) {
  mark_lost(why);
  const std::span<double> values = info();
  std::fill(values.begin(), values.end(), 0.0);
  out_->truncated()[first_cell_ + static_cast<std::size_t>(k)] = 1;
  end();
}

void BlockRow::mark_lost(const Error& why) {
  RowCounters::add(counters_.lost, 1);
  log_loss(spec_, env_id_, episode_, length_, why);
  why_lost_ = why.message();
  has_env_ = false;
  out_->lost()[row_] = 1;
  for (std::size_t f = 0; f < observation_.size(); ++f)
    std::memset(observation_[f], 0, static_cast<std::size_t>(rules_.field_bytes[f]));
}

std::span<double> BlockRow::info() const {
  const auto count = static_cast<std::size_t>(out_->layout->info_count);
  return out_->info().subspan(row_ * count, count);
}

}  // namespace troupe::env
