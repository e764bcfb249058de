#pragma once

#include <cstdint>
#include <span>

#include "base/namespaces.h"
#include "kernels/dense_layer.h"

namespace troupe::kernels {

/// A product of a matrix a [m, k], whose rows and columns may lie anywhere, and one panel b [k, n] of rows of numbers:
///     c[m][n] = start + sum over k of a[m][k] * b[k][n]
/// Each sum is one chain of fused multiply-adds, k ascending. With `add` it begins at 0 and is added to c when it is
/// complete.
struct PanelProduct {
  std::int64_t m, n, k;
  /// a[m][k] is a[m * a_row + k * a_column]; one of the two is 1.
  const float* a;
  std::int64_t a_row, a_column;
  /// Elements from one row to the next; rows of b and c are dense.
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  /// What the sums of a row of c, or of a column, begin with; 0 without. At most one of them.
  const float* row_start = nullptr;
  const float* column_start = nullptr;
  bool add = false;
};

/// The loops of a dense layer, compiled for one instruction set. All give the same bits: the same operations in the
/// same order, without contraction.
struct DenseCode {
  /// "avx512", "avx2", "plain".
  const char* name;
  /// Floats of one vector, and the most vectors that a panel has.
  std::int64_t lanes, panel_vectors;

  /// n is at most lanes * panel_vectors.
  void (*product)(const PanelProduct& p);
  /// to[j][i] = from[i][j] for `rows` x `columns` numbers of `from`. Strides are elements from row to row.
  void (*transpose)(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_row, float* to,
                    std::int64_t to_row);
  /// y[i] = f(x[i]); y may be x.
  void (*activate)(DenseActivation f, std::int64_t count, const float* x, float* y);
  /// d[i] *= f' where f has the value h[i].
  void (*multiply_slope)(DenseActivation f, std::int64_t count, const float* h, float* d);
  /// sums[j] of the columns of d [rows, columns], as dense_backward_params says of db.
  void (*sum_columns)(std::int64_t rows, std::int64_t columns, const float* d, float* sums);
};

/// One per instruction set; used through dense_codes() only, because the processor must have it.
extern const DenseCode kDensePlain, kDenseAvx2, kDenseAvx512;

}  // namespace troupe::kernels
