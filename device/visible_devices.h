#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::device {

/// What CUDA_VISIBLE_DEVICES leaves of a machine's devices: their indexes, in the order in which CUDA numbers them.
/// `uuids` has one of each device, in the order of PCI bus ids: that is how CUDA counts with CUDA_DEVICE_ORDER set to
/// PCI_BUS_ID, as the module for GPUs sets it.
///
/// The list is one of numbers, or one of beginnings of UUIDs ("GPU-8932f937") that fit one device alone. As in CUDA,
/// the first entry that names no device ends it, and one that names a device again leaves none. Errors:
/// invalid_argument for parts of devices (MIG), which nothing here computes on.
Result<std::vector<std::size_t>> visible_devices(std::string_view list, const std::vector<std::string>& uuids);

}  // namespace troupe::device
