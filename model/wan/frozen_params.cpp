#include "model/wan/frozen_params.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "model/shard/flat_layout.h"
#include "model/shard/init.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kHashedTogether = std::int64_t{1} << 22;  // elements

std::string shape_text(at::IntArrayRef sizes) {
  std::ostringstream out;
  out << sizes;
  return out.str();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void ContentHash::add(const std::string& name, const at::Tensor& tensor, at::ScalarType dtype) {
  const std::byte zero{0};
  hash_.update(bytes_of(name));
  hash_.update({&zero, 1});
  hash_.update(bytes_of(c10::toString(dtype)));
  hash_.update({&zero, 1});
  const auto stored = tensor.detach().cpu().contiguous().flatten();
  for (std::int64_t begin = 0; begin < stored.numel(); begin += kHashedTogether) {
    const auto piece = stored.narrow(0, begin, std::min(kHashedTogether, stored.numel() - begin)).to(dtype);
    hash_.update({static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
  }
}

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
  ContentHash hash;
  for (const auto& [name, tensor] : view_.tensors()) hash.add(name, tensor, tensor.scalar_type());
  return hash.hex();
}

std::int64_t FrozenParams::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : view_.tensors()) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

}  // namespace troupe::model
