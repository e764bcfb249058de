#pragma once

#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/vectors.h"

namespace troupe::kernels::cuda {

// A block that walks down some rows with V neighbouring columns a thread, for kernels without sums along a row: what
// belongs to a column (a gate, a bias, a running sum) stays in registers. blockIdx.x counts groups of rows, blockIdx.y
// groups of columns. For the .cu files of this folder alone.

/// Most threads of such a block.
inline constexpr int kColumnThreads = 128;

/// Threads and grid for `groups` groups of rows of that many channels, both positive.
template <int V>
struct ColumnShape {
  unsigned threads;
  dim3 grid;

  ColumnShape(std::int64_t groups, std::int64_t channels)
      : threads(threads_for(parts_of(channels, V), kColumnThreads)),
        grid(static_cast<unsigned>(groups), static_cast<unsigned>(parts_of(channels, std::int64_t{V} * threads))) {}
};

/// The first of the thread's columns. V columns lie inside the row or outside: rows are whole vectors.
template <int V>
__device__ inline int first_column() {
  return (static_cast<int>(blockIdx.y) * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * V;
}

/// use(row, load(row)) for the rows [begin, end) in order, with the loads of four rows on their way at once.
/// load(row) may be called more than once for the last row.
template <class Load, class Use>
__device__ inline void each_row(std::int64_t begin, std::int64_t end, const Load& load, const Use& use) {
  constexpr int kAhead = 4;
  for (std::int64_t row = begin; row < end; row += kAhead) {
    decltype(load(row)) held[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) held[i] = load(row + i < end ? row + i : end - 1);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (row + i < end) use(row + i, held[i]);
    }
  }
}

}  // namespace troupe::kernels::cuda
