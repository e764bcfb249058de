#include "kernels/device_tensor.h"

#include <ATen/ATen.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "base/check.h"

namespace troupe::kernels {
namespace {

// LibTorch's free backend is the device's: views read no element, and nothing else is registered.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, views) {
  views.impl("as_strided", [](const at::Tensor& x, at::IntArrayRef sizes, at::IntArrayRef strides,
                              std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(x, sizes, strides, offset);
  });
  views.impl("view", [](const at::Tensor& x, at::IntArrayRef sizes) { return at::native::view(x, sizes); });
}

}  // namespace

at::Tensor tensor_over(const device::Device& device, const std::shared_ptr<device::Memory>& memory,
                       std::int64_t first_byte, at::IntArrayRef sizes, at::ScalarType dtype) {
  TROUPE_CHECK(first_byte + c10::multiply_integers(sizes) * static_cast<std::int64_t>(c10::elementSize(dtype)) <=
                   memory->bytes(),
               "a tensor lies inside its memory");
  const at::Device where = device.is_host() ? at::Device(at::kCPU) : at::Device(at::kPrivateUse1, 0);
  return at::for_blob(memory->address() + first_byte, sizes)
      .deleter([memory](void*) {})
      .options(at::TensorOptions().dtype(dtype).device(where))
      .target_device(where)
      .make_tensor();
}

}  // namespace troupe::kernels
