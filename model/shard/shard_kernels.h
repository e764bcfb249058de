#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "kernels/device_names.h"
#include "model/optim/adamw.h"

namespace troupe::model {

class DeviceVote;

/// A part of a unit's shard that one AdamW update treats alike.
struct AdamWInterval {
  /// elements [begin, end) of the shard
  std::size_t begin = 0, end = 0;
  kernels::AdamWUpdate update;
};

/// One unit's shard, for an AdamW update: all of one length but `published`, which is bf16, or empty.
struct AdamWShard {
  std::size_t unit = 0;
  std::span<float> param;
  /// of each moment; f32 or bf16
  std::span<std::byte> m, v;
  bool has_bf16_moments = false;
  std::span<const float> gradient;
  /// the clip factor on cores; a device has that of the unit's group
  float gradient_scale = 1;
  std::size_t group = 0;
  std::span<simd::Bf16> published;
};

/// What a step does to the flat memory of a rank: on cores at once, on a device enqueued on the stream. Memory is the
/// device's; a span of it is an address there.
/// Errors: those of the device's kernels.
class ShardKernels {
 public:
  virtual ~ShardKernels() = default;
  /// Between any two places, the host's among them.
  virtual Result<void> copy(std::span<std::byte> to, std::span<const std::byte> from, device::Stream& stream) = 0;
  virtual Result<void> clear(std::span<float> values, device::Stream& stream) = 0;
  /// Rounds to nearest even; of one length.
  virtual Result<void> round(std::span<simd::Bf16> to, std::span<const float> from, device::Stream& stream) = 0;
  /// kernels/rank_sum.h: `parts` is `ranks` times as long as `sum`.
  virtual Result<void> add_parts(std::span<float> sum, std::span<const float> parts, std::int64_t ranks, bool add,
                                 device::Stream& stream) = 0;
  /// Updates, and rounds what was updated to what is published.
  virtual Result<void> adamw(const AdamWShard& shard, const std::vector<AdamWInterval>& intervals,
                             device::Stream& stream) = 0;
  /// model/optim/moving_average.h.
  virtual Result<void> average(std::span<float> average, std::span<const float> x, double tau,
                               device::Stream& stream) = 0;
};

std::unique_ptr<ShardKernels> make_host_shard_kernels();
/// For that many units. Updates and averages are clipped and skipped as `vote` has decided on the device. All outlive
/// it.
std::unique_ptr<ShardKernels> make_device_shard_kernels(std::size_t units, const DeviceVote& vote,
                                                        device::Device& device, kernels::DeviceKernels& kernels);

}  // namespace troupe::model
