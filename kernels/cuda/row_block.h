#pragma once

#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/vectors.h"

namespace troupe::kernels::cuda {

// A block of threads at work on one row, for the .cu files of this folder alone. A thread has up to N vectors of V
// neighbouring elements; vector j of thread t begins at column (j * threads + t) * V, so that a warp's accesses are
// one range. Two forms hold a row, and every kernel is written once for both.

/// 16-byte accesses; what a thread reads and the sums of its columns stay in registers. Needs rows, tables and strides
/// of whole vectors. 640 threads hold 5,120 channels of f32 or 10,240 of bf16, and leave a thread 96 registers.
template <class T>
struct Wide {
  static constexpr bool kIsWide = true;
  static constexpr int kV = 16 / static_cast<int>(sizeof(T));
  static constexpr int kN = 2;
  static constexpr int kMaxThreads = 640;
  /// Of the loop over the vectors: wholly, or what is kept could not be in registers.
  static constexpr int kUnroll = kN;
};

/// Any number of channels up to kMaxChannels, any alignment: elements one by one, with a mask behind the end. A second
/// look at an element reads it again, from the cache, and sums of columns lie in memory: 16 elements of several
/// matrices do not fit into the registers of 1,024 threads.
struct Narrow {
  static constexpr bool kIsWide = false;
  static constexpr int kV = 2;
  static constexpr int kN = 8;
  static constexpr int kMaxThreads = 1024;
  static constexpr int kUnroll = 1;
};
static_assert(Narrow::kV * Narrow::kN * Narrow::kMaxThreads == kMaxChannels);

/// Threads that hold a row in that form.
template <class Form>
constexpr unsigned row_threads(std::int64_t channels) {
  return threads_for(parts_of(channels, Form::kV * Form::kN), Form::kMaxThreads);
}

/// Whether a block holds a row of that many channels in a wide form, were all pointers aligned.
template <class Form>
constexpr bool fits_wide(std::int64_t channels) {
  return channels % Form::kV == 0 && channels <= std::int64_t{Form::kMaxThreads} * Form::kV * Form::kN;
}

/// Rows that share a block: warps whose row needs no other warp come four at a time, as threadIdx.y, since a
/// multiprocessor takes only 32 blocks.
constexpr unsigned rows_per_block(unsigned threads) { return threads == kWarp ? 4 : 1; }

/// Vectors that a loop of all threads goes over.
template <class Form>
__device__ inline int vectors_of(int channels) {
  if constexpr (Form::kIsWide) return Form::kN;
  const int columns = static_cast<int>(blockDim.x) * Form::kV;
  return (channels + columns - 1) / columns;
}
template <class Form>
__device__ inline int column_of(int j) {
  return (j * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * Form::kV;
}
/// Whether element e of vector j is one of the row.
template <class Form>
__device__ inline bool has_element(int j, int e, int channels) {
  return column_of<Form>(j) + (Form::kIsWide ? 0 : e) < channels;
}

/// A thread's vectors of one row. Elements behind the row's end are zero.
template <class Form, class T>
class RowVectors {
 public:
  /// The wide form reads here, ahead of the first use.
  __device__ RowVectors(const T* row, int channels) : row_(row), channels_(channels) {
    if constexpr (Form::kIsWide) {
#pragma unroll
      for (int j = 0; j < Form::kN; ++j) {
        const int column = column_of<Form>(j);
        if (column < channels)
          held_[j] = load_words<4>(row + column);
        else
          held_[j] = {};
      }
    }
  }

  __device__ Vector<Form::kV> operator[](int j) const {
    if constexpr (Form::kIsWide) {
      return unpacked<T, Form::kV>(held_[j]);
    } else {
      Vector<Form::kV> to;
      const int column = column_of<Form>(j);
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) to.v[e] = column + e < channels_ ? load_element(row_ + column + e) : 0.0F;
      return to;
    }
  }

 private:
  const T* row_;
  int channels_;
  /// Unused in the narrow form.
  Words<4> held_[Form::kIsWide ? Form::kN : 1];
};

/// Writes vector j of a row, rounded once.
template <class Form, class T>
__device__ inline void store_vector(T* row, int j, int channels, const Vector<Form::kV>& from) {
  const int column = column_of<Form>(j);
  if constexpr (Form::kIsWide) {
    if (column < channels) store<Form::kV>(row + column, from);
  } else {
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) {
      if (column + e < channels) store_element(row + column + e, from.v[e]);
    }
  }
}

/// Sums over the rows of a block for each of a thread's columns, in the order of the rows. They are a row of f32 in
/// memory in the end: the wide form writes it in finish(), the narrow form adds to it from the start.
template <class Form>
class ColumnSums {
 public:
  /// `row`: where the sums go; no other thread touches this thread's columns of it.
  __device__ ColumnSums(float* row, int channels) : row_(row), channels_(channels) {
    if constexpr (!Form::kIsWide) {
      for (int j = 0; j < vectors_of<Form>(channels); ++j) store_vector<Form>(row, j, channels, {});
    }
  }

  /// Adds to the columns of vector j.
  __device__ void add(int j, const Vector<Form::kV>& values) {
    if constexpr (Form::kIsWide) {
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) sums_[j].v[e] += values.v[e];
    } else {
      const int column = column_of<Form>(j);
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) {
        if (column + e < channels_) row_[column + e] += values.v[e];
      }
    }
  }

  /// All threads of the block take part.
  __device__ void finish() const {
    if constexpr (Form::kIsWide) {
#pragma unroll
      for (int j = 0; j < Form::kN; ++j) store_sums<Form::kV>(row_, column_of<Form>(j), channels_, sums_[j]);
    }
  }

 private:
  float* row_;
  int channels_;
  /// Unused in the narrow form.
  Vector<Form::kV> sums_[Form::kIsWide ? Form::kN : 1] = {};
};

/// Shared memory of block_sum for K sums at once.
template <int K>
struct SumSpace {
  float partials[2][K][kWarp];
};

/// Replaces each of K values by its sum over the threads of a row, in a fixed order; every thread gets the same bits.
/// A row of one warp needs no barrier and may share its block with others. Else all threads of the block call it, and
/// `buffer` is 0 at the first call, a variable of the thread that only this function changes.
///
/// One barrier a call is enough: calls n and n + 1 write different halves of `space`. Call n + 2 writes the half of
/// call n again, but a warp gets there only behind barrier n + 1, and a warp arrives at that barrier only when it has
/// read all it wants of call n.
template <int K>
__device__ inline void block_sum(float (&values)[K], SumSpace<K>& space, int& buffer) {
#pragma unroll
  for (int k = 0; k < K; ++k) values[k] = warp_sum(values[k]);
  if (blockDim.x == kWarp) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  float(&partials)[K][kWarp] = space.partials[buffer];
  if (lane == 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) partials[k][warp] = values[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < K; ++k) values[k] = warp_sum(lane < warps ? partials[k][lane] : 0.0F);
  buffer ^= 1;
}

}  // namespace troupe::kernels::cuda
