#pragma once

#include <cuda_pipeline_primitives.h>

#include "kernels/cuda/row_block.h"

namespace troupe::kernels::cuda {

// Rows of two matrices on their way through a block that looks at each row twice, for the .cu files of this folder
// alone. In the wide form the next row is copied into shared memory while this one is worked on, and both looks read
// it there: registers stay free for the sums of columns. A thread reads only what it has copied itself, so no barrier
// belongs to this. The narrow form reads from device memory.

/// Bytes of dynamic shared memory that a RowPipe needs.
template <class Form>
constexpr unsigned pipe_bytes(unsigned threads) {
  return Form::kIsWide ? threads * 2 * 2 * Form::kN * 16 : 0;
}

/// Lets a kernel have that much dynamic shared memory; up to 40 KiB need no leave.
template <class Kernel>
cudaError_t allow_shared(Kernel* kernel, unsigned bytes) {
  constexpr unsigned kAlways = 40960;  // 48 KiB with what a kernel has besides
  if (bytes <= kAlways) return cudaSuccess;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

template <class Form, class T>
class RowPipe {
 public:
  /// Starts with one row of each matrix; `space` has pipe_bytes and belongs to this alone.
  __device__ RowPipe(uint4* space, int channels, const T* first, const T* second)
      : space_(space), channels_(channels), next_first_(first), next_second_(second) {
    if constexpr (Form::kIsWide) start();
  }

  /// Goes on to the row that was named last and starts the next one, if there is one.
  __device__ void advance(bool has_next, const T* first, const T* second) {
    first_ = next_first_;
    second_ = next_second_;
    next_first_ = first;
    next_second_ = second;
    if constexpr (Form::kIsWide) {
      stage_ ^= 1;
      if (has_next)
        start();
      else
        __pipeline_commit();  // an empty group, so that the count below holds for the last row too
      __pipeline_wait_prior(1);
    }
  }

  /// Vector j of this row of the first and of the second matrix; zero behind the row's end.
  __device__ Vector<Form::kV> first(int j) const { return vector(0, first_, j); }
  __device__ Vector<Form::kV> second(int j) const { return vector(1, second_, j); }

 private:
  __device__ uint4* place(int stage, int matrix, int j) const {
    return space_ + ((stage * 2 + matrix) * Form::kN + j) * static_cast<int>(blockDim.x) + threadIdx.x;
  }
  /// Copies the next row into the other stage, which this thread has finished reading.
  __device__ void start() {
#pragma unroll
    for (int j = 0; j < Form::kN; ++j) {
      const int column = column_of<Form>(j);
      if (column >= channels_) continue;
      __pipeline_memcpy_async(place(stage_ ^ 1, 0, j), next_first_ + column, sizeof(uint4));
      __pipeline_memcpy_async(place(stage_ ^ 1, 1, j), next_second_ + column, sizeof(uint4));
    }
    __pipeline_commit();
  }
  __device__ Vector<Form::kV> vector(int matrix, const T* row, int j) const {
    if constexpr (Form::kIsWide) {
      if (column_of<Form>(j) >= channels_) return {};
      const uint4 four = *place(stage_, matrix, j);
      return unpacked<T, Form::kV>({four.x, four.y, four.z, four.w});
    } else {
      return RowVectors<Form, T>(row, channels_)[j];
    }
  }

  uint4* space_;
  int channels_;
  int stage_ = 1;
  const T *first_ = nullptr, *second_ = nullptr, *next_first_, *next_second_;
};

}  // namespace troupe::kernels::cuda
