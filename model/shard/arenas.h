#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "model/step/arena_plan.h"

namespace troupe::model {

/// The memory behind a plan's arenas, zero at first: all but inputs, activations and what goes with them, which their
/// makers own. Never moves. Views keep alive what they lie in. What bytes() and floats() give of a device is an address
/// there.
class Arenas {
 public:
  /// `device` outlives them. `folder`: of what is offloaded (device::Device::allocate_behind). Errors: those of that
  /// call.
  static Result<Arenas> make(const ArenaPlan& plan, device::Device& device, const std::string& folder);

  std::span<std::byte> bytes(const ArenaRange& range) const;
  std::span<float> floats(const ArenaRange& range) const;
  /// 1-D; of a device where that is not the host (kernels/device_tensor.h).
  at::Tensor tensor(const ArenaRange& range, at::ScalarType dtype) const;
  /// Allocated for an arena.
  std::int64_t size(ArenaKind arena) const;

 private:
  explicit Arenas(device::Device& device) : device_(&device) {}
  device::Device* device_;
  /// by ArenaKind
  std::array<std::shared_ptr<device::Memory>, kArenas> memory_;
};

}  // namespace troupe::model
