#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "base/result.h"
#include "device/device.h"
#include "kernels/device_kernels.h"
#include "model/wan/sequence_layout.h"

namespace troupe::bench {

/// Sizes of DreamZero's transformer and of a training sample (docs/model.md).
struct BlockSizes {
  std::string name;
  std::int64_t width, hidden, heads;
  SequenceLayout layout;
  /// rows of context
  std::int64_t text = 512, image = 257;
};

/// Values on a device. Those that kernels read are drawn: with zeros a GPU draws less power and clocks higher.
class DeviceValues {
 public:
  DeviceValues(device::Device& device, device::Stream& stream);
  /// `count` values of the type.
  std::byte* drawn(kernels::ElementType type, std::int64_t count);
  /// Of this content.
  template <class T>
  const T* of(const std::vector<T>& values) {
    return reinterpret_cast<const T*>(copied(values.data(), static_cast<std::int64_t>(values.size() * sizeof(T))));
  }
  /// Room for what is written.
  std::byte* room(std::int64_t bytes);
  /// Of the host.
  std::byte* pinned_room(std::int64_t bytes);
  device::Stream& stream() { return stream_; }

 private:
  const std::byte* copied(const void* data, std::int64_t bytes);
  device::Device& device_;
  device::Stream& stream_;
  /// of f32 and bf16, pinned
  std::shared_ptr<device::Memory> patterns_[2];
  std::vector<std::shared_ptr<device::Memory>> held_;
};

/// One kernel, or one product, with its work.
struct DeviceCase {
  std::string name;
  /// of a product or an attention: multiplications and additions
  double flops = 0;
  /// read and written at least
  double bytes = 0;
  std::function<Result<void>(device::Stream&)> enqueue;
};

/// A square product, the limit of the others, then the products of a block: forward and gradients of input and weight.
std::vector<DeviceCase> product_cases(const BlockSizes& sizes, std::int64_t samples, kernels::ElementType type,
                                      kernels::DeviceKernels& kernels, DeviceValues& values);
/// Attention of a training sample by segments, and to text and pictures, forward and backward.
std::vector<DeviceCase> attention_cases(const BlockSizes& sizes, std::int64_t samples, kernels::ElementType type,
                                        kernels::DeviceKernels& kernels, DeviceValues& values);
/// A copy, the limit of the others, then what else a block and the optimizer spend memory traffic on.
std::vector<DeviceCase> memory_cases(const BlockSizes& sizes, std::int64_t samples, kernels::ElementType type,
                                     kernels::DeviceKernels& kernels, DeviceValues& values);
/// A kernel that does next to nothing, a graph of one, a graph of kGraphKernels of them, and a copy from pinned memory.
std::vector<DeviceCase> launch_cases(const BlockSizes& sizes, std::int64_t samples, kernels::ElementType type,
                                     kernels::DeviceKernels& kernels, DeviceValues& values);
inline constexpr int kGraphKernels = 1000;

}  // namespace troupe::bench
