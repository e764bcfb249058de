// The end of an engine's step: what the ranks agree on, and the update of this rank's shards.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/trace.h"
#include "model/optim/moving_average.h"
#include "model/shard/engine.h"

namespace troupe::model {

Result<void> Engine::agree(std::vector<double>& sums, std::vector<double>& maxima) {
  // a value is the same on all ranks when its maximum and the maximum of its negative say so; halves of 32 bits are
  // exact
  std::vector<double> identity = {static_cast<double>(layout_hash_ >> 32),
                                  static_cast<double>(layout_hash_ & 0xFFFFFFFFu), static_cast<double>(updates_)};
  for (std::size_t g = 0; g < groups_.size(); ++g) identity.push_back(static_cast<double>(groups_.updates(g)));
  std::vector<double> largest = identity;
  for (const double value : identity) largest.push_back(-value);
  largest.insert(largest.end(), maxima.begin(), maxima.end());

  Collective& group = *collective_.load();
  TROUPE_TRY(group.all_reduce_sum({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}));
  TROUPE_TRY(group.all_reduce_max({largest.data(), static_cast<std::int64_t>(largest.size()), DType::f64}));
  for (std::size_t i = 0; i < identity.size(); ++i) {
    if (largest[i] == -largest[i + identity.size()]) continue;
    const char* what = i >= 2 ? "number of updates" : "layout of the network's units";
    return Error{Errc::failed_precondition, fmt::format("ranks differ in the {}: {} here, {} to {} over the group",
                                                        what, identity[i], -largest[i + identity.size()], largest[i])};
  }
  maxima.assign(largest.begin() + static_cast<std::ptrdiff_t>(2 * identity.size()), largest.end());
  return {};
}

Result<StepVote> Engine::vote(std::vector<double> sums, std::vector<double> maxima) {
  TROUPE_TRY(check_ready("vote"));
  const Span span("vote", SpanKind::wait);
  if (!has_gradients_)
    return Error{Errc::failed_precondition, "vote: no micro-batch has been accumulated since the last step"};
  std::vector<double> mine(groups_.size() + 1, 0.0);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (accumulated_[u]) mine[groups_.group_of(u)] += sum_of_squares(store_->accumulator(u));
  }
  mine.back() = saw_non_finite_loss_ ? 1.0 : 0.0;
  sums.insert(sums.begin(), mine.begin(), mine.end());
  if (auto agreed = agree(sums, maxima); !agreed) return give_up(agreed.error().with("vote"));

  StepVote vote;
  const auto rest = sums.begin() + static_cast<std::ptrdiff_t>(groups_.size());
  vote.group_squares.assign(sums.begin(), rest);
  double squares = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    squares += vote.group_squares[g];
    vote.group_norms[groups_.names()[g]] = rounded_norm(vote.group_squares[g]);
  }
  // double sums differ in their last bits with the number of ranks; as f32 they agree, and so does the clip factor
  vote.grad_norm = rounded_norm(squares);
  vote.finite = std::isfinite(vote.grad_norm) && *rest == 0.0;
  vote.sums.assign(rest + 1, sums.end());
  vote.maxima = std::move(maxima);
  return vote;
}

void Engine::commit(double lr, const StepVote& vote) {
  std::vector<Update> updates;
  for (std::size_t g = 0; g < groups_.size(); ++g) updates.push_back({g, lr});
  update(updates, vote);
}

void Engine::commit(const GroupRates& rates, const StepVote& vote) {
  std::vector<Update> updates;
  for (const auto& [name, lr] : rates) {
    const std::size_t group = groups_.find(name);
    TROUPE_CHECK(group != UnitGroups::kNone,
                 fmt::format("a commit of group '{}', which no trainable unit names", name));
    updates.push_back({group, lr});
  }
  update(updates, vote);
}

void Engine::update(std::span<const Update> updates, const StepVote& vote) {
  const Span span("optimizer");
  TROUPE_CHECK(vote.finite, "a step with a gradient that is not finite is discarded");
  TROUPE_CHECK(has_gradients_, "a step has gradients");
  TROUPE_CHECK(vote.group_squares.size() == groups_.size(), "the vote is this engine's");
  std::vector<std::size_t> updated;
  for (const Update& one : updates) updated.push_back(one.group);
  const auto clip = groups_.clip_factors(updated, vote.group_squares);
  ++updates_;
  for (const auto& [group, lr] : updates) {
    const std::int64_t count = groups_.updates(group) + 1;
    groups_.set_updates(group, count);
    for (const std::size_t u : groups_.units_of(group)) {
      const auto gradient = store_->accumulator(u);
      if (!accumulated_[u]) std::fill(gradient.begin(), gradient.end(), 0.0f);
      update_unit(u, gradient, clip[group], lr, count, groups_.adamw(group));
      values_changed(u);
    }
  }
  discard();
}

void Engine::update_unit(std::size_t unit, std::span<const float> gradient, float clip, double lr, std::int64_t count,
                         const AdamWOptions& adamw) {
  const auto master = store_->state(StateKind::master, unit);
  const auto m = store_->state(StateKind::m, unit), v = store_->state(StateKind::v, unit);
  const auto elements = static_cast<std::int64_t>(master.size()), shard = rank_ * elements;
  for (const UpdateInterval& interval : intervals_[unit]) {
    // its part of this rank's shard
    const std::int64_t begin = std::max<std::int64_t>(0, interval.begin - shard);
    const std::int64_t end = std::min(elements, interval.end - shard);
    if (begin >= end) continue;
    AdamWOptions own = adamw;
    if (!interval.decays) own.weight_decay = 0;
    const auto part = [&](auto values) {
      return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    };
    adamw_step(part(master), part(m), part(v), part(gradient), clip, lr * interval.rate, count, own);
  }
}

void Engine::average(double tau, const std::vector<std::string>& targets) {
  TROUPE_CHECK(has_state_ && !has_gradients_, "target networks move between steps");
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const bool wanted = targets.empty() || std::find(targets.begin(), targets.end(), units_[u].name) != targets.end();
    TROUPE_CHECK(targets.empty() || !wanted || source_of_[u], fmt::format("'{}' is no target network", units_[u].name));
    if (!wanted || !source_of_[u]) continue;
    move_average(store_->state(StateKind::master, u), store_->state(StateKind::master, *source_of_[u]), tau);
    values_changed(u);
  }
}

void Engine::values_changed(std::size_t unit) {
  store_->refresh(unit);
  // a unit whose values stay is still true in its slot
  if (replicated_ && unit == resident_unit()) {
    replicated_->mark_stale();
  } else {
    params_->forget(static_cast<int>(unit));
  }
}

void Engine::discard() {
  if (gradients_) gradients_->clear();
  has_gradients_ = false;
  saw_non_finite_loss_ = false;
  std::fill(accumulated_.begin(), accumulated_.end(), false);
}

}  // namespace troupe::model
