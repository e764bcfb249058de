#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::kernels::cuda {

// What the launchers of this folder share: limits, and the choice between a kernel's two forms. Host code.

/// Channels of a row that the row-wise launchers take; they return cudaErrorInvalidValue beyond.
inline constexpr std::int64_t kMaxChannels = 16384;
/// Blocks that a grid takes along x. Launchers return cudaErrorInvalidValue beyond.
inline constexpr std::int64_t kMaxBlocks = 2147483647;
/// Threads of a warp.
inline constexpr int kWarp = 32;

/// Whole parts of `size` that hold `count`.
/// Neither is negative.
constexpr std::int64_t parts_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// Elements that are 16 bytes of the widest of these types.
template <class... T>
inline constexpr int kVectorOf = ((sizeof(T) == 4) || ...) ? 4 : 8;

/// Whether 16 bytes may be read or written at each of them. A null pointer may stand for what is not there.
template <class... P>
bool are_aligned(const P*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// Whole warps for `work` threads, at most `most` (a multiple of a warp).
/// At least one warp, also for no work.
constexpr unsigned threads_for(std::int64_t work, std::int64_t most) {
  const std::int64_t threads = parts_of(work < 1 ? 1 : work, kWarp) * kWarp;
  return static_cast<unsigned>(threads < most ? threads : most);
}

/// Whether a matrix of that many blocks of rows and that many channels can be launched.
constexpr bool takes(std::int64_t blocks, std::int64_t channels) {
  return blocks <= kMaxBlocks && channels >= 0 && channels <= kMaxChannels;
}

}  // namespace troupe::kernels::cuda
