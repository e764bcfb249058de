#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "base/namespaces.h"
#include "device/device.h"

namespace troupe::kernels {

/// A dense tensor over a part of a device's memory, which it keeps alive.
///
/// Where the device is not the host, LibTorch knows the address, the shape and the dtype and takes views (view, narrow,
/// select, as_strided, detach), but reads nothing there: every other operator throws c10::Error that names the backend
/// PrivateUse1, LibTorch's free one.
/// `first_byte`: a multiple of the element's size; the tensor lies inside the memory.
at::Tensor tensor_over(const device::Device& device, const std::shared_ptr<device::Memory>& memory,
                       std::int64_t first_byte, at::IntArrayRef sizes, at::ScalarType dtype);

/// Whether the host must not read it.
inline bool is_on_device(const at::Tensor& tensor) { return tensor.is_privateuseone(); }

}  // namespace troupe::kernels
