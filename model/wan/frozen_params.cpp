#include "model/wan/frozen_params.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <sstream>

#include "base/hash.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"

namespace troupe {
namespace {

std::string shape_text(at::IntArrayRef sizes) {
  std::ostringstream out;
  out << sizes;
  return out.str();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

at::Tensor initial_tensor(const ParamSpec& spec, std::uint64_t seed) {
  const UnitSpec unit{"", "", {spec}};
  auto tensor = at::empty(spec.shape, at::TensorOptions().dtype(at::kFloat));
  fill_initial(unit, make_flat_layout(unit.params), seed, 0,
               {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
  return tensor;
}

FrozenParams FrozenParams::random(const std::vector<ParamSpec>& specs, std::uint64_t seed, const std::string& prefix) {
  FrozenParams out;
  for (const auto& spec : specs) {
    out.view_.set(spec.name, initial_tensor({prefix + spec.name, spec.shape, spec.init}, seed));
  }
  return out;
}

Result<FrozenParams> FrozenParams::from_tensors(const std::vector<ParamSpec>& specs,
                                                std::map<std::string, at::Tensor> tensors) {
  FrozenParams out;
  for (const auto& spec : specs) {
    const auto it = tensors.find(spec.name);
    if (it == tensors.end()) return Error{Errc::invalid_argument, fmt::format("tensor {} is missing", spec.name)};
    if (it->second.sizes() != at::IntArrayRef(spec.shape)) {
      return Error{Errc::invalid_argument, fmt::format("tensor {} has shape {}, want {}", spec.name,
                                                       shape_text(it->second.sizes()), shape_text(spec.shape))};
    }
    out.view_.set(spec.name, it->second.detach());
    tensors.erase(it);
  }
  if (!tensors.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("tensor {} does not belong to this model", tensors.begin()->first)};
  }
  return out;
}

std::string FrozenParams::content_hash() const {
  Xxh3Stream hash;
  const std::byte zero{0};
  for (const auto& [name, tensor] : view_.tensors()) {
    const auto values = tensor.cpu().contiguous();
    hash.update(bytes_of(name));
    hash.update({&zero, 1});
    hash.update(bytes_of(c10::toString(values.scalar_type())));
    hash.update({&zero, 1});
    hash.update({static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
  }
  return hash.hex();
}

std::int64_t FrozenParams::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : view_.tensors()) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

}  // namespace troupe
