#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "device/device.h"
#include "kernels/clip.h"
#include "kernels/device_names.h"
#include "model/shard/mirrored_memory.h"

namespace troupe::model {

/// A rank's part in the vote on a step whose gradients lie on a device. The device forms norms, clip factors and the
/// decision to skip the step (kernels/cuda/step_decision.h), so that the update is enqueued before the host knows them.
/// A step is: add_loss of each micro-batch, square of each unit, gather, then clip. All are enqueued on the stream; the
/// caller orders streams. Errors: those of the device's kernels, and of the collective.
class DeviceVote {
 public:
  /// `group_of`: number of each unit's group, kNoGroup for one that is not trained. `device` and `kernels` outlive it.
  DeviceVote(std::vector<std::int32_t> group_of, std::size_t groups, device::Device& device,
             kernels::DeviceKernels& kernels);

  /// One f32 of the device; the `first` of a step replaces those before.
  Result<void> add_loss(const float* loss, bool first, device::Stream& stream);
  /// Of one unit, once a step. Units without are left out of the norms.
  Result<void> square(std::size_t unit, std::span<const float> gradient, device::Stream& stream);
  /// Every rank gets the sums of squares of all ranks, and judges by them. The first `sharing_ranks` of the group hold
  /// the parameters between them.
  Result<void> gather(Collective& all, int sharing_ranks, device::Stream& stream);
  /// Forms the clip factors of an update of those groups.
  Result<void> clip(const std::vector<kernels::ClipGroup>& groups, device::Stream& stream);

  /// Where the device finds a group's clip factor, and an i32 that is not 0 in a step that is skipped.
  const float* scale(std::size_t group) const;
  const std::int32_t* skip() const;

  /// What the device judged by, on the host once the work of gather() is done.
  struct Judgement {
    /// sums of squares over all ranks
    std::vector<double> group_squares;
    bool skips = false;
  };
  Judgement judgement() const;

 private:
  using Memory = std::shared_ptr<device::Memory>;
  std::size_t units() const { return group_of_.size(); }
  /// Bytes before the i32 in judged_.
  std::int64_t skip_offset() const { return static_cast<std::int64_t>(groups_ * sizeof(double)); }

  device::Device& device_;
  kernels::DeviceKernels& kernels_;
  const std::vector<std::int32_t> group_of_;
  const std::size_t groups_;
  /// the units that were squared since the last gather()
  std::vector<bool> squared_;
  /// f32: the sum of the step's losses
  const Memory losses_;
  /// f64: the squares of each unit, then of the losses; of this rank, and of each in turn
  const Memory own_;
  Memory all_;
  /// i32 of each unit: its group, kNoGroup without a gradient
  const MirroredMemory counted_;
  /// f64 of each group, then one i32
  const MirroredMemory judged_;
  /// ClipGroup and f32 of each group
  const MirroredMemory clip_groups_;
  const Memory scales_;
};

}  // namespace troupe::model
