#include "model/shard/arenas.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "kernels/device_tensor.h"

namespace troupe::model {

Result<Arenas> Arenas::make(const ArenaPlan& plan, device::Device& device, const std::string& folder) {
  Arenas arenas(device);
  for (std::size_t i = 0; i <= static_cast<std::size_t>(ArenaKind::replicated_gradients); ++i)
    arenas.memory_[i] = device.allocate(plan.bytes(static_cast<ArenaKind>(i)));
  if (const std::int64_t behind = plan.bytes(ArenaKind::offloaded); behind > 0) {
    auto& memory = arenas.memory_[static_cast<std::size_t>(ArenaKind::offloaded)];
    TROUPE_ASSIGN(memory, device.allocate_behind(behind, folder));
  }
  return arenas;
}

std::span<std::byte> Arenas::bytes(const ArenaRange& range) const {
  const auto& memory = memory_[static_cast<std::size_t>(range.arena)];
  TROUPE_CHECK(memory && range.begin + range.bytes <= memory->bytes(), "a range lies in its arena");
  return {memory->address() + range.begin, static_cast<std::size_t>(range.bytes)};
}

std::span<float> Arenas::floats(const ArenaRange& range) const {
  const auto whole = bytes(range);
  return {reinterpret_cast<float*>(whole.data()), whole.size() / sizeof(float)};
}

at::Tensor Arenas::tensor(const ArenaRange& range, at::ScalarType dtype) const {
  const auto elements = static_cast<std::int64_t>(bytes(range).size() / c10::elementSize(dtype));
  return kernels::tensor_over(*device_, memory_[static_cast<std::size_t>(range.arena)], range.begin, {elements}, dtype);
}

std::int64_t Arenas::size(ArenaKind arena) const {
  const auto& memory = memory_[static_cast<std::size_t>(arena)];
  return memory ? memory->bytes() : 0;
}

}  // namespace troupe::model
