#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/io/safetensors.h"
#include "model/shard/network.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/visible.h"

namespace troupe::testing {

inline std::string safetensors_dtype(at::ScalarType type) {
  for (const auto& [scalar, name] : {std::pair{at::kFloat, "F32"},
                                     {at::kDouble, "F64"},
                                     {at::kBFloat16, "BF16"},
                                     {at::kHalf, "F16"},
                                     {at::kLong, "I64"},
                                     {at::kByte, "U8"}}) {
    if (scalar == type) return name;
  }
  throw std::runtime_error("no name for this dtype");
}

/// Writes tensors as one safetensors file. Throws std::runtime_error.
inline void write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
  std::vector<TensorDeclaration> declared;
  for (const auto& [name, tensor] : tensors) {
    declared.push_back({name, safetensors_dtype(tensor.scalar_type()), tensor.sizes().vec()});
  }
  auto writer = SafetensorsWriter::create(path, declared);
  if (!writer) throw std::runtime_error(writer.error().message());
  for (const auto& [name, tensor] : tensors) {
    const auto values = tensor.contiguous();
    const auto result = writer->append({static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
    if (!result) throw std::runtime_error(result.error().message());
  }
  const auto finished = writer->finish();
  if (!finished) throw std::runtime_error(finished.error().message());
}

/// Values that differ from each other and from tensor to tensor, with the specs' shapes.
inline std::map<std::string, at::Tensor> numbered_tensors(const std::vector<ParamSpec>& specs, at::ScalarType type) {
  std::map<std::string, at::Tensor> tensors;
  double start = 0;
  for (const auto& spec : specs) {
    auto tensor = at::empty(spec.shape, at::TensorOptions().dtype(at::kDouble));
    tensor.view(-1).copy_(at::arange(tensor.numel(), at::TensorOptions().dtype(at::kDouble)));
    start += 0.37;
    tensors[spec.name] = at::sin(tensor * 0.73 + start).to(type);
  }
  return tensors;
}

}  // namespace troupe::testing
