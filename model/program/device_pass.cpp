#include "model/program/device_pass.h"

#include <ATen/ATen.h>

#include <cstring>

namespace troupe::model {

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

kernels::ElementType element_type(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBFloat16) return kernels::ElementType::bf16;
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "a device computes in float and bfloat16, not in ",
              tensor.scalar_type());
  return kernels::ElementType::f32;
}

std::int64_t row_stride(const at::Tensor& x) { return x.is_contiguous() ? x.size(2) : x.stride(1); }

float* floats_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "a device sums in float, not in ", tensor.scalar_type());
  return static_cast<float*>(tensor.data_ptr());
}

kernels::DeviceTable device_table(const at::Tensor& table) { return {table.data_ptr(), table.size(-1)}; }

at::Tensor words_of(const void* data, std::size_t bytes) {
  const auto words = at::empty({static_cast<std::int64_t>(bytes / sizeof(std::int32_t))}, at::kInt);
  if (bytes > 0) std::memcpy(words.data_ptr(), data, bytes);
  return words;
}

kernels::DeviceBlock block_of(const at::Tensor& x) { return {x.data_ptr(), element_type(x), x.stride(0), x.stride(1)}; }

}  // namespace troupe::model
