// RMS norm with rotation. Forward: a block a row (four rows where a warp holds one), which stays in registers between
// the sum and the output: 4 bytes an element for bf16, and two f32 tables of angles, half a head a token, that all
// heads share. Backward: a block takes 32 rows with the gain's sums in registers; the next row is on its way while this
// one is summed. 6 bytes an element for bf16, and 4 bytes a column and 32 rows for the parts. All bound by memory.
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/row_block.h"
#include "kernels/cuda/row_pipe.h"

namespace troupe::kernels::cuda {

namespace {

/// Rows of a block of the backward, and of a part of the gain's gradient.
constexpr std::int64_t kPartRows = 32;

/// A rotation as the kernels take it. tokens is 1 where there is none.
struct Turn {
  const float *cos, *sin;
  unsigned tokens;
  int head_dim;

  template <class T>
  explicit Turn(const Rotation<T>& of)
      : cos(of.cos),
        sin(of.sin),
        tokens(of.cos == nullptr ? 1 : static_cast<unsigned>(of.tokens < kMaxBlocks ? of.tokens : kMaxBlocks)),
        head_dim(static_cast<int>(of.head_dim)) {}
};

/// Rotates the pairs of a vector that starts at `column` by `sign` times the angles of the row's token. A vector is
/// inside one head: heads are whole vectors, and a pair is never parted.
template <int V>
__device__ void rotate(Vector<V>& v, const Turn& turn, unsigned row, int column, float sign) {
  const auto in_head = static_cast<unsigned>(column) % static_cast<unsigned>(turn.head_dim);
  const std::int64_t at = std::int64_t{row % turn.tokens} * (turn.head_dim / 2) + in_head / 2;
  const auto cos = load<V / 2>(turn.cos + at), sin = load<V / 2>(turn.sin + at);
#pragma unroll
  for (int p = 0; p < V / 2; ++p) {
    const float even = v.v[2 * p], odd = v.v[2 * p + 1], s = sign * sin.v[p];
    v.v[2 * p] = even * cos.v[p] - odd * s;
    v.v[2 * p + 1] = even * s + odd * cos.v[p];
  }
}

template <class Form, class T>
__global__ __launch_bounds__(Form::kMaxThreads) void rms_norm_rows(unsigned rows, int channels, const T* __restrict__ x,
                                                                   std::int64_t x_stride, const T* __restrict__ gain,
                                                                   float eps, Turn turn, T* __restrict__ y,
                                                                   float* __restrict__ rstd) {
  __shared__ SumSpace<1> space;
  int buffer = 0;
  const unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // the same for all threads of a row
  const int vectors = vectors_of<Form>(channels);
  const RowVectors<Form, T> values(x + row * x_stride, channels);
  const RowVectors<Form, T> gains(gain, channels);

  float squares[1] = {};
#pragma unroll Form::kUnroll
  for (int j = 0; j < vectors; ++j) {
    const auto v = values[j];
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) squares[0] += v.v[e] * v.v[e];
  }
  block_sum(squares, space, buffer);
  const float r = 1.0F / sqrtf(squares[0] / static_cast<float>(channels) + eps);
  if (threadIdx.x == 0) rstd[row] = r;

  T* out_row = y + std::int64_t{row} * channels;
#pragma unroll Form::kUnroll
  for (int j = 0; j < vectors; ++j) {
    const auto v = values[j], g = gains[j];
    Vector<Form::kV> out;
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) out.v[e] = rounded<T>(rounded<T>(v.v[e] * r) * g.v[e]);
    if (turn.cos != nullptr && column_of<Form>(j) < channels) rotate(out, turn, row, column_of<Form>(j), 1.0F);
    store_vector<Form>(out_row, j, channels, out);
  }
}

template <class Form, class T>
__global__ __launch_bounds__(Form::kMaxThreads) void rms_norm_gradient(
    unsigned rows, int channels, const T* __restrict__ dy, const T* __restrict__ x, std::int64_t x_stride,
    const T* __restrict__ gain, const float* __restrict__ rstd, Turn turn, T* __restrict__ dx, std::int64_t dx_stride,
    float* __restrict__ parts) {
  __shared__ SumSpace<1> space;
  extern __shared__ uint4 pipe_space[];
  int buffer = 0;
  const unsigned begin = blockIdx.x * static_cast<unsigned>(kPartRows);
  const unsigned end = rows - begin < kPartRows ? rows : begin + static_cast<unsigned>(kPartRows);
  RowPipe<Form, T> pipe(pipe_space, channels, dy + std::int64_t{begin} * channels, x + begin * x_stride);
  const RowVectors<Form, T> gains(gain, channels);
  ColumnSums<Form> dgain(parts + std::int64_t{blockIdx.x} * channels, channels);
  const int vectors = vectors_of<Form>(channels);
  for (unsigned row = begin; row < end; ++row) {
    const float r = __ldg(rstd + row);
    pipe.advance(row + 1 < end, dy + (std::int64_t{row} + 1) * channels, x + (std::int64_t{row} + 1) * x_stride);
    const auto rotated_back = [&](int j) {
      auto d = pipe.first(j);
      if (turn.cos != nullptr && column_of<Form>(j) < channels) rotate(d, turn, row, column_of<Form>(j), -1.0F);
      return d;
    };

    // both are zero behind the row's end
    float dot[1] = {};
#pragma unroll Form::kUnroll
    for (int j = 0; j < vectors; ++j) {
      const auto d = rotated_back(j), v = pipe.second(j), g = gains[j];
      Vector<Form::kV> to_gain;
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) {
        const float normed = v.v[e] * r;
        dot[0] += d.v[e] * g.v[e] * normed;
        to_gain.v[e] = d.v[e] * normed;
      }
      dgain.add(j, to_gain);
    }
    block_sum(dot, space, buffer);
    const float mean_dot = dot[0] / static_cast<float>(channels);

#pragma unroll Form::kUnroll
    for (int j = 0; j < vectors; ++j) {
      const auto d = rotated_back(j), v = pipe.second(j), g = gains[j];
      Vector<Form::kV> out;
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) out.v[e] = (d.v[e] * g.v[e] - v.v[e] * r * mean_dot) * r;
      store_vector<Form>(dx + row * dx_stride, j, channels, out);
    }
  }
  dgain.finish();
}

template <class Form, class T>
void enqueue_forward(std::int64_t rows, int channels, const T* x, std::int64_t x_stride, const T* gain, float eps,
                     const Turn& turn, T* y, float* rstd, cudaStream_t stream) {
  const unsigned threads = row_threads<Form>(channels), together = rows_per_block(threads);
  rms_norm_rows<Form><<<static_cast<unsigned>(parts_of(rows, together)), dim3(threads, together), 0, stream>>>(
      static_cast<unsigned>(rows), channels, x, x_stride, gain, eps, turn, y, rstd);
}

template <class Form, class T>
cudaError_t enqueue_backward(std::int64_t rows, int channels, const T* dy, const T* x, std::int64_t x_stride,
                             const T* gain, const float* rstd, const Turn& turn, T* dx, std::int64_t dx_stride,
                             float* parts, cudaStream_t stream) {
  const unsigned threads = row_threads<Form>(channels), bytes = pipe_bytes<Form>(threads);
  if (const auto error = allow_shared(rms_norm_gradient<Form, T>, bytes); error != cudaSuccess) return error;
  rms_norm_gradient<Form><<<static_cast<unsigned>(parts_of(rows, kPartRows)), threads, bytes, stream>>>(
      static_cast<unsigned>(rows), channels, dy, x, x_stride, gain, rstd, turn, dx, dx_stride, parts);
  return cudaGetLastError();
}

template <class T>
bool is_valid(std::int64_t rows, std::int64_t channels, const Rotation<T>& rotation) {
  if (!takes(rows, channels)) return false;
  if (rotation.cos == nullptr && rotation.sin == nullptr) return true;
  return rotation.cos != nullptr && rotation.sin != nullptr && rotation.tokens > 0 && rotation.head_dim > 0 &&
         rotation.head_dim % 2 == 0 && channels % rotation.head_dim == 0;
}

/// Whether rows of that many channels and their angles can be read as whole vectors, as far as the sizes go.
template <class T>
bool takes_wide(std::int64_t channels, const Rotation<T>& rotation) {
  return fits_wide<Wide<T>>(channels) && rotation.head_dim % Wide<T>::kV == 0;
}

}  // namespace

template <class T>
cudaError_t launch_rms_norm_forward(std::int64_t rows, std::int64_t channels, const T* x, std::int64_t x_stride,
                                    const T* gain, double eps, const Rotation<T>& rotation, T* y, float* rstd,
                                    cudaStream_t stream) {
  if (!is_valid(rows, channels, rotation)) return cudaErrorInvalidValue;
  if (rows <= 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  const Turn turn(rotation);
  if (takes_wide<T>(channels, rotation) && x_stride % Wide<T>::kV == 0 &&
      are_aligned(x, gain, rotation.cos, rotation.sin, y))
    enqueue_forward<Wide<T>>(rows, n, x, x_stride, gain, static_cast<float>(eps), turn, y, rstd, stream);
  else
    enqueue_forward<Narrow>(rows, n, x, x_stride, gain, static_cast<float>(eps), turn, y, rstd, stream);
  return cudaGetLastError();
}

std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t channels) {
  return parts_of(rows, kPartRows) * channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T>
cudaError_t launch_rms_norm_backward(std::int64_t rows, std::int64_t channels, const T* dy, const T* x,
                                     std::int64_t x_stride, const T* gain, const float* rstd,
                                     const Rotation<T>& rotation, T* dx, std::int64_t dx_stride, float* dgain,
                                     void* scratch, cudaStream_t stream) {
  if (!is_valid(rows, channels, rotation)) return cudaErrorInvalidValue;
  if (channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  const Turn turn(rotation);
  auto* parts = static_cast<float*>(scratch);
  if (rows > 0) {
    const bool wide = takes_wide<T>(channels, rotation) && x_stride % Wide<T>::kV == 0 &&
                      dx_stride % Wide<T>::kV == 0 && are_aligned(dy, x, gain, rotation.cos, rotation.sin, dx, parts);
    const auto error =
        wide ? enqueue_backward<Wide<T>>(rows, n, dy, x, x_stride, gain, rstd, turn, dx, dx_stride, parts, stream)
             : enqueue_backward<Narrow>(rows, n, dy, x, x_stride, gain, rstd, turn, dx, dx_stride, parts, stream);
    if (error != cudaSuccess) return error;
  }
  return launch_part_sums(parts, rows > 0 ? parts_of(rows, kPartRows) : 0, nullptr, 1, channels, dgain, nullptr,
                          stream);
}

#define TROUPE_RMS_NORM(T)                                                                                       \
  template cudaError_t launch_rms_norm_forward<T>(std::int64_t, std::int64_t, const T*, std::int64_t, const T*,  \
                                                  double, const Rotation<T>&, T*, float*, cudaStream_t);         \
  template cudaError_t launch_rms_norm_backward<T>(std::int64_t, std::int64_t, const T*, const T*, std::int64_t, \
                                                   const T*, const float*, const Rotation<T>&, T*, std::int64_t, \
                                                   float*, void*, cudaStream_t);
TROUPE_RMS_NORM(float)
TROUPE_RMS_NORM(simd::Bf16)
#undef TROUPE_RMS_NORM

}  // namespace troupe::kernels::cuda
