#include "env/row_reward.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace troupe::env {

namespace {
/// Fields begin at multiples of this, so that models may read them as f64.
constexpr std::int64_t kAlign = 8;
}  // namespace

RowReward::RowReward(const RewardRules& rules, std::span<const std::int64_t> field_bytes)
    : rules_(rules), field_bytes_(field_bytes.begin(), field_bytes.end()) {
  if (!rules_.model || !rules_.model->reads_observations()) return;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
  for (const std::int64_t field : field_bytes_) {
    offsets.push_back(bytes);
    bytes += (field + kAlign - 1) / kAlign * kAlign;
  }
  kept_.resize(static_cast<std::size_t>(bytes));
  for (const std::int64_t offset : offsets) fields_.push_back(kept_.data() + offset);
}

void RowReward::keep(std::span<std::byte* const> observation) {
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::byte* const to = kept_.data() + (fields_[f] - kept_.data());
    std::memcpy(to, observation[f], static_cast<std::size_t>(field_bytes_[f]));
  }
}

void RowReward::begin(std::span<std::byte* const> observation) {
  own_before_ = 0;
  keep(observation);
}

Result<double> RowReward::of(double own, RewardStep step) {
  double reward = rules_.coef * (rules_.relative ? own - own_before_ : own) - rules_.step_penalty;
  own_before_ = own;
  if (rules_.model && (!rules_.is_terminal || step.is_terminated || step.is_truncated)) {
    step.observation = fields_;
    if (!wants_every_observation()) step.next_observation = {};
    TROUPE_ASSIGN(const double modelled, rules_.model->reward(step));
    reward += rules_.weight * modelled;
  }
  if (!std::isfinite(static_cast<float>(reward))) {  // as blocks hold it
    return Error{Errc::data_loss, fmt::format("env.reward makes {} of the reward {}", reward, own)};
  }
  keep(step.next_observation);
  return reward;
}

}  // namespace troupe::env
