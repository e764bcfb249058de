#pragma once

#include <cstdint>
#include <memory>

#include "base/namespaces.h"
#include "device/device.h"

namespace troupe::model {

/// The same numbers in pinned memory and on a device. Both copies are enqueued; who writes to one side has waited for
/// the copy before.
struct MirroredMemory {
  MirroredMemory() = default;
  MirroredMemory(device::Device& device, std::int64_t bytes)
      : pinned(device.allocate_pinned(bytes)), there(device.allocate(bytes)) {}

  void to_device(device::Stream& stream) const { stream.copy(there->address(), pinned->address(), there->bytes()); }
  void to_host(device::Stream& stream) const { stream.copy(pinned->address(), there->address(), there->bytes()); }
  /// Of a T at a byte offset that suits it.
  template <class T>
  T* on_host(std::int64_t offset = 0) const {
    return reinterpret_cast<T*>(pinned->address() + offset);
  }
  template <class T>
  T* on_device(std::int64_t offset = 0) const {
    return reinterpret_cast<T*>(there->address() + offset);
  }

  std::shared_ptr<device::Memory> pinned, there;
};

}  // namespace troupe::model
