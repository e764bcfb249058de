// How the ranks of a step agree: norms, clip factors, and whether it is usable.
#include "model/shard/step_vote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/clip.h"
#include "model/optim/adamw.h"
#include "model/shard/step_executor.h"

namespace troupe::model {

Result<void> StepExecutor::compare_ranks(std::vector<double>& sums, std::vector<double>& maxima) {
  // a value is the same on all ranks when its maximum and the maximum of its negative say so; halves of 32 bits are
  // exact
  std::vector<double> identity = {static_cast<double>(core_.layout_hash >> 32),
                                  static_cast<double>(core_.layout_hash & 0xFFFFFFFFu),
                                  static_cast<double>(core_.updates)};
  for (std::size_t g = 0; g < core_.groups.size(); ++g) {
    identity.push_back(static_cast<double>(core_.groups.updates(g)));
  }
  std::vector<double> largest = identity;
  for (const double value : identity) largest.push_back(-value);
  largest.insert(largest.end(), maxima.begin(), maxima.end());

  TROUPE_TRY(groups_.all.all_reduce_sum(sums));
  TROUPE_TRY(groups_.all.all_reduce_max(largest));
  for (std::size_t i = 0; i < identity.size(); ++i) {
    if (largest[i] == -largest[i + identity.size()]) continue;
    const char* what = i >= 2 ? "number of updates" : "layout of the network's units";
    return Error{Errc::failed_precondition, fmt::format("ranks differ in the {}: {} here, {} to {} over the group",
                                                        what, identity[i], -largest[i + identity.size()], largest[i])};
  }
  maxima.assign(largest.begin() + static_cast<std::ptrdiff_t>(2 * identity.size()), largest.end());
  return {};
}

Result<void> StepExecutor::square(const Op& op) {
  const auto unit = static_cast<std::size_t>(op.unit);
  const auto gradient = rank().store.accumulator(unit);
  if (core_.device_vote) return core_.device_vote->square(unit, gradient, stream_of(op.stream));
  core_.squares[unit] = sum_of_squares(gradient);
  return {};
}

Result<void> StepExecutor::agree(const Op& op, StepCall& call) {
  if (core_.device_vote) return core_.device_vote->gather(groups_.all, core_.world, stream_of(op.stream));
  const std::vector<double> of_units = std::exchange(core_.squares, std::vector<double>(core_.squares.size()));
  TROUPE_TRY(groups_.all.status());
  std::vector<double> sums(core_.groups.size());
  for (std::size_t u = 0; u < of_units.size(); ++u) {
    if (const std::size_t group = core_.groups.group_of(u); group != UnitGroups::kNone) sums[group] += of_units[u];
  }
  return agree_on(std::move(sums), core_.saw_non_finite_loss, call);
}

Result<void> StepExecutor::take_vote(StepCall& call) {
  if (!core_.device_vote) return {};
  TROUPE_TRY(groups_.all.status());
  auto [group_squares, skips] = core_.device_vote->judgement();
  // all ranks know the same: one brings it to their sum
  if (groups_.all.rank() != 0) std::fill(group_squares.begin(), group_squares.end(), 0.0);
  return agree_on(std::move(group_squares), skips, call);
}

Result<void> StepExecutor::agree_on(std::vector<double> sums, bool is_unusable, StepCall& call) {
  // replicas have the same
  if (core_.replica != 0) std::fill(sums.begin(), sums.end(), 0.0);
  sums.push_back(is_unusable ? 1.0 : 0.0);
  sums.insert(sums.end(), call.sums.begin(), call.sums.end());
  TROUPE_TRY(compare_ranks(sums, call.maxima));

  StepVote& vote = call.vote;
  const auto rest = sums.begin() + static_cast<std::ptrdiff_t>(core_.groups.size());
  vote.group_squares.assign(sums.begin(), rest);
  double squares = 0;
  for (std::size_t g = 0; g < core_.groups.size(); ++g) {
    squares += vote.group_squares[g];
    vote.group_norms[core_.groups.names()[g]] = kernels::rounded_norm(vote.group_squares[g]);
  }
  vote.grad_norm = kernels::rounded_norm(squares);
  vote.finite = std::isfinite(vote.grad_norm) && *rest == 0.0;
  vote.sums.assign(rest + 1, sums.end());
  vote.maxima = std::move(call.maxima);
  return {};
}

Result<void> StepExecutor::clip(const Op& op, StepCall& call) {
  std::vector<std::size_t> updated;
  for (const auto& [group, rate] : call.rates) updated.push_back(group);
  if (core_.device_vote) return core_.device_vote->clip(core_.groups.clip_groups(updated), stream_of(op.stream));
  call.clip = core_.groups.clip_factors(updated, call.vote.group_squares);
  return {};
}

}  // namespace troupe::model
