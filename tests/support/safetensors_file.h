#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

using TensorMap = std::map<std::string, at::Tensor>;

/// Every tensor of a safetensors file: eight bytes of header length, a JSON header, raw values. Throws
/// std::runtime_error.
inline TensorMap load_safetensors(const std::filesystem::path& path) {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf},
      {"I64", at::kLong},   {"I32", at::kInt},   {"U8", at::kByte},       {"BOOL", at::kBool}};
  std::ifstream in(path, std::ios::binary);
  std::uint64_t size = 0;
  if (!in.read(reinterpret_cast<char*>(&size), sizeof size))
    throw std::runtime_error(path.string() + " cannot be read");
  std::string header(size, '\0');
  in.read(header.data(), static_cast<std::streamsize>(size));
  const auto parsed = nlohmann::json::parse(header);
  TensorMap tensors;
  for (const auto& [name, info] : parsed.items()) {
    if (name == "__metadata__") continue;
    const auto type = kTypes.find(info.at("dtype").get<std::string>());
    if (type == kTypes.end()) throw std::runtime_error(name + " has an unknown dtype");
    auto tensor = at::empty(info.at("shape").get<std::vector<std::int64_t>>(), at::TensorOptions().dtype(type->second));
    const auto offsets = info.at("data_offsets").get<std::vector<std::uint64_t>>();
    in.seekg(static_cast<std::streamoff>(sizeof size + size + offsets.at(0)));
    if (offsets.at(1) - offsets.at(0) != tensor.nbytes() ||
        !in.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()))) {
      throw std::runtime_error(path.string() + ": " + name + " is cut short");
    }
    tensors[name] = tensor;
  }
  return tensors;
}

/// The tensors whose names start with `prefix`, without it.
inline TensorMap with_prefix(const TensorMap& tensors, const std::string& prefix) {
  TensorMap out;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) == 0) out[name.substr(prefix.size())] = tensor;
  }
  return out;
}

}  // namespace troupe::testing
