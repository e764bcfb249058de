#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "kernels/product.h"
#include "kernels/rank_sum.h"
#include "model/optim/moving_average.h"
#include "model/shard/shard_kernels.h"

namespace troupe::model {
namespace {

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

class HostShardKernels final : public ShardKernels {
 public:
  Result<void> copy(std::span<std::byte> to, std::span<const std::byte> from, device::Stream&) override {
    std::copy(from.begin(), from.end(), to.begin());
    return {};
  }
  Result<void> clear(std::span<float> values, device::Stream&) override {
    std::fill(values.begin(), values.end(), 0.0f);
    return {};
  }
  Result<void> round(std::span<simd::Bf16> to, std::span<const float> from, device::Stream&) override {
    const auto tensor = [](const void* data, std::size_t count, at::ScalarType dtype) {
      // from_blob takes a pointer to what it may not change
      return at::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(count)}, dtype);
    };
    convert_out(tensor(to.data(), to.size(), at::kBFloat16), tensor(from.data(), from.size(), at::kFloat));
    return {};
  }
  Result<void> add_parts(std::span<float> sum, std::span<const float> parts, std::int64_t ranks, bool add,
                         device::Stream&) override {
    sum_in_rank_order(sum.data(), parts.data(), ranks, static_cast<std::int64_t>(sum.size()), add);
    return {};
  }
  Result<void> adamw(const AdamWShard& s, const std::vector<AdamWInterval>& intervals,
                     device::Stream& stream) override {
    for (const auto& interval : intervals) {
      const auto part = [&](auto values) { return values.subspan(interval.begin, interval.end - interval.begin); };
      const auto update = [&]<class Moment>(Moment) {
        adamw_step(part(s.param), part(as<Moment>(s.m)), part(as<Moment>(s.v)), part(s.gradient), s.gradient_scale,
                   interval.update);
      };
      s.has_bf16_moments ? update(simd::Bf16{}) : update(float{});
    }
    return s.published.empty() ? Result<void>() : round(s.published, s.param, stream);
  }
  Result<void> average(std::span<float> average, std::span<const float> x, double tau, device::Stream&) override {
    move_average(average, x, tau);
    return {};
  }
};

}  // namespace

std::unique_ptr<ShardKernels> make_host_shard_kernels() { return std::make_unique<HostShardKernels>(); }

}  // namespace troupe::model
