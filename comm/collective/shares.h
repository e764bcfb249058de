#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "base/namespaces.h"
#include "base/result.h"

namespace troupe::comm {

// The sizes that every backend takes, checked before anything is moved. Errors: invalid_argument. Header-only: backends
// in the module for GPUs have it too.

inline Error unequal_shares(const char* operation, std::size_t bytes, int world) {
  return {Errc::invalid_argument, fmt::format("{}: {} bytes are no equal shares of {} ranks", operation, bytes, world)};
}

/// Of Collective::all_gather.
inline Result<void> check_all_gather(std::span<const std::byte> full, std::span<const std::byte> shard, int world) {
  if (full.size() == shard.size() * static_cast<std::size_t>(world)) return {};
  return unequal_shares("all_gather", full.size(), world);
}

/// Of Collective::all_to_all.
inline Result<void> check_all_to_all(std::span<const std::byte> received, std::span<const std::byte> sent, int world) {
  if (received.size() == sent.size() && sent.size() % static_cast<std::size_t>(world) == 0) return {};
  return unequal_shares("all_to_all", sent.size(), world);
}

}  // namespace troupe::comm
