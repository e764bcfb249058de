#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "kernels/device_kernels.h"
#include "model/program/device_compute.h"
#include "model/program/graph.h"

namespace troupe::model {

// What the operations that are launched there share: arguments of kernels from tensors of a device
// (kernels/device_tensor.h).

/// Where an enqueued copy or fill finds it.
std::byte* bytes_of(const at::Tensor& tensor);
/// Of f32 and bf16; another dtype throws c10::Error.
kernels::ElementType element_type(const at::Tensor& tensor);
/// Elements between two rows of x [B, N, d]; the stride of an axis of length one says nothing.
std::int64_t row_stride(const at::Tensor& x);
/// The address of an f32 tensor.
float* floats_of(const at::Tensor& tensor);
/// A table whose rows have the channels of its last axis.
kernels::DeviceTable device_table(const at::Tensor& table);
/// What a kernel reads as an array of T, as a constant of a graph: i32 [4-byte words], on the host.
at::Tensor words_of(const void* data, std::size_t bytes);
template <class T>
at::Tensor words_of(const std::vector<T>& values) {
  return words_of(values.data(), values.size() * sizeof(T));
}
/// The array of T again, on a device.
template <class T>
const T* array_of(const at::Tensor& words) {
  return static_cast<const T*>(words.const_data_ptr());
}
/// x [B, N, d].
kernels::DeviceBlock block_of(const at::Tensor& x);

}  // namespace troupe::model
