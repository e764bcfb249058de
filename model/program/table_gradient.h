#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/row_runs.h"
#include "model/program/gradient.h"
#include "model/program/graph.h"

namespace troupe::model {

// What the operations that read a row of a small table for each token share. A table is [B, R, d], or a parameter [d]
// that serves all rows.

/// Runs of the rows of x [B, N, d] that read one row of the table (kernels/row_runs.h); table_row: i32 [N], or
/// undefined.
std::vector<RowRun> table_runs(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& table,
                               const at::Tensor& table_row);

/// Where to write the gradient of a table, f32 (f64 for f64), and, once that is recorded, its use.
ValueId begin_table_gradient(GradientBuilder& gradients, ValueId table);
void end_table_gradient(GradientBuilder& gradients, ValueId table, ValueId gradient);

}  // namespace troupe::model
