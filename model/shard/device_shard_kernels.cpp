#include "base/check.h"
#include "kernels/device_kernels.h"
#include "model/shard/device_vote.h"
#include "model/shard/mirrored_memory.h"
#include "model/shard/shard_kernels.h"

namespace troupe::model {
namespace {

class DeviceShardKernels final : public ShardKernels {
 public:
  DeviceShardKernels(std::size_t units, const DeviceVote& vote, device::Device& device, kernels::DeviceKernels& kernels)
      : vote_(vote), device_(device), kernels_(kernels), constants_(units) {}

  Result<void> copy(std::span<std::byte> to, std::span<const std::byte> from, device::Stream& stream) override {
    TROUPE_CHECK(to.size() >= from.size(), "a copy has room");
    if (!from.empty()) stream.copy(to.data(), from.data(), static_cast<std::int64_t>(from.size()));
    return {};
  }
  Result<void> clear(std::span<float> values, device::Stream& stream) override {
    const auto bytes = std::as_writable_bytes(values);
    if (!bytes.empty()) stream.clear(bytes.data(), static_cast<std::int64_t>(bytes.size()));
    return {};
  }
  Result<void> round(std::span<simd::Bf16> to, std::span<const float> from, device::Stream& stream) override {
    return kernels_.convert(kernels::ElementType::bf16, static_cast<std::int64_t>(from.size()), from.data(), to.data(),
                            stream);
  }
  Result<void> add_parts(std::span<float> sum, std::span<const float> parts, std::int64_t ranks, bool add,
                         device::Stream& stream) override {
    if (sum.empty()) return {};
    return kernels_.rank_sum(sum.data(), parts.data(), ranks, static_cast<std::int64_t>(sum.size()), add, stream);
  }

  Result<void> adamw(const AdamWShard& s, const std::vector<AdamWInterval>& intervals,
                     device::Stream& stream) override {
    if (intervals.empty()) return {};
    const auto bytes = static_cast<std::int64_t>(intervals.size() * sizeof(kernels::AdamWUpdate));
    // the copy of the update before is done: the host has waited for its step
    auto& own = constants_[s.unit];
    if (!own.there || own.there->bytes() != bytes) own = MirroredMemory(device_, bytes);
    auto* to = own.on_host<kernels::AdamWUpdate>();
    for (const auto& interval : intervals) *to++ = interval.update;
    own.to_device(stream);

    const auto* update = own.on_device<kernels::AdamWUpdate>();
    const auto moment_bytes = s.has_bf16_moments ? sizeof(simd::Bf16) : sizeof(float);
    for (const auto& interval : intervals) {
      const auto begin = interval.begin;
      TROUPE_TRY(
          kernels_.adamw({.param = s.param.data() + begin,
                          .moment_type = s.has_bf16_moments ? kernels::ElementType::bf16 : kernels::ElementType::f32,
                          .m = s.m.data() + begin * moment_bytes,
                          .v = s.v.data() + begin * moment_bytes,
                          .gradient = s.gradient.data() + begin,
                          .published = s.published.empty() ? nullptr : s.published.data() + begin,
                          .count = static_cast<std::int64_t>(interval.end - begin),
                          .update = update++,
                          .gradient_scale = vote_.scale(s.group),
                          .skip = vote_.skip()},
                         stream));
    }
    return {};
  }
  Result<void> average(std::span<float> average, std::span<const float> x, double tau,
                       device::Stream& stream) override {
    return kernels_.moving_average(average.data(), x.data(), static_cast<std::int64_t>(average.size()),
                                   static_cast<float>(1.0 - tau), static_cast<float>(tau), vote_.skip(), stream);
  }

 private:
  const DeviceVote& vote_;
  device::Device& device_;
  kernels::DeviceKernels& kernels_;
  /// by unit: its intervals' constants
  std::vector<MirroredMemory> constants_;
};

}  // namespace

std::unique_ptr<ShardKernels> make_device_shard_kernels(std::size_t units, const DeviceVote& vote,
                                                        device::Device& device, kernels::DeviceKernels& kernels) {
  return std::make_unique<DeviceShardKernels>(units, vote, device, kernels);
}

}  // namespace troupe::model
