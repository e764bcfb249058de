#pragma once

#include <cstdint>
#include <vector>

#include "kernels/element.h"
#include "kernels/row_runs.h"
#include "kernels/row_tables.h"

namespace troupe::kernels::cpu {

// The CPU code of the row-wise operators, on plain pointers. T is float, double or simd::Bf16; A what it is computed
// in. Matrices are row-major and, where no stride is given, dense: x[row * channels + c]. Tables have `channels` values
// in each row and any distance between rows. Threads share the runs or rows; results do not depend on their number.

/// The type that T is computed in: float, or double for double.
/// dshift is the sum of dy, dfactor that of dy * (x - mean) * rstd, over the rows that use the table row.
template <class T>
using Acc = simd::Accumulate<T>;

/// y = (x - mean) * rstd * factor[run.table] + shift[run.table]; stats[row] = {mean, rstd}.
/// Runs are those of row_runs(); stats holds two numbers for each row of x and may be read by the backward alone.
template <class T>
void modulated_norm_forward(const std::vector<RowRun>& runs, std::int64_t channels, const T* x, Table<T> factor,
                            Table<T> shift, double eps, T* y, Acc<T>* stats, int threads);
/// dx, and dfactor, dshift [table rows, channels] summed over the runs in their order.
/// Gradients of tables are written whole, not added to.
template <class T>
void modulated_norm_backward(const std::vector<RowRun>& runs, std::int64_t channels, std::int64_t table_rows,
                             const T* dy, const T* x, Table<T> factor, const Acc<T>* stats, T* dx, Acc<T>* dfactor,
                             Acc<T>* dshift, int threads);

/// y = rotate(round(round(x * rstd) * gain)); rstd[row] = 1 / sqrt(mean(x^2) + eps).
/// rstd has one number for each row. Rows of x, and of dx below, begin `stride` elements apart.
template <class T>
void rms_norm_forward(std::int64_t rows, std::int64_t channels, const T* x, std::int64_t x_stride, const T* gain,
                      double eps, const Rotation<T>& rotation, T* y, Acc<T>* rstd, int threads);
/// dx, and dgain [channels].
/// The rotation is undone first (its transpose), then as for a norm without one. dgain is written whole.
template <class T>
void rms_norm_backward(std::int64_t rows, std::int64_t channels, const T* dy, const T* x, std::int64_t x_stride,
                       const T* gain, const Acc<T>* rstd, const Rotation<T>& rotation, T* dx, std::int64_t dx_stride,
                       Acc<T>* dgain, int threads);

/// out = round(x + round(y * gate[run.table])).
/// Rounds twice, as a product and a sum of tensors of type T would.
template <class T>
void gated_residual_forward(const std::vector<RowRun>& runs, std::int64_t channels, const T* x, const T* y,
                            Table<T> gate, T* out, int threads);
/// dy = dout * gate, and dgate [table rows, channels].
/// The gradient of x is dout itself and is not written.
template <class T>
void gated_residual_backward(const std::vector<RowRun>& runs, std::int64_t channels, std::int64_t table_rows,
                             const T* dout, const T* y, Table<T> gate, T* dy, Acc<T>* dgate, int threads);

/// y = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3))).
/// Any count; the last vector may be short.
template <class T>
void gelu_tanh_forward(std::int64_t count, const T* u, T* y, int threads);
/// du = dy * dy/du, from u again: nothing of the forward is kept.
template <class T>
void gelu_tanh_backward(std::int64_t count, const T* dy, const T* u, T* du, int threads);

/// y[row] = round(x[row] + bias), x in A or in T.
template <class T, class S>
void add_bias(std::int64_t rows, std::int64_t channels, const S* x, const T* bias, T* y, int threads);

/// sum [channels] of all rows, in A.
template <class T>
void sum_rows(std::int64_t rows, std::int64_t channels, const T* x, Acc<T>* sum, int threads);

/// row_sums[row] = sum over the row of c (x - target)^2; c one number for each row, or with `of_elements` as many as x.
/// Squares are added in A.
template <class T>
void squared_error_forward(std::int64_t rows, std::int64_t channels, const T* x, const Acc<T>* target, const Acc<T>* c,
                           bool of_elements, Acc<T>* row_sums, int threads);
/// dx = scale * 2 c (x - target), rounded once.
template <class T>
void squared_error_backward(std::int64_t rows, std::int64_t channels, const T* x, const Acc<T>* target, const Acc<T>* c,
                            bool of_elements, Acc<T> scale, T* dx, int threads);

}  // namespace troupe::kernels::cpu
