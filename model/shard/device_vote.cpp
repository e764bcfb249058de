#include "model/shard/device_vote.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/device_kernels.h"

namespace troupe::model {
namespace {

template <class T>
T* at(const std::shared_ptr<device::Memory>& memory) {
  return reinterpret_cast<T*>(memory->address());
}

std::span<std::byte> bytes_of(const std::shared_ptr<device::Memory>& memory) {
  return {memory->address(), static_cast<std::size_t>(memory->bytes())};
}

template <class T>
std::int64_t bytes_for(std::size_t count) {
  return static_cast<std::int64_t>(count * sizeof(T));
}

}  // namespace

DeviceVote::DeviceVote(std::vector<std::int32_t> group_of, std::size_t groups, device::Device& device,
                       kernels::DeviceKernels& kernels)
    : device_(device),
      kernels_(kernels),
      group_of_(std::move(group_of)),
      groups_(groups),
      squared_(units(), false),
      losses_(device.allocate(bytes_for<float>(1))),
      own_(device.allocate(bytes_for<double>(units() + 1))),
      counted_(device, bytes_for<std::int32_t>(units())),
      judged_(device, skip_offset() + bytes_for<std::int32_t>(1)),
      clip_groups_(device, bytes_for<kernels::ClipGroup>(groups)),
      scales_(device.allocate(bytes_for<float>(groups))) {}

Result<void> DeviceVote::add_loss(const float* loss, bool first, device::Stream& stream) {
  return kernels_.rank_sum(at<float>(losses_), loss, /*ranks=*/1, /*count=*/1, /*add=*/!first, stream);
}

Result<void> DeviceVote::square(std::size_t unit, std::span<const float> gradient, device::Stream& stream) {
  TROUPE_CHECK(!squared_[unit], "a vote asks for a unit's squares once");
  squared_[unit] = true;
  return kernels_.sum_of_squares(gradient.data(), static_cast<std::int64_t>(gradient.size()), at<double>(own_) + unit,
                                 stream);
}

Result<void> DeviceVote::gather(Collective& all, int sharing_ranks, device::Stream& stream) {
  const std::int64_t bytes = all.world() * own_->bytes();
  if (!all_ || all_->bytes() != bytes) all_ = device_.allocate(bytes);
  TROUPE_TRY(kernels_.sum_of_squares(at<float>(losses_), 1, at<double>(own_) + units(), stream));
  if (all.world() == 1) {
    stream.copy(all_->address(), own_->address(), bytes);
  } else {
    TROUPE_TRY(all.enqueue_all_gather(bytes_of(all_), bytes_of(own_), stream));
  }
  // the copy of the step before is done: the host has waited for it
  auto* counted = counted_.on_host<std::int32_t>();
  for (std::size_t u = 0; u < units(); ++u) counted[u] = squared_[u] ? group_of_[u] : kernels::kNoGroup;
  squared_.assign(units(), false);
  counted_.to_device(stream);
  TROUPE_TRY(kernels_.step_norms({.squares = at<double>(all_),
                                  .ranks = all.world(),
                                  .sharing_ranks = sharing_ranks,
                                  .units = static_cast<std::int64_t>(units()),
                                  .group_of = counted_.on_device<std::int32_t>(),
                                  .num_groups = static_cast<std::int64_t>(groups_),
                                  .sums = judged_.on_device<double>(),
                                  .skip = judged_.on_device<std::int32_t>(skip_offset())},
                                 stream));
  judged_.to_host(stream);
  return {};
}

Result<void> DeviceVote::clip(const std::vector<kernels::ClipGroup>& groups, device::Stream& stream) {
  TROUPE_CHECK(groups.size() == groups_, "all groups, updated or not");
  // as in gather()
  std::copy(groups.begin(), groups.end(), clip_groups_.on_host<kernels::ClipGroup>());
  clip_groups_.to_device(stream);
  return kernels_.clip_scales(judged_.on_device<double>(), clip_groups_.on_device<kernels::ClipGroup>(),
                              static_cast<std::int64_t>(groups_), at<float>(scales_), stream);
}

const float* DeviceVote::scale(std::size_t group) const { return at<float>(scales_) + group; }

const std::int32_t* DeviceVote::skip() const { return judged_.on_device<std::int32_t>(skip_offset()); }

DeviceVote::Judgement DeviceVote::judgement() const {
  const auto* sums = judged_.on_host<double>();
  return {.group_squares = {sums, sums + groups_}, .skips = *judged_.on_host<std::int32_t>(skip_offset()) != 0};
}

}  // namespace troupe::model
