// Layer norm with modulation. Forward: a block a row, which stays in registers between the mean, the deviations and
// the output, so each matrix is read or written once: 4 bytes an element for bf16. Backward: a block a run of up to 32
// rows with the columns' sums of both tables in registers; the next row is on its way while this one is summed. 6 bytes
// an element for bf16, and 8 bytes a column and run for the parts of the tables. All bound by memory.
#include "kernels/cuda/modulated_norm.h"
#include "kernels/cuda/part_sums.h"
#include "kernels/cuda/row_block.h"
#include "kernels/cuda/row_pipe.h"

namespace troupe::kernels::cuda {

namespace {

template <class Form, class T>
__global__ __launch_bounds__(Form::kMaxThreads) void modulated_norm_rows(const DeviceRun* __restrict__ runs,
                                                                         int channels, const T* __restrict__ x,
                                                                         Table<T> factor, Table<T> shift, float eps,
                                                                         T* __restrict__ y, float* __restrict__ stats) {
  __shared__ SumSpace<1> space;
  int buffer = 0;
  const RowRun run = load_run(runs + blockIdx.x);
  const std::int64_t row = run.begin + static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row >= run.end) return;  // the same for all threads of a row

  const int vectors = vectors_of<Form>(channels);
  // all reads on their way before the first sum
  const RowVectors<Form, T> values(x + row * channels, channels);
  const RowVectors<Form, T> factors(factor.data + run.table * factor.stride, channels);
  const RowVectors<Form, T> shifts(shift.data + run.table * shift.stride, channels);

  float sum[1] = {};
#pragma unroll Form::kUnroll
  for (int j = 0; j < vectors; ++j) {
    const auto v = values[j];
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) sum[0] += v.v[e];
  }
  block_sum(sum, space, buffer);
  const float mean = sum[0] / static_cast<float>(channels);

  float squares[1] = {};
#pragma unroll Form::kUnroll
  for (int j = 0; j < vectors; ++j) {
    const auto v = values[j];
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) {
      const float d = has_element<Form>(j, e, channels) ? v.v[e] - mean : 0.0F;
      squares[0] += d * d;
    }
  }
  block_sum(squares, space, buffer);
  const float rstd = 1.0F / sqrtf(squares[0] / static_cast<float>(channels) + eps);

#pragma unroll Form::kUnroll
  for (int j = 0; j < vectors; ++j) {
    const auto v = values[j], f = factors[j], s = shifts[j];
    Vector<Form::kV> out;
#pragma unroll
    for (int e = 0; e < Form::kV; ++e) out.v[e] = (v.v[e] - mean) * rstd * f.v[e] + s.v[e];
    store_vector<Form>(y + row * channels, j, channels, out);
  }
  if (threadIdx.x == 0) {
    stats[2 * row] = mean;
    stats[2 * row + 1] = rstd;
  }
}

template <class Form, class T>
__global__ __launch_bounds__(Form::kMaxThreads) void modulated_norm_gradient(
    const DeviceRun* __restrict__ runs, int channels, const T* __restrict__ dy, const T* __restrict__ x,
    Table<T> factor, const float* __restrict__ stats, T* __restrict__ dx, float* __restrict__ parts) {
  __shared__ SumSpace<2> space;
  extern __shared__ uint4 pipe_space[];
  int buffer = 0;
  const RowRun run = load_run(runs + blockIdx.x);
  RowPipe<Form, T> rows(pipe_space, channels, dy + run.begin * channels, x + run.begin * channels);
  const RowVectors<Form, T> factors(factor.data + run.table * factor.stride, channels);
  ColumnSums<Form> dfactor(parts + std::int64_t{blockIdx.x} * channels, channels);
  ColumnSums<Form> dshift(parts + (std::int64_t{gridDim.x} + blockIdx.x) * channels, channels);
  const int vectors = vectors_of<Form>(channels);
  for (std::int64_t row = run.begin; row < run.end; ++row) {
    const float mean = __ldg(stats + 2 * row), rstd = __ldg(stats + 2 * row + 1);
    rows.advance(row + 1 < run.end, dy + (row + 1) * channels, x + (row + 1) * channels);

    // sums of g and of g * normed; dy is zero behind the row's end, and so are all of these
    float sums[2] = {};
#pragma unroll Form::kUnroll
    for (int j = 0; j < vectors; ++j) {
      const auto d = rows.first(j), v = rows.second(j), f = factors[j];
      Vector<Form::kV> to_factor;
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) {
        const float normed = (v.v[e] - mean) * rstd, g = d.v[e] * f.v[e];
        sums[0] += g;
        sums[1] += g * normed;
        to_factor.v[e] = d.v[e] * normed;
      }
      dfactor.add(j, to_factor);
      dshift.add(j, d);
    }
    block_sum(sums, space, buffer);
    const float mean_g = sums[0] / static_cast<float>(channels), mean_dot = sums[1] / static_cast<float>(channels);

#pragma unroll Form::kUnroll
    for (int j = 0; j < vectors; ++j) {
      const auto d = rows.first(j), v = rows.second(j), f = factors[j];
      Vector<Form::kV> out;
#pragma unroll
      for (int e = 0; e < Form::kV; ++e) {
        const float normed = (v.v[e] - mean) * rstd, g = d.v[e] * f.v[e];
        out.v[e] = (g - mean_g - normed * mean_dot) * rstd;
      }
      store_vector<Form>(dx + row * channels, j, channels, out);
    }
  }
  dfactor.finish();
  dshift.finish();
}

template <class Form, class T>
void enqueue_forward(const DeviceRuns& runs, int channels, const T* x, Table<T> factor, Table<T> shift, float eps, T* y,
                     float* stats, cudaStream_t stream) {
  const unsigned threads = row_threads<Form>(channels), together = rows_per_block(threads);
  const dim3 grid(static_cast<unsigned>(runs.count), static_cast<unsigned>(kMaxRunRows) / together);
  modulated_norm_rows<Form>
      <<<grid, dim3(threads, together), 0, stream>>>(runs.runs, channels, x, factor, shift, eps, y, stats);
}

template <class Form, class T>
cudaError_t enqueue_backward(const DeviceRuns& runs, int channels, const T* dy, const T* x, Table<T> factor,
                             const float* stats, T* dx, float* parts, cudaStream_t stream) {
  const unsigned threads = row_threads<Form>(channels), bytes = pipe_bytes<Form>(threads);
  if (const auto error = allow_shared(modulated_norm_gradient<Form, T>, bytes); error != cudaSuccess) return error;
  modulated_norm_gradient<Form><<<static_cast<unsigned>(runs.count), threads, bytes, stream>>>(
      runs.runs, channels, dy, x, factor, stats, dx, parts);
  return cudaGetLastError();
}

}  // namespace

template <class T>
cudaError_t launch_modulated_norm_forward(const DeviceRuns& runs, std::int64_t channels, const T* x, Table<T> factor,
                                          Table<T> shift, double eps, T* y, float* stats, cudaStream_t stream) {
  using Form = Wide<T>;
  if (!takes(runs.count, channels)) return cudaErrorInvalidValue;
  if (runs.count <= 0 || channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  if (fits_wide<Form>(channels) && factor.stride % Form::kV == 0 && shift.stride % Form::kV == 0 &&
      are_aligned(x, factor.data, shift.data, y))
    enqueue_forward<Form>(runs, n, x, factor, shift, static_cast<float>(eps), y, stats, stream);
  else
    enqueue_forward<Narrow>(runs, n, x, factor, shift, static_cast<float>(eps), y, stats, stream);
  return cudaGetLastError();
}

std::int64_t modulated_norm_backward_scratch_bytes(std::int64_t runs, std::int64_t channels) {
  return 2 * runs * channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T>
cudaError_t launch_modulated_norm_backward(const DeviceRuns& runs, std::int64_t channels, const T* dy, const T* x,
                                           Table<T> factor, const float* stats, T* dx, float* dfactor, float* dshift,
                                           void* scratch, cudaStream_t stream) {
  using Form = Wide<T>;
  if (!takes(runs.count, channels) || runs.table_rows > kMaxBlocks) return cudaErrorInvalidValue;
  if (channels == 0) return cudaSuccess;
  const int n = static_cast<int>(channels);
  auto* parts = static_cast<float*>(scratch);
  if (runs.count > 0) {
    const bool wide =
        fits_wide<Form>(channels) && factor.stride % Form::kV == 0 && are_aligned(dy, x, factor.data, dx, parts);
    const auto error = wide ? enqueue_backward<Form>(runs, n, dy, x, factor, stats, dx, parts, stream)
                            : enqueue_backward<Narrow>(runs, n, dy, x, factor, stats, dx, parts, stream);
    if (error != cudaSuccess) return error;
  }
  return launch_part_sums(parts, runs.count, runs.first, runs.table_rows, channels, dfactor, dshift, stream);
}

#define TROUPE_MODULATED_NORM(T)                                                                                       \
  template cudaError_t launch_modulated_norm_forward<T>(const DeviceRuns&, std::int64_t, const T*, Table<T>, Table<T>, \
                                                        double, T*, float*, cudaStream_t);                             \
  template cudaError_t launch_modulated_norm_backward<T>(const DeviceRuns&, std::int64_t, const T*, const T*,          \
                                                         Table<T>, const float*, T*, float*, float*, void*,            \
                                                         cudaStream_t);
TROUPE_MODULATED_NORM(float)
TROUPE_MODULATED_NORM(simd::Bf16)
#undef TROUPE_MODULATED_NORM

}  // namespace troupe::kernels::cuda
