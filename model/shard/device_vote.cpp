#include "model/shard/device_vote.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/device_kernels.h"

namespace troupe::model {

DeviceVote::Mirrored DeviceVote::make(std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  return {device_.allocate_pinned(count), device_.allocate(count)};
}

DeviceVote::DeviceVote(std::size_t units, std::size_t groups, device::Device& device, kernels::DeviceKernels& kernels)
    : device_(device),
      kernels_(kernels),
      units_(units),
      groups_(groups),
      losses_(device.allocate(sizeof(float))),
      own_(device.allocate(static_cast<std::int64_t>(slots() * sizeof(double)))),
      squared_(units, false),
      was_squared_(units, false),
      tables_(make(groups * sizeof(kernels::ClipGroup) + units * sizeof(std::int32_t))),
      decision_(device.allocate(static_cast<std::int64_t>(groups * sizeof(float) + sizeof(std::int32_t)))) {}

Result<void> DeviceVote::add_loss(const float* loss, bool first, device::Stream& stream) {
  auto* sum = reinterpret_cast<float*>(losses_->address());
  return kernels_.rank_sum(sum, loss, /*ranks=*/1, /*count=*/1, /*add=*/!first, stream);
}

Result<void> DeviceVote::square(std::size_t unit, std::span<const float> gradient, device::Stream& stream) {
  TROUPE_CHECK(!squared_[unit], "a vote asks for a unit's squares once");
  squared_[unit] = true;
  auto* sum = reinterpret_cast<double*>(own_->address()) + unit;
  return kernels_.sum_of_squares(gradient.data(), static_cast<std::int64_t>(gradient.size()), sum, stream);
}

Result<void> DeviceVote::share(Collective& all, device::Stream& stream) {
  was_squared_ = squared_;
  squared_.assign(units_, false);
  if (const auto ranks = static_cast<std::size_t>(all.world()); ranks != ranks_) {
    all_ = make(ranks * slots() * sizeof(double));
    ranks_ = ranks;
  }
  TROUPE_TRY(kernels_.sum_of_squares(reinterpret_cast<const float*>(losses_->address()), 1,
                                     reinterpret_cast<double*>(own_->address()) + units_, stream));
  const auto bytes_of = [](const Memory& memory) {
    return std::span(memory->address(), static_cast<std::size_t>(memory->bytes()));
  };
  if (ranks_ == 1) {
    stream.copy(all_.there->address(), own_->address(), own_->bytes());
  } else {
    TROUPE_TRY(all.enqueue_all_gather(bytes_of(all_.there), bytes_of(own_), stream));
  }
  stream.copy(all_.pinned->address(), all_.there->address(), all_.there->bytes());
  return {};
}

std::vector<std::int32_t> DeviceVote::counted(const std::vector<std::int32_t>& group_of) const {
  std::vector<std::int32_t> groups = group_of;
  for (std::size_t u = 0; u < units_; ++u)
    if (!was_squared_[u]) groups[u] = kernels::kNoGroup;
  return groups;
}

Result<void> DeviceVote::decide(int sharing_ranks, const std::vector<kernels::ClipGroup>& groups,
                                const std::vector<std::int32_t>& group_of, device::Stream& stream) {
  TROUPE_CHECK(ranks_ > 0 && groups.size() == groups_, "a decision is on what was shared");
  const std::vector<std::int32_t> of_units = counted(group_of);
  const std::size_t group_bytes = groups.size() * sizeof(kernels::ClipGroup);
  // the copy of the decision before is done: the host has waited for its step
  std::memcpy(tables_.pinned->address(), groups.data(), group_bytes);
  std::memcpy(tables_.pinned->address() + group_bytes, of_units.data(), of_units.size() * sizeof(std::int32_t));
  stream.copy(tables_.there->address(), tables_.pinned->address(), tables_.there->bytes());
  return kernels_.step_decision(
      {.squares = reinterpret_cast<const double*>(all_.there->address()),
       .ranks = static_cast<std::int64_t>(ranks_),
       .sharing_ranks = sharing_ranks,
       .units = static_cast<std::int64_t>(units_),
       .group_of = reinterpret_cast<const std::int32_t*>(tables_.there->address() + group_bytes),
       .groups = reinterpret_cast<const kernels::ClipGroup*>(tables_.there->address()),
       .num_groups = static_cast<std::int64_t>(groups_),
       .scales = reinterpret_cast<float*>(decision_->address()),
       .skip = reinterpret_cast<std::int32_t*>(decision_->address() + groups_ * sizeof(float))},
      stream);
}

const float* DeviceVote::scale(std::size_t group) const {
  return reinterpret_cast<const float*>(decision_->address()) + group;
}

const std::int32_t* DeviceVote::skip() const {
  return reinterpret_cast<const std::int32_t*>(decision_->address() + groups_ * sizeof(float));
}

DeviceVote::Shared DeviceVote::shared(int sharing_ranks, const std::vector<std::int32_t>& group_of) const {
  const std::vector<std::int32_t> of_units = counted(group_of);
  const auto* squares = reinterpret_cast<const double*>(all_.pinned->address());
  Shared shared{.group_squares = std::vector<double>(groups_, 0.0)};
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const double* own = squares + rank * slots();
    shared.losses_are_finite = shared.losses_are_finite && std::isfinite(own[units_]);
    if (rank >= static_cast<std::size_t>(sharing_ranks)) continue;
    std::vector<double> parts(groups_, 0.0);
    for (std::size_t u = 0; u < units_; ++u)
      if (of_units[u] != kernels::kNoGroup) parts[static_cast<std::size_t>(of_units[u])] += own[u];
    for (std::size_t g = 0; g < groups_; ++g) shared.group_squares[g] += parts[g];
  }
  return shared;
}

}  // namespace troupe::model
