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

namespace troupe::model {

/// A rank's part in the vote on a step whose gradients lie on a device: norms, clip factors and whether the step is
/// skipped are formed there (kernels/cuda/step_decision.h), so that the update is enqueued before the host knows them.
/// A step is: add_loss of each micro-batch, square, share, decide. All are enqueued on the stream; the caller orders
/// streams. Errors: those of the device's kernels, and of the collective.
class DeviceVote {
 public:
  /// `device` and `kernels` outlive it.
  DeviceVote(std::size_t units, std::size_t groups, device::Device& device, kernels::DeviceKernels& kernels);

  /// One f32 of the device; the `first` of a step forgets those before.
  Result<void> add_loss(const float* loss, bool first, device::Stream& stream);
  /// Of one unit, once a step.
  Result<void> square(std::size_t unit, std::span<const float> gradient, device::Stream& stream);
  /// Every rank gets the sums of squares of all; of units without a gradient they are left out.
  Result<void> share(Collective& all, device::Stream& stream);
  /// From what was shared last. The first `sharing_ranks` of the group hold the parameters between them. `group_of`:
  /// number of each unit's group, kNoGroup for one that is not trained.
  Result<void> decide(int sharing_ranks, const std::vector<kernels::ClipGroup>& groups,
                      const std::vector<std::int32_t>& group_of, device::Stream& stream);

  /// What decide() wrote, on the device.
  const float* scale(std::size_t group) const;
  const std::int32_t* skip() const;

  /// What the device decided from, once the work of share() is done: of each group the sum of its squares, in the order
  /// of the kernel, and whether all losses were finite.
  struct Shared {
    std::vector<double> group_squares;
    bool losses_are_finite = true;
  };
  Shared shared(int sharing_ranks, const std::vector<std::int32_t>& group_of) const;

 private:
  using Memory = std::shared_ptr<device::Memory>;
  /// The same bytes on both sides.
  struct Mirrored {
    Memory pinned, there;
  };
  Mirrored make(std::size_t bytes);
  std::size_t slots() const { return units_ + 1; }
  /// `group_of`, with none where there was no gradient.
  std::vector<std::int32_t> counted(const std::vector<std::int32_t>& group_of) const;

  device::Device& device_;
  kernels::DeviceKernels& kernels_;
  const std::size_t units_, groups_;
  /// f32: the sum of the step's losses
  const Memory losses_;
  /// f64: of each unit its squares, then the square of the losses; of this rank, and of each in turn
  const Memory own_;
  Mirrored all_;
  std::size_t ranks_ = 0;
  /// the units that were squared: since the last share(), and before it
  std::vector<bool> squared_, was_squared_;
  /// ClipGroup of each group, then i32 of each unit
  const Mirrored tables_;
  /// f32 of each group, then one i32
  const Memory decision_;
};

}  // namespace troupe::model
